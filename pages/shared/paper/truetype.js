// The little of a TrueType font that a PDF has to know: which glyph a letter has, and how wide it is.

export function readFont(buffer) {
  const view = new DataView(buffer);
  const tables = {};
  for (let at = 12; at < 12 + 16 * view.getUint16(4); at += 16) {
    const tag = String.fromCharCode(...new Uint8Array(buffer, at, 4));
    tables[tag] = view.getUint32(at + 8);
  }
  const { head, hhea, hmtx } = tables;
  const unit = 1000 / view.getUint16(head + 18);
  const wide = view.getUint16(hhea + 34);
  return {
    bytes: new Uint8Array(buffer),
    glyph: glyphsOf(view, tables.cmap),
    // In thousandths of the letter's size, as PDF counts.
    width: (glyph) => Math.round(unit * view.getUint16(hmtx + 4 * Math.min(glyph, wide - 1))),
    box: [36, 38, 40, 42].map((at) => Math.round(unit * view.getInt16(head + at))),
    ascent: Math.round(unit * view.getInt16(hhea + 4)),
    descent: Math.round(unit * view.getInt16(hhea + 6)),
  };
}

// Code point → glyph, 0 where the font has none: the table for Windows and Unicode's first plane, in segments.
function glyphsOf(view, cmap) {
  let table = 0;
  for (let at = cmap + 4; at < cmap + 4 + 8 * view.getUint16(cmap + 2); at += 8) {
    if (view.getUint16(at) === 3 && view.getUint16(at + 2) === 1) table = cmap + view.getUint32(at + 4);
  }
  const double = view.getUint16(table + 6); // twice the number of segments
  const found = new Map();
  for (let at = 0; at < double; at += 2) {
    const last = view.getUint16(table + 14 + at);
    const first = view.getUint16(table + 16 + double + at);
    const delta = view.getInt16(table + 16 + 2 * double + at);
    const rangeAt = table + 16 + 3 * double + at;
    const range = view.getUint16(rangeAt);
    for (let code = first; code <= last && code !== 0xffff; code += 1) {
      const own = range ? view.getUint16(rangeAt + range + 2 * (code - first)) : code;
      if (own) found.set(code, (own + delta) & 0xffff);
    }
  }
  return (code) => found.get(code) ?? 0;
}
