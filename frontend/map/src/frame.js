// The elements that stay while the map is shown: controls beside it (or below, where there is no room), tools above, the box with what lies over the
// drawing, and the lines below.

import { element, svgElement } from "./dom.js";
import { HELP, SHORT_HELP } from "./keyboard.js";

export function frame(root) {
  const made = {
    side: element("div", { class: "side" }),
    bar: element("div", { class: "bar", role: "toolbar", "aria-label": "Map tools" }),
    box: element("div", { class: "box", tabindex: "0", role: "application", "aria-label": `Head map. ${HELP}` }),
    status: element("div", { class: "status", role: "status" }),
    live: element("div", { class: "unseen", "aria-live": "polite" }),
    tip: element("div", { class: "tip" }),
    svg: svgElement("svg", { class: "over" }),
    ring: svgElement("circle", { class: "hovered", r: 8 }),
  };
  made.tip.hidden = true;
  made.ring.style.display = "none";
  made.box.append(made.svg, made.tip);
  const keys = element("div", { class: "help keys", "aria-hidden": "true" }, SHORT_HELP);
  const fingers = element("div", { class: "help fingers" }, "Drag to move · pinch to zoom · tap to open");
  const mouse = element("div", { class: "help mouse" }, "Ctrl + wheel zooms · drag to move");
  const foot = element("div", { class: "foot" }, made.status, keys, fingers, mouse);
  root.replaceChildren(element("div", { class: "layout" }, element("div", { class: "main" }, made.bar, made.box, foot, made.live), made.side));
  return made;
}
