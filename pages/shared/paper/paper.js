// A figure as a file for a paper: an SVG or a PDF as wide as a column, its fonts and its caption inside. What comes in
// is an SVG as Plotly or one of the canvas components draws it; nothing leaves the browser.

import { pdfOf } from "./pdf.js";
import { readFont } from "./truetype.js";

export const WIDTHS = { column: 88, page: 180 }; // millimetres: one column, and both
const MILLIMETRE = 72 / 25.4; // points
const PIXEL = 8 / 13; // points: the figures' text of 13 pixels is then 8 points high
const BESIDE = 135; // pixels
const FAMILY = "Headscope Sans";
const FALLBACK = `"${FAMILY}", Arial, Helvetica, sans-serif`;
const FONTS = [{ weight: 400, name: "HeadscopeSans-Regular" }, { weight: 700, name: "HeadscopeSans-Bold" }];
const TYPES = { svg: "image/svg+xml", pdf: "application/pdf" };
let loading = null;

// How many pixels wide a figure has to be drawn, so that its text comes out right; maps side by side need room for
// their names, and have smaller text instead.
export function pixelsOf(width, layout = {}) {
  const starts = Object.keys(layout).filter((key) => /^xaxis\d*$/.test(key)).map((key) => layout[key].domain?.[0] ?? 0);
  return Math.max(Math.round(((WIDTHS[width] ?? width) * MILLIMETRE) / PIXEL), BESIDE * new Set(starts).size);
}

// ``svg`` is a text, ``about`` has ``title``, ``caption`` and ``creator``; the answer is a Blob.
export async function paper(svg, format, width, about) {
  const fonts = await (loading ??= loadFonts());
  const stage = document.createElement("div");
  stage.style.cssText = "position: fixed; left: -20000px; top: 0; pointer-events: none";
  document.body.append(stage);
  try {
    const drawn = prepared(svg, stage.attachShadow({ mode: "open" }));
    const size = [drawn.viewBox.baseVal.width, drawn.viewBox.baseVal.height];
    const millimetres = WIDTHS[width] ?? width;
    let made;
    if (format === "pdf") {
      const info = { Title: about.title, Subject: about.caption, Creator: about.creator };
      made = await pdfOf(drawn, size, millimetres * MILLIMETRE, fonts, info);
    } else made = svgFile(drawn, size, millimetres, fonts, about);
    return new Blob([made], { type: TYPES[format] });
  } finally {
    stage.remove();
  }
}

export function saveAs(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function loadFonts() {
  return Promise.all(
    FONTS.map(async ({ weight, name }) => {
      const answer = await fetch(new URL(`./${name}.ttf`, import.meta.url));
      if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
      const buffer = await answer.arrayBuffer();
      const face = new FontFace(FAMILY, buffer, { weight: String(weight) });
      await face.load();
      document.fonts.add(face);
      return { ...readFont(buffer), name, weight };
    }),
  );
}

// In the page, where the browser lays it out: on white paper, in our fonts, with letters as wide as the fonts say.
function prepared(text, root) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const svg = document.importNode(parsed, true);
  const given = svg.viewBox.baseVal;
  const size = given?.width ? [given.width, given.height] : [svg.width.baseVal.value, svg.height.baseVal.value];
  svg.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
  svg.setAttribute("width", size[0]);
  svg.setAttribute("height", size[1]);
  svg.style.background = "";
  const [sheet] = svg.querySelectorAll(":scope > rect");
  if (sheet && sheet.width.baseVal.value >= size[0] && isPale(sheet.style.fill)) {
    const ground = sheet.style.fill;
    sheet.remove(); // paper is white by itself
    for (const own of svg.querySelectorAll("rect, path")) if (own.style.fill === ground) own.style.fill = "white";
  }
  for (const own of svg.querySelectorAll("script, foreignObject")) own.remove();
  for (const own of svg.querySelectorAll("text, tspan")) {
    own.style.fontFamily = own.localName === "text" ? FALLBACK : "";
    own.removeAttribute("font-family");
    own.style.fontKerning = "none";
    own.style.fontVariantLigatures = "none";
    own.style.textRendering = "geometricPrecision";
  }
  root.append(svg);
  return svg;
}

function isPale(colour) {
  const numbers = (colour.match(/\d+/g) ?? []).map(Number);
  return numbers.length >= 3 && Math.min(...numbers.slice(0, 3)) > 230;
}

function svgFile(svg, [width, height], millimetres, fonts, { title, caption, creator }) {
  const made = (name, content) => {
    const element = document.createElementNS(svg.namespaceURI, name);
    element.textContent = content;
    return element;
  };
  const weights = new Set([...svg.querySelectorAll("text, tspan")].map((own) => (Number(getComputedStyle(own).fontWeight) >= 600 ? 700 : 400)));
  const faces = fonts.filter((font) => weights.has(font.weight)).map((font) => `@font-face { font-family: "${FAMILY}"; font-weight: ${font.weight}; src: url(data:font/ttf;base64,${base64(font.bytes)}) format("truetype"); }`);
  svg.setAttribute("width", `${millimetres}mm`);
  svg.setAttribute("height", `${((millimetres * height) / width).toFixed(3)}mm`);
  svg.prepend(made("title", title), made("desc", `${caption}\n${creator}`), made("style", faces.join("\n")));
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
}

function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
