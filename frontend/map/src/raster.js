// The map as pixels, drawn by this script itself. Without a graphics card that is 15 to 40 times as fast as WebGL in
// software (benchmarks/million.py), with one it is fast enough, and every browser shows the same picture. Picking and
// selecting are done elsewhere (grid.js, area.js).

import { limited, WHOLE } from "./camera.js";
import { layers, packed } from "./paint.js";

const MANY = 100_000; // from here on small points are squares without blending: nobody sees the difference
const ROUND = 3.5; // pixels of the screen: from here on a point is a disc in any case
const PHASES = 4; // of a disc's middle between two pixels, so that moving is smooth
const OPACITY = 0.88;
const MARGIN = 1.06; // the box is so many times as large as the whole map
const GLIDE = 350; // milliseconds
const STILL = window.matchMedia("(prefers-reduced-motion: reduce)");

export class RasterMap {
  constructor(box, onMove) {
    this.movable = true;
    this.onMove = onMove;
    this.looking = WHOLE;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "canvas";
    this.context = this.canvas.getContext("2d", { alpha: false });
    box.append(this.canvas);
    const { width, height } = box.getBoundingClientRect();
    this.resize(width, height);
  }

  // Resolves when the points are on the screen. ``density`` is a picture that lies under them.
  draw({ map, painted, density }, paper) {
    const colours = Uint32Array.from(painted.colours, (colour) => packed(colour));
    this.drawn = { map, painted, density, paper: packed(paper), colours, order: orderOf(painted, map.x.length) };
    return this.redraw().then(() => {
      this.canvas.dataset.drawn = String(Number(this.canvas.dataset.drawn ?? 0) + 1);
    });
  }

  // With the next frame; however many ask for it.
  redraw() {
    this.frame ??= new Promise((resolve) => {
      requestAnimationFrame(() => {
        this.frame = null;
        if (!this.destroyed && this.drawn) {
          this.render();
          this.onMove(this); // within the frame that is drawn, so that what lies over the map moves with it
        }
        resolve();
      });
    });
    return this.frame;
  }

  render() {
    const { canvas, context, size: [width, height] } = this;
    const image = context.createImageData(canvas.width, canvas.height);
    const ratio = canvas.width / width;
    const place = this.place().map((value) => value * ratio);
    // Points grow with the map, but slower than it.
    const grown = (ratio * Math.asinh(Math.max(1, this.looking.zoom))) / Math.asinh(1);
    const pixels = new Uint32Array(image.data.buffer).fill(this.drawn.paper);
    const { density } = this.drawn;
    if (density) paintCells(pixels, [canvas.width, canvas.height], density.at(density.levelFor(place[2] - place[0])), place);
    paintPoints(pixels, [canvas.width, canvas.height], this.drawn, place, grown);
    context.putImageData(image, 0, 0);
  }

  // [left, top, right, bottom] of the whole map in pixels of the box.
  place() {
    if (!this.drawn) return null;
    const [width, height] = this.size;
    const { x, y, zoom } = this.looking;
    const side = (Math.min(width, height) / MARGIN) * zoom;
    const [left, bottom] = [width / 2 - x * side, height / 2 + y * side];
    return [left, bottom - side, left + side, bottom];
  }

  // [left, low, right, high] of what the box shows, as shares of the map's width and height.
  visible() {
    const [wide, tall] = this.size.map((length) => (length * MARGIN) / (2 * Math.min(...this.size) * this.looking.zoom));
    const { x, y } = this.looking;
    return [x - wide, y - tall, x + wide, y + tall];
  }

  // Where each head's map lies: all on one.
  places(heads) {
    const place = this.place();
    return place && Array.from({ length: heads }, () => place);
  }

  camera() {
    return { ...this.looking };
  }

  // ``gliding`` takes a moment, for those who have not asked for less motion.
  lookAt(camera, gliding = false) {
    const to = limited(camera ?? WHOLE);
    const glide = (this.gliding = {}); // another one ends it
    if (!gliding || STILL.matches) {
      this.looking = to;
      this.redraw();
      return;
    }
    const from = this.looking;
    const start = performance.now();
    const step = () => {
      if (glide !== this.gliding || this.destroyed) return;
      const share = Math.min(1, (performance.now() - start) / GLIDE);
      const eased = share * share * (3 - 2 * share);
      const between = (name) => from[name] + (to[name] - from[name]) * eased;
      this.looking = share < 1 ? { x: between("x"), y: between("y"), zoom: from.zoom * (to.zoom / from.zoom) ** eased } : to;
      this.redraw().then(() => share < 1 && step());
    };
    step();
  }

  pan(dx, dy) {
    const place = this.place();
    if (!place) return;
    const { x, y, zoom } = this.looking;
    this.lookAt({ x: x - dx / (place[2] - place[0]), y: y + dy / (place[3] - place[1]), zoom });
  }

  // What is at a place of the screen stays there.
  zoom(factor, left, top) {
    const place = this.place();
    if (!place) return;
    const before = this.looking;
    const { zoom } = limited({ ...before, zoom: before.zoom * factor });
    const [x, y] = [(left - place[0]) / (place[2] - place[0]), (place[3] - top) / (place[3] - place[1])];
    const share = before.zoom / zoom;
    this.lookAt({ x: x + (before.x - x) * share, y: y + (before.y - y) * share, zoom });
  }

  // Drawn once more, larger; then as before.
  picture(scale) {
    this.fitCanvas(scale);
    this.render();
    const sheet = document.createElement("canvas");
    [sheet.width, sheet.height] = [this.canvas.width, this.canvas.height];
    sheet.getContext("2d").drawImage(this.canvas, 0, 0);
    this.fitCanvas();
    this.render();
    return sheet;
  }

  resize(width, height) {
    this.size = [width, height];
    this.fitCanvas();
    if (this.drawn) this.render(); // at once: another size has emptied the canvas
  }

  fitCanvas(scale = window.devicePixelRatio || 1) {
    const [width, height] = this.size;
    [this.canvas.width, this.canvas.height] = [width, height].map((length) => Math.max(1, Math.round(length * scale)));
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
  }

  destroy() {
    this.destroyed = true;
    this.canvas.remove();
  }
}

// Every point on ``pixels``, a number a pixel; ``place`` is the whole map's, and sizes are multiplied by ``grown``.
function paintPoints(pixels, [width, height], { map, painted, colours, order }, [left, top, right, bottom], grown) {
  const { x, y } = map;
  const { category } = painted;
  const [across, down] = [(right - left) / 65535, (bottom - top) / 65535];
  const count = x.length;
  const sizes = painted.sizes.map((size) => size * grown);
  const discs = sizes.map((size) => (count <= MANY || size >= ROUND ? discsOf(size, width) : null));
  const sides = sizes.map((size) => Math.max(1, Math.round(size)));
  for (let k = 0; k < count; k += 1) {
    const i = order ? order[k] : k;
    const own = category[i];
    const h = left + x[i] * across; // no arrays from here on: this runs a million times a frame
    const v = bottom - y[i] * down;
    if (discs[own]) {
      blend(pixels, width, height, h, v, colours[own], discs[own]);
      continue;
    }
    const side = sides[own];
    const from = Math.round(h - side / 2);
    const start = Math.round(v - side / 2);
    if (from < 0 || start < 0 || from + side > width || start + side > height) continue;
    for (let row = start * width + from, end = row + side * width; row < end; row += width) {
      for (let at = row; at < row + side; at += 1) pixels[at] = colours[own];
    }
  }
}

// Every pixel has the colour of the cell that its middle lies in, if that has one. A cell is as wide as the points in it.
function paintCells(pixels, [width, height], { side, pixels: cells }, [left, top, right, bottom]) {
  const cellAt = (share) => Math.floor(((share * 65535 + 0.5) / 65536) * side);
  const columns = Int32Array.from({ length: width }, (_, h) => cellAt((h + 0.5 - left) / (right - left)));
  for (let v = 0; v < height; v += 1) {
    const row = cellAt((bottom - v - 0.5) / (bottom - top));
    if (row < 0 || row >= side) continue;
    for (let h = 0; h < width; h += 1) {
      const column = columns[h];
      const colour = column >= 0 && column < side ? cells[row * side + column] : 0;
      if (colour) pixels[v * width + h] = colour;
    }
  }
}

function blend(pixels, width, height, h, v, colour, { reach, masks }) {
  const column = Math.floor(h);
  const row = Math.floor(v);
  const inside = column >= reach && row >= reach && column + reach < width && row + reach < height;
  if (!inside && (column < -reach || row < -reach || column - reach >= width || row - reach >= height)) return;
  const { shifts, rows, columns, shares } = masks[Math.floor((v - row) * PHASES) * PHASES + Math.floor((h - column) * PHASES)];
  const even = colour & 0xff00ff;
  const odd = colour & 0xff00;
  const middle = row * width + column;
  for (let k = 0; k < shifts.length; k += 1) {
    if (!inside) {
      const a = column + columns[k];
      const b = row + rows[k];
      if (a < 0 || b < 0 || a >= width || b >= height) continue;
    }
    const at = middle + shifts[k];
    const under = pixels[at];
    const evens = under & 0xff00ff;
    const odds = under & 0xff00;
    // Red and blue at once, then green: each moves towards the colour by its share of 256.
    pixels[at] = 0xff000000
      | ((evens + (Math.imul(even - evens, shares[k]) >> 8)) & 0xff00ff)
      | ((odds + (Math.imul(odd - odds, shares[k]) >> 8)) & 0xff00);
  }
}

// A disc's pixels around the one in which its middle lies, for every phase of the middle within that pixel.
function discsOf(size, width) {
  const radius = Math.max(0.5, size / 2);
  const reach = Math.ceil(radius + 1);
  const masks = Array.from({ length: PHASES * PHASES }, (_, phase) => {
    const [h, v] = [((phase % PHASES) + 0.5) / PHASES, (Math.floor(phase / PHASES) + 0.5) / PHASES];
    const found = [];
    for (let b = -reach; b <= reach; b += 1) {
      for (let a = -reach; a <= reach; a += 1) {
        const covered = Math.min(1, radius + 0.5 - Math.hypot(a + 0.5 - h, b + 0.5 - v));
        if (covered > 0) found.push([a, b, Math.round(256 * OPACITY * covered)]);
      }
    }
    return {
      shifts: Int32Array.from(found, ([a, b]) => b * width + a),
      columns: Int8Array.from(found, ([a]) => a),
      rows: Int8Array.from(found, ([, b]) => b),
      shares: Uint16Array.from(found, ([, , share]) => share),
    };
  });
  return { reach, masks };
}

// Which point comes when: ground first, highlighted ones last, heads in front between; null where all are alike.
function orderOf(painted, count) {
  const layer = layers(painted);
  const { category, inFront } = painted;
  const own = new Uint8Array(count);
  const next = new Uint32Array(5);
  for (let i = 0; i < count; i += 1) {
    const level = layer[category[i]];
    own[i] = level === 2 ? 3 : level === 1 && inFront?.(i) ? 2 : level;
    next[own[i] + 1] += 1;
  }
  if (next.includes(count)) return null;
  for (let level = 1; level < 5; level += 1) next[level] += next[level - 1];
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) order[next[own[i]]++] = i;
  return order;
}
