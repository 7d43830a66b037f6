// What the run saw of the corpus: a picture of areas by lines, and the same as a table.
const Coverage = (() => {
  const MOST_WIDTH = 1100;
  const HEIGHT = 400;
  const LEAST_AREA = 60;
  const LABEL_HEIGHT = 15;
  const MOST_DEPTH = 40;
  const KINDS = ["searched", "read", "delegated"];
  const SVG = "http://www.w3.org/2000/svg";
  const { coverage } = Data.index;
  const view = document.getElementById("coverage");
  const details = Dom.make("div", { class: "document", role: "status" });

  const documents = coverage.documents.map(([path, lines, ranges, nodes, grepped]) => {
    const counts = ranges.map((some) => some.reduce((sum, [first, last]) => sum + last - first + 1, 0));
    const least = Math.max(0, ...ranges.flat().map(([, last]) => last));
    return { path, lines, ranges, nodes, grepped, counts, size: Math.max(1, lines ?? least), seen: counts.reduce((sum, count) => sum + count) };
  });

  function shape(tag, attributes) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  /** The folders as a tree, each with the lines beneath it. */
  function folders() {
    const root = { name: "", size: 0, seen: 0, children: new Map() };
    for (const each of documents) {
      let at = root;
      const names = each.path.split("/");
      for (const name of names.slice(0, -1)) {
        at.size += each.size;
        at.seen += each.seen;
        if (!at.children.has(name)) at.children.set(name, { name, size: 0, seen: 0, children: new Map() });
        at = at.children.get(name);
      }
      at.size += each.size;
      at.seen += each.seen;
      at.children.set(`/${names.at(-1)}`, { name: names.at(-1), size: each.size, document: each });
    }
    return root;
  }

  const worst = (row, sum, side, scale) => {
    const area = sum * scale;
    const [large, small] = [row[0].size * scale, row.at(-1).size * scale];
    return Math.max((side * side * large) / (area * area), (area * area) / (side * side * small));
  };

  /** Rectangles near to squares (Bruls, Huizing and van Wijk, 2000) for items, largest first. */
  function squares(items, box) {
    const placed = [];
    let { x, y, width, height } = box;
    let left = items.reduce((sum, item) => sum + item.size, 0);
    let at = 0;
    while (at < items.length) {
      const side = Math.min(width, height);
      const scale = (width * height) / left;
      const row = [items[at]];
      let sum = items[at].size;
      at += 1;
      while (at < items.length && worst([row[0], items[at]], sum + items[at].size, side, scale) <= worst(row, sum, side, scale)) {
        row.push(items[at]);
        sum += items[at].size;
        at += 1;
      }
      const depth = side > 0 ? (sum * scale) / side : 0;
      let along = 0;
      for (const item of row) {
        const length = side * (item.size / sum);
        placed.push([item, width >= height ? { x, y: y + along, width: depth, height: length } : { x: x + along, y, width: length, height: depth }]);
        along += length;
      }
      if (width >= height) [x, width] = [x + depth, width - depth];
      else [y, height] = [y + depth, height - depth];
      left -= sum;
    }
    return placed;
  }

  const box = ({ x, y, width, height }, name) => shape("rect", { x: x.toFixed(1), y: y.toFixed(1), width: Math.max(0, width - 1).toFixed(1), height: Math.max(0, height - 1).toFixed(1), class: name });

  function drawDocument(svg, each, place) {
    if (place.width * place.height < LEAST_AREA) {
      svg.append(box(place, each.seen ? "base searched" : each.grepped ? "base grepped" : "base"));
      return;
    }
    const group = shape("g", { class: "area" });
    group.append(box(place, each.grepped ? "base grepped" : "base"));
    each.ranges.forEach((ranges, kind) => {
      for (const [first, last] of ranges) {
        const height = Math.max(1.5, (place.height * (last - first + 1)) / each.size);
        const y = place.y + Math.min((place.height * (first - 1)) / each.size, place.height - height);
        group.append(box({ ...place, y, height: height + 1 }, KINDS[kind]));
      }
    });
    const name = each.path.split("/").at(-1);
    const title = shape("title", {});
    title.textContent = `${each.path}: ${said(each)}`;
    group.append(title);
    if (place.width > 7 * name.length + 8 && place.height > LABEL_HEIGHT) group.append(label(name, place, "name"));
    group.addEventListener("click", () => tell(each));
    svg.append(group);
  }

  function label(text, place, name) {
    const made = shape("text", { x: place.x + 4, y: place.y + 11, class: name });
    made.textContent = text;
    return made;
  }

  function drawFolder(svg, folder, place, depth = 0) {
    if (place.width * place.height < LEAST_AREA || depth > MOST_DEPTH) {
      svg.append(box(place, folder.seen ? "base searched" : "base"));
      return;
    }
    let inner = place;
    if (folder.name && place.height > 3 * LABEL_HEIGHT && place.width > 7 * folder.name.length + 8) {
      svg.append(label(`${folder.name}/`, place, "folder"));
      inner = { ...place, y: place.y + LABEL_HEIGHT, height: place.height - LABEL_HEIGHT };
    }
    const items = [...folder.children.values()].sort((one, other) => other.size - one.size);
    for (const [item, at] of squares(items, inner)) {
      if (item.document) drawDocument(svg, item.document, at);
      else drawFolder(svg, item, at, depth + 1);
    }
  }

  function said(each) {
    const parts = KINDS.map((kind, at) => (each.counts[at] ? `${Show.count(each.counts[at])} lines ${kind}` : "")).filter(Boolean);
    if (each.grepped) parts.push("grepped");
    const lines = each.lines === null ? "" : `${Show.count(each.lines)} lines, `;
    return lines + (parts.join(", ") || "not touched");
  }

  function tell(each) {
    details.replaceChildren(Dom.make("h3", {}, Dom.make("code", {}, each.path)), Dom.make("p", {}, said(each)));
    KINDS.forEach((kind, at) => {
      if (each.ranges[at].length) details.append(Dom.make("p", { class: "note" }, `${kind}: ${each.ranges[at].slice(0, 40).map(([first, last]) => (first === last ? first : `${first}-${last}`)).join(", ")}`));
    });
    const list = Dom.make("ul", { class: "links" });
    for (const number of each.nodes) list.append(Dom.make("li", {}, Timeline.link(number)));
    if (each.nodes.length) details.append(Dom.make("p", {}, "Seen in:"), list);
    details.scrollIntoView({ block: "nearest" });
  }

  function table() {
    const order = [...documents].sort((one, other) => other.seen - one.seen || Number(other.grepped) - Number(one.grepped));
    const body = Dom.make("tbody");
    const more = Dom.gradually(body, order, (each) => {
      const name = Dom.button(each.path, () => tell(each), { class: "link" });
      const figures = [each.lines === null ? "?" : Show.count(each.lines), ...each.counts.map((count) => (count ? Show.count(count) : "–")), each.grepped ? "yes" : "–"];
      return Dom.make("tr", {}, Dom.make("th", { scope: "row" }, name), ...figures.map((figure) => Dom.make("td", {}, figure)));
    });
    const head = Dom.make("tr", {}, ...["Document", "Lines", "Searched", "Read", "Delegated", "Grepped"].map((name) => Dom.make("th", { scope: "col" }, name)));
    return [Dom.make("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Documents and the lines seen of each" }, Dom.make("table", {}, Dom.make("thead", {}, head), body)), more];
  }

  function summary() {
    const { figures } = coverage;
    const list = Dom.make("ul", { class: "figures" });
    const names = { files: "documents", untouched: "not touched", grepped: "grepped", searched: "searched", read: "read", delegated: "delegated" };
    for (const [name, label_] of Object.entries(names)) {
      if (name in figures) list.append(Dom.make("li", { class: `area-${name}` }, Dom.make("strong", {}, Show.count(figures[name])), ` ${label_}`));
    }
    return list;
  }

  function start() {
    view.append(Dom.make("h2", {}, "What was looked at"), summary());
    const notes = [coverage.note];
    if (coverage.unobserved) notes.push("Blocks also read the corpus by themselves, which is not observed.");
    if (coverage.left_out) notes.push(`${Show.count(coverage.left_out)} more documents are not shown.`);
    view.append(Dom.make("p", { class: "note" }, notes.join(" ")));
    if (documents.length) {
      const width = Math.min(MOST_WIDTH, view.querySelector("h2").clientWidth);
      const svg = shape("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", class: "map", "aria-label": "Map of the corpus; the table below says the same" });
      drawFolder(svg, folders(), { x: 0, y: 0, width, height: HEIGHT });
      const key = Dom.make("ul", { class: "key" });
      for (const [kind, text] of [["base", "not seen"], ["grepped", "grepped, no hit"], ["searched", "pointed at by a search"], ["read", "read"], ["delegated", "sent to a sub-model"]]) {
        key.append(Dom.make("li", {}, Dom.make("span", { class: `swatch area-${kind}` }), text));
      }
      view.append(svg, key, details, ...table());
    }
    if (coverage.looked.length) {
      view.append(Dom.make("h2", {}, "What was looked for"));
      const list = Dom.make("ul", { class: "looked" });
      coverage.looked.forEach((each) => list.append(Dom.make("li", {}, each)));
      view.append(list);
    }
  }

  return { start };
})();
