// The tool bar above the map: gesture, layout, and what acts on the view as a whole.

import { button, element } from "./dom.js";

export const MODES = {
  pan: ["Move", "Drag to move, scroll or pinch to zoom, click or tap a point to choose its document."],
  lasso: ["Lasso", "Draw around points to choose them."],
  box: ["Box", "Drag a rectangle around points to choose them."],
};
const LAYOUTS = {
  one: ["One map", "All heads on one map."],
  heads: ["One a head", "A small map for every head, each on the same ground."],
};

export function toolBar({ mode, layout, movable, chosen }, act) {
  const rest = [];
  if (movable) rest.push(button("Reset view", "Show the whole map again (0 on the map).", act.whole, { class: "plain" }));
  rest.push(button("Save picture", "The map as it is seen, as a PNG of twice its size.", act.save, { class: "plain" }));
  if (chosen) rest.push(button("Clear selection", "Forget the chosen document and area (Escape on the map).", act.clear, { class: "plain" }));
  return [segmented("Gesture", MODES, mode, act.mode), segmented("Layout", LAYOUTS, layout, act.layout), ...rest];
}

function segmented(label, choices, chosen, choose) {
  const made = Object.entries(choices).map(([value, [name, title]]) =>
    button(name, title, () => choose(value), { "aria-pressed": String(chosen === value) }));
  return element("div", { class: "segmented", role: "group", "aria-label": label }, ...made);
}
