// What the browser keeps while the tab is open: every stage that has been looked at, and the last view of each run.

import { Grid } from "./grid.js";

const MOST_STAGES = 9;
const kept = (window.headscopeMap ??= {});
kept.stages ??= new Map();
kept.documents ??= new Map();
kept.views ??= new Map();

export function keep(data) {
  if (data.documents && !kept.documents.has(data.base)) kept.documents.set(data.base, documentsOf(data.documents, data.columns));
  if (data.points && !kept.stages.has(data.key)) {
    const [x, y, activation] = ["x", "y", "activation"].map((name) => data.points.getChild(name).toArray());
    kept.stages.set(data.key, { x, y, activation });
    if (kept.stages.size > MOST_STAGES) kept.stages.delete(kept.stages.keys().next().value);
  }
}

// The map of a stage, or null where it has to be asked for.
export function mapOf(data) {
  const stage = kept.stages.get(data.key);
  const documents = kept.documents.get(data.base);
  if (!stage || !documents) return null;
  stage.grid ??= new Grid(stage.x, stage.y);
  stage.documents = documents;
  return stage;
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
