// The nearest point in a direction, as seen on the screen: within 45° to either side, and at least some pixels ahead.

// ``places[head]`` is where that head's map lies: [left, top, right, bottom].
export function nearestTowards(map, places, from, [dx, dy], least, wanted) {
  let found = -1;
  let best = Infinity;
  for (let point = 0; point < map.x.length; point += 1) {
    if (!wanted(point)) continue;
    const [x, y] = spotOf(map, places[map.head[point]], point);
    const along = (x - from[0]) * dx + (y - from[1]) * dy;
    const across = Math.abs((x - from[0]) * dy) + Math.abs((y - from[1]) * dx);
    if (along < least || across > along) continue;
    const distance = along * along + across * across;
    if (distance < best) [found, best] = [point, distance];
  }
  return found;
}

export function nearestTo(map, places, from, wanted) {
  let found = -1;
  let best = Infinity;
  for (let point = 0; point < map.x.length; point += 1) {
    if (!wanted(point)) continue;
    const [x, y] = spotOf(map, places[map.head[point]], point);
    const distance = (x - from[0]) ** 2 + (y - from[1]) ** 2;
    if (distance < best) [found, best] = [point, distance];
  }
  return found;
}

export function spotOf(map, [left, top, right, bottom], point) {
  return [left + ((right - left) * map.x[point]) / 65535, bottom - ((bottom - top) * map.y[point]) / 65535];
}
