// Search in everything: titles and texts of all nodes, a slice of time after another.
const Search = (() => {
  const MOST_HITS = 300;
  const AROUND_CHARS = 70;
  const SLICE_MS = 12;
  const WAIT_MS = 150;
  const query = document.getElementById("query");
  const found = document.getElementById("found");
  const list = document.getElementById("hits");
  let run = 0;
  let timer = 0;
  let owners = null;

  const pattern = (words) => new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu");

  /** Texts in the order of their payloads, each with the first node that has it. */
  function texts() {
    if (owners) return owners;
    const seen = new Set();
    owners = [];
    Data.nodes.parts.forEach((parts, node) => {
      for (const [label, , payload] of parts) {
        if (!seen.has(payload)) owners.push([payload, node, label]);
        seen.add(payload);
      }
    });
    return owners;
  }

  const flat = (value) => (typeof value === "string" ? value : value.map((each) => Object.values(each).join("  ")).join("\n"));

  function show(text, match, node, label) {
    const from = Math.max(0, match.index - AROUND_CHARS);
    const end = match.index + match[0].length;
    const where = Data.path(node).slice(1).map((number) => Data.nodes.title[number].slice(0, 40)).join(" › ") || "Root";
    const piece = Dom.make("span", { class: "piece" }, (from ? "…" : "") + text.slice(from, match.index), Dom.make("mark", {}, match[0]), text.slice(end, end + 2 * AROUND_CHARS));
    const button = Dom.button("", () => Timeline.reveal(node), { class: "hit" });
    button.append(Dom.make("span", { class: "where" }, `${where}: ${label}`), piece);
    list.append(Dom.make("li", {}, button));
  }

  const breath = () => new Promise((resolve) => setTimeout(resolve));

  async function search(words) {
    run += 1;
    const mine = run;
    list.replaceChildren();
    const wanted = pattern(words);
    let total = 0;
    let last = performance.now();
    function look(text, node, label) {
      wanted.lastIndex = 0;
      const match = wanted.exec(text);
      if (!match) return;
      total += 1;
      if (total <= MOST_HITS) show(text, match, node, label);
    }
    Data.nodes.title.forEach((title, node) => look(title, node, "title"));
    for (const [payload, node, label] of texts()) {
      look(flat(Data.payload(payload)), node, label);
      if (performance.now() - last > SLICE_MS) {
        found.textContent = `Searching… ${Show.count(total)} found`;
        await breath();
        if (mine !== run) return;
        last = performance.now();
      }
    }
    const capped = total > MOST_HITS ? `, the first ${MOST_HITS} are shown` : "";
    found.textContent = total ? `Found in ${Show.count(total)} ${total === 1 ? "place" : "places"}${capped}` : "Nothing was found";
  }

  function sees(visible) {
    const results = document.getElementById("results");
    if (results.hidden !== visible) return;
    results.hidden = !visible;
    document.getElementById("steps").hidden = visible;
    if (!visible) Timeline.shown();
  }

  function changed() {
    clearTimeout(timer);
    const words = query.value.trim();
    if (!words) {
      leave();
      return;
    }
    timer = setTimeout(() => {
      Views.choose("timeline");
      document.body.classList.remove("detail");
      sees(true);
      search(words);
    }, WAIT_MS);
  }

  /** Go from the hits to the tree; the words stay, and are marked where they are shown. */
  function leave() {
    run += 1;
    sees(false);
  }

  /** Mark the words that are searched for, without touching the elements that hold them. */
  function mark(box) {
    if (!globalThis.Highlight || !CSS.highlights) return;
    const words = query.value.trim();
    const ranges = [];
    if (words) {
      const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
      while (walker.nextNode() && ranges.length < 2000) {
        for (const match of walker.currentNode.data.matchAll(pattern(words))) {
          const range = new Range();
          range.setStart(walker.currentNode, match.index);
          range.setEnd(walker.currentNode, match.index + match[0].length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  function start() {
    query.addEventListener("input", changed);
    query.addEventListener("focus", () => query.value.trim() && changed());
    query.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        query.value = "";
        changed();
        Views.focus();
      } else if (event.key === "ArrowDown" || event.key === "Enter") {
        const first = list.querySelector("button");
        if (first && !document.getElementById("results").hidden) first.focus();
        event.preventDefault();
      }
    });
    list.addEventListener("keydown", (event) => {
      const item = event.target.closest("li");
      const next = event.key === "ArrowDown" ? item?.nextSibling : event.key === "ArrowUp" ? item?.previousSibling : null;
      if (next) next.querySelector("button").focus();
      else if (event.key === "ArrowUp" || event.key === "Escape") query.focus();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  return { start, leave, mark };
})();
