// The map as a picture to take away: the points as an image, names, rings and legend as letters and lines over it.

import { escaped } from "../../../pages/shared/components/dom.js";
import { rgb } from "./paint.js";

export const SCALE = 2;
export const FINE = 4; // dots a pixel, for a paper
const FOOT = 34;
const PAD = 14;
const LINE = 16;
const LETTER = 6.4; // pixels, about
const SWATCH = 10;

// An SVG as text. ``caption`` is a line below the map, ``legend`` a list of { colour, name }; either may be empty.
export function sheet(image, [width, height], { rings, labels, legend = [], caption = "" }, { paper, ink, font }) {
  const key = legendRows(legend, width);
  const whole = height + (caption ? FOOT : 0) + (key.length ? key.length * LINE + 6 : 0);
  const halo = (thick) => `stroke="${paper}" stroke-width="${thick}" stroke-linejoin="round" paint-order="stroke"`;
  const text = (x, y, words, looks) => `<text x="${round(x)}" y="${round(y)}" ${looks}>${escaped(words)}</text>`;
  const parts = [
    `<rect width="${width}" height="${round(whole)}" style="fill: ${paper}"/>`,
    `<image width="${width}" height="${round(height)}" preserveAspectRatio="none" href="${image.toDataURL()}"/>`,
    ...labels.map(({ x, y, text: words, opacity }) => text(x, y + 4.5, words, `font-size="13" font-weight="600" text-anchor="middle" opacity="${round(opacity)}" ${halo(4)}`)),
    ...[[paper, 5], [ink, 2]].flatMap(([colour, thick]) => rings.map(({ x, y }) => `<circle cx="${round(x)}" cy="${round(y)}" r="7" fill="none" stroke="${colour}" stroke-width="${thick}"/>`)),
    ...rings.filter((ring) => ring.label).map(({ label }) => text(label.x, label.y + 4, label.text, `font-size="11" font-weight="600" text-anchor="middle" ${halo(3.5)}`)),
    ...key.flatMap((row, line) => row.flatMap(({ x, colour, name }) => {
      const y = height + 6 + line * LINE;
      return [`<rect x="${round(x)}" y="${round(y + 2)}" width="${SWATCH}" height="${SWATCH}" rx="2" style="fill: ${colour}"/>`, text(x + SWATCH + 4, y + 11, name, 'font-size="11"')];
    })),
  ];
  if (caption) {
    const most = Math.floor((width - 2 * PAD) / LETTER);
    parts.push(text(PAD, height + FOOT / 2 + 4, caption.length > most ? `${caption.slice(0, most - 1).trimEnd()}…` : caption, 'font-size="12"'));
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${round(whole)}" width="${width}" height="${round(whole)}" font-family="${escaped(font)}" fill="${ink}">${parts.join("")}</svg>`;
}

// As many entries a line as there is room for.
function legendRows(legend, width) {
  const rows = [];
  let free = 0;
  for (const { colour, name } of legend) {
    const wide = SWATCH + 4 + name.length * LETTER + 10;
    if (!rows.length || free + wide > width) {
      rows.push([]);
      free = 2;
    }
    rows.at(-1).push({ x: free, colour, name });
    free += wide;
  }
  return rows;
}

// The points alone: what is as pale as the page becomes clear, for paper is white.
export function withoutGround(canvas, paper) {
  const context = canvas.getContext("2d");
  const image = context.getImageData(0, 0, canvas.width, canvas.height);
  const ground = rgb(paper);
  for (let at = 0; at < image.data.length; at += 4) {
    if (ground.every((value, channel) => Math.abs(value - image.data[at + channel]) < 2)) image.data[at + 3] = 0;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// Runs are folders of the cache, whose names may be more than every system's files allow.
export function fileName(run, stage) {
  return `head-map-${run.replace(/[^\w.-]+/g, "-")}-stage-${stage}.png`;
}

function round(value) {
  return Math.round(value * 10) / 10;
}
