// The tool bar above the map: gesture, layout, and what acts on the view as a whole.

import { button, element } from "./dom.js";

export const MODES = {
  pan: ["Move", "Drag to move, Ctrl + wheel or pinch to zoom, click or tap a point to open its document."],
  lasso: ["Lasso", "Draw around points to select them."],
  box: ["Box", "Drag a rectangle around points to select them."],
};
const LAYOUTS = {
  one: ["One map", "All heads on one map."],
  heads: ["One map per head", "A small map for every head, all at the same scale."],
};

export function toolBar({ mode, layout, movable, chosen, some }, act) {
  const rest = [];
  if (movable) rest.push(button("Reset view", "Show the whole map again (0 on the map).", act.whole, { class: "plain" }));
  if (movable && some) rest.push(button("Fit", "Zoom to the chosen heads (F on the map).", act.fit, { class: "plain" }));
  rest.push(button("Save picture", "Save the map as you see it, as a PNG at twice the resolution.", act.save, { class: "plain" }));
  if (chosen) rest.push(button("Clear selection", "Clear the chosen document and area (Escape on the map).", act.clear, { class: "plain" }));
  return [segmented("Gesture", MODES, mode, act.mode), segmented("Layout", LAYOUTS, layout, act.layout), ...rest];
}

function segmented(label, choices, chosen, choose) {
  const made = Object.entries(choices).map(([value, [name, title]]) =>
    button(name, title, () => choose(value), { "aria-pressed": String(chosen === value) }));
  return element("div", { class: "segmented", role: "group", "aria-label": label }, ...made);
}
