// The Markdown that models write, as elements: no markup, no links and no pictures come of it.
const Markdown = (() => {
  const MOST_CHARS = 100000;
  const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)/;
  const ITEM = /^(\s*)(?:[-*+]|\d{1,9}[.)])\s+(.*)$/;
  const INLINE = /(?<ticks>`+)(?<code>[\s\S]+?)(?<!`)\k<ticks>(?!`)|\*\*(?<strong>[^*\n]+)\*\*|(?<![\w*])\*(?<em>[^*\n]+)\*(?![\w*])/g;

  /** Text with code and emphasis; `place(text)` may give what stands for a piece of plain text. */
  function inline(text, place) {
    const fragment = document.createDocumentFragment();
    const plain = (piece) => fragment.append(...(place ? place(piece) : [piece]));
    let at = 0;
    for (const match of text.matchAll(INLINE)) {
      plain(text.slice(at, match.index));
      const { code, strong, em } = match.groups;
      const tag = code !== undefined ? "code" : strong !== undefined ? "strong" : "em";
      const element = Dom.make(tag);
      if (code !== undefined) element.append(...(place ? place(code) : [code]));
      else element.append(inline(strong ?? em, place));
      fragment.append(element);
      at = match.index + match[0].length;
    }
    plain(text.slice(at));
    return fragment;
  }

  function fenced(lines, at, fence) {
    const code = [];
    let next = at + 1;
    while (next < lines.length && !lines[next].trimStart().startsWith(fence[1])) {
      code.push(lines[next]);
      next += 1;
    }
    const python = /^(repl|python|py)$/i.test(fence[2]);
    return [Dom.long(code.join("\n"), python ? "code" : "text"), next + 1];
  }

  function list(lines, at, place) {
    const ordered = /^\s*\d/.test(lines[at]);
    const made = Dom.make(ordered ? "ol" : "ul", {});
    let next = at;
    if (ordered) made.start = Number.parseInt(lines[at].trim(), 10);
    while (next < lines.length && ITEM.test(lines[next])) {
      const [, indent, first] = ITEM.exec(lines[next]);
      const text = [first];
      next += 1;
      while (next < lines.length && lines[next].trim() && !ITEM.test(lines[next]) && !FENCE.test(lines[next])) {
        text.push(lines[next].trim());
        next += 1;
      }
      const item = Dom.make("li", indent.length > 1 ? { class: "deeper" } : {});
      item.append(inline(text.join("\n"), place));
      made.append(item);
    }
    return [made, next];
  }

  function paragraph(lines, at, place) {
    const text = [];
    let next = at;
    const ends = (line) => !line.trim() || FENCE.test(line) || /^#{1,6}\s/.test(line) || ITEM.test(line);
    do {
      text.push(lines[next]);
      next += 1;
    } while (next < lines.length && !ends(lines[next]));
    const quote = text.every((line) => /^\s*>/.test(line));
    const shown = quote ? text.map((line) => line.replace(/^\s*> ?/, "")) : text;
    const made = Dom.make(quote ? "blockquote" : "p", { dir: "auto" });
    made.append(inline(shown.join("\n"), place));
    return [made, next];
  }

  /** Text as elements; one that no person wrote, by its length, is shown as it is. */
  function render(text, place) {
    if (text.length > MOST_CHARS) return Dom.long(text, "text");
    const box = Dom.make("div", { class: "prose", dir: "auto" });
    const lines = text.split("\n");
    let at = 0;
    while (at < lines.length) {
      const line = lines[at];
      const fence = FENCE.exec(line);
      const heading = /^(#{1,6})\s+(.*)$/.exec(line);
      if (!line.trim()) {
        at += 1;
        continue;
      }
      let made;
      if (fence) [made, at] = fenced(lines, at, fence);
      else if (heading) {
        made = Dom.make("p", { class: "heading" });
        made.append(inline(heading[2], place));
        at += 1;
      } else if (ITEM.test(line)) [made, at] = list(lines, at, place);
      else [made, at] = paragraph(lines, at, place);
      box.append(made);
    }
    if (!box.childNodes.length) box.append(Dom.make("p", { class: "note" }, "(nothing)"));
    return box;
  }

  return { render };
})();
