// The Markdown that models write, as elements: no markup, no links and no pictures come of it.
const Markdown = (() => {
  const MOST_CHARS = 100000;
  const MOST_COLUMNS = 100;
  const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)/;
  const ITEM = /^(\s*)(?:[-*+]|\d{1,9}[.)])\s+(.*)$/;
  const EMPHASIS = /\*\*(?<strong>[^*\n]+)\*\*|(?<![\w*])\*(?<em>[^*\n]+)\*(?![\w*])/g;

  /** Where code stands in a text: each run of backticks with the next one of its length. */
  function spans(text) {
    const runs = [...text.matchAll(/`+/g)].map((match) => [match.index, match[0].length]);
    const next = new Map();
    const closing = new Array(runs.length).fill(-1);
    for (let at = runs.length - 1; at >= 0; at -= 1) {
      closing[at] = next.get(runs[at][1]) ?? -1;
      next.set(runs[at][1], at);
    }
    const found = [];
    for (let at = 0; at < runs.length; at += 1) {
      if (closing[at] < 0) continue;
      const [[start, size], [end]] = [runs[at], runs[closing[at]]];
      found.push({ start, end: end + size, code: text.slice(start + size, end) });
      at = closing[at];
    }
    return found;
  }

  function emphasis(text, place) {
    const fragment = document.createDocumentFragment();
    let at = 0;
    for (const match of text.matchAll(EMPHASIS)) {
      const { strong, em } = match.groups;
      fragment.append(...place(text.slice(at, match.index)), Dom.make(strong ? "strong" : "em", {}, ...place(strong ?? em)));
      at = match.index + match[0].length;
    }
    fragment.append(...place(text.slice(at)));
    return fragment;
  }

  /** Text with code and emphasis; `place(text)` gives what stands for a piece of plain text. */
  function inline(text, place = (piece) => [piece]) {
    const fragment = document.createDocumentFragment();
    let at = 0;
    for (const { start, end, code } of spans(text)) {
      fragment.append(emphasis(text.slice(at, start), place), Dom.make("code", {}, ...place(code)));
      at = end;
    }
    fragment.append(emphasis(text.slice(at), place));
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

  function cells(line) {
    const row = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
    return row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
  }

  /** Whether a row of a table stands there, with the line that makes it the head of one below. */
  function isTable(lines, at) {
    const rule = lines[at + 1] ?? "";
    if (!lines[at].includes("|") || !/^[\s|:-]+$/.test(rule)) return false;
    const marks = cells(rule);
    return marks.length <= MOST_COLUMNS && marks.length === cells(lines[at]).length && marks.every((mark) => /^:?-+:?$/.test(mark));
  }

  function table(lines, at, place) {
    const sides = cells(lines[at + 1]).map((mark) => (mark.endsWith(":") ? (mark.startsWith(":") ? "middle" : "right") : ""));
    const row = (line, name) => {
      const made = Dom.make("tr", {});
      for (const [number, text] of cells(line).slice(0, sides.length).entries()) {
        const cell = Dom.make(name, sides[number] ? { class: sides[number] } : {});
        cell.append(inline(text, place));
        made.append(cell);
      }
      return made;
    };
    let next = at + 2;
    while (next < lines.length && !ends(lines[next])) next += 1;
    const body = Dom.make("tbody", {});
    const more = Dom.gradually(body, lines.slice(at + 2, next), (line) => row(line, "td"));
    const made = Dom.make("table", {}, Dom.make("thead", {}, row(lines[at], "th")), body);
    return [Dom.make("div", {}, Dom.make("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" }, made), more), next];
  }

  /** Whether a line ends the paragraph or the table before it. */
  const ends = (line) => !line.trim() || FENCE.test(line) || /^#{1,6}\s/.test(line) || ITEM.test(line);

  function paragraph(lines, at, place) {
    const text = [];
    let next = at;
    do {
      text.push(lines[next]);
      next += 1;
    } while (next < lines.length && !ends(lines[next]) && !isTable(lines, next));
    const quote = text.every((line) => /^\s*>/.test(line));
    const shown = quote ? text.map((line) => line.replace(/^\s*> ?/, "")) : text;
    const made = Dom.make(quote ? "blockquote" : "p", {});
    made.append(inline(shown.join("\n"), place));
    return [made, next];
  }

  /** Text as elements; one that no person wrote, by its length, is shown as it is. */
  function render(text, place) {
    if (text.length > MOST_CHARS) return Dom.long(text, "text");
    const box = Dom.make("div", { class: "prose" });
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
      else if (isTable(lines, at)) [made, at] = table(lines, at, place);
      else [made, at] = paragraph(lines, at, place);
      box.append(made);
    }
    if (!box.childNodes.length) box.append(Dom.make("p", { class: "note" }, "(nothing)"));
    return box;
  }

  return { render };
})();
