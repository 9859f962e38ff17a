// The map by WebGL: regl-scatterplot draws and moves the camera; picking and selecting are done outside of it, so that
// neither redraws a single point.

import createScatterplot, { createSpatialIndex } from "regl-scatterplot";
import { layers } from "./paint.js";

const MANY = 100_000;

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
      cameraDistance: 1.06,
    });
    this.plot.subscribe("view", onMove);
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
    const next = [2, 2, 2];
    for (let i = 0; i < count; i += 1) {
      const own = layer[painted.category[i]];
      if (own < 1) next[1] += 1;
      if (own < 2) next[2] += 1;
    }
    const rows = new Array(count + 2);
    for (let i = 0; i < count; i += 1) {
      const row = map.rows[i];
      const category = painted.category[i];
      row[2] = category;
      rows[next[layer[category]]++] = row;
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
    if (!this.drawnOnce) return null;
    const [low, high] = [0, 1].map((corner) => this.plot.getScreenPosition(corner));
    return low && high ? [low[0], high[1], high[0], low[1]] : null;
  }

  resize(width, height) {
    this.plot.set({ width, height });
  }

  reset() {
    this.plot.reset();
  }

  destroy() {
    this.destroyed = true;
    this.plot.destroy();
    this.canvas.remove();
  }
}
