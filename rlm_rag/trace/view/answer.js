// The answer, with its citations: each opens the cited lines where it stands.
const Answer = (() => {
  // Begun where a word begins, so that a long one is looked at once.
  const PLACE = /(?<![^\s`()[\]{}"'<>])[^\s`()[\]{}"'<>]{1,512}?(?::L?|#L)\d+(?:[-–—]L?\d+)?/g;
  const SIGNS = { verified: "✓", located: "≈", false: "✗" };
  const SAID = {
    verified: "verified: the quote stands in these lines.",
    located: "located: the lines exist, without a quote that could be checked.",
    false: "false: there are no such lines, or the quote stands nowhere in them.",
  };
  const { citations } = Data.index;
  const view = document.getElementById("answer");
  let opened = 0;

  const place = ({ path, line, end_line: end }) => `${path}:${line}${end > line ? `-${end}` : ""}`;

  function lines(citation) {
    const box = Dom.make("div", { class: "passage" });
    box.append(Dom.make("p", { class: "note" }, Dom.make("code", {}, place(citation)), ` · ${SAID[citation.status] ?? citation.status} ${citation.note}`));
    if (citation.quote) box.append(Dom.make("p", { class: "quote" }, "Quoted: ", Dom.make("q", {}, citation.quote)));
    if (!citation.lines.length) return box;
    const table = Dom.make("div", { class: "source", role: "group", "aria-label": `Lines of ${citation.path}` });
    for (const [number, cited, pieces] of citation.lines) {
      const text = Dom.make("code", {});
      for (const [piece, mark] of pieces) text.append(mark ? Dom.make("mark", {}, piece) : piece);
      if (!pieces.length) text.append(Dom.make("span", { class: "note" }, "(not in the trace)"));
      table.append(Dom.make("div", { class: cited ? "line cited" : "line" }, Dom.make("span", { class: "number" }, String(number)), text));
    }
    box.append(table);
    return box;
  }

  /** A button that opens the cited lines below the paragraph, item or table that it is in. */
  function opener(number, label) {
    const citation = citations[number];
    const button = Dom.button(label, () => {
      const shown = button.getAttribute("aria-expanded") === "true";
      const known = document.getElementById(button.getAttribute("aria-controls"));
      button.setAttribute("aria-expanded", String(!shown));
      if (known) known.hidden = shown;
      else {
        const passage = lines(citation);
        passage.id = button.getAttribute("aria-controls");
        const around = button.closest("li, p, blockquote, .table") ?? button;
        if (around.tagName === "LI") around.append(passage);
        else around.after(passage);
      }
    }, { class: `cite ${citation.status}`, "aria-expanded": "false", "aria-controls": `passage-${(opened += 1)}` });
    button.append(Dom.make("span", { class: "sign", "aria-hidden": "true" }, SIGNS[citation.status] ?? "?"), Dom.make("span", { class: "unseen" }, `, ${citation.status}`));
    return button;
  }

  /** The citation that a place in the text means: of its path, with its line or the nearest one. */
  function meant(text) {
    const [, path, line] = /^(.*?)(?::L?|#L)(\d+)/.exec(text);
    let best = -1;
    citations.forEach((citation, number) => {
      if (citation.path !== path && !citation.path.endsWith(`/${path}`)) return;
      const distance = (each) => Math.abs(citations[each].line - Number(line));
      if (best < 0 || distance(number) < distance(best)) best = number;
    });
    return best;
  }

  /** Plain text with its places as buttons. */
  function withPlaces(text) {
    const pieces = [];
    let at = 0;
    for (const match of text.matchAll(PLACE)) {
      const number = meant(match[0]);
      if (number < 0) continue;
      pieces.push(text.slice(at, match.index), opener(number, match[0]));
      at = match.index + match[0].length;
    }
    pieces.push(text.slice(at));
    return pieces;
  }

  function listed() {
    const list = Dom.make("ul", { class: "citations" });
    citations.forEach((citation, number) => {
      const item = Dom.make("li", {});
      item.append(opener(number, place(citation)), Dom.make("span", { class: `state ${citation.status}` }, citation.status));
      list.append(item);
    });
    return list;
  }

  function unfinished() {
    if (Data.index.goes_on) return Dom.make("p", { class: "banner" }, "There is no last answer yet: the run went on when this view was made. The timeline has all that had happened until then; make the view again to see more.");
    const torn = Data.index.torn ? " The last line of the trace is torn." : "";
    return Dom.make("p", { class: "banner" }, `There is no answer in this trace: the run was cut off.${torn} The timeline has all that happened until then.`);
  }

  function start() {
    const { index } = Data;
    const box = Dom.make("div", { class: "answer" });
    box.append(Dom.make("h2", {}, "Question"));
    box.append(Markdown.render(index.question));
    box.append(Dom.make("h2", {}, "Answer"));
    if (index.answer === null || index.goes_on) box.append(unfinished());
    if (index.answer !== null) {
      if (index.stop_reason !== "answered" && !index.goes_on) box.append(Dom.make("p", { class: "banner" }, `The run ended by ${index.stop_reason.replaceAll("_", " ")}; this is the best answer there was.`));
      box.append(Markdown.render(index.answer, withPlaces));
      box.append(Dom.make("h2", {}, citations.length ? `Citations (${citations.length})` : "No citations"));
      if (citations.length) box.append(listed());
    }
    view.append(box);
  }

  return { start };
})();
