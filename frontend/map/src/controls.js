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
      `Head ${head}. Click to ${on ? "hide" : "show"} it; Alt-click or double-click to show it alone.`,
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
    button("None", "Hide every head. Points stay visible in grey.", () => heads(new Set())),
    button("Invert", "Show hidden heads and hide shown ones.", () => {
      heads(new Set([...allHeads(meta.heads)].filter((head) => !view.heads.has(head))));
    }),
  ];
  const first = size > 1 && meta.groups > 1 ? size : 4; // the study's close-up shows heads 1–4: its first key/value group
  const whose = first === 4 && size !== 4 ? "Show heads 1–4 alone, as in the study's close-up." : `Show key/value group 1 alone: heads 1–${first}.`;
  if (meta.heads > first) tools.push(button(`1–${first}`, whose, () => heads(new Set(Array.from({ length: first }, (_, i) => i + 1)))));
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

function documents(count) {
  return `${count.toLocaleString("en")} document${count === 1 ? "" : "s"}`;
}

// What a head that others are painted over needs: to be brought to the front, or to go back.
export function frontNote(view, hidden, change) {
  if (view.front === null && !hidden.length) return null;
  const act = (name, title, front) => button(name, title, () => change({ front }), { class: "plain" });
  if (view.front !== null) {
    return element("div", { class: "part" }, element("p", { class: "note" }, `Head ${view.front} is drawn in front.`), act("Mix again", "Draw the points of all heads in turn.", null));
  }
  const [{ head, share }] = hidden;
  const more = hidden.length > 1 ? ` So ${hidden.length > 2 ? "are heads" : "is head"} ${hidden.slice(1).map((own) => own.head).join(" and ")}.` : "";
  return element(
    "div",
    { class: "part front" },
    element("p", { class: "note" }, `Head ${head} is mostly hidden: ${Math.round(100 * share)} % of its points lie under other heads.${more}`),
    element("div", { class: "tools" }, ...hidden.map((own) => act(`Head ${own.head} to front`, `Draw head ${own.head} over the others.`, own.head))),
  );
}

export function legend(meta, view, map, dark, change, list) {
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
        button(swatch, `${value}: ${documents(column.counts[code] ?? 0)}. Click to ${on ? "show all" : "highlight them"}.`, () => change({ focus: on ? null : code }), { class: "entry", "aria-pressed": String(on) }),
      );
      box.lastChild.append(element("span", {}, value));
    });
    const count = column.counts[view.focus] ?? map.documents.docs.length;
    const open = view.focus === null ? null : element("div", { class: "tools" }, button(`List ${view.focus < column.counts.length ? documents(count) : "documents"}`, "List the highlighted documents beside the map.", list));
    return element("div", { class: "part" }, element("div", { class: "title" }, element("span", {}, column.label)), box, open);
  }
  if (view.colour === "activation") {
    const ramp = element("div", { class: "ramp", title: "Activation: the L2 norm of a head's vector before normalising." });
    for (let shade = 0; shade < SHADES; shade += 1) {
      const step = element("span");
      step.style.background = scheme.ramp[shade];
      ramp.append(step);
    }
    const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });
    const ends = element("div", { class: "ends" }, element("span", {}, `weak ${number(meta.low)}`), element("span", {}, `${number(meta.high)} strong`));
    return element("div", { class: "part" }, element("div", { class: "title" }, element("span", {}, "Activation")), ramp, ends, note(`Hue shows the ${meta.groups < meta.heads ? "key/value group" : "head"}. Paler means weaker; the scale is clipped at 2 % and 98 %.`));
  }
  if (view.colour === "group") {
    scheme.groups.forEach((colour, group) => {
      const swatch = element("span", { class: "swatch" });
      swatch.style.background = colour;
      box.append(element("span", { class: "entry" }, swatch, element("span", {}, `group ${group + 1}`)));
    });
    return element("div", { class: "part" }, box);
  }
  return element("div", { class: "part" }, note(meta.groups < meta.heads ? "One hue per key/value group, one shade per head. The buttons above are the legend." : "One hue per head. The buttons above are the legend. This model's heads do not share keys and values."));
}
