// The app's head map in a notebook: it is given the messages that the app's server would send. What comes before this
// file are the map's bundle and its style (map_widget.py).

const headscopeMapOf = globalThis.headscopeParts.map;

function render({ model, el }) {
  const host = document.createElement("div");
  host.className = "headscope-map";
  el.append(host);
  const root = host.attachShadow({ mode: "open" });
  const [style, box] = [document.createElement("style"), document.createElement("div")];
  style.textContent = HEADSCOPE_STYLE;
  box.className = "head-map";
  root.append(style, box);
  paintHost(host);
  const themes = new MutationObserver(() => paintHost(host));
  themes.observe(document.body, { attributes: true, attributeFilter: ["class", "data-jp-theme-light", "data-vscode-theme-kind"] });
  const leave = headscopeMapOf({ parentElement: root });
  const { listener } = globalThis.headscopeMap; // this map's own; the next one's replaces it
  const tell = (kind, told) => {
    model.set(kind === "picked" ? "_picked" : "_view", { ...told });
    model.save_changes();
  };
  const show = () => {
    const { points, documents, ...rest } = model.get("_message");
    listener({ data: { ...rest, points: columnsOf(points), documents: columnsOf(documents) }, tell });
  };
  model.on("change:_message", show);
  show();
  return () => {
    model.off("change:_message", show);
    themes.disconnect();
    host.remove();
    leave();
  };
}

// Notebooks say in their own ways that they are dark.
function paintHost(host) {
  const { dataset, classList } = document.body;
  const kind = dataset.vscodeThemeKind;
  const dark = dataset.jpThemeLight === "false" || classList.contains("theme-dark") || kind?.includes("dark");
  host.dataset.theme = dark ? "dark" : "light";
}

function columnsOf(columns) {
  const found = Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, arrayOf(column)]));
  return { getChild: (name) => ({ toArray: () => found[name], get: (at) => found[name][at] }) };
}

const HEADSCOPE_TYPES = { uint8: Uint8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array };

function arrayOf(column) {
  if (Array.isArray(column)) return column;
  const { buffer, byteOffset, byteLength } = column.data;
  return new HEADSCOPE_TYPES[column.type](buffer.slice(byteOffset, byteOffset + byteLength));
}

export default { render };
