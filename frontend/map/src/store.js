// What the browser keeps while the tab is open: every stage that has been looked at, and the last view of each run.

import { rowsOf } from "./density.js";
import { Grid } from "./grid.js";
import { parseHeads } from "./heads.js";

const MOST_STAGES = 9;
const MOST_RUNS = 3; // whose documents are kept: those of three stages each
const kept = (window.headscopeMap ??= {});
kept.stages ??= new Map();
kept.documents ??= new Map();
kept.views ??= new Map();
const NO_DOCUMENTS = { docs: [], title: () => "", position: () => -1, codes: {} };

export function keep(data) {
  if (data.density) {
    keepDensity(data);
    return;
  }
  if (data.documents && !kept.documents.has(data.base)) {
    kept.documents.set(data.base, documentsOf(data.documents, data.columns));
    if (kept.documents.size > MOST_RUNS) forget(kept.documents.keys().next().value);
  }
  if (data.points && !kept.stages.has(data.key)) {
    const [x, y, activation] = ["x", "y", "activation"].map((name) => data.points.getChild(name).toArray());
    keepStage(data.key, { x, y, activation, base: data.base });
  }
}

function keepStage(key, stage) {
  kept.stages.set(key, stage);
  if (kept.stages.size > MOST_STAGES) kept.stages.delete(kept.stages.keys().next().value);
}

// Counts by head, those by a column's values as they are asked for, and the points of the window looked at last.
function keepDensity(data) {
  const { bits } = data.density;
  if (data.counts && !kept.stages.has(data.key)) keepStage(data.key, { base: data.base, counts: rowsOf(data.counts, bits), values: {} });
  const stage = kept.stages.get(data.key);
  if (data.values && stage) stage.values[data.column] ??= rowsOf(data.values, bits, data.column);
  if (data.window && data.points) {
    const [x, y, activation, head, row] = ["x", "y", "activation", "head", "row"].map((name) => data.points.getChild(name).toArray());
    const [edges, heads] = data.window.split("/");
    kept.window = { key: data.key, name: data.window, cells: edges.split(".").map(Number), heads: parseHeads(heads, data.heads), x, y, activation, head, row, documents: documentsOf(data.documents, data.columns) };
  }
}

export function windowOf(data) {
  return kept.window?.key === data.key ? kept.window : null;
}

// A run's documents, and the stages that hold them. Who looks at it again asks the server, as at first.
function forget(base) {
  kept.documents.delete(base);
  for (const [key, stage] of kept.stages) if (stage.base === base) kept.stages.delete(key);
}

// The map of a stage, or null where it has to be asked for: ``head[point]`` from 0, and ``row[point]`` of the documents.
// Where density is drawn, its points are those of a ``window`` (or none), and of documents that were found or chosen.
export function mapOf(data, window = null) {
  const stage = kept.stages.get(data.key);
  if (stage && data.density) return withDensity(stage, window, data);
  const documents = kept.documents.get(data.base);
  if (!stage || !documents) return null;
  kept.documents.delete(data.base); // the run looked at last goes last
  kept.documents.set(data.base, documents);
  documents.index ??= indexOf(documents.docs.length, data.heads);
  Object.assign(stage, { documents }, documents.index);
  stage.grid ??= new Grid(stage.x, stage.y);
  return stage;
}

function indexOf(count, heads) {
  const [head, row] = [new Uint16Array(count * heads), new Uint32Array(count * heads)];
  for (let point = 0; point < head.length; point += 1) [head[point], row[point]] = [point % heads, Math.floor(point / heads)];
  return { head, row };
}

// A found or chosen document comes with all its points, so those that the window has of it are left out.
function withDensity(stage, window, data) {
  const docs = data.extra_documents?.getChild("doc").toArray() ?? [];
  const sign = `${data.key}/${window?.name}/${docs.join()}`;
  if (kept.map?.sign === sign && kept.map.counts === stage.counts) return kept.map;
  const more = data.extra ? documentsOf(data.extra_documents, data.columns) : null;
  const documents = more && window ? joinedDocuments(window.documents, more, data.columns) : (more ?? window?.documents ?? NO_DOCUMENTS);
  const own = [];
  if (window) for (let point = 0; point < window.x.length; point += 1) if (!more || more.position(window.documents.docs[window.row[point]]) < 0) own.push(point);
  const index = indexOf(docs.length, data.heads);
  const extra = { ...index, row: index.row.map((row) => row + (window?.documents.docs.length ?? 0)) };
  for (const name of ["x", "y", "activation"]) extra[name] = data.extra?.getChild(name).toArray() ?? [];
  const map = { sign, documents, window, counts: stage.counts, values: stage.values };
  for (const [name, Kind] of Object.entries({ x: Uint16Array, y: Uint16Array, activation: Uint8Array, head: Uint16Array, row: Uint32Array })) {
    map[name] = new Kind(own.length + extra.x.length);
    own.forEach((point, at) => { map[name][at] = window[name][point]; });
    map[name].set(extra[name], own.length);
  }
  map.grid = new Grid(map.x, map.y);
  kept.map = map;
  return map;
}

function joinedDocuments(documents, more, columns) {
  const count = documents.docs.length;
  const joined = (one, other) => {
    const both = new one.constructor(one.length + other.length);
    both.set(one);
    both.set(other, one.length);
    return both;
  };
  return {
    docs: joined(documents.docs, more.docs),
    title: (position) => (position < count ? documents.title(position) : more.title(position - count)),
    position: (doc) => (more.position(doc) < 0 ? documents.position(doc) : count + more.position(doc)),
    codes: Object.fromEntries(columns.map(({ key }) => [key, joined(documents.codes[key], more.codes[key])])),
  };
}

export function memory(run) {
  if (!kept.views.has(run)) kept.views.set(run, {});
  return kept.views.get(run);
}

function documentsOf(table, columns) {
  const docs = table.getChild("doc").toArray();
  const titles = table.getChild("title");
  const positions = new Map();
  docs.forEach((doc, position) => positions.set(doc, position));
  return {
    docs,
    title: (position) => String(titles.get(position) ?? ""),
    position: (doc) => positions.get(doc) ?? -1,
    codes: Object.fromEntries(columns.map(({ key }) => [key, table.getChild(key).toArray()])),
  };
}
