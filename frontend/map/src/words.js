// What the map says: of a point, of itself, and under its picture.

import { COLOURINGS } from "./controls.js";
import { formatHeads } from "./heads.js";

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

export function statusWords(view, map, meta, lit, webgl) {
  const number = (value) => value.toLocaleString("en");
  const said = [`${number(map.x.length)} points`];
  if (view.heads.size < meta.heads) said.push(`${number(map.documents.docs.length * view.heads.size)} of chosen heads`);
  if (lit) said.push(`${number(lit)} lit up`);
  if (!webgl) said.push("This browser has no WebGL: you see an image of the density, which can be chosen from but not zoomed");
  return said.join(" · ");
}

export function captionWords(view, meta) {
  const column = meta.columns.find((own) => own.name === view.colour);
  const parts = [`run ${meta.run}`, `stage ${meta.stage} ${meta.stage_name}`, `coloured by ${column ? column.label.toLowerCase() : COLOURINGS[view.colour]}`];
  if (view.heads.size < meta.heads) parts.push(`heads ${formatHeads(view.heads, meta.heads).replaceAll("-", "–").replaceAll(",", ", ")}`);
  if (view.doc !== null) parts.push(`document ${view.doc}`);
  return `Headscope · ${parts.join(" · ")}`;
}
