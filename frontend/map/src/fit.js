// The camera under which the points that are lit fill the box: nine tenths of it, without the 1 % that lie farthest out.

const CUT = 0.01;
const FILLED = 0.9;
const LEAST = 0.02; // of the map's width: a single point is not looked at closer than this

export function fitting(map, isLit, [width, height], side) {
  const [xs, ys] = [[], []];
  for (let point = 0; point < map.x.length; point += 1) {
    if (!isLit(point)) continue;
    xs.push(map.x[point] / 65535);
    ys.push(map.y[point] / 65535);
  }
  if (!xs.length) return null;
  const [left, right] = ends(xs);
  const [low, high] = ends(ys);
  const zoom = FILLED * Math.min(width / (side * Math.max(LEAST, right - left)), height / (side * Math.max(LEAST, high - low)));
  return { x: (left + right) / 2, y: (low + high) / 2, zoom: Math.max(1, zoom) };
}

function ends(values) {
  const sorted = Float32Array.from(values).sort();
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  return [at(CUT), at(1 - CUT)];
}
