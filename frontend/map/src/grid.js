// Which point is nearest to a place: points sorted into square cells once a stage.

const CELLS = 256;

export class Grid {
  constructor(x, y) {
    this.x = x;
    this.y = y;
    const count = x.length;
    const cells = new Uint32Array(count);
    this.start = new Uint32Array(CELLS * CELLS + 1);
    for (let i = 0; i < count; i += 1) {
      cells[i] = (y[i] >> 8) * CELLS + (x[i] >> 8);
      this.start[cells[i] + 1] += 1;
    }
    for (let cell = 0; cell < CELLS * CELLS; cell += 1) this.start[cell + 1] += this.start[cell];
    const next = this.start.slice(0, -1);
    this.points = new Uint32Array(count);
    for (let i = 0; i < count; i += 1) this.points[next[cells[i]]++] = i;
  }

  // The nearest point within ``radius`` for which ``wanted(point)`` holds, or -1.
  nearest(x, y, radius, wanted) {
    let found = -1;
    let best = radius * radius;
    const cell = (value) => Math.max(0, Math.min(CELLS - 1, Math.floor(value / 256)));
    for (let row = cell(y - radius); row <= cell(y + radius); row += 1) {
      for (let column = cell(x - radius); column <= cell(x + radius); column += 1) {
        const at = row * CELLS + column;
        for (let k = this.start[at]; k < this.start[at + 1]; k += 1) {
          const point = this.points[k];
          const distance = (this.x[point] - x) ** 2 + (this.y[point] - y) ** 2;
          if (distance < best && wanted(point)) [found, best] = [point, distance];
        }
      }
    }
    return found;
  }
}
