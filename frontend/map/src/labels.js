// Labels on the islands of the map. A head, a group or a topic is labelled at the medoid of its densest island: the point
// nearest to the island's median. Islands are computed when the colours change, their places on the screen in every frame.

import { svgElement } from "./dom.js";

const CELLS = 48;
const FULL = 65536;
const STEPS = 12; // of the median
const REACH = 3; // cells: points further apart are on different islands
// A topic is labelled only where it has at least this share of all points, this many points, and this share of its own
// points: anywhere else the label would mislead.
const PURE = 0.4, LEAST = 6, PART = 0.05;
const LETTER = 7.2, HIGH = 15; // approximate size of a letter, in pixels
const FADES = [2.5, 10], FAINT = 0.3; // labels fade between these zooms: the island is then larger than the screen
const LONGEST = 24;

// ``names[own]`` is the label of a colour (null: none); ``of(point)`` is the colour of a point.
// Returns [{ own, text, point }], largest first.
export function islands(map, names, of, isLit, pure) {
  const kinds = names.length;
  const counts = new Float32Array(kinds * CELLS * CELLS);
  const [xs, ys] = [new Float64Array(counts.length), new Float64Array(counts.length)]; // sums
  const all = new Float32Array(CELLS * CELLS);
  const sizes = new Uint32Array(kinds);
  const cellOf = (point) => Math.floor((map.y[point] * CELLS) / FULL) * CELLS + Math.floor((map.x[point] * CELLS) / FULL);
  for (let point = 0; point < map.x.length; point += 1) {
    if (!isLit(point)) continue;
    const own = of(point);
    const cell = cellOf(point);
    const at = own * CELLS * CELLS + cell;
    const weight = map.weight ? map.weight[point] : 1;
    counts[at] += weight;
    xs[at] += weight * map.x[point];
    ys[at] += weight * map.y[point];
    all[cell] += weight;
    sizes[own] += weight;
  }
  const found = [];
  for (let own = 0; own < kinds; own += 1) {
    if (names[own] === null || !sizes[own]) continue;
    const [its, itsX, itsY] = [counts, xs, ys].map((every) => every.subarray(own * CELLS * CELLS, (own + 1) * CELLS * CELLS));
    const island = islandOf(its, all, pure ? Math.max(LEAST, PART * sizes[own]) : 0);
    const middle = medianOf(its, itsX, itsY, island);
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

// The cells of the densest island. With ``pure``, an island must be mostly the topic's own and have that many points;
// if none is, there are no cells.
function islandOf(counts, all, pure) {
  let [column, row, most] = [0, 0, -1];
  for (let y = 0; y < CELLS; y += 1) {
    for (let x = 0; x < CELLS; x += 1) {
      const { own, every } = around(counts, all, x, y);
      const weight = pure && every ? (own * own) / every : own;
      if (weight > most) [column, row, most] = [x, y, weight];
    }
  }
  const { own, every } = around(counts, all, column, row);
  if (!own || (pure && (own < PURE * every || own < pure))) return [];
  const belongs = (cell) => counts[cell] > 0 && (!pure || counts[cell] >= PURE * all[cell]);
  return connected(column, row, belongs, pure ? 1 : REACH);
}

// The counts in a cell and the eight around it.
function around(counts, all, column, row) {
  let [own, every] = [0, 0];
  square(column, row, 1, (cell) => {
    own += counts[cell];
    every += all[cell];
  });
  return { own, every };
}

// All cells of an island: those that can be reached from a place by steps of up to ``reach`` cells.
function connected(column, row, belongs, reach) {
  const seen = new Uint8Array(CELLS * CELLS);
  const found = [];
  const add = (cell) => {
    if (seen[cell] || !belongs(cell)) return;
    seen[cell] = 1;
    found.push(cell);
  };
  square(column, row, 1, add);
  for (let next = 0; next < found.length; next += 1) square(found[next] % CELLS, Math.floor(found[next] / CELLS), reach, add);
  return found;
}

// The place with the smallest sum of distances to the points of these cells (Weiszfeld's steps, from their mean), in map
// coordinates; null where there are no cells. ``xs`` and ``ys`` are sums over a cell's points.
function medianOf(counts, xs, ys, cells) {
  let middle = null;
  for (let step = 0; step < STEPS && cells.length; step += 1) {
    let [total, x, y] = [0, 0, 0];
    for (const cell of cells) {
      const far = middle ? Math.hypot(xs[cell] / counts[cell] - middle[0], ys[cell] / counts[cell] - middle[1]) : 1;
      const weight = 1 / Math.max(far, FULL / CELLS / 2); // a cell's own points are not told apart
      total += weight * counts[cell];
      x += weight * xs[cell];
      y += weight * ys[cell];
    }
    middle = [x / total, y / total];
  }
  return middle;
}

// Visits the cells up to ``reach`` away from one, as places in an array.
function square(column, row, reach, visit) {
  const [left, right] = [Math.max(0, column - reach), Math.min(CELLS - 1, column + reach)];
  for (let y = Math.max(0, row - reach); y <= Math.min(CELLS - 1, row + reach); y += 1) {
    for (let x = left; x <= right; x += 1) visit(y * CELLS + x);
  }
}

// The labels to draw, as { x, y, text, opacity }: none overlaps another one or a place that is taken.
export function placed(found, spotOf, [width, height], zoom, taken) {
  const boxes = [...taken];
  const opacity = Math.max(FAINT, Math.min(1, 1 - ((1 - FAINT) * (zoom - FADES[0])) / (FADES[1] - FADES[0])));
  const shown = [];
  for (const island of found) {
    const { text } = island;
    const [x, y] = spotOf(island);
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
