// What the map says: of a point, of itself, and under its picture.

import { COLOURINGS } from "./controls.js";
import { formatHeads } from "./heads.js";
import { colouring } from "./paint.js";

export function pointWords(point, view, map, meta) {
  const at = Math.floor(point / meta.heads);
  const parts = [`head ${(point % meta.heads) + 1}`];
  const column = meta.columns.find((own) => own.name === view.colour) ?? meta.columns[0];
  const code = column ? map.documents.codes[column.key][at] : -1;
  if (column && code >= 0) parts.push(column.values[code]);
  const activation = meta.low + ((meta.high - meta.low) * map.activation[point]) / 255;
  parts.push(`activation ${activation.toLocaleString("en", { maximumSignificantDigits: 2 })}`);
  return { title: `${map.documents.docs[at] + 1} · ${map.documents.title(at)}`, meta: parts.join(" · ") };
}

export function statusWords(map, { lit, strong }) {
  const number = (value) => value.toLocaleString("en");
  const points = (count) => `${number(count)} point${count === 1 ? "" : "s"}`;
  const said = [lit < map.x.length ? `${number(lit)} of ${points(map.x.length)}` : points(lit)];
  if (strong) said.push(`${number(strong)} highlighted`);
  return said.join(" · ");
}

// What is written on the islands, by the colour: heads' numbers, groups, or the values of a column.
export function islandNames(view, meta) {
  const column = meta.columns.find((own) => own.name === view.colour);
  if (column) return [...column.values, null].map((name, code) => (view.focus === null || view.focus === code ? name : null));
  if (view.colour === "group") return Array.from({ length: meta.groups }, (_, group) => `group ${group + 1}`);
  return Array.from({ length: meta.heads }, (_, head) => (view.heads.has(head + 1) ? String(head + 1) : null));
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
