// The topic heat map: the app's own canvas; a click opens the document, the head or the topic below it.

function showHeatMap(state) {
  const { run } = state;
  const box = section("heat-map", "Topic heat map", state);
  const cells = run.heat_map;
  if (!cells) {
    make("p", "quiet", box, run.missing.figures ? `This run had no figures yet. Run '${run.missing.figures}' and publish it again.` : "No document has a topic of the list.");
    return;
  }
  make("p", "quiet", box, `How near each head's part of a document is to the document's own topic. Rows: the full embedding, then the heads; columns: documents, by topic. ${cells.note}`);
  const controls = make("div", "controls", box);
  const host = make("div", "heat-map-host", box);
  const detail = make("div", "detail", box);
  detail.setAttribute("aria-live", "polite");
  const root = host.attachShadow({ mode: "open" });
  root.append(document.getElementById("heat-map-style").content.cloneNode(true));
  make("div", "hs-heat-map", root);
  const view = { stage: run.stages[run.stages.length > 2 ? 2 : 0].stage, sort: 0, topics: "usual", sheet: null };
  const draw = () => {
    view.sheet = sheetOf(run, view, state.documents);
    const data = { ...view.sheet.data, version: `${view.stage} ${view.sort} ${view.topics} ${document.documentElement.dataset.theme}` };
    globalThis.headscopeParts.heatMap({ data, parentElement: root, setTriggerValue: (_, pick) => open(pick) });
  };
  const open = (pick) => {
    detail.replaceChildren();
    const { docs, blocks } = view.sheet;
    if (pick.kind === "cell") {
      const doc = docs[pick.column];
      showDocument(detail, doc, state);
      make("p", "quiet", detail, `Similarity to its own topic at stage ${view.stage}, by head:`);
      showBars(detail, view.sheet.rowsOf(pick.column));
    } else if (pick.kind === "row" && pick.row) {
      state.openHead(view.stage, pick.row);
    } else if (pick.kind === "topic") {
      make("h3", "", detail, blocks[pick.block].name);
      const list = make("ul", "list", detail);
      for (const doc of blocks[pick.block].docs) {
        press(make("li", "", list), "", state.documents.title(doc), () => { detail.replaceChildren(); showDocument(detail, doc, state); });
      }
    }
  };
  stageChoice(controls, run, view.stage, (stage) => { view.stage = stage; detail.replaceChildren(); draw(); });
  const rows = Array.from({ length: run.heads + 1 }, (_, row) => [row, row ? `by head ${row}` : "by the full embedding"]);
  choose(controls, "Order within a topic", rows, 0, (sort) => { view.sort = Number(sort); detail.replaceChildren(); draw(); });
  if (cells.usual < cells.topics.length) {
    const sizes = [["usual", `the ${cells.usual} most frequent`], ["all", `all ${cells.topics.length}`]];
    choose(controls, "Topics", sizes, "usual", (topics) => { view.topics = topics; detail.replaceChildren(); draw(); });
  }
  state.onTheme.push(draw);
  draw();
}

// What the canvas draws: the chosen topics' columns, each block in falling order of the chosen row.
function sheetOf(run, view, documents) {
  const { heat_map: cells, heads } = run;
  const rows = heads + 1, total = cells.docs.length, own = cells.values[view.stage];
  const value = (row, column) => half(own.cells[row * total + column]);
  const count = view.topics === "all" ? cells.topics.length : cells.usual;
  const ends = [...cells.starts.slice(1), total];
  const order = [], starts = [], blocks = [];
  for (let block = 0; block < count; block += 1) {
    const columns = Array.from({ length: ends[block] - cells.starts[block] }, (_, at) => cells.starts[block] + at);
    columns.sort((a, b) => value(view.sort, b) - value(view.sort, a) || a - b);
    starts.push(order.length);
    blocks.push({ name: cells.topics[block], docs: columns.map((column) => cells.docs[column]) });
    order.push(...columns);
  }
  const bits = new Uint16Array(rows * order.length);
  for (let row = 0; row < rows; row += 1) order.forEach((column, at) => { bits[row * order.length + at] = own.cells[row * total + column]; });
  const docs = order.map((column) => cells.docs[column]);
  const look = run.looks[document.documentElement.dataset.theme];
  const names = ["full", ...Array.from({ length: heads }, (_, head) => `head ${head + 1}`)];
  return {
    docs, blocks,
    rowsOf: (at) => names.map((name, row) => [name, value(row, order[at])]),
    data: {
      label: `Heat map of ${docs.length} documents in ${count} ${count === 1 ? "topic" : "topics"}, ${rows} rows.`,
      rows: names,
      groups: run.groups,
      blocks: cells.topics.slice(0, count),
      starts,
      columns: docs.length,
      titles: columnsOf({ title: docs.map((doc) => documents.title(doc)) }),
      panels: [{ name: `Stage ${view.stage} ${run.stages.find(({ stage }) => stage === view.stage).name}`, limit: own.limit, values: "values 0" }],
      "values 0": columnsOf({ value: bits }),
      colours: look.scale, ink: look.ink, ground: look.ground, accent: look.accent,
      mark: null,
    },
  };
}

function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  return exponent ? sign * (1 + fraction / 1024) * 2 ** (exponent - 15) : sign * fraction * 2 ** -24;
}
