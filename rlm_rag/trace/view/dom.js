// Elements made of texts; nothing here turns a text into markup.
const Dom = (() => {
  const STEP_CHARS = 20000;
  const STEP_ITEMS = 60;
  const LONG_STEP_CHARS = 100000;
  const PYTHON = new RegExp(
    [
      "(?<comment>#[^\\n]*)",
      "(?<string>[rbfuRBFU]{0,2}(?:\"\"\"[\\s\\S]*?(?:\"\"\"|$)|'''[\\s\\S]*?(?:'''|$)|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?))",
      "(?<keyword>\\b(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)\\b)",
      "(?<number>\\b\\d[\\w.]*)",
      "(?<call>\\b[A-Za-z_]\\w*(?=\\())",
    ].join("|"),
    "g",
  );

  /** An element with attributes and children; strings become text. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function button(label, action, attributes = {}) {
    const made = make("button", { type: "button", ...attributes }, label);
    made.addEventListener("click", action);
    return made;
  }

  /** Python with its words coloured, as a fragment. */
  function coloured(code) {
    const fragment = document.createDocumentFragment();
    let at = 0;
    for (const match of code.matchAll(PYTHON)) {
      const [kind] = Object.entries(match.groups).find(([, text]) => text !== undefined);
      fragment.append(code.slice(at, match.index), make("span", { class: `py-${kind}` }, match[0]));
      at = match.index + match[0].length;
    }
    fragment.append(code.slice(at));
    return fragment;
  }

  /** A text in steps, so that one of megabytes costs nobody who does not ask for it. */
  function long(text, form) {
    const block = make("pre", { class: `text ${form}` });
    const box = make("div", { class: "long" }, block);
    let shown = 0;
    const more = button("", () => grow(LONG_STEP_CHARS), { class: "quiet more" });
    function grow(step) {
      let end = Math.min(text.length, shown + step);
      // Not between the halves of a character.
      if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1])) end -= 1;
      const piece = text.slice(shown, end);
      block.append(form === "code" ? coloured(piece) : piece);
      shown = end;
      more.textContent = `Show more: ${Show.count(text.length - shown)} characters are left`;
      more.hidden = shown >= text.length;
    }
    grow(STEP_CHARS);
    if (shown < text.length) box.append(more);
    return box;
  }

  /** Put the first of many items into a box, and give the button that puts the next. */
  function gradually(box, items, element) {
    let shown = 0;
    const more = button("", grow, { class: "quiet more" });
    function grow() {
      box.append(...items.slice(shown, shown + STEP_ITEMS).map(element));
      shown = Math.min(items.length, shown + STEP_ITEMS);
      more.textContent = `Show more: ${Show.count(items.length - shown)} are left`;
      more.hidden = shown >= items.length;
    }
    grow();
    return more;
  }

  function facts(rows) {
    const list = make("dl", { class: "facts" });
    const more = gradually(list, rows, ([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, value)),
    );
    return make("div", {}, list, more);
  }

  function hits(found) {
    if (!found.length) return make("p", { class: "note" }, "Nothing was found.");
    const list = make("ol", { class: "found" });
    const more = gradually(list, found, (hit) => {
      const head = make("div", { class: "place" }, make("code", {}, hit.place));
      if (hit.said) head.append(make("span", { class: "note" }, hit.said));
      const item = make("li", {}, head);
      if (hit.text) item.append(long(hit.text, "text"));
      return item;
    });
    return make("div", {}, list, more);
  }

  /** A part of a node as an element, by its form. */
  function part(form, value) {
    if (form === "facts") return facts(value);
    if (form === "hits") return hits(value);
    if (form === "markdown") return Markdown.render(value);
    return long(value, form);
  }

  /** A fold whose content is made when it is opened first. */
  function fold(summary, content, { open = false, className = "" } = {}) {
    const box = make("details", { class: `fold ${className}` });
    const head = make("summary", {});
    head.append(...(Array.isArray(summary) ? summary : [summary]));
    box.append(head);
    let made = false;
    function fill() {
      if (made || !box.open) return;
      made = true;
      box.append(content());
    }
    box.addEventListener("toggle", fill);
    box.open = open;
    fill();
    return box;
  }

  return { make, button, gradually, part, long, fold };
})();
