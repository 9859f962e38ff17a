// The camera under which the points that are lit fill the box: nine tenths of it, without the 1 % that lie farthest out.

const CUT = 0.01;
const FILLED = 0.9;
const LEAST = 0.02; // of the map's width: a single point is not looked at closer than this

export function fitting(map, isLit, [width, height], side) {
  const [xs, ys] = [new Float64Array(65536), new Float64Array(65536)]; // how many points have each coordinate
  for (let point = 0; point < map.x.length; point += 1) {
    if (!isLit(point)) continue;
    const weight = map.weight ? map.weight[point] : 1;
    xs[map.x[point]] += weight;
    ys[map.y[point]] += weight;
  }
  const [left, right] = ends(xs);
  const [low, high] = ends(ys);
  if (left === null) return null;
  const zoom = FILLED * Math.min(width / (side * Math.max(LEAST, right - left)), height / (side * Math.max(LEAST, high - low)));
  return { x: (left + right) / 2, y: (low + high) / 2, zoom: Math.max(1, zoom) };
}

// As shares of the map's width; null where there are no points.
function ends(counts) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const at = (share) => {
    let left = Math.round(share * (total - 1)) + 1;
    return counts.findIndex((count) => (left -= count) <= 0) / 65535;
  };
  return total ? [at(CUT), at(1 - CUT)] : [null, null];
}
