// Heads that other heads are painted over: on a raster of the whole map, the last point of a pixel is the one that is seen.

const SIDE = 420;
const FULL = 65536;
const MOSTLY = 0.6; // of a head's pixels
const MOST = 3;

// Chosen heads that are mostly painted over, the worst first: [{ head, share }], counted from 1.
export function paintedOver(map, heads, view) {
  const top = new Int16Array(SIDE * SIDE).fill(-1);
  const most = new Uint32Array(SIDE * SIDE); // a cell of the density has the colour of the head with the most points
  const weight = (point) => (map.weight ? map.weight[point] : 1);
  const size = map.weight || map.x.length > 100_000 ? 0 : map.x.length > 20_000 ? 1 : 2; // half of a point's size in these pixels
  const cell = (value) => Math.floor((value * SIDE) / FULL);
  const chosen = (point) => view.heads.has(map.head[point] + 1);
  const inFront = (point) => map.head[point] + 1 === view.front;
  const paint = (point) => {
    const [x, y] = [cell(map.x[point]), cell(map.y[point])];
    for (let b = Math.max(0, y - size); b <= Math.min(SIDE - 1, y + size); b += 1) {
      for (let a = Math.max(0, x - size); a <= Math.min(SIDE - 1, x + size); a += 1) {
        const at = b * SIDE + a;
        if (weight(point) < most[at] && !inFront(point)) continue;
        [top[at], most[at]] = [map.head[point], weight(point)];
      }
    }
  };
  for (let point = 0; point < map.x.length; point += 1) if (chosen(point) && !inFront(point)) paint(point);
  for (let point = 0; point < map.x.length; point += 1) if (chosen(point) && inFront(point)) paint(point);
  const every = new Uint32Array(heads);
  const under = new Uint32Array(heads);
  for (let point = 0; point < map.x.length; point += 1) {
    if (!chosen(point)) continue;
    const head = map.head[point];
    every[head] += weight(point);
    if (top[cell(map.y[point]) * SIDE + cell(map.x[point])] !== head) under[head] += weight(point);
  }
  const found = [];
  for (let head = 0; head < heads; head += 1) {
    if (every[head] && under[head] / every[head] >= MOSTLY) found.push({ head: head + 1, share: under[head] / every[head] });
  }
  return found.sort((a, b) => b.share - a.share).slice(0, MOST);
}
