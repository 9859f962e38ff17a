// Hover, click, lasso and box on a layer above the drawing: no gesture redraws the points.

import { element, svgElement } from "./dom.js";
import { fingers } from "./touch.js";

// Pixels: how near to a point a pointer must be, and how far it may move and still click.
const NEAR = { mouse: 9, touch: 18 };
const STILL = { mouse: 4, touch: 10 };

export function listen(stage, ask) {
  const { layer, svg, tip } = stage;
  const path = svgElement("path");
  svg.append(path);
  let drawn = null;
  let down = null;
  const touch = fingers(layer, ask, () => {
    [drawn, down] = [null, null];
    path.setAttribute("d", "");
  });

  const at = (event) => {
    const box = layer.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const toMap = ([x, y], place) => [((x - place[0]) / (place[2] - place[0])) * 65535, ((place[3] - y) / (place[3] - place[1])) * 65535];
  const kind = (event) => (event.pointerType === "touch" ? "touch" : "mouse");
  const pick = (position, near) => {
    const place = ask.place(...position);
    if (!place) return -1;
    return ask.nearest(...toMap(position, place), (near / (place[2] - place[0])) * 65535, position);
  };
  const hide = () => {
    tip.hidden = true;
    stage.ring.style.display = "none";
  };

  const tell = ({ title, meta }, [x, y]) => {
    tip.replaceChildren(element("div", { class: "tip-title" }, title), element("div", { class: "tip-meta" }, meta));
    tip.hidden = false;
    const left = Math.min(Math.max(4, x + 14), Math.max(4, layer.clientWidth - tip.offsetWidth - 4));
    const below = y + 18 + tip.offsetHeight < layer.clientHeight;
    tip.style.left = `${left}px`;
    tip.style.top = `${below ? y + 16 : y - tip.offsetHeight - 10}px`;
  };
  const show = (point, near = null) => {
    const words = ask.describe(point);
    const { spot } = words;
    tell(words, near ?? spot);
    stage.ring.style.display = "";
    stage.ring.setAttribute("cx", spot[0]);
    stage.ring.setAttribute("cy", spot[1]);
  };
  const hover = (event) => {
    const position = at(event);
    const point = pick(position, NEAR.mouse);
    layer.style.cursor = point >= 0 && ask.mode() === "pan" ? "pointer" : "";
    if (point >= 0) return show(point, position);
    hide();
    const place = ask.place(...position);
    const words = place && ask.here(...toMap(position, place), (NEAR.mouse / (place[2] - place[0])) * 65535);
    return words && tell(words, position);
  };

  const outline = () => {
    const corners = ask.mode() === "box" ? boxOf(drawn) : drawn;
    path.setAttribute("d", corners.length > 1 ? `M${corners.map((corner) => corner.join(" ")).join("L")}Z` : "");
  };

  layer.addEventListener("pointerdown", (event) => {
    if (event.button || (kind(event) === "touch" && touch.several())) return;
    down = at(event);
    if (ask.mode() === "pan") return;
    event.preventDefault();
    layer.focus({ preventScroll: true }); // which the line above prevents, too
    event.stopPropagation();
    try {
      layer.setPointerCapture(event.pointerId);
    } catch {
      // the pointer is gone already
    }
    drawn = [down];
    hide();
  });
  // The library pans on these; while an area is drawn it must not.
  for (const name of ["mousedown", "touchstart"]) {
    layer.addEventListener(name, (event) => ask.mode() !== "pan" && event.stopPropagation(), true);
  }
  layer.addEventListener("pointermove", (event) => {
    if (!drawn) {
      if (event.buttons) hide();
      else if (kind(event) === "mouse") hover(event);
      return;
    }
    const position = at(event);
    const last = drawn[drawn.length - 1];
    if (Math.hypot(position[0] - last[0], position[1] - last[1]) >= 3) drawn.push(position);
    outline();
  });
  const finish = (event) => {
    const start = down;
    down = null;
    if (drawn) {
      const corners = ask.mode() === "box" ? boxOf([...drawn, at(event)]) : drawn;
      const first = drawn[0];
      drawn = null;
      path.setAttribute("d", "");
      const reach = Math.max(...corners.map((corner) => Math.hypot(corner[0] - first[0], corner[1] - first[1])));
      const place = ask.place(...first);
      if (place && corners.length >= 3 && reach > 8) return ask.area(corners.map((corner) => toMap(corner, place)));
    }
    if (!start || event.type !== "pointerup") return undefined;
    const position = at(event);
    if (Math.hypot(position[0] - start[0], position[1] - start[1]) > STILL[kind(event)]) return undefined;
    const point = pick(position, NEAR[kind(event)]);
    if (point >= 0 && kind(event) === "touch") show(point); // a finger cannot hover
    return ask.click(point);
  };
  // A plain wheel scrolls the page, which the library would not let it; with Ctrl (or a pinch on a touchpad) it zooms.
  layer.addEventListener(
    "wheel",
    (event) => {
      event.stopPropagation();
      if (!(event.ctrlKey || event.metaKey) || !ask.movable()) return;
      event.preventDefault();
      ask.zoom(Math.exp(-Math.max(-120, Math.min(120, event.deltaY)) / 240), ...at(event));
    },
    { capture: true, passive: false },
  );
  layer.addEventListener("pointerup", finish);
  layer.addEventListener("pointercancel", finish);
  layer.addEventListener("pointerleave", (event) => !drawn && kind(event) === "mouse" && hide());
  return { hide, show };
}

function boxOf(drawn) {
  const [[x0, y0], [x1, y1]] = [drawn[0], drawn[drawn.length - 1]];
  return [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
}
