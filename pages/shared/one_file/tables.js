// The run's tables as they are, the first rows of each until all are asked for.

const FIRST_ROWS = 100;

function showTables(state) {
  const { run } = state;
  const names = Object.keys(run.tables);
  if (!names.length) return;
  const box = section("tables", "Tables", state);
  const controls = make("div", "controls", box);
  const wide = make("div", "wide", box);
  const foot = make("div", "controls", box);
  const draw = (name, all) => {
    const { columns, values } = run.tables[name], rows = values[0].length;
    const shown = all ? rows : Math.min(rows, FIRST_ROWS);
    const table = make("table", "");
    const heading = make("tr", "", make("thead", "", table));
    for (const column of columns) make("th", "", heading, column);
    const body = make("tbody", "", table);
    for (let row = 0; row < shown; row += 1) {
      const line = make("tr", "", body);
      for (const cells of values) cell(line, cells[row]);
    }
    wide.replaceChildren(table);
    foot.replaceChildren();
    make("span", "quiet", foot, `${shown.toLocaleString("en")} of ${rows.toLocaleString("en")} rows`);
    if (shown < rows) press(foot, "plain", "Show all", () => draw(name, true));
  };
  choose(controls, "Table", names.map((name) => [name, name]), names[0], (name) => draw(name, false));
  draw(names[0], false);
}

function cell(line, value) {
  const text = value === null ? "–" : Array.isArray(value) ? value.join(", ") : String(value);
  const made = make("td", typeof value === "number" ? "number" : "", line, text);
  made.title = text;
}
