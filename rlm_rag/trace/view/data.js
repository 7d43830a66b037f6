// What the page shows: an index that is parsed at once, and texts that are parsed when needed.
"use strict";

const Data = (() => {
  const index = JSON.parse(document.getElementById("index").textContent);
  const nodes = index.nodes;
  const size = nodes.kind.length;
  const kids = Array.from({ length: size }, () => []);
  const roots = [];
  for (let number = 0; number < size; number += 1) {
    const parent = nodes.parent[number];
    (parent < 0 ? roots : kids[parent]).push(number);
  }
  const chunks = new Map();

  /** The value with that number; its block of JSON is parsed at the first that is asked for. */
  function payload(number) {
    let low = 0;
    let high = index.chunks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (index.chunks[middle] <= number) low = middle;
      else high = middle - 1;
    }
    let chunk = chunks.get(low);
    if (!chunk) {
      const block = document.getElementById(`chunk-${low}`);
      chunk = JSON.parse(block.textContent);
      chunks.set(low, chunk);
    }
    return chunk[number - index.chunks[low]];
  }

  /** The nodes that stand beside a node, itself among them. */
  function siblings(number) {
    return nodes.parent[number] < 0 ? roots : kids[nodes.parent[number]];
  }

  /** The numbers from the root down to a node. */
  function path(number) {
    const found = [];
    for (let at = number; at >= 0; at = nodes.parent[at]) found.unshift(at);
    return found;
  }

  /** How long a node took, in seconds; one that had not ended lasts as long as the trace. */
  function seconds(number) {
    return Math.max(0, (nodes.end[number] ?? index.seconds) - nodes.start[number]);
  }

  return { index, nodes, kids, roots, payload, siblings, path, seconds };
})();

const Show = {
  count: (value) => value.toLocaleString("en"),

  tokens(number) {
    const total = Data.nodes.input[number] + Data.nodes.output[number];
    if (!total) return "";
    if (total < 1000) return String(total);
    return total < 999500 ? `${(total / 1000).toPrecision(3)}k` : `${(total / 1e6).toPrecision(3)}M`;
  },

  usd(value) {
    if (value === null) return "price ?";
    if (!value) return "$0";
    return value < 1 ? `$${value.toPrecision(2)}` : `$${value.toFixed(2)}`;
  },

  seconds(value) {
    if (value < 0.0005) return "0 s";
    if (value < 0.9995) return `${Math.round(value * 1000)} ms`;
    if (value < 99.5) return `${value.toPrecision(value < 9.95 ? 2 : 3)} s`;
    const whole = Math.round(value);
    const rest = String(whole % 60).padStart(2, "0");
    if (whole < 3600) return `${Math.floor(whole / 60)}:${rest} min`;
    return `${Math.floor(whole / 3600)}:${String(Math.floor(whole / 60) % 60).padStart(2, "0")}:${rest} h`;
  },
};
