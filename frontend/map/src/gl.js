// The map by WebGL: regl-scatterplot draws and moves the camera; picking and selecting are done outside of it, so that
// neither redraws a single point.

import createScatterplot, { createSpatialIndex } from "regl-scatterplot";
import { limited, WHOLE } from "./camera.js";
import { layers } from "./paint.js";

const MANY = 100_000;
const DISTANCE = 1.06; // of the camera, for the whole map
const GLIDE = 350; // milliseconds
const STILL = window.matchMedia("(prefers-reduced-motion: reduce)");

export function hasWebGL() {
  try {
    const gl = document.createElement("canvas").getContext("webgl");
    return Boolean(gl?.getExtension("OES_texture_float") && gl.getExtension("ANGLE_instanced_arrays"));
  } catch {
    return false;
  }
}

export class GlMap {
  constructor(box, onMove, count) {
    this.movable = true;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "canvas";
    box.append(this.canvas);
    const { width, height } = box.getBoundingClientRect();
    this.plot = createScatterplot({
      canvas: this.canvas,
      width,
      height,
      colorBy: "valueA",
      sizeBy: "valueA",
      opacity: 0.88,
      performanceMode: count > MANY, // squares without blending: at this size nobody sees the difference
      lassoOnLongPress: false,
      lassoInitiator: false,
      actionKeyMap: {},
      deselectOnDblClick: false,
      deselectOnEscape: false,
      showReticle: false,
      pointScaleMode: "asinh",
      cameraDistance: DISTANCE,
    });
    // Told within the frame that is drawn, so that what lies over the map moves with it.
    this.plot.subscribe("drawing", () => !this.exporting && onMove(this));
    // Its own search for the point under the pointer finds nothing: ours needs no redraw, and prefers lit points.
    this.nothing = createSpatialIndex([[1e6, 1e6]]).then((index) => index.data ?? index);
    this.queue = Promise.resolve();
  }

  draw(map, painted, paper) {
    this.wanted = { map, painted, paper };
    this.queue = this.queue.then(() => this.drawWanted()).catch((error) => console.error(error));
    return this.queue;
  }

  async drawWanted() {
    if (!this.wanted || this.destroyed) return;
    const { map, painted, paper } = this.wanted;
    this.wanted = null;
    const count = map.x.length;
    if (!map.rows) {
      map.rows = new Array(count + 2);
      for (let i = 0; i < count; i += 1) map.rows[i] = [map.x[i] / 32767.5 - 1, map.y[i] / 32767.5 - 1, 0, 0];
      map.rows[count] = [-1, -1, 0, 0]; // two corners that nobody sees tell where the map is on the screen
      map.rows[count + 1] = [1, 1, 0, 0];
    }
    // The library draws in the order that it is given; nothing else depends on it, for picking is ours.
    const layer = layers(painted);
    const front = painted.inFront;
    const layerOf = (i) => {
      const own = layer[painted.category[i]];
      return own === 2 ? 3 : own === 1 && front?.(i) ? 2 : own;
    };
    const next = [2, 2, 2, 2];
    for (let i = 0; i < count; i += 1) for (let above = layerOf(i) + 1; above < 4; above += 1) next[above] += 1;
    const rows = new Array(count + 2);
    for (let i = 0; i < count; i += 1) {
      const row = map.rows[i];
      const category = painted.category[i];
      row[2] = category;
      rows[next[layerOf(i)]++] = row;
    }
    [rows[0], rows[1]] = [map.rows[count], map.rows[count + 1]];
    rows[0][2] = painted.unseen;
    rows[1][2] = painted.unseen;
    // Its redraw comes a frame later: not waited for, it would draw all points a second time.
    await this.plot.set({ backgroundColor: paper, pointColor: painted.colours, pointSize: painted.sizes });
    await this.plot.draw(rows, { spatialIndex: await this.nothing, zDataType: "categorical" });
    this.drawnOnce = true;
    this.canvas.dataset.drawn = String(Number(this.canvas.dataset.drawn ?? 0) + 1);
  }

  // [left, top, right, bottom] of the whole map in pixels of the canvas.
  place() {
    if (!this.drawnOnce || this.exporting) return null;
    const [low, high] = [0, 1].map((corner) => this.plot.getScreenPosition(corner));
    return low && high ? [low[0], high[1], high[0], low[1]] : null;
  }

  // Where each head's map lies: all on one.
  places(heads) {
    const place = this.place();
    return place && Array.from({ length: heads }, () => place);
  }

  camera() {
    const [x, y] = this.plot.get("cameraTarget");
    return { x: (x + 1) / 2, y: (y + 1) / 2, zoom: DISTANCE / this.plot.get("cameraDistance") };
  }

  // ``gliding`` takes a moment, for those who have not asked for less motion.
  lookAt(camera, gliding = false) {
    const { x, y, zoom } = limited(camera ?? WHOLE);
    const options = gliding && !STILL.matches ? { transition: true, transitionDuration: GLIDE } : {};
    this.plot.zoomToLocation([2 * x - 1, 2 * y - 1], DISTANCE / zoom, options);
  }

  pan(dx, dy) {
    const place = this.place();
    if (!place) return;
    const { x, y, zoom } = this.camera();
    this.lookAt({ x: x - dx / (place[2] - place[0]), y: y + dy / (place[3] - place[1]), zoom });
  }

  // What is at a place of the screen stays there.
  zoom(factor, left, top) {
    const place = this.place();
    if (!place) return;
    const before = this.camera();
    const { zoom } = limited({ ...before, zoom: before.zoom * factor });
    const [x, y] = [(left - place[0]) / (place[2] - place[0]), (place[3] - top) / (place[3] - place[1])];
    const share = before.zoom / zoom;
    this.lookAt({ x: x + (before.x - x) * share, y: y + (before.y - y) * share, zoom });
  }

  // Drawn once more, larger; then as before.
  picture(scale) {
    const made = this.queue.then(async () => {
      this.exporting = true; // until then nothing may ask where the map is
      const image = await this.plot.export({ scale: scale / (window.devicePixelRatio || 1) }).finally(() => { this.exporting = false; });
      const sheet = document.createElement("canvas");
      [sheet.width, sheet.height] = [image.width, image.height];
      sheet.getContext("2d").putImageData(image, 0, 0);
      return sheet;
    });
    this.queue = made.catch((error) => console.error(error));
    return made;
  }

  resize(width, height) {
    this.plot.set({ width, height });
  }

  destroy() {
    this.destroyed = true;
    this.plot.destroy();
    this.canvas.remove();
  }
}
