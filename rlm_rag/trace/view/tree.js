// The tree of steps on a time axis. Only the rows in sight are in the page.
const Timeline = (() => {
  const FIRST_ROWS = 60;
  const SPARE_ROWS = 12;
  const INDENT_REM = 0.9;
  // Where details cover the tree; as in the style.
  const narrow = matchMedia("(max-width: 56rem)");
  const { nodes, kids } = Data;
  const tree = document.getElementById("tree");
  const space = Dom.make("div", { role: "none", class: "space" });
  const grid = Dom.make("div", { class: "grid", "aria-hidden": "true" });
  const open = new Set();
  const drawn = new Map();
  let rows = [];
  let places = new Map();
  let active = Data.roots[0] ?? -1;
  let rowHeight = 0;

  function walk() {
    rows = [];
    const stack = Data.roots.map((number) => [number, 1]).reverse();
    while (stack.length) {
      const [number, level] = stack.pop();
      rows.push([number, level]);
      if (open.has(number)) {
        for (let at = kids[number].length - 1; at >= 0; at -= 1) stack.push([kids[number][at], level + 1]);
      }
    }
    places = new Map(rows.map(([number], at) => [number, at]));
  }

  /** Open from the root down, level by level, while all fits a screen or so. */
  function openFirst() {
    let level = Data.roots.filter((number) => kids[number].length);
    let count = Data.roots.length;
    while (level.length) {
      const more = level.reduce((sum, number) => sum + kids[number].length, 0);
      if (count + more > FIRST_ROWS && level[0] !== Data.roots[0]) return;
      level.forEach((number) => open.add(number));
      count += more;
      level = level.flatMap((number) => kids[number]).filter((number) => kids[number].length);
    }
  }

  const STATES = { ok: "", error: ", failed", open: ", not ended" };

  /** A figure, and after it what a screen reader says of it. */
  function figure(name, shown, said) {
    return Dom.make("span", { class: `figure ${name}` }, shown, Dom.make("span", { class: "unseen" }, said));
  }

  function bar(number) {
    const whole = Data.index.seconds || 1;
    const made = Dom.make("span", { class: "bar" });
    made.style.left = `${(100 * nodes.start[number]) / whole}%`;
    made.style.width = `${(100 * Data.seconds(number)) / whole}%`;
    return Dom.make("span", { class: "track" }, made);
  }

  function draw(at) {
    const [number, level] = rows[at];
    const siblings = Data.siblings(number);
    const row = Dom.make("div", {
      role: "treeitem",
      class: `row k-${nodes.kind[number]} ${nodes.state[number]}`,
      "aria-level": level,
      "aria-setsize": siblings.length,
      "aria-posinset": siblings.indexOf(number) + 1,
      "aria-expanded": kids[number].length ? String(open.has(number)) : null,
      "aria-selected": String(number === active),
      tabindex: number === active ? "0" : "-1",
    });
    const title = Dom.make("span", { class: "title" }, nodes.title[number]);
    const name = Dom.make("span", { class: "name" }, Dom.make("span", { class: "twist" }), Dom.make("span", { class: "dot" }), title);
    name.style.paddingLeft = `${(level - 1) * INDENT_REM}rem`;
    const tokens = Show.tokens(number);
    row.append(
      name,
      figure("tokens", tokens, tokens && " tokens"),
      figure("usd", tokens && Show.usd(nodes.usd[number]), ""),
      figure("time", Show.seconds(Data.seconds(number)), STATES[nodes.state[number]]),
      bar(number),
    );
    row.style.top = `${at * rowHeight}px`;
    row.dataset.number = number;
    return row;
  }

  function paint() {
    if (!rowHeight) return;
    const first = Math.max(0, Math.floor(tree.scrollTop / rowHeight) - SPARE_ROWS);
    const last = Math.min(rows.length - 1, Math.ceil((tree.scrollTop + tree.clientHeight) / rowHeight) + SPARE_ROWS);
    const wanted = new Set();
    for (let at = first; at <= last; at += 1) wanted.add(at);
    // The active row has the focus, wherever it was scrolled to.
    if (places.has(active)) wanted.add(places.get(active));
    for (const [at, row] of drawn) {
      if (!wanted.has(at)) {
        row.remove();
        drawn.delete(at);
      }
    }
    let before = null;
    for (const at of [...wanted].sort((one, other) => one - other)) {
      if (!drawn.has(at)) {
        const row = draw(at);
        drawn.set(at, row);
        if (before) before.after(row);
        else grid.after(row);
      }
      before = drawn.get(at);
    }
  }

  function redraw() {
    const focused = tree.contains(document.activeElement);
    walk();
    drawn.forEach((row) => row.remove());
    drawn.clear();
    // Rows are as high as the reader's letters want.
    space.style.height = "var(--row)";
    rowHeight = space.getBoundingClientRect().height;
    space.style.height = `${rows.length * rowHeight}px`;
    paint();
    if (focused) focus();
  }

  function select(number) {
    const was = drawn.get(places.get(active));
    if (was) {
      was.tabIndex = -1;
      was.setAttribute("aria-selected", "false");
    }
    active = number;
    const top = places.get(number) * rowHeight;
    if (top < tree.scrollTop) tree.scrollTop = top;
    else if (top + rowHeight > tree.scrollTop + tree.clientHeight) tree.scrollTop = top + rowHeight - tree.clientHeight;
    paint();
    const row = drawn.get(places.get(number));
    if (row) {
      row.tabIndex = 0;
      row.setAttribute("aria-selected", "true");
      row.focus({ preventScroll: true });
    }
    Panel.show(number);
  }

  function toggle(number, wanted = !open.has(number)) {
    if (!kids[number].length || open.has(number) === wanted) return;
    if (wanted) open.add(number);
    else open.delete(number);
    redraw();
    select(number);
  }

  function key(event) {
    const at = places.get(active);
    const page = Math.max(1, Math.floor(tree.clientHeight / rowHeight) - 1);
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + page, PageUp: at - page };
    if (event.key in moves) select(rows[Math.min(rows.length - 1, Math.max(0, moves[event.key]))][0]);
    else if (event.key === "ArrowRight" && kids[active].length) {
      if (open.has(active)) select(kids[active][0]);
      else toggle(active, true);
    } else if (event.key === "ArrowLeft") {
      if (open.has(active)) toggle(active, false);
      else if (nodes.parent[active] >= 0) select(nodes.parent[active]);
    } else if (event.key === "*") {
      Data.siblings(active).filter((number) => kids[number].length).forEach((number) => open.add(number));
      redraw();
      select(active);
    } else if (event.key === "Enter" || event.key === " ") Panel.show(active, { focus: true });
    else return;
    event.preventDefault();
  }

  function click(event) {
    const row = event.target.closest(".row");
    if (!row) return;
    const number = Number(row.dataset.number);
    const folds = event.target.closest(".twist") && kids[number].length;
    select(number);
    if (folds) toggle(number);
    else if (narrow.matches) Panel.show(number, { focus: true });
  }

  function drawAxis() {
    const whole = Data.index.seconds;
    const axis = document.getElementById("axis");
    const steps = [1, 2, 5].flatMap((digit) => [-3, -2, -1, 0, 1].map((power) => digit * 10 ** power));
    const step = [...steps, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400].sort((one, other) => one - other).find((each) => whole / each <= 5) ?? whole;
    if (!(step > 0)) return;
    for (let at = 0; at <= whole; at += step) {
      const tick = Dom.make("span", { class: "tick" }, at < 0.93 * whole ? Show.seconds(at) : "");
      const line = Dom.make("span", { class: "line" });
      tick.style.left = line.style.left = `${(100 * at) / whole}%`;
      axis.append(tick);
      grid.append(line);
    }
    for (const [at, pause] of Data.index.pauses) {
      const line = Dom.make("span", { class: "line pause" });
      line.style.left = `${(100 * at) / (whole || 1)}%`;
      grid.append(line);
      const said = `resumed after ${Show.seconds(pause)}`;
      document.getElementById("legend").append(Dom.make("span", { class: "resumed" }, said));
    }
  }

  /** Show a node in the tree, whatever was folded, and its details. */
  function reveal(number) {
    Views.choose("timeline");
    Search.leave();
    Data.path(number).slice(0, -1).forEach((above) => open.add(above));
    redraw();
    select(number);
    if (narrow.matches) Panel.show(number, { focus: true });
  }

  /** A button that leads to a node. */
  function link(number, label = nodes.title[number]) {
    return Dom.button(label, () => reveal(number), { class: "link" });
  }

  function start() {
    const kinds = { reply: "root model", call: "sub-model", block: "code", retrieval: "retrieval", run: "RLM", task: "task" };
    for (const [kind, said] of Object.entries(kinds)) {
      document.getElementById("legend").append(Dom.make("span", { class: `k-${kind}` }, Dom.make("span", { class: "dot" }), said));
    }
    space.append(grid);
    tree.append(space);
    drawAxis();
    openFirst();
    tree.addEventListener("scroll", paint, { passive: true });
    tree.addEventListener("keydown", key);
    tree.addEventListener("click", click);
    new ResizeObserver(() => redraw()).observe(tree);
  }

  /** What the view does when it comes into sight. */
  function shown() {
    redraw();
    if (active >= 0) Panel.show(active);
  }

  /** Move to the row that was chosen last. */
  function focus() {
    drawn.get(places.get(active))?.focus({ preventScroll: true });
  }

  return { start, shown, reveal, link, focus };
})();
