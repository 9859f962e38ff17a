// An area of the map: a polygon on a grid of 10,000 × 10,000, as it stands in the address: "STAGE_x.y_x.y_…".
// The server reads the same text and counts the same points (pages/shared/components/map_data.py).

const GRID = 9999;
const FULL = 65535;
const MOST = 80;

export function formatArea(stage, polygon) {
  const short = simplified(polygon.map(([x, y]) => [toGrid(x), toGrid(y)]));
  return short.length < 3 ? null : `${stage}_${short.map(([x, y]) => `${x}.${y}`).join("_")}`;
}

export function parseArea(text, stage) {
  if (!text || text.length > 1200) return null;
  const [own, ...corners] = text.split("_");
  if (own !== String(stage) || corners.length < 3 || corners.length > MOST) return null;
  if (!corners.every((corner) => /^\d{1,4}\.\d{1,4}$/.test(corner))) return null;
  return corners.map((corner) => corner.split(".").map((value) => (Number(value) * FULL) / GRID));
}

export function contains(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

function toGrid(value) {
  return Math.max(0, Math.min(GRID, Math.round((value * GRID) / FULL)));
}

// Corners that lie closest to the line between their neighbours go first, until few enough are left.
function simplified(corners) {
  const left = corners.filter((corner, i) => i === 0 || corner[0] !== corners[i - 1][0] || corner[1] !== corners[i - 1][1]);
  const weight = (i) => {
    const [ax, ay] = left[(i + left.length - 1) % left.length];
    const [bx, by] = left[i];
    const [cx, cy] = left[(i + 1) % left.length];
    return Math.abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay));
  };
  while (left.length > 3) {
    let least = 0;
    let weightOfLeast = Infinity;
    for (let i = 0; i < left.length; i += 1) {
      const own = weight(i);
      if (own < weightOfLeast) [least, weightOfLeast] = [i, own];
    }
    if (left.length <= MOST && weightOfLeast > 200) break;
    left.splice(least, 1);
  }
  return left;
}
