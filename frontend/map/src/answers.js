// What the pointers and the keys want to know of the map, and what they make it do.

import { formatArea } from "./area.js";
import { nearestTo, nearestTowards } from "./direction.js";

const MARGIN = 10; // pixels: a cursor nearer to the edge than this is out of sight

export function forPointers(own) {
  return {
    mode: () => own.mode,
    movable: () => Boolean(own.drawing?.movable),
    pan: (dx, dy) => own.drawing?.pan?.(dx, dy),
    zoom: (factor, x, y) => own.drawing?.zoom?.(factor, x, y),
    place: (x, y) => own.drawing?.place(x, y) ?? null,
    nearest: (x, y, radius, position) => {
      if (!own.painted) return -1;
      const head = own.drawing.headAt ? own.drawing.headAt(...position) : -1;
      return own.map.grid.nearest(x, y, radius, (point) => own.painted.isLit(point) && (head < 0 || own.map.head[point] === head));
    },
    here: (x, y, radius) => own.describePlace([x, y], radius),
    describe: (point) => own.describe(point),
    area: (polygon) => own.pick({ area: formatArea(own.meta.stage, polygon) }),
    click: (point) => own.choose(point),
  };
}

export function forKeys(own) {
  const lit = (point) => own.painted.isLit(point);
  const places = () => own.drawing.places(own.meta.heads);
  const centre = () => own.size().map((length) => length / 2);
  const inSight = (point) => own.spot(point).every((value, axis) => value > MARGIN && value < own.size()[axis] - MARGIN);
  return {
    ready: () => Boolean(own.painted && places()),
    centre,
    spot: (point) => own.spot(point),
    // A chosen document's point, where there is one.
    start: () => {
      const chosen = own.chosenAt();
      return nearestTo(own.map, places(), centre(), (point) => lit(point) && (chosen < 0 || own.map.row[point] === chosen));
    },
    towards: (from, direction, least) => nearestTowards(own.map, places(), from, direction, least, lit),
    show: (point) => {
      if (own.drawing.movable && !inSight(point)) own.drawing.lookAt({ ...own.drawing.camera(), x: own.map.x[point] / 65535, y: own.map.y[point] / 65535 });
      own.gestures.show(point);
      const { title, meta } = own.describe(point);
      own.live.textContent = `${title}, ${meta}`;
    },
    hide: () => own.gestures.hide(),
    choose: (point) => own.choose(point),
    zoom: (factor, x, y) => own.drawing.zoom?.(factor, x, y),
    whole: () => own.whole(),
    fit: () => own.fit(),
    clear: () => own.clear(),
  };
}
