// Chips, colouring, legend: everything here changes the view in the browser alone.

import { colouring, SHADES } from "./paint.js";
import { allHeads } from "./heads.js";
import { button, element } from "./dom.js";

export const COLOURINGS = { head: "head", group: "key/value group", activation: "activation" };

export function chips(meta, view, dark, change) {
  const scheme = meta.schemes[dark ? "dark" : "light"];
  const size = meta.heads / meta.groups;
  const heads = (set) => change({ heads: set });
  const chip = (head) => {
    const on = view.heads.has(head);
    const made = button(
      String(head),
      `Head ${head}. Click: ${on ? "hide" : "show"} it. Alt-click or double-click: only it.`,
      (event) => {
        const next = new Set(event.altKey ? [] : view.heads);
        if (event.altKey || !next.delete(head)) next.add(head);
        heads(next);
      },
      { class: "chip", "aria-pressed": String(on), "aria-label": `head ${head}`, ondblclick: () => heads(new Set([head])) },
    );
    made.style.setProperty("--own", scheme.heads[head - 1]);
    return made;
  };
  const groups = Array.from({ length: meta.groups }, (_, group) => {
    const own = Array.from({ length: size }, (_, i) => group * size + i + 1);
    const name = button(`group ${group + 1}`, `Show key/value group ${group + 1} alone: heads ${own[0]}–${own[own.length - 1]} share one key/value head.`, () => heads(new Set(own)), { class: "group-name" });
    return element("div", { class: "group", role: "group" }, size > 1 ? name : null, element("div", { class: "row", style: `--columns: ${Math.min(size, 4)}` }, ...own.map(chip)));
  });
  const tools = [
    button("All", "Show every head.", () => heads(allHeads(meta.heads))),
    button("None", "Hide every head; the ground stays.", () => heads(new Set())),
    button("Invert", "Show the heads that are hidden now, and hide the others.", () => {
      heads(new Set([...allHeads(meta.heads)].filter((head) => !view.heads.has(head))));
    }),
  ];
  if (meta.heads > 4) tools.push(button("1–4", "Heads 1 to 4, the study's close-up.", () => heads(new Set([1, 2, 3, 4]))));
  return element(
    "div",
    { class: "part" },
    element("div", { class: "title" }, element("span", {}, "Heads"), element("span", { class: "count" }, `${view.heads.size} of ${meta.heads}`)),
    element("div", { class: `groups${size > 1 ? "" : " single"}` }, ...groups),
    element("div", { class: "tools" }, ...tools),
  );
}

export function colourChoice(meta, view, change) {
  const options = ["head", ...(meta.groups < meta.heads ? ["group"] : []), ...meta.columns.map((column) => column.name), "activation"];
  const select = element(
    "select",
    { "aria-label": "Colour by", onchange: (event) => change({ colour: event.target.value, focus: null }) },
    ...options.map((name) => element("option", { value: name, selected: name === view.colour }, COLOURINGS[name] ?? name)),
  );
  return element("div", { class: "part" }, element("label", { class: "title" }, element("span", {}, "Colour by")), select);
}

export function legend(meta, view, map, dark, change) {
  const { column } = colouring(view, map, meta, dark);
  const scheme = meta.schemes[dark ? "dark" : "light"];
  const box = element("div", { class: "legend", role: "group", "aria-label": "Legend" });
  const note = (text) => element("p", { class: "note" }, text);
  if (column) {
    [...column.values, ...(column.missing ? ["none"] : [])].forEach((value, code) => {
      const colour = code < column.values.length ? scheme.topics[code] : scheme.none;
      const on = view.focus === code;
      const swatch = element("span", { class: "swatch" });
      swatch.style.background = colour;
      box.append(
        button(swatch, `${value}: ${(column.counts[code] ?? 0).toLocaleString("en")} documents. Click to show them alone.`, () => change({ focus: on ? null : code }), { class: "entry", "aria-pressed": String(on) }),
      );
      box.lastChild.append(element("span", {}, value));
    });
    return element("div", { class: "part" }, element("div", { class: "title" }, element("span", {}, column.label)), box);
  }
  if (view.colour === "activation") {
    const ramp = element("div", { class: "ramp", title: "Activation: the length of a head's vector before it is normalised." });
    for (let shade = 0; shade < SHADES; shade += 1) {
      const step = element("span");
      step.style.background = scheme.ramp[shade];
      ramp.append(step);
    }
    const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });
    const ends = element("div", { class: "ends" }, element("span", {}, `weak ${number(meta.low)}`), element("span", {}, `${number(meta.high)} strong`));
    return element("div", { class: "part" }, element("div", { class: "title" }, element("span", {}, "Activation")), ramp, ends, note(`The hue is the ${meta.groups < meta.heads ? "key/value group" : "head"}. Weak points are close to the ground, strong ones stand out; the ends are the 2 % beyond.`));
  }
  if (view.colour === "group") {
    scheme.groups.forEach((colour, group) => {
      const swatch = element("span", { class: "swatch" });
      swatch.style.background = colour;
      box.append(element("span", { class: "entry" }, swatch, element("span", {}, `group ${group + 1}`)));
    });
    return element("div", { class: "part" }, box);
  }
  return element("div", { class: "part" }, note(meta.groups < meta.heads ? "One hue a key/value group, one shade a head: the chips are the legend." : "One hue a head: the chips are the legend. This model's heads share no keys and values."));
}
