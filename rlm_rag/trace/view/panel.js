// The details of one node: its figures, its parts, and what it holds.
const Panel = (() => {
  const MOST_KIDS = 60;
  const FOLDED = new Set(["prompt"]);
  const QUIET = new Set(["Usage", "Options", "Limits", "Set-up", "Corpus", "Estimate", "Outcome", "Asked"]);
  const panel = document.getElementById("panel");
  let shown = -1;

  function chips(number) {
    const { nodes } = Data;
    const rows = [
      ["Start", `+${Show.seconds(nodes.start[number])}`],
      ["Time", nodes.end[number] === null ? "not ended" : Show.seconds(Data.seconds(number))],
    ];
    if (nodes.calls[number]) {
      const cached = nodes.cached[number] ? `, ${Show.count(nodes.cached[number])} of them cached` : "";
      rows.push(["Calls", Show.count(nodes.calls[number])]);
      rows.push(["Tokens in", Show.count(nodes.input[number]) + cached]);
      rows.push(["Tokens out", Show.count(nodes.output[number])]);
      rows.push(["Cost", Show.usd(nodes.usd[number])]);
    }
    const list = Dom.make("dl", { class: "chips" });
    for (const [name, value] of rows) {
      list.append(Dom.make("div", {}, Dom.make("dt", {}, name), Dom.make("dd", {}, value)));
    }
    return list;
  }

  function partsOf(number) {
    return Data.nodes.parts[number].map(([label, form, payload]) =>
      Dom.fold(label, () => Dom.part(form, Data.payload(payload)), {
        open: !QUIET.has(label) && !label.includes("system"),
      }),
    );
  }

  function figures(number) {
    const { nodes } = Data;
    const said = [Show.seconds(Data.seconds(number))];
    if (Show.tokens(number)) said.unshift(`${Show.tokens(number)} tokens`, Show.usd(nodes.usd[number]));
    return Dom.make("span", { class: "note" }, said.join(" · "));
  }

  function kid(number) {
    const { nodes } = Data;
    const kind = nodes.kind[number];
    const head = [Dom.make("span", { class: `dot k-${kind}`, "aria-hidden": "true" }), Dom.make("span", { class: "name" }, nodes.title[number]), figures(number)];
    if (nodes.state[number] === "error") head.splice(2, 0, Dom.make("span", { class: "bad" }, "failed"));
    const light = kind !== "run" && kind !== "call" && kind !== "retrieval";
    return Dom.fold(head, () => {
      const box = Dom.make("div", { class: "inner" });
      if (kind !== "run") box.append(...partsOf(number));
      box.append(...kidsOf(number));
      box.append(Dom.button("Show in the timeline", () => Timeline.reveal(number), { class: "quiet" }));
      return box;
    }, { open: light && !FOLDED.has(kind), className: "kid" });
  }

  function kidsOf(number) {
    if (Data.nodes.kind[number] === "run") return links(Data.kids[number]);
    const made = Data.kids[number].slice(0, MOST_KIDS).map(kid);
    const left = Data.kids[number].length - made.length;
    if (left > 0) made.push(Dom.make("p", { class: "note" }, `${Show.count(left)} more are in the timeline.`));
    return made;
  }

  function links(numbers) {
    if (!numbers.length) return [];
    const list = Dom.make("ul", { class: "links" });
    for (const number of numbers.slice(0, MOST_KIDS)) {
      list.append(Dom.make("li", {}, Timeline.link(number), " ", figures(number)));
    }
    return [list];
  }

  function crumbs(number) {
    const list = Dom.make("ol", { class: "crumbs" });
    for (const above of Data.path(number).slice(0, -1)) {
      const label = Data.nodes.kind[above] === "run" ? (Data.nodes.parent[above] < 0 ? "Root" : "Child") : Data.nodes.title[above];
      list.append(Dom.make("li", {}, Timeline.link(above, label)));
    }
    return list;
  }

  /** Show a node; `focus` moves there, as Enter does. */
  function show(number, { focus = false } = {}) {
    if (number !== shown) {
      shown = number;
      const title = Dom.make("h2", { tabindex: "-1" }, Data.nodes.title[number]);
      const back = Dom.button("Back to the steps", close, { class: "quiet back" });
      panel.replaceChildren(back, crumbs(number), title, chips(number));
      panel.append(...partsOf(number), ...kidsOf(number));
      panel.scrollTop = 0;
      Search.mark(panel);
    }
    if (focus) {
      document.body.classList.add("detail");
      panel.querySelector("h2").focus();
    }
  }

  /** Go back to the tree; on a narrow screen the panel covers it. */
  function close() {
    document.body.classList.remove("detail");
    Timeline.focus();
  }

  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    }
  });

  // What a fold shows when it is opened may hold what is searched for.
  panel.addEventListener("toggle", () => Search.mark(panel), true);

  return { show, close };
})();
