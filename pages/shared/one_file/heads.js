// Head profiles: a table of all heads at a stage, and one head in full.

const PROFILE = [
  ["head", "Head", (one) => one.head],
  ["role", "Role", (one) => one.role ?? "–"],
  ["match", "Finds the topic", (one) => (one.match === null || one.match === undefined ? "–" : `${(100 * one.match).toFixed(1)} %`)],
  ["verdict", "Against random slices", (one) => one.verdict ?? "–"],
  ["topic", "Largest gap", (one) => one.topic ?? "–"],
  ["selectivity", "Selectivity", (one) => signed(one.selectivity, 3)],
  ["alignment", "Alignment", (one) => signed(one.alignment, 3)],
  ["mean", "Mean similarity", (one) => signed(one.mean, 3)],
  ["activation", "Activation", (one) => (one.activation === null ? "–" : one.activation.toPrecision(3))],
];

const WORDS = ["head", "role", "topic", "verdict"];

function showHeads(state) {
  const { run } = state;
  state.openHead = () => {};
  if (!run.profiles?.length) return;
  const box = section("heads", "Head profiles", state);
  const controls = make("div", "controls", box);
  const view = { stage: run.first, by: "head", down: false, head: null };
  const wide = make("div", "wide", box);
  const detail = make("div", "detail", box);
  detail.setAttribute("aria-live", "polite");
  const draw = () => {
    const rows = run.profiles.filter((one) => one.stage === view.stage);
    rows.sort((a, b) => (compare(a[view.by], b[view.by]) || a.head - b.head) * (view.down ? -1 : 1));
    const table = make("table", "");
    const heading = make("tr", "", make("thead", "", table));
    for (const [key, name] of PROFILE) {
      const cell = make("th", WORDS.includes(key) ? "" : "number", heading);
      cell.setAttribute("aria-sort", view.by !== key ? "none" : view.down ? "descending" : "ascending");
      press(cell, "", name, () => { view.down = view.by === key && !view.down; view.by = key; draw(); });
    }
    const body = make("tbody", "", table);
    for (const one of rows) {
      const line = make("tr", one.head === view.head ? "open chosen" : "open", body);
      line.tabIndex = 0;
      for (const [key, , words] of PROFILE) make("td", WORDS.includes(key) ? "" : "number", line, String(words(one)));
      const act = () => { view.head = one.head; draw(); };
      line.addEventListener("click", act);
      line.addEventListener("keydown", (event) => { if (event.key === "Enter") act(); });
    }
    wide.replaceChildren(table);
    detail.replaceChildren();
    const chosen = rows.find((one) => one.head === view.head);
    if (chosen) showHead(detail, chosen, state);
  };
  const mark = stageChoice(controls, run, view.stage, (stage) => { view.stage = stage; draw(); });
  make("span", "quiet", controls, "Click a column to sort, a row to open.");
  state.openHead = (stage, head) => {
    Object.assign(view, { stage, head });
    mark(stage);
    draw();
    detail.scrollIntoView({ block: "nearest" });
  };
  draw();
}

function compare(a, b) {
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
  if (b === null || b === undefined) return -1;
  return typeof a === "number" ? a - b : String(a).localeCompare(String(b));
}

function showHead(box, one, state) {
  const { run } = state;
  make("h3", "", box, `Head ${one.head} at stage ${one.stage}: ${one.role ?? "no role"}`);
  if (one.because) make("p", "", box, one.because);
  if (one.match !== null && one.match !== undefined) {
    const range = one.low === null || one.low === undefined ? "" : ` (95 % CI ${(100 * one.low).toFixed(1)}–${(100 * one.high).toFixed(1)} %)`;
    make("p", "quiet", box, `Alone it finds the labelled topic for ${(100 * one.match).toFixed(1)} % of the documents${range}; against random slices: ${one.verdict ?? "not compared"}.`);
  }
  if (!run.heat_map) return;
  const { topics, starts, docs, values } = run.heat_map, bits = values[one.stage].cells, total = docs.length;
  const ends = [...starts.slice(1), total];
  const value = (column) => half(bits[one.head * total + column]);
  const means = topics.map((name, block) => {
    let sum = 0;
    for (let column = starts[block]; column < ends[block]; column += 1) sum += value(column);
    return [name, sum / (ends[block] - starts[block])];
  });
  means.sort((a, b) => b[1] - a[1]);
  make("p", "quiet", box, "Mean similarity of a topic's documents to the topic:");
  showBars(box, means.length > 16 ? [...means.slice(0, 8), ...means.slice(-8)] : means);
  const best = Array.from({ length: total }, (_, column) => column).sort((a, b) => value(b) - value(a)).slice(0, 8);
  make("p", "quiet", box, "Documents nearest to their topic in this head:");
  const list = make("ul", "list", box);
  const reading = make("div", "", box);
  for (const column of best) {
    press(make("li", "", list), "", `${signed(value(column), 3)}  ${state.documents.title(docs[column])}`, () => { reading.replaceChildren(); showDocument(reading, docs[column], state); });
  }
}
