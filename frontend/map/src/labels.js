// Names on the islands of the map: where the points of a head, a group or a topic are densest, a point of its own in
// the middle of them (their medoid). Computed once a painting; placed on the screen with every frame.

import { svgElement } from "./dom.js";

const CELLS = 48;
const FULL = 65536;
const STEPS = 6; // until the middle of a cluster is found
const REACH = 3; // cells around it that belong to the cluster
const PURE = 0.4, LEAST = 6, PART = 0.05; // a topic is named where it has this share of the points, so many, and that part of
// its own: elsewhere the name would mislead
const LETTER = 7.2, HIGH = 15; // pixels, about
const FADES = [2.5, 10], FAINT = 0.3; // from this zoom to that one a name fades: the island is larger than the screen
const LONGEST = 24;

// ``names[own]`` of every colour (null: not named); ``of(point)`` is a point's colour. → [{ own, text, point }], the largest first.
export function islands(map, names, of, isLit, pure) {
  const kinds = names.length;
  const counts = new Float32Array(kinds * CELLS * CELLS);
  const all = new Float32Array(CELLS * CELLS);
  const sizes = new Uint32Array(kinds);
  const cellOf = (point) => Math.floor((map.y[point] * CELLS) / FULL) * CELLS + Math.floor((map.x[point] * CELLS) / FULL);
  for (let point = 0; point < map.x.length; point += 1) {
    if (!isLit(point)) continue;
    const own = of(point);
    const cell = cellOf(point);
    counts[own * CELLS * CELLS + cell] += 1;
    all[cell] += 1;
    sizes[own] += 1;
  }
  const found = [];
  for (let own = 0; own < kinds; own += 1) {
    if (names[own] === null || !sizes[own]) continue;
    const middle = middleOf(counts.subarray(own * CELLS * CELLS, (own + 1) * CELLS * CELLS), all, pure ? Math.max(LEAST, PART * sizes[own]) : 0);
    if (middle) found.push({ own, text: short(names[own]), x: middle[0], y: middle[1], size: sizes[own], point: -1, best: Infinity });
  }
  const byOwn = new Map(found.map((island) => [island.own, island]));
  for (let point = 0; point < map.x.length; point += 1) {
    const island = isLit(point) && byOwn.get(of(point));
    if (!island) continue;
    const distance = (map.x[point] - island.x) ** 2 + (map.y[point] - island.y) ** 2;
    if (distance < island.best) [island.best, island.point] = [distance, point];
  }
  return found.filter((island) => island.point >= 0).sort((a, b) => b.size - a.size || a.own - b.own);
}

// The middle of the densest cluster, in the map's numbers; null where there is none of ``pure`` points or more that is its own.
function middleOf(counts, all, pure) {
  let [column, row, most] = [0, 0, -1];
  for (let y = 0; y < CELLS; y += 1) {
    for (let x = 0; x < CELLS; x += 1) {
      const { own, every } = around(counts, all, x, y, 1);
      const weight = pure && every ? (own * own) / every : own;
      if (weight > most) [column, row, most] = [x, y, weight];
    }
  }
  let [share, count] = [1, 0];
  for (let step = 0; step < STEPS; step += 1) {
    const { own, every, x, y } = around(counts, all, Math.round(column), Math.round(row), pure ? 1 : REACH);
    if (!own) return null;
    [column, row, share, count] = [x / own, y / own, own / every, own];
  }
  if (pure && (share < PURE || count < pure)) return null;
  return [((column + 0.5) * FULL) / CELLS, ((row + 0.5) * FULL) / CELLS];
}

function around(counts, all, column, row, reach) {
  let [own, every, x, y] = [0, 0, 0, 0];
  for (let b = Math.max(0, row - reach); b <= Math.min(CELLS - 1, row + reach); b += 1) {
    for (let a = Math.max(0, column - reach); a <= Math.min(CELLS - 1, column + reach); a += 1) {
      const count = counts[b * CELLS + a];
      own += count;
      every += all[b * CELLS + a];
      x += count * a;
      y += count * b;
    }
  }
  return { own, every, x, y };
}

// What of them is seen: { x, y, text, opacity }; no two overlap, and none lies on a ring.
export function placed(found, spotOf, [width, height], zoom, taken) {
  const boxes = [...taken];
  const opacity = Math.max(FAINT, Math.min(1, 1 - ((1 - FAINT) * (zoom - FADES[0])) / (FADES[1] - FADES[0])));
  const shown = [];
  for (const { text, point } of found) {
    const [x, y] = spotOf(point);
    const wide = text.length * LETTER + 6;
    const own = [x - wide / 2, y - HIGH / 2, x + wide / 2, y + HIGH / 2];
    const free = own[0] >= 0 && own[1] >= 0 && own[2] <= width && own[3] <= height
      && !boxes.some((other) => own[0] < other[2] && own[2] > other[0] && own[1] < other[3] && own[3] > other[1]);
    if (!free) continue;
    boxes.push(own);
    shown.push({ x, y, text, opacity });
  }
  return shown;
}

export function labelsLayer(svg) {
  const group = svgElement("g", { class: "labels", "aria-hidden": "true" });
  svg.append(group);
  return (labels) => {
    group.setAttribute("opacity", labels.length ? labels[0].opacity.toFixed(2) : "1");
    group.replaceChildren(...labels.map(({ x, y, text }) => svgElement("text", { x, y }, text)));
  };
}

function short(name) {
  if (name.length <= LONGEST) return name;
  const comma = name.lastIndexOf(",", LONGEST);
  return `${name.slice(0, comma > 0 ? comma : LONGEST - 1).trimEnd()}…`;
}
