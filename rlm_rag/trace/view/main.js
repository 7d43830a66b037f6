// The views of the page, its head, and the keys that hold everywhere.
const Views = (() => {
  const names = ["answer", "timeline", "coverage"];
  const tab = (name) => document.getElementById(`tab-${name}`);
  let chosen = "";

  function choose(name) {
    if (name === chosen) return;
    chosen = name;
    document.body.classList.remove("detail");
    for (const each of names) {
      tab(each).setAttribute("aria-selected", String(each === name));
      tab(each).tabIndex = each === name ? 0 : -1;
      document.getElementById(each).hidden = each !== name;
    }
    if (name === "coverage" && !document.getElementById(name).firstChild) Coverage.start();
    if (name === "timeline") Timeline.shown();
  }

  function focus() {
    if (chosen === "timeline") Timeline.focus();
    else document.getElementById(chosen).focus();
  }

  function start() {
    names.forEach((name, at) => {
      tab(name).addEventListener("click", () => choose(name));
      tab(name).addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = names[(at + step + names.length) % names.length];
        choose(next);
        tab(next).focus();
      });
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, textarea");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        document.getElementById("query").focus();
        event.preventDefault();
      } else if (event.key === "Escape" && document.body.classList.contains("detail")) Panel.close();
    });
  }

  return { start, choose, focus };
})();

function showHead() {
  const { index, nodes, roots } = Data;
  document.getElementById("question").textContent = index.question.split("\n")[0].slice(0, 300) || index.file;
  const sum = (column) => roots.reduce((total, number) => total + (nodes[column][number] ?? 0), 0);
  const usd = roots.some((number) => nodes.usd[number] === null) ? null : sum("usd");
  const good = index.stop_reason === "answered";
  const children = nodes.kind.filter((kind) => kind === "run").length - roots.length;
  const figures = [
    [index.stop_reason.replaceAll("_", " "), "", good ? "good" : "warn"],
    [index.strategy, "strategy"],
    [index.model, "model"],
    [Show.count(sum("calls")), "calls"],
    [`${Show.count(sum("input"))} + ${Show.count(sum("output"))}`, "tokens in + out"],
    [usd === null ? "not known" : Show.usd(usd), "cost"],
    [Show.seconds(index.seconds), "time"],
  ];
  if (children) figures.push([Show.count(children), children === 1 ? "child" : "children"]);
  for (const [value, name, className] of figures) {
    if (value) document.getElementById("figures").append(Dom.make("li", { class: className }, Dom.make("strong", {}, value), name ? ` ${name}` : ""));
  }
}

showHead();
Answer.start();
Timeline.start();
Search.start();
Views.start();
Views.choose(Data.index.answer === null ? "timeline" : "answer");
document.documentElement.dataset.ready = "true";
