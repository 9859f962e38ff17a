// One small map per head, as density images on a single canvas.

import { rgb } from "./paint.js";

export class SmallMaps {
  constructor(box) {
    this.movable = false;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "canvas flat";
    box.append(this.canvas);
    const { width, height } = box.getBoundingClientRect();
    this.size = [width, height];
  }

  async draw(...what) {
    this.last = what;
    const [width, height] = this.size;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.drawOn(this.canvas, window.devicePixelRatio || 1, ...what);
    this.canvas.dataset.drawn = String(Number(this.canvas.dataset.drawn ?? 0) + 1);
  }

  // Density, where there is one, is all that fits into a small map.
  drawOn(canvas, ratio, { map, painted, density }, paper, meta, view, ink) {
    const [width, height] = this.size;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.fillStyle = paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    this.cells = cellsOf(width, height, meta.heads);
    const [points, looks] = density ? [density.rows, density.painted] : [map, painted];
    const shown = looks.colours.map(rgb);
    this.cells.forEach((cell, head) => {
      const side = Math.max(8, Math.floor(cell.side * ratio));
      const image = densityImage(points, looks, shown, rgb(paper), side, ratio, meta.heads, head);
      context.putImageData(image, Math.round(cell.x * ratio), Math.round(cell.y * ratio));
    });
    this.label(context, ratio, view, ink);
  }

  label(context, ratio, view, ink) {
    context.font = `${Math.round(12 * ratio)}px Inter, "Segoe UI", "Noto Sans", sans-serif`;
    context.textBaseline = "bottom";
    this.cells.forEach((cell, head) => {
      context.globalAlpha = view.heads.has(head + 1) ? 1 : 0.55;
      context.fillStyle = ink;
      context.fillText(`head ${head + 1}`, cell.x * ratio + 2, cell.y * ratio - 1);
    });
    context.globalAlpha = 1;
  }

  place(x, y) {
    const cell = this.cells?.find((own) => x >= own.x && x <= own.x + own.side && y >= own.y && y <= own.y + own.side);
    return cell ? [cell.x, cell.y, cell.x + cell.side, cell.y + cell.side] : null;
  }

  // Where each head's map lies.
  places(heads) {
    const place = (cell) => [cell.x, cell.y, cell.x + cell.side, cell.y + cell.side];
    return this.cells ? Array.from({ length: heads }, (_, head) => place(this.cells[head])) : null;
  }

  async picture(scale) {
    const sheet = document.createElement("canvas");
    this.drawOn(sheet, scale, ...this.last);
    return sheet;
  }

  // In a small map only its own head's points can be picked.
  headAt(x, y) {
    return this.cells.findIndex((own) => x >= own.x && x <= own.x + own.side && y >= own.y && y <= own.y + own.side);
  }

  resize(width, height) {
    this.size = [width, height];
    if (this.last) this.draw(...this.last);
  }

  destroy() {
    this.canvas.remove();
  }
}

function cellsOf(width, height, heads) {
  const columns = Math.min(heads, Math.max(2, Math.round(Math.sqrt((heads * width) / height))));
  const rows = Math.ceil(heads / columns);
  const [wide, high] = [width / columns, height / rows];
  const side = Math.max(10, Math.min(wide - 10, high - 22));
  return Array.from({ length: heads }, (_, head) => ({
    x: (head % columns) * wide + (wide - side) / 2,
    y: Math.floor(head / columns) * high + 19,
    side,
  }));
}

// A pixel has the colour of what was painted last on it: ground, then points, then lit ones. In the density image the
// more points fall on a pixel, the further it is from the paper.
function densityImage(map, painted, colours, paper, side, ratio, heads, only) {
  const image = new ImageData(side, side);
  const counts = new Uint32Array(side * side);
  const layer = new Uint16Array(side * side);
  const count = map.x.length;
  const few = !map.weight && count / heads < 3_000;
  const rank = (category) => (category === 0 ? 0 : painted.isStrongCategory(category) ? 2 : 1);
  const front = new Uint8Array(painted.inFront ? side * side : 0); // pixels that the head in front has taken
  let most = 1;
  for (let point = 0; point < count; point += 1) {
    const own = map.head[point] === only;
    const category = own ? painted.category[point] : 0;
    const x = Math.floor((map.x[point] * (side - 1)) / 65535);
    const y = side - 1 - Math.floor((map.y[point] * (side - 1)) / 65535);
    const reach = own && few && rank(category) > 0 ? Math.round(ratio * (rank(category) === 2 && painted.strong < 4_000 ? 2 : 1)) : 0;
    for (let dy = -reach; dy <= reach; dy += 1) {
      for (let dx = -reach; dx <= reach; dx += 1) {
        if (dx * dx + dy * dy > reach * reach || x + dx < 0 || x + dx >= side || y + dy < 0 || y + dy >= side) continue;
        const at = (y + dy) * side + x + dx;
        if (!counts[at] || (rank(category) >= rank(layer[at]) && !(front[at] && rank(category) < 2 && !painted.inFront(point)))) {
          layer[at] = category;
          if (painted.inFront) front[at] = painted.inFront(point) ? 1 : 0;
        }
        counts[at] += map.weight ? map.weight[point] : 1;
        if (counts[at] > most) most = counts[at];
      }
    }
  }
  for (let at = 0; at < counts.length; at += 1) {
    const share = counts[at] ? 0.45 + (0.55 * Math.log1p(counts[at])) / Math.log1p(most) : 0;
    const colour = colours[layer[at]];
    for (let channel = 0; channel < 3; channel += 1) {
      image.data[4 * at + channel] = paper[channel] + share * (colour[channel] - paper[channel]);
    }
    image.data[4 * at + 3] = 255;
  }
  return image;
}
