// A run as one file: unpacks the data, then draws findings, maps, heat map, heads and tables. Everything that a corpus
// brings along (titles, texts, topics, columns) reaches the page through textContent alone.

const ARRAYS = { uint8: Uint8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array };

async function unpacked() {
  const text = document.getElementById("data").textContent;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const start = 4 + length;
  return JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)), (_, value) =>
    value && typeof value === "object" && value.array
      ? new ARRAYS[value.array](buffer, start + value.at, value.length)
      : value);
}

function make(tag, kind, parent, text) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}
function press(parent, kind, text, act) {
  const made = make("button", kind, parent, text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}
function choose(parent, label, options, chosen, act) {
  const box = make("label", "", parent, `${label} `);
  const select = make("select", "", box);
  select.setAttribute("aria-label", label);
  for (const [value, name] of options) {
    const option = make("option", "", select, name);
    option.value = value;
    option.selected = String(value) === String(chosen);
  }
  select.addEventListener("change", () => act(select.value));
  return select;
}
function section(id, title, state) {
  const link = make("a", "", state.links, title);
  link.href = `#${id}`;
  const made = make("section", "", state.page);
  make("h2", "", made, title).id = id;
  return made;
}
function stageChoice(parent, run, chosen, act) {
  const box = make("div", "stages", parent);
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Stage");
  const buttons = run.stages.map(({ stage, name }) => press(box, "", `${stage} · ${name}`, () => { mark(stage); act(stage); }));
  const mark = (stage) => run.stages.forEach((one, at) => buttons[at].setAttribute("aria-pressed", String(one.stage === stage)));
  mark(chosen);
  return mark;
}
function signed(value, digits) {
  return value === null || value === undefined ? "–" : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
}

// Arrow tables are what the components read in the app; a column that answers as theirs do is enough.
function columnsOf(columns) {
  return { getChild: (name) => ({ toArray: () => columns[name], get: (at) => columns[name][at] }) };
}

function documentsOf(run) {
  const places = new Map();
  run.documents.docs.forEach((doc, at) => places.set(doc, at));
  return {
    title: (doc) => run.documents.titles[places.get(doc)] ?? `Document ${doc + 1}`,
    topic: (doc) => run.documents.topics[places.get(doc)] ?? null,
    text: (doc) => run.documents.texts[places.get(doc)] ?? null,
  };
}

function showDocument(box, doc, state) {
  const { documents, run } = state;
  make("h3", "", box, `${doc + 1} · ${documents.title(doc)}`);
  make("p", "quiet", box, documents.topic(doc) === null ? "no topic" : `topic: ${documents.topic(doc)}`);
  const text = documents.text(doc);
  make("p", "text", box, text ?? (run.texts === "none" ? "Texts were left out when this file was made." : "This document's text is not in this file."));
}

function showBars(parent, rows) {
  const box = make("div", "bars", parent);
  const most = Math.max(1e-9, ...rows.map(([, value]) => Math.abs(value)));
  for (const [name, value] of rows) {
    const label = make("span", "name", box, name);
    label.title = name;
    const bar = make("i", value < 0 ? "below" : "", make("span", "", box));
    bar.style.width = `${(100 * Math.abs(value)) / most}%`;
    make("span", "number", box, signed(value, 3));
  }
}

function showFindings(state) {
  const { run } = state;
  const box = section("findings", "Findings", state);
  if (run.missing.figures) make("p", "quiet", box, `This run had no figures yet. Run '${run.missing.figures}' and publish it again.`);
  const first = make("div", "findings", box);
  const rest = run.findings.filter((one) => !one.first);
  let others = null;
  if (rest.length) {
    const fold = make("details", "more", box);
    make("summary", "", fold, `${rest.length} more ${rest.length === 1 ? "finding" : "findings"}`);
    others = make("div", "findings", fold);
  }
  for (const one of run.findings) {
    const cards = one.first ? first : others;
    const card = make("div", "card", cards);
    make("h3", "", card, one.title);
    make("p", "", card, one.sentence);
    const more = make("details", "", card);
    make("summary", "", more, "Figures");
    make("div", "", more, one.evidence);
  }
}

function themeButton(parent, state) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const button = press(parent, "plain", "", () => set(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    for (const act of state.onTheme) act();
  };
  button.setAttribute("aria-label", "Change between light and dark");
  button.textContent = dark ? "Light" : "Dark";
}

async function open() {
  const page = document.getElementById("page");
  let run;
  try {
    run = await unpacked();
  } catch (error) {
    page.replaceChildren();
    make("p", "", page, `This file is damaged, or the browser is too old to open it (${error.message}). Get the file again, or update the browser.`);
    return;
  }
  page.replaceChildren();
  const state = { run, page, onTheme: [], documents: documentsOf(run) };
  const top = make("div", "top", page);
  make("h1", "", top, run.run);
  themeButton(top, state);
  const facts = make("ul", "facts", page);
  for (const [name, value] of run.facts) {
    const line = make("li", "", facts);
    make("b", "", line, name);
    line.append(value);
  }
  state.links = make("nav", "sections", page);
  showFindings(state);
  showMaps(state);
  showHeatMap(state);
  showHeads(state);
  showTables(state);
  make("p", "quiet", page, "Made by Headscope. This file makes no network requests.");
  page.dataset.ready = "true";
}
