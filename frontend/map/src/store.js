// What the browser keeps while the tab is open: every stage that has been looked at, and the last view of each run.

import { Grid } from "./grid.js";

const MOST_STAGES = 9;
const MOST_RUNS = 3; // whose documents are kept: those of three stages each
const kept = (window.headscopeMap ??= {});
kept.stages ??= new Map();
kept.documents ??= new Map();
kept.views ??= new Map();

export function keep(data) {
  if (data.documents && !kept.documents.has(data.base)) {
    kept.documents.set(data.base, documentsOf(data.documents, data.columns));
    if (kept.documents.size > MOST_RUNS) forget(kept.documents.keys().next().value);
  }
  if (data.points && !kept.stages.has(data.key)) {
    const [x, y, activation] = ["x", "y", "activation"].map((name) => data.points.getChild(name).toArray());
    kept.stages.set(data.key, { x, y, activation, base: data.base });
    if (kept.stages.size > MOST_STAGES) kept.stages.delete(kept.stages.keys().next().value);
  }
}

// A run's documents, and the stages that hold them. Who looks at it again asks the server, as at first.
function forget(base) {
  kept.documents.delete(base);
  for (const [key, stage] of kept.stages) if (stage.base === base) kept.stages.delete(key);
  if (kept.extra?.stage.base === base) kept.extra = null;
}

// The map of a stage, or null where it has to be asked for.
export function mapOf(data) {
  const stage = kept.stages.get(data.key);
  const documents = kept.documents.get(data.base);
  if (!stage || !documents) return null;
  kept.documents.delete(data.base); // the run looked at last goes last
  kept.documents.set(data.base, documents);
  stage.documents = documents;
  if (data.extra) return withExtra(stage, data);
  stage.grid ??= new Grid(stage.x, stage.y);
  return stage;
}

// Documents besides the sample: found or chosen ones come after all others, with points of their own.
function withExtra(stage, data) {
  const more = documentsOf(data.extra_documents, data.columns);
  const sign = `${data.key}/${more.docs.join()}`;
  if (kept.extra?.sign === sign && kept.extra.stage === stage) return kept.extra.map;
  const { documents } = stage;
  const count = documents.docs.length;
  const joined = (one, other) => {
    const both = new one.constructor(one.length + other.length);
    both.set(one);
    both.set(other, one.length);
    return both;
  };
  const [x, y, activation] = ["x", "y", "activation"].map((name) => joined(stage[name], data.extra.getChild(name).toArray()));
  const map = {
    x,
    y,
    activation,
    grid: new Grid(x, y),
    documents: {
      docs: joined(documents.docs, more.docs),
      title: (position) => (position < count ? documents.title(position) : more.title(position - count)),
      position: (doc) => (documents.position(doc) >= 0 || more.position(doc) < 0 ? documents.position(doc) : count + more.position(doc)),
      codes: Object.fromEntries(data.columns.map(({ key }) => [key, joined(documents.codes[key], more.codes[key])])),
    },
  };
  kept.extra = { sign, stage, map };
  return map;
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
