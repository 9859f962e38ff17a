// What colour and size every point has: a category a point, and a colour and a size a category.

import { contains, parseArea } from "./area.js";

export const SHADES = 6;

// The scheme of a colouring: its colours, and which of them a point has.
export function colouring(view, map, meta, dark) {
  const scheme = meta.schemes[dark ? "dark" : "light"];
  const { heads } = meta;
  const group = (head) => Math.floor((head * meta.groups) / heads);
  if (view.colour === "group") return { colours: scheme.groups, of: (point) => group(map.head[point]) };
  if (view.colour === "activation") {
    const shade = (point) => Math.min(SHADES - 1, Math.floor((map.activation[point] * SHADES) / 256));
    return { colours: scheme.activation, of: (point) => group(map.head[point]) * SHADES + shade(point) };
  }
  const column = meta.columns.find((candidate) => candidate.name === view.colour);
  if (column) {
    const codes = map.documents.codes[column.key] ?? [];
    const colours = scheme.topics.slice(0, column.values.length);
    return { colours: [...colours, scheme.none], of: (point) => (codes[map.row[point]] < 0 ? colours.length : codes[map.row[point]]), column };
  }
  return { colours: scheme.heads, of: (point) => map.head[point] };
}

// Categories: 0 ground, then every colour three times (as it is, strong, faded).
// Heads that are in front are drawn after all others: ``inFront(point)``.
export function paint(view, map, meta, dark, ground, paper) {
  const { colours, of, column } = colouring(view, map, meta, dark);
  const { head, row, weight } = map;
  const count = map.x.length;
  const n = colours.length;
  const category = new Uint16Array(count);
  const chosen = new Uint8Array(meta.heads);
  for (const own of view.heads) chosen[own - 1] = 1;
  const polygon = parseArea(view.area, meta.stage);
  const bounds = polygon && [0, 1].map((axis) => [Math.min(...polygon.map((c) => c[axis])), Math.max(...polygon.map((c) => c[axis]))]);
  const position = view.doc === null ? -1 : map.documents.position(view.doc - 1);
  const searching = view.hits !== null;
  const focusing = column && view.focus !== null;
  const highlighting = polygon || position >= 0 || searching;
  let [strong, lit] = [0, 0];
  for (let point = 0; point < count; point += 1) {
    const at = row[point];
    const own = of(point);
    const shown = chosen[head[point]] === 1 && (!focusing || own === view.focus);
    let high = at === position;
    if (!high && shown && highlighting) {
      if (searching && view.hits.has(at)) high = true;
      else if (polygon) {
        const x = map.x[point];
        const y = map.y[point];
        high = x >= bounds[0][0] && x <= bounds[0][1] && y >= bounds[1][0] && y <= bounds[1][1] && contains(polygon, x, y);
      }
    }
    const points = weight ? weight[point] : 1;
    if (high) strong += points;
    if (high || shown) lit += points;
    category[point] = high ? 1 + n + own : !shown ? 0 : highlighting ? 1 + 2 * n + own : 1 + own;
  }
  const all = meta.density?.points ?? count;
  const size = all > 100_000 ? 1.6 : all > 20_000 ? 2.4 : 4;
  const large = strong > 4_000 ? size * 1.25 : Math.max(7, size * 1.7);
  const faded = colours.map((colour) => mix(colour, paper, dark ? 0.74 : 0.72));
  const repeat = (value) => colours.map(() => value);
  return {
    category,
    strong,
    colours: [ground, ...colours, ...colours, ...faded],
    sizes: [size * 0.8, ...repeat(size), ...repeat(large), ...repeat(size * 0.9)],
    isStrongCategory: (own) => own > n && own <= 2 * n,
    isLit: (point) => category[point] !== 0,
    inFront: view.front === null ? null : (point) => head[point] === view.front - 1,
    lit,
    of,
    palette: colours,
  };
}

// ``[category]``: 0 is drawn first, 2 last, on top.
export function layers(painted) {
  return Uint8Array.from(painted.colours, (_, own) => (own === 0 ? 0 : painted.isStrongCategory(own) ? 2 : 1));
}

export function rgb(colour) {
  const hex = /^#([0-9a-f]{6})/i.exec(colour.trim());
  if (hex) return [0, 2, 4].map((i) => parseInt(hex[1].slice(i, i + 2), 16));
  const short = /^#([0-9a-f]{3})$/i.exec(colour.trim());
  if (short) return [...short[1]].map((digit) => parseInt(digit + digit, 16));
  const numbers = colour.match(/[\d.]+/g) ?? [255, 255, 255];
  return numbers.slice(0, 3).map(Number);
}

// As a pixel's number, red in the lowest byte: every browser there is counts bytes from the low end.
export function packed(colour) {
  const [r, g, b] = rgb(colour);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

// The theme's colours, which Streamlit gives as variables.
export function themeOf(root) {
  const style = getComputedStyle(root);
  const [paper, ink] = ["--st-background-color", "--st-text-color"].map((name) => {
    const colour = style.getPropertyValue(name);
    return mix(colour, colour, 0); // as #rrggbb, however it is written
  });
  const [r, g, b] = rgb(paper);
  const dark = r * 0.3 + g * 0.59 + b * 0.11 < 128;
  return { paper, ink, dark, ground: mix(paper, ink, dark ? 0.15 : 0.12), font: style.fontFamily };
}

export function mix(one, other, share) {
  const [a, b] = [rgb(one), rgb(other)];
  return `#${a.map((v, i) => Math.round(v * (1 - share) + b[i] * share).toString(16).padStart(2, "0")).join("")}`;
}
