// What of the view the map itself puts into the address: heads, colouring with its chosen value and whether that is listed, camera, layout, and the
// head in front. They are replaced there,
// never pushed: moving the map is no step of the browser's history.

import { formatCamera, parseCamera } from "./camera.js";
import { formatHeads, parseHeads } from "./heads.js";
import { memory } from "./store.js";

const OWN = ["heads", "colour", "camera", "layout", "focus", "list", "front"];

export function ownPart(view, meta) {
  return {
    heads: formatHeads(view.heads, meta.heads),
    colour: view.colour === "head" ? null : view.colour,
    camera: formatCamera(view.camera),
    layout: view.layout === "heads" ? "heads" : null,
    focus: view.focus === null ? null : String(view.focus + 1),
    list: view.list ? "1" : null,
    front: view.front === null ? null : String(view.front),
  };
}

// The address wins on arrival and after the browser's Back; but what this tab has changed since it last told the server
// wins over what the server remembers of it.
export function readOwnPart(meta, arrival) {
  const address = new URLSearchParams(window.location.search);
  const known = memory(meta.run);
  const given = (name) => (arrival && name in known && (address.get(name) ?? null) === known.told?.[name] ? known[name] : address.get(name));
  const colours = ["head", "group", "activation", ...meta.columns.map((column) => column.name)];
  const found = {
    heads: parseHeads(given("heads"), meta.heads),
    colour: colours.includes(given("colour")) ? given("colour") : "head",
    camera: parseCamera(given("camera")),
    layout: given("layout") === "heads" ? "heads" : "one",
    front: numberUpTo(given("front"), meta.heads),
    focus: null,
    list: false,
  };
  const column = meta.columns.find((own) => own.name === found.colour);
  const entry = column && numberUpTo(given("focus"), column.values.length + (column.missing ? 1 : 0));
  if (entry) [found.focus, found.list] = [entry - 1, given("list") === "1"];
  known.told = Object.fromEntries(OWN.map((name) => [name, address.get(name)]));
  return found;
}

function numberUpTo(text, most) {
  return /^[1-9]\d{0,4}$/.test(text ?? "") && Number(text) <= most ? Number(text) : null;
}

export function writeOwnPart(view, meta) {
  const address = new URL(window.location.href);
  const own = ownPart(view, meta);
  for (const name of OWN) {
    if (own[name] === null) address.searchParams.delete(name);
    else address.searchParams.set(name, own[name]);
  }
  const text = address.toString().replaceAll("%2C", ",");
  if (text !== window.location.href) window.history.replaceState(window.history.state, "", text);
  Object.assign(memory(meta.run), own);
}
