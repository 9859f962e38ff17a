// The map as a picture to take away: as it is seen, twice as fine as the screen's points, with a line that says what it is.

import { drawLabels } from "./labels.js";
import { drawRings } from "./rings.js";

export const SCALE = 2;
const FOOT = 34;
const PAD = 14;

export async function picture(drawing, [width, height], { rings, labels }, { paper, ink, font }, caption) {
  const map = await drawing.picture(SCALE);
  const sheet = document.createElement("canvas");
  sheet.width = Math.round(width * SCALE);
  sheet.height = Math.round((height + FOOT) * SCALE);
  const context = sheet.getContext("2d");
  context.scale(SCALE, SCALE);
  context.fillStyle = paper;
  context.fillRect(0, 0, width, height + FOOT);
  context.drawImage(map, 0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(0, 0, width, height);
  context.clip();
  drawLabels(context, labels, paper, ink, font);
  drawRings(context, rings, paper, ink, font);
  context.restore();
  context.fillStyle = paper;
  context.fillRect(0, height, width, FOOT);
  context.fillStyle = ink;
  context.font = `12px ${font}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(fitted(context, caption, width - 2 * PAD), PAD, height + FOOT / 2);
  return sheet;
}

// Runs are folders of the cache, whose names may be more than every system's files allow.
export function fileName(run, stage) {
  return `head-map-${run.replace(/[^\w.-]+/g, "-")}-stage-${stage}.png`;
}

function fitted(context, text, room) {
  let shown = text;
  while (shown.length > 1 && context.measureText(shown).width > room) shown = `${shown.slice(0, -2).trimEnd()}…`;
  return shown;
}
