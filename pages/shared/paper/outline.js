// SVG's shapes as lines and curves in absolute coordinates: [["M", x, y], ["L", x, y], ["C", …six], ["Z"]].

const COUNTS = { M: 2, L: 2, H: 1, V: 1, C: 6, S: 4, Q: 4, T: 2, A: 7, Z: 0 };

export function outlineOf(element) {
  const is = (name) => element[name].baseVal.value;
  switch (element.localName) {
    case "path":
      return parsePath(element.getAttribute("d") ?? "");
    case "rect":
      return parsePath(`M${is("x")},${is("y")}h${is("width")}v${is("height")}h${-is("width")}Z`);
    case "line":
      return parsePath(`M${is("x1")},${is("y1")}L${is("x2")},${is("y2")}`);
    case "circle":
      return ellipse(is("cx"), is("cy"), is("r"), is("r"));
    case "ellipse":
      return ellipse(is("cx"), is("cy"), is("rx"), is("ry"));
    case "polygon":
    case "polyline":
      return parsePath(`M${element.getAttribute("points")}${element.localName === "polygon" ? "Z" : ""}`);
    default:
      return null;
  }
}

function ellipse(x, y, rx, ry) {
  return parsePath(`M${x - rx},${y}A${rx},${ry} 0 1,1 ${x + rx},${y}A${rx},${ry} 0 1,1 ${x - rx},${y}Z`);
}

export function parsePath(text) {
  const steps = [];
  let [x, y, startX, startY] = [0, 0, 0, 0];
  let held = null; // the last curve's second handle, for S and T
  const curve = (x1, y1, x2, y2, toX, toY) => {
    steps.push(["C", x1, y1, x2, y2, toX, toY]);
    [x, y] = [toX, toY];
  };
  for (const [letter, own] of commands(text)) {
    const kind = letter.toUpperCase();
    const relative = letter !== kind;
    const numbers = relative && kind !== "A" ? own.map((value, at) => value + (kind === "H" ? x : kind === "V" ? y : at % 2 ? y : x)) : own;
    const before = held;
    held = null;
    if (kind === "M" || kind === "L") {
      [x, y] = numbers;
      if (kind === "M") [startX, startY] = numbers;
      steps.push([kind, x, y]);
    } else if (kind === "H" || kind === "V") {
      if (kind === "H") [x] = numbers;
      else [y] = numbers;
      steps.push(["L", x, y]);
    } else if (kind === "C" || kind === "S") {
      const [x1, y1] = kind === "C" ? numbers : before?.kind === "C" ? [2 * x - before.x, 2 * y - before.y] : [x, y];
      const [x2, y2, toX, toY] = numbers.slice(-4);
      curve(x1, y1, x2, y2, toX, toY);
      held = { kind: "C", x: x2, y: y2 };
    } else if (kind === "Q" || kind === "T") {
      const [qx, qy] = kind === "Q" ? numbers : before?.kind === "Q" ? [2 * x - before.x, 2 * y - before.y] : [x, y];
      const [toX, toY] = numbers.slice(-2);
      curve(x + (2 * (qx - x)) / 3, y + (2 * (qy - y)) / 3, toX + (2 * (qx - toX)) / 3, toY + (2 * (qy - toY)) / 3, toX, toY);
      held = { kind: "Q", x: qx, y: qy };
    } else if (kind === "A") {
      const [toX, toY] = relative ? [x + own[5], y + own[6]] : [own[5], own[6]];
      for (const part of arc(x, y, ...own.slice(0, 5), toX, toY)) curve(...part);
      [x, y] = [toX, toY];
    } else {
      steps.push(["Z"]);
      [x, y] = [startX, startY];
    }
  }
  return steps;
}

function* commands(text) {
  for (const [, letter, rest] of text.matchAll(/([MLHVCSQTAZ])([^MLHVCSQTAZ]*)/gi)) {
    const count = COUNTS[letter.toUpperCase()];
    const numbers = letter.toUpperCase() === "A" ? arcNumbers(rest) : (rest.match(/[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?/gi) ?? []).map(Number);
    if (!count) yield [letter, []];
    for (let at = 0; count && at + count <= numbers.length; at += count) {
      // More pairs after a move are lines.
      const own = at && letter === "M" ? "L" : at && letter === "m" ? "l" : letter;
      yield [own, numbers.slice(at, at + count)];
    }
  }
}

// An arc's two flags may be written without anything between them and the next number.
function arcNumbers(text) {
  const number = "[-+]?(?:\\d+\\.?\\d*|\\.\\d+)(?:e[-+]?\\d+)?";
  const gap = "[\\s,]*";
  const one = new RegExp([number, number, number, "[01]", "[01]", number, number].map((part) => `(${part})`).join(gap), "gi");
  return [...text.matchAll(one)].flatMap((found) => found.slice(1).map(Number));
}

// An elliptic arc as curves of at most a quarter each (SVG 1.1, appendix F.6).
function arc(x0, y0, rx, ry, degrees, large, sweep, x1, y1) {
  [rx, ry] = [Math.abs(rx), Math.abs(ry)];
  if (!rx || !ry || (x0 === x1 && y0 === y1)) return [[x0, y0, x1, y1, x1, y1]];
  const [cos, sin] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  const [dx, dy] = [(x0 - x1) / 2, (y0 - y1) / 2];
  const [px, py] = [cos * dx + sin * dy, cos * dy - sin * dx];
  const grow = Math.sqrt(Math.max(1, (px / rx) ** 2 + (py / ry) ** 2));
  [rx, ry] = [rx * grow, ry * grow];
  const rest = (rx * ry) ** 2 - (rx * py) ** 2 - (ry * px) ** 2;
  const root = (large === sweep ? -1 : 1) * Math.sqrt(Math.max(0, rest / ((rx * py) ** 2 + (ry * px) ** 2)));
  const [qx, qy] = [(root * rx * py) / ry, (-root * ry * px) / rx];
  const [cx, cy] = [cos * qx - sin * qy + (x0 + x1) / 2, sin * qx + cos * qy + (y0 + y1) / 2];
  const from = Math.atan2((py - qy) / ry, (px - qx) / rx);
  let turn = Math.atan2((-py - qy) / ry, (-px - qx) / rx) - from;
  if (sweep && turn < 0) turn += 2 * Math.PI;
  if (!sweep && turn > 0) turn -= 2 * Math.PI;
  const count = Math.max(1, Math.ceil(Math.abs(turn) / (Math.PI / 2) - 1e-9));
  const step = turn / count;
  const handle = (4 / 3) * Math.tan(step / 4);
  const at = (u, v) => [cos * rx * u - sin * ry * v + cx, sin * rx * u + cos * ry * v + cy];
  return Array.from({ length: count }, (_, part) => {
    const [a, b] = [from + part * step, from + (part + 1) * step];
    return [
      ...at(Math.cos(a) - handle * Math.sin(a), Math.sin(a) + handle * Math.cos(a)),
      ...at(Math.cos(b) + handle * Math.sin(b), Math.sin(b) - handle * Math.cos(b)),
      ...(part === count - 1 ? [x1, y1] : at(Math.cos(b), Math.sin(b))),
    ];
  });
}
