// An SVG that stands in a page as a PDF of one page. The browser has done the layout (styles, transforms, where text
// begins); here it is only written down: outlines, text in embedded fonts, pictures, clips, transparency, gradients.

import { outlineOf } from "./outline.js";

const FINE = 4; // dots a pixel of letters that the fonts do not have

export async function pdfOf(svg, [width, height], points, fonts, about) {
  const page = new Page(svg, fonts, await picturesOf(svg));
  page.walk(svg, 1);
  const scale = points / width;
  const content = `${num(scale)} 0 0 ${num(-scale)} 0 ${num(height * scale)} cm\n${page.steps.join("\n")}`;
  return write(page, content, [points, height * scale], about);
}

class Page {
  constructor(svg, fonts, pictures) {
    this.svg = svg;
    this.root = svg.getScreenCTM().inverse();
    this.fonts = fonts;
    this.pictures = pictures;
    this.used = fonts.map(() => new Map()); // glyph → letter, a font
    this.steps = [];
    this.images = [];
    this.shadings = [];
    this.alphas = new Map();
  }

  matrix(element) {
    const { a, b, c, d, e, f } = this.root.multiply(element.getScreenCTM());
    return [a, b, c, d, e, f];
  }

  walk(element, alpha) {
    if (["defs", "clipPath", "style", "title", "desc", "metadata", "marker", "pattern"].includes(element.localName)) return;
    const style = getComputedStyle(element);
    const own = alpha * Number(style.opacity);
    if (style.display === "none" || own === 0) return;
    const clip = this.clip(element, style);
    if (clip) this.steps.push("q", clip);
    if (element.localName === "text") this.text(element, own);
    else if (element.localName === "image") this.image(element, style, own);
    else if (outlineOf(element)) this.shape(element, style, own);
    else for (const child of element.children) this.walk(child, own);
    if (clip) this.steps.push("Q");
  }

  clip(element, style) {
    const id = /#([^"')]+)/.exec(style.clipPath)?.[1];
    const path = id && [...this.svg.querySelectorAll("clipPath")].find((own) => own.id === id);
    if (!path) return null;
    const own = this.matrix(element);
    const outlines = [...path.children].map((child) => {
      const moved = child.transform.baseVal.consolidate()?.matrix;
      const matrix = moved ? times(own, [moved.a, moved.b, moved.c, moved.d, moved.e, moved.f]) : own;
      return drawn(outlineOf(child) ?? [], matrix);
    });
    return `${outlines.join("\n") || "0 0 0 0 re"}\nW n`;
  }

  shape(element, style, alpha) {
    if (style.visibility === "hidden") return;
    const matrix = this.matrix(element);
    const outline = drawn(outlineOf(element), matrix);
    if (!outline) return;
    const gradient = /url\(["']?[^"')]*#([^"')]+)/.exec(style.fill)?.[1];
    if (gradient) this.gradient(gradient, element, outline, matrix);
    const fill = gradient ? null : paintOf(style.fill, alpha * Number(style.fillOpacity));
    const thick = Number.parseFloat(style.strokeWidth) * (style.vectorEffect === "non-scaling-stroke" ? 1 : sizeOf(matrix));
    const stroke = thick ? paintOf(style.stroke, alpha * Number(style.strokeOpacity)) : null;
    if (!fill && !stroke) return;
    const steps = ["q", this.alpha(fill?.alpha ?? 1, stroke?.alpha ?? 1)];
    if (fill) steps.push(`${fill.colour} rg`);
    if (stroke) {
      const dashes = style.strokeDasharray === "none" ? "" : style.strokeDasharray.split(/[\s,]+/).map((part) => num(Number.parseFloat(part))).join(" ");
      const cap = { round: 1, square: 2 }[style.strokeLinecap] ?? 0;
      const join = { round: 1, bevel: 2 }[style.strokeLinejoin] ?? 0;
      steps.push(`${stroke.colour} RG ${num(thick)} w ${cap} J ${join} j ${num(Number(style.strokeMiterlimit) || 4)} M [${dashes}] 0 d`);
    }
    const odd = style.fillRule === "evenodd" ? "*" : "";
    steps.push(outline, fill && stroke ? `B${odd}` : fill ? `f${odd}` : "S", "Q");
    this.steps.push(...steps);
  }

  gradient(id, element, outline, matrix) {
    const found = [...this.svg.querySelectorAll("linearGradient")].find((own) => own.id === id);
    if (!found) return;
    const box = element.getBBox();
    const within = found.gradientUnits.baseVal === 2; // of the shape's box
    const at = (name, side, from) => {
      const value = found[name].baseVal;
      if (!within) return value.value;
      return from + side * (value.unitType === 2 ? value.valueInSpecifiedUnits / 100 : value.value);
    };
    const ends = [
      [at("x1", box.width, box.x), at("y1", box.height, box.y)],
      [at("x2", box.width, box.x), at("y2", box.height, box.y)],
    ].map((point) => moved(matrix, ...point).map(num).join(" "));
    const stops = [...found.querySelectorAll("stop")].map((stop) => {
      const style = getComputedStyle(stop);
      return { at: stop.offset.baseVal, colour: paintOf(style.stopColor, 1)?.colour ?? "0 0 0" };
    });
    if (stops.length < 2) return;
    this.shadings.push({ ends: ends.join(" "), stops });
    this.steps.push("q", outline, "W n", `/S${this.shadings.length} sh`, "Q");
  }

  alpha(fill, stroke) {
    const key = `${num(fill)} ${num(stroke)}`;
    if (!this.alphas.has(key)) this.alphas.set(key, this.alphas.size + 1);
    return `/A${this.alphas.get(key)} gs`;
  }

  image(element, style, alpha) {
    const picture = this.pictures.get(element);
    if (!picture || style.visibility === "hidden") return;
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => element[name].baseVal.value);
    this.place(picture, times(this.matrix(element), [width, 0, 0, -height, x, y + height]), alpha);
  }

  place(picture, matrix, alpha) {
    this.images.push(picture);
    this.steps.push("q", this.alpha(alpha, alpha), `${matrix.map(num).join(" ")} cm`, `/I${this.images.length} Do`, "Q");
  }

  text(element, alpha) {
    const nodes = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const passed = new Map(); // letters before this node, in the element that holds both
    while (nodes.nextNode()) {
      const { currentNode: node } = nodes;
      const holder = node.parentElement;
      const from = passed.get(holder) ?? 0;
      passed.set(holder, from + node.data.length);
      const style = getComputedStyle(holder);
      if (!node.data.trim() || style.visibility === "hidden" || from >= holder.getNumberOfChars()) continue;
      const lead = node.data.length - node.data.trimStart().length;
      // Where a browser drops blanks, it does not count them either.
      const kept = style.whiteSpaceCollapse === "preserve" || style.whiteSpace.startsWith("pre") ? lead : 0;
      const start = holder.getStartPositionOfChar(Math.min(from + kept, holder.getNumberOfChars() - 1));
      this.line(node.data.trim().replace(/\s+/g, " "), start, this.matrix(holder), style, alpha);
    }
  }

  line(text, { x, y }, matrix, style, alpha) {
    const fill = paintOf(style.fill, alpha * Number(style.fillOpacity));
    const size = Number.parseFloat(style.fontSize);
    const which = Number(style.fontWeight) >= 600 ? 1 : 0;
    const letters = [...text];
    const glyphs = letters.map((letter) => this.fonts[which].glyph(letter.codePointAt(0)));
    if (glyphs.includes(0)) {
      if (fill) this.pictured(text, { x, y }, matrix, style, size, alpha);
      return;
    }
    glyphs.forEach((glyph, at) => this.used[which].set(glyph, letters[at]));
    const slant = style.fontStyle === "italic" ? 0.2 : 0;
    const place = times(matrix, [1, 0, slant, -1, x, y]).map(num).join(" ");
    const shown = `/F${which + 1} ${num(size)} Tf ${place} Tm <${glyphs.map((glyph) => hex(glyph, 4)).join("")}> Tj`;
    const halo = paintOf(style.stroke, alpha * Number(style.strokeOpacity));
    const thick = Number.parseFloat(style.strokeWidth) * sizeOf(matrix);
    if (halo && thick) this.steps.push("q", this.alpha(1, halo.alpha), `${halo.colour} RG ${num(thick)} w 1 j`, `BT 1 Tr ${shown} ET`, "Q");
    if (fill) this.steps.push("q", this.alpha(fill.alpha, 1), `${fill.colour} rg`, `BT 0 Tr ${shown} ET`, "Q");
  }

  // A line with letters that the fonts do not have, in the reader's own fonts: as a picture.
  pictured(text, { x, y }, matrix, style, size, alpha) {
    const sheet = document.createElement("canvas");
    const font = `${style.fontWeight} ${size * FINE}px ${style.fontFamily}`;
    const context = sheet.getContext("2d");
    context.font = font;
    const wide = context.measureText(text).width;
    [sheet.width, sheet.height] = [Math.ceil(wide) + FINE, Math.ceil(1.6 * size * FINE)];
    context.font = font;
    context.fillStyle = style.fill;
    context.fillText(text, 0, 1.2 * size * FINE);
    const [width, height] = [sheet.width / FINE, sheet.height / FINE];
    const top = y - 1.2 * size;
    this.place(pixelsOf(sheet), times(matrix, [width, 0, 0, -height, x, top + height]), alpha);
  }
}

async function picturesOf(svg) {
  const found = new Map();
  for (const element of svg.querySelectorAll("image")) {
    const image = new Image();
    image.src = element.getAttribute("href") ?? element.getAttribute("xlink:href") ?? element.href.baseVal;
    await image.decode();
    const sheet = document.createElement("canvas");
    [sheet.width, sheet.height] = [image.naturalWidth, image.naturalHeight];
    sheet.getContext("2d").drawImage(image, 0, 0);
    found.set(element, pixelsOf(sheet));
  }
  return found;
}

function pixelsOf(sheet) {
  const { data, width, height } = sheet.getContext("2d").getImageData(0, 0, sheet.width, sheet.height);
  const [colours, opacity] = [new Uint8Array(3 * width * height), new Uint8Array(width * height)];
  for (let at = 0; at < opacity.length; at += 1) {
    colours.set(data.subarray(4 * at, 4 * at + 3), 3 * at);
    opacity[at] = data[4 * at + 3];
  }
  return { width, height, colours, opacity };
}

async function write(page, content, [width, height], about) {
  const file = new PdfFile();
  const catalog = file.reserve();
  const pages = file.reserve();
  const states = [...page.alphas].map(([key, number]) => {
    const [fill, stroke] = key.split(" ");
    return `/A${number} << /ca ${fill} /CA ${stroke} >>`;
  });
  const fonts = [];
  for (const [which, font] of page.fonts.entries()) {
    if (page.used[which].size) fonts.push(`/F${which + 1} ${await fontObject(file, font, page.used[which])} 0 R`);
  }
  const images = [];
  for (const [at, { width: across, height: down, colours, opacity }] of page.images.entries()) {
    const looks = `/Type /XObject /Subtype /Image /Width ${across} /Height ${down} /BitsPerComponent 8`;
    const mask = await file.stream(`${looks} /ColorSpace /DeviceGray`, opacity);
    images.push(`/I${at + 1} ${await file.stream(`${looks} /ColorSpace /DeviceRGB /SMask ${mask} 0 R`, colours)} 0 R`);
  }
  const shadings = page.shadings.map(({ ends, stops }, at) => {
    const parts = stops.slice(1).map((stop, before) => `<< /FunctionType 2 /Domain [0 1] /N 1 /C0 [${stops[before].colour}] /C1 [${stop.colour}] >>`);
    const bounds = stops.slice(1, -1).map((stop) => num(stop.at)).join(" ");
    const stitched = `<< /FunctionType 3 /Domain [${num(stops[0].at)} ${num(stops.at(-1).at)}] /Functions [${parts.join(" ")}] /Bounds [${bounds}] /Encode [${parts.map(() => "0 1").join(" ")}] >>`;
    return `/S${at + 1} << /ShadingType 2 /ColorSpace /DeviceRGB /Coords [${ends}] /Domain [${num(stops[0].at)} ${num(stops.at(-1).at)}] /Function ${stitched} /Extend [true true] >>`;
  });
  const body = await file.stream("", ascii(content));
  const resources = `<< /Font << ${fonts.join(" ")} >> /XObject << ${images.join(" ")} >> /ExtGState << ${states.join(" ")} >> /Shading << ${shadings.join(" ")} >> >>`;
  const sheet = file.add(`<< /Type /Page /Parent ${pages} 0 R /MediaBox [0 0 ${num(width)} ${num(height)}] /Resources ${resources} /Contents ${body} 0 R >>`);
  file.set(pages, `<< /Type /Pages /Kids [${sheet} 0 R] /Count 1 >>`);
  file.set(catalog, `<< /Type /Catalog /Pages ${pages} 0 R /Lang (en) >>`);
  const info = file.add(`<< ${Object.entries(about).map(([name, text]) => `/${name} ${textString(text)}`).join(" ")} >>`);
  return file.bytes(catalog, info);
}

async function fontObject(file, font, used) {
  const program = await file.stream(`/Length1 ${font.bytes.length}`, font.bytes);
  const descriptor = file.add(
    `<< /Type /FontDescriptor /FontName /${font.name} /Flags 32 /FontBBox [${font.box.join(" ")}] /ItalicAngle 0 /Ascent ${font.ascent} /Descent ${font.descent} /CapHeight 716 /StemV 80 /FontFile2 ${program} 0 R >>`,
  );
  const glyphs = [...used].sort(([one], [other]) => one - other);
  const widths = glyphs.map(([glyph]) => `${glyph} [${font.width(glyph)}]`).join(" ");
  const own = file.add(
    `<< /Type /Font /Subtype /CIDFontType2 /BaseFont /${font.name} /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor ${descriptor} 0 R /DW 500 /W [${widths}] /CIDToGIDMap /Identity >>`,
  );
  const lines = glyphs.map(([glyph, letter]) => `<${hex(glyph, 4)}> <${utf16(letter)}>`);
  const blocks = [];
  for (let at = 0; at < lines.length; at += 100) blocks.push(`${lines.slice(at, at + 100).length} beginbfchar\n${lines.slice(at, at + 100).join("\n")}\nendbfchar`);
  const letters = await file.stream(
    "",
    ascii(
      `/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n${blocks.join("\n")}\nendcmap\nCMapName currentdict /CMap defineresource pop\nend\nend`,
    ),
  );
  return file.add(`<< /Type /Font /Subtype /Type0 /BaseFont /${font.name} /Encoding /Identity-H /DescendantFonts [${own} 0 R] /ToUnicode ${letters} 0 R >>`);
}

class PdfFile {
  constructor() {
    this.objects = [];
  }
  reserve() {
    return this.objects.push(null);
  }
  set(number, text) {
    this.objects[number - 1] = [ascii(text)];
  }
  add(text) {
    return this.objects.push([ascii(text)]);
  }
  async stream(looks, bytes) {
    const packed = await deflated(bytes);
    const filter = packed === bytes ? "" : " /Filter /FlateDecode";
    return this.objects.push([ascii(`<< ${looks} /Length ${packed.length}${filter} >>\nstream\n`), packed, ascii("\nendstream")]);
  }
  bytes(catalog, info) {
    const parts = [ascii("%PDF-1.5\n%"), new Uint8Array([0xe2, 0xe3, 0xcf, 0xd3, 10])];
    let length = parts[0].length + parts[1].length;
    const push = (part) => {
      parts.push(part);
      length += part.length;
    };
    const places = this.objects.map((object, at) => {
      const place = length;
      push(ascii(`${at + 1} 0 obj\n`));
      object.forEach(push);
      push(ascii("\nendobj\n"));
      return place;
    });
    const table = length;
    const rows = places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("");
    push(ascii(`xref\n0 ${places.length + 1}\n0000000000 65535 f \n${rows}trailer\n<< /Size ${places.length + 1} /Root ${catalog} 0 R /Info ${info} 0 R >>\nstartxref\n${table}\n%%EOF\n`));
    const whole = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }
}

async function deflated(bytes) {
  if (!window.CompressionStream) return bytes;
  const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

function drawn(outline, matrix) {
  return outline
    .map(([kind, ...numbers]) => {
      if (kind === "Z") return "h";
      const places = [];
      for (let at = 0; at < numbers.length; at += 2) places.push(...moved(matrix, numbers[at], numbers[at + 1]).map(num));
      return `${places.join(" ")} ${{ M: "m", L: "l", C: "c" }[kind]}`;
    })
    .join("\n");
}

function paintOf(text, alpha) {
  if (!text || text === "none" || text.startsWith("url(")) return null;
  const numbers = (text.match(/[\d.]+(?:e[-+]?\d+)?/g) ?? []).map(Number);
  const unit = text.startsWith("color(") ? 1 : 255;
  const whole = alpha * (numbers[3] ?? 1);
  if (numbers.length < 3 || whole === 0) return null;
  return { colour: numbers.slice(0, 3).map((value) => num(value / unit)).join(" "), alpha: whole };
}

function times([a, b, c, d, e, f], [g, h, i, j, k, l]) {
  return [a * g + c * h, b * g + d * h, a * i + c * j, b * i + d * j, a * k + c * l + e, b * k + d * l + f];
}
function moved([a, b, c, d, e, f], x, y) {
  return [a * x + c * y + e, b * x + d * y + f];
}
function sizeOf([a, b, c, d]) {
  return Math.sqrt(Math.abs(a * d - b * c));
}
function num(value) {
  const text = value.toFixed(4);
  return text.includes(".") ? text.replace(/\.?0+$/, "").replace(/^-0$/, "0") : text;
}
function hex(value, digits) {
  return value.toString(16).toUpperCase().padStart(digits, "0");
}
function utf16(text) {
  return Array.from({ length: text.length }, (_, at) => hex(text.charCodeAt(at), 4)).join("");
}
function textString(text) {
  return `<FEFF${utf16(text)}>`;
}
function ascii(text) {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}
