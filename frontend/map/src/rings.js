// Rings around a chosen document's points: a weak point stays weak, but is found. They lie over the drawing, so that
// moving the map moves a few circles and no points.

import { svgElement } from "./dom.js";

const RADIUS = 7;
const MOST = 400;
const MOST_LABELS = 40;
const LETTER = 7; // pixels, about
const HIGH = 13;

// ``spots`` are { x, y, head } on the screen; a ring is { x, y, head, label }, and its label null where there is no room for it.
export function ringsOf(spots, [width, height], labelled) {
  const inside = ({ x, y }) => x > -RADIUS && y > -RADIUS && x < width + RADIUS && y < height + RADIUS;
  const rings = spots.filter(inside).map((spot) => ({ ...spot, label: null })).slice(0, MOST);
  if (!labelled || spots.length > MOST_LABELS) return rings;
  const taken = rings.map(({ x, y }) => boxAround(x, y, 2 * RADIUS, 2 * RADIUS));
  const free = (own) => own[0] >= 0 && own[1] >= 0 && own[2] <= width && own[3] <= height
    && !taken.some((other) => own[0] < other[2] && own[2] > other[0] && own[1] < other[3] && own[3] > other[1]);
  for (const ring of rings) {
    const wide = String(ring.head + 1).length * LETTER + 2;
    const aside = RADIUS + wide / 2 + 2;
    const above = RADIUS + HIGH / 2 + 1;
    for (const [dx, dy] of [[aside, 0], [-aside, 0], [0, -above], [0, above]]) {
      const own = boxAround(ring.x + dx, ring.y + dy, wide, HIGH);
      if (!free(own)) continue;
      taken.push(own);
      ring.label = { x: ring.x + dx, y: ring.y + dy, text: String(ring.head + 1) };
      break;
    }
  }
  return rings;
}

export function ringsLayer(svg) {
  const group = svgElement("g", { class: "rings" });
  svg.append(group);
  return (rings) => {
    const circles = (kind) => rings.map(({ x, y }) => svgElement("circle", { class: kind, cx: x, cy: y, r: RADIUS }));
    const labels = rings.filter((ring) => ring.label).map(({ label: { x, y, text } }) => svgElement("text", { x, y }, text));
    group.replaceChildren(...circles("halo"), ...circles("own"), ...labels);
  };
}

function boxAround(x, y, width, height) {
  return [x - width / 2, y - height / 2, x + width / 2, y + height / 2];
}
