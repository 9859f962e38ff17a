// The map beyond a million points: how many of a head's (and a topic's) points lie in each cell of a fine grid. Such a
// row is a point with a weight in the middle of its cell: colours, labels and areas treat it like any other point.
// Rows come in Z-order (pages/shared/components/map_density.py), so those of a coarser cell follow each other, too.

import { layers, mix, packed, paint } from "./paint.js";

const PALEST = 0.3; // of the way from the paper to the colour, where a cell has one point
const STEPS = 32; // shades of a colour
const CLIP = 0.995; // of the cells: fuller ones look the same
const FRONT = 2 ** 40; // more than any cell's points

export function rowsOf(table, bits, key) {
  const [step, head, weight, activation, code] = ["step", "head", "count", "activation", "code"].map((name) => table.getChild(name)?.toArray());
  const [cell, row] = [new Uint32Array(step.length), new Uint32Array(step.length)];
  const [x, y] = [new Uint16Array(step.length), new Uint16Array(step.length)];
  const [shift, middle] = [16 - bits, 1 << (15 - bits)];
  for (let i = 0, at = 0; i < step.length; i += 1) {
    at += step[i];
    [cell[i], row[i]] = [at, i];
    x[i] = (everyOther(at) << shift) + middle;
    y[i] = (everyOther(at >>> 1) << shift) + middle;
  }
  const codes = key ? { [key]: Int16Array.from(code, (own) => own - 1) } : {};
  return { bits, cell, row, x, y, head, weight, activation, documents: { codes } };
}

// The bits at even places, drawn together.
function everyOther(value) {
  let found = value & 0x55555555;
  for (const [shift, mask] of [[1, 0x33333333], [2, 0x0f0f0f0f], [4, 0x00ff00ff], [8, 0x0000ffff]]) found = (found | (found >>> shift)) & mask;
  return found;
}

// The density of a view: grey until a column's counts are here. Found and chosen documents are points over it.
export function densityOf(view, map, meta, { dark, ground, paper }) {
  const column = meta.columns.find((own) => own.name === view.colour);
  const known = column ? map.values[column.key] : map.counts;
  const rows = known ?? map.counts;
  const shown = { ...view, doc: null, hits: view.hits || view.doc !== null ? new Set() : null };
  const painted = paint(known ? shown : { ...shown, colour: "head", heads: new Set() }, rows, meta, dark, ground, paper);
  const { window } = map;
  const shift = 16 - rows.bits;
  const isLeftOut = window && ((row) => {
    const [left, low, right, high] = window.cells;
    const [x, y] = [rows.x[row] >> shift, rows.y[row] >> shift];
    return view.heads.has(rows.head[row] + 1) && x >= left && x < right && y >= low && y < high;
  });
  return new DensityPicture(rows, painted, paper, isLeftOut, Boolean(known));
}

// Rows as a picture, of cells as small as the screen shows them. Where ``isLeftOut(row)``, single points are drawn.
export class DensityPicture {
  constructor(rows, painted, paper, isLeftOut, isCurrent) {
    Object.assign(this, { rows, painted, paper, isLeftOut, isCurrent });
    this.levels = new Map();
  }

  // The level whose cells are at least a pixel wide, if the whole map is ``width`` pixels wide: 0 is the finest.
  levelFor(width) {
    return Math.max(0, Math.min(this.rows.bits, Math.ceil(this.rows.bits - Math.log2(width))));
  }

  // { side, pixels }: a colour for every cell, line by line from below; 0 where there is no point.
  at(level) {
    if (!this.levels.has(level)) this.levels.set(level, this.coloured(level));
    return this.levels.get(level);
  }

  coloured(level) {
    const { rows: { bits, cell, weight, x, y }, painted: { category, colours, inFront }, isLeftOut } = this;
    const layer = layers(this.painted);
    const side = 1 << (bits - level);
    const shift = 16 - bits + level;
    const sums = new Float64Array(colours.length);
    const [places, owns, counts] = [[], [], []];
    for (let i = 0, end = 0; i < cell.length; i = end) {
      const own = cell[i] >>> (2 * level);
      const seen = [];
      for (end = i; end < cell.length && cell[end] >>> (2 * level) === own; end += 1) {
        if (isLeftOut?.(end)) continue;
        if (!sums[category[end]]) seen.push(category[end]);
        sums[category[end]] += weight[end] + (category[end] && inFront?.(end) ? FRONT : 0);
      }
      if (!seen.length) continue;
      const best = seen.reduce((one, other) => (layer[other] - layer[one] || sums[other] - sums[one]) > 0 ? other : one);
      places.push((y[i] >> shift) * side + (x[i] >> shift));
      owns.push(best);
      counts.push(seen.reduce((sum, other) => sum + (layer[other] === layer[best] ? sums[other] % FRONT : 0), 0));
      for (const other of seen) sums[other] = 0;
    }
    const most = Math.log1p(Float64Array.from(counts).sort()[Math.floor(CLIP * (counts.length - 1))]);
    const shades = colours.map((colour) => Array.from({ length: STEPS + 1 }, (_, step) => packed(mix(this.paper, colour, PALEST + ((1 - PALEST) * step) / STEPS))));
    const pixels = new Uint32Array(side * side);
    places.forEach((place, k) => { pixels[place] = shades[owns[k]][Math.round(STEPS * Math.min(1, Math.log1p(counts[k]) / most))]; });
    return { side, pixels };
  }
}

// The rows of the smallest square of cells around a place of the map that is at least ``width`` wide: [first, last + 1].
export function rowsAround({ bits, cell, x, y }, [left, low], width) {
  const level = Math.max(0, Math.min(bits, Math.ceil(Math.log2(width)) - 16 + bits));
  const shift = 16 - bits + level;
  const same = (i) => x[i] >> shift === Math.floor(left) >> shift && y[i] >> shift === Math.floor(low) >> shift;
  let first = 0;
  while (first < cell.length && !same(first)) first += 1;
  let end = first;
  while (end < cell.length && same(end)) end += 1;
  return [first, end];
}
