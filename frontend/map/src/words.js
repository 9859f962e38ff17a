// What the map says: of a point, of itself, and under its picture.

import { COLOURINGS } from "./controls.js";
import { formatHeads } from "./heads.js";
import { colouring } from "./paint.js";

export function pointWords(point, view, map, meta) {
  const at = map.row[point];
  const parts = [`head ${map.head[point] + 1}`];
  const column = meta.columns.find((own) => own.name === view.colour) ?? meta.columns[0];
  const code = column ? map.documents.codes[column.key][at] : -1;
  if (column && code >= 0) parts.push(column.values[code]);
  const activation = meta.low + ((meta.high - meta.low) * map.activation[point]) / 255;
  parts.push(`activation ${activation.toLocaleString("en", { maximumSignificantDigits: 2 })}`);
  return { title: `${map.documents.docs[at] + 1} · ${map.documents.title(at)}`, meta: parts.join(" · ") };
}

const number = (value) => value.toLocaleString("en");
const points = (count) => `${number(count)} point${count === 1 ? "" : "s"}`;
const partOf = (count, all) => (count < all ? `${number(count)} of ${points(all)}` : points(count));

export function statusWords(map, { lit, strong }) {
  const said = [partOf(lit, map.x.length)];
  if (strong) said.push(`${number(strong)} highlighted`);
  return said.join(" · ");
}

// Where the density is drawn: all points of the chosen heads or, once they are here, those in view.
export function densityWords({ lit, inView, next }, { points: all }) {
  if (inView !== null) return `${partOf(inView, all)} in view`;
  return [`Density of ${partOf(lit, all)}`, ...next].join(" · ");
}

// What lies at a place of the density: the heads or topics with the most points there.
export function placeWords(rows, [first, end], of, names, isLit) {
  const counts = new Map();
  let all = 0;
  for (let row = first; row < end; row += 1) {
    if (!isLit(row)) continue;
    all += rows.weight[row];
    counts.set(of(row), (counts.get(of(row)) ?? 0) + rows.weight[row]);
  }
  if (!all) return null;
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3);
  return { title: `${points(all)} around here`, meta: most.map(([own, count]) => `${names[own]}: ${Math.round((100 * count) / all)} %`).join(" · ") };
}

// What is written on the islands, by the colour: heads' numbers, groups, or the values of a column.
export function islandNames(view, meta) {
  const column = meta.columns.find((own) => own.name === view.colour);
  if (column) return [...column.values, null].map((name, code) => (view.focus === null || view.focus === code ? name : null));
  if (view.colour === "group") return Array.from({ length: meta.groups }, (_, group) => `group ${group + 1}`);
  return Array.from({ length: meta.heads }, (_, head) => (view.heads.has(head + 1) ? String(head + 1) : null));
}

// The same in a sentence, where a number alone would say nothing.
export function kindNames(view, meta) {
  const column = meta.columns.find((own) => own.name === view.colour);
  if (column) return [...column.values, "none"];
  const [kind, count] = view.colour === "group" ? ["group", meta.groups] : ["head", meta.heads];
  return Array.from({ length: count }, (_, own) => `${kind} ${own + 1}`);
}

export function captionWords(view, meta) {
  const column = meta.columns.find((own) => own.name === view.colour);
  const parts = [`run ${meta.run}`, `stage ${meta.stage} ${meta.stage_name}`, `coloured by ${column ? column.label.toLowerCase() : COLOURINGS[view.colour]}`];
  if (view.heads.size < meta.heads) parts.push(`heads ${formatHeads(view.heads, meta.heads).replaceAll("-", "–").replaceAll(",", ", ")}`);
  if (view.doc !== null) parts.push(`document ${view.doc}`);
  return `Headscope · ${parts.join(" · ")}`;
}

// What each colour of a picture stands for; activation is a scale, which the caption explains.
export function legendEntries(view, map, meta, dark) {
  const { colours, column } = colouring(view, map, meta, dark);
  if (view.colour === "activation") return [];
  const all = column ? [...column.values, ...(column.missing ? ["none"] : [])] : view.colour === "group" ? colours.map((_, group) => `group ${group + 1}`) : colours.map((_, head) => `head ${head + 1}`);
  const entries = all.map((name, code) => ({ name, colour: colours[code] }));
  if (column) return entries.filter((_, code) => view.focus === null || view.focus === code);
  return view.colour === "group" ? entries : entries.filter((_, head) => view.heads.has(head + 1));
}
