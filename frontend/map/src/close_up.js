// Where single points are drawn instead of their density: if few enough of the chosen heads' points are in view. They are
// asked for as a window, a rectangle of cells: [left, low, right, high], without the last ones.

import { formatHeads } from "./heads.js";

// What is in view, and the window to ask for, with some room to move if that has few enough points; null for too many.
export function closeUp(visible, rows, heads, { most }) {
  const side = 1 << rows.bits;
  const [left, low, right, high] = visible.map((share) => share * side);
  const cells = within([Math.floor(left), Math.floor(low), Math.floor(right) + 1, Math.floor(high) + 1], side);
  const [wide, tall] = [Math.ceil((right - left) / 2), Math.ceil((high - low) / 2)];
  const wider = within([cells[0] - wide, cells[1] - tall, cells[2] + wide, cells[3] + tall], side);
  const count = pointsIn(cells, rows, heads);
  if (count > most) return null;
  return { count, cells, asked: pointsIn(wider, rows, heads) > most ? cells : wider };
}

function within(cells, side) {
  return cells.map((value) => Math.max(0, Math.min(side, value)));
}

function pointsIn([left, low, right, high], { bits, x, y, head, weight }, heads) {
  const shift = 16 - bits;
  let count = 0;
  for (let i = 0; i < x.length; i += 1) {
    const [column, row] = [x[i] >> shift, y[i] >> shift];
    if (column >= left && column < right && row >= low && row < high && heads.has(head[i] + 1)) count += weight[i];
  }
  return count;
}

// As the server reads it: "12.40.88.97/1-4,7", and without the heads where all are chosen.
export function formatWindow(cells, chosen, heads) {
  const own = formatHeads(chosen, heads);
  return cells.join(".") + (own === null ? "" : `/${own}`);
}

export function covers(window, cells, heads) {
  return hasHeads(window, heads) && cells.every((value, edge) => (edge < 2 ? value >= window.cells[edge] : value <= window.cells[edge]));
}

export function hasHeads(window, heads) {
  return Boolean(window) && [...heads].every((head) => window.heads.has(head));
}
