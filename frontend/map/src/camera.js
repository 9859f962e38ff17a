// Where the map is looked at: the middle of the box as shares of the map's width and height (from below), and how many
// times larger than the whole map it is drawn. In the address: "0.412,0.633,3.5"; nothing at all for the whole map.
// The server lets the same texts pass (pages/explore/head_map/state.py).

export const WHOLE = { x: 0.5, y: 0.5, zoom: 1 };
const ZOOMS = [0.2, 500];
const PLACES = [-1, 2];
const FORM = /^-?\d(?:\.\d{1,6})?,-?\d(?:\.\d{1,6})?,\d{1,3}(?:\.\d{1,3})?$/;

export function parseCamera(text) {
  if (!text || !FORM.test(text)) return null;
  const [x, y, zoom] = text.split(",").map(Number);
  const within = (value, [low, high]) => value >= low && value <= high;
  return within(x, PLACES) && within(y, PLACES) && within(zoom, ZOOMS) ? { x, y, zoom } : null;
}

export function formatCamera(camera) {
  if (!camera) return null;
  const { x, y, zoom } = limited(camera);
  if (Math.abs(zoom - 1) < 0.005 && Math.abs(x - 0.5) < 0.0005 && Math.abs(y - 0.5) < 0.0005) return null;
  const digits = Math.min(6, 3 + Math.max(0, Math.ceil(Math.log10(zoom)))); // finer than a pixel at any zoom
  return [x.toFixed(digits), y.toFixed(digits), zoom.toFixed(3)].map(Number).join(",");
}

export function limited({ x, y, zoom }) {
  const into = (value, [low, high]) => Math.max(low, Math.min(high, value));
  return { x: into(x, PLACES), y: into(y, PLACES), zoom: into(zoom, ZOOMS) };
}
