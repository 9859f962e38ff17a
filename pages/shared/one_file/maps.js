// The maps: the app's own bundle, given the messages that the app's server would send.

function showMaps(state) {
  const { run } = state;
  const box = section("maps", "Maps of all heads", state);
  if (!run.maps) {
    make("p", "quiet", box, `This run had no maps yet. Run '${run.missing.maps}' and publish it again.`);
    return;
  }
  const controls = make("div", "controls", box);
  const host = make("div", "map-host", box);
  const detail = make("div", "detail", box);
  detail.setAttribute("aria-live", "polite");
  // The map writes its view into the address, which not every place that a file is opened from allows.
  const replace = history.replaceState.bind(history);
  history.replaceState = (...given) => { try { replace(...given); } catch { /* the view is just not in the address */ } };
  const root = host.attachShadow({ mode: "open" });
  root.append(document.getElementById("map-style").content.cloneNode(true));
  make("div", "head-map", root);
  globalThis.headscopeParts.map({ parentElement: root });
  const { docs, about } = drawnDocuments(state);
  const tell = (kind, picked) => {
    if (kind !== "picked") return;
    detail.replaceChildren();
    if (picked.doc) showDocument(detail, picked.doc - 1, state);
    else if (picked.area) make("p", "quiet", detail, "An area is selected. The app lists its documents; in this file, click a point to read a document.");
  };
  const show = (stage) => {
    const told = run.maps.stages[stage];
    const data = { ...told, points: columnsOf(told.points), documents: columnsOf(about) };
    globalThis.headscopeMap.listener({ data, tell });
  };
  stageChoice(controls, run, run.first, show);
  make("span", "quiet", controls, run.maps.note || `All ${docs.length.toLocaleString("en")} documents.`);
  show(run.first);
}

function drawnDocuments({ run, documents }) {
  const columns = run.maps.documents;
  const title = Array.from(columns.doc, (doc) => documents.title(doc));
  return { docs: columns.doc, about: { ...columns, title } };
}
