// The head map. The server sends a stage once; heads, colours, hover and highlighting never ask it again. The view is
// in the address: heads and colouring are put there from here, the chosen document and area by the server, which has
// to be told of them anyway for the table below the map.

import "./style.css";
import { formatArea, parseArea } from "./area.js";
import { chips, colourChoice, legend } from "./controls.js";
import { button, element } from "./dom.js";
import { FlatMap } from "./flat.js";
import { listen } from "./gestures.js";
import { GlMap, hasWebGL } from "./gl.js";
import { formatHeads, parseHeads } from "./heads.js";
import { mix, paint, rgb } from "./paint.js";
import { keep, mapOf, memory } from "./store.js";

const hub = (window.headscopeMap ??= {});
const instances = new WeakMap();

export default function headMap({ parentElement }) {
  let instance = instances.get(parentElement);
  if (!instance) {
    instance = new HeadMap(parentElement.querySelector(".head-map"));
    instances.set(parentElement, instance);
  }
  hub.listener = (message) => instance.receive(message);
  if (hub.latest && hub.latest !== instance.message) instance.receive(hub.latest);
  return () => {
    // Called on every rerun as well: only an element that is gone takes its drawing with it.
    setTimeout(() => {
      if (instance.root.isConnected) return;
      instance.destroy();
      instances.delete(parentElement);
    }, 500);
  };
}

class HeadMap {
  constructor(root) {
    this.root = root;
    this.view = null;
    this.mode = "pan";
    this.perHead = false;
    this.side = element("div", { class: "side" });
    this.bar = element("div", { class: "bar", role: "toolbar", "aria-label": "Map tools" });
    this.box = element("div", { class: "box", tabindex: "0", role: "application", "aria-label": "Head map" });
    this.status = element("div", { class: "status", role: "status" });
    this.tip = element("div", { class: "tip" });
    this.tip.hidden = true;
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("class", "over");
    this.ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    this.ring.setAttribute("r", "8");
    this.ring.style.display = "none";
    this.svg.append(this.ring);
    this.box.append(this.svg, this.tip);
    root.replaceChildren(this.side, element("div", { class: "main" }, this.bar, this.box, this.status));
    this.gestures = listen({ layer: this.box, svg: this.svg, tip: this.tip, ring: this.ring }, this.asked());
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.pick({ area: null, doc: null });
    });
    this.onBack = () => setTimeout(() => this.readAddress(), 0);
    window.addEventListener("popstate", this.onBack);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.box);
    // Streamlit's colours are variables of an element around the component: another theme is another class of it.
    this.themes = new MutationObserver(() => this.map && this.colours().paper !== this.paper && this.show());
    for (let around = root.getRootNode().host ?? root; around; around = around.parentElement) {
      this.themes.observe(around, { attributes: true, attributeFilter: ["class", "style"] });
    }
  }

  receive(message) {
    const { data: meta, tell } = message;
    this.message = message;
    this.tell = tell;
    if (!meta?.key) return;
    keep(meta);
    const before = this.meta;
    this.meta = meta;
    this.map = mapOf(meta);
    if (!this.map) {
      if (this.asking !== meta.key) {
        this.asking = meta.key;
        this.tell("want", meta.key);
      }
      this.status.textContent = "Fetching the map …";
      return;
    }
    this.asking = null;
    if (!this.view || before.run !== meta.run) {
      this.view = { heads: parseHeads(null, meta.heads), colour: "head", focus: null, area: null, doc: null, hits: null };
      this.readAddress(true);
    } else {
      this.writeAddress();
      if (before.stage !== meta.stage) this.view.area = null;
    }
    this.view.hits = meta.hits ? new Set(meta.hits.map((doc) => this.map.documents.position(doc))) : null;
    this.show();
  }

  // The address wins on arrival and after the browser's Back; but heads and colours that this tab has changed since
  // it last told the server win over what the server remembers of them.
  readAddress(arrival = false) {
    const address = new URLSearchParams(window.location.search);
    const known = memory(this.meta.run);
    const given = (name) => (arrival && name in known && (address.get(name) ?? null) === known.told[name] ? known[name] : address.get(name));
    this.view.heads = parseHeads(given("heads"), this.meta.heads);
    const names = ["head", "group", "activation", ...this.meta.columns.map((column) => column.name)];
    const colour = given("colour");
    this.view.colour = names.includes(colour) ? colour : "head";
    known.told = { heads: address.get("heads"), colour: address.get("colour") };
    this.view.focus = null;
    const area = address.get("area");
    this.view.area = parseArea(area, this.meta.stage) ? area : null;
    const doc = Number(address.get("doc"));
    this.view.doc = Number.isInteger(doc) && this.map.documents.position(doc - 1) >= 0 ? doc : null;
    this.writeAddress();
    if (!arrival) this.show();
  }

  writeAddress() {
    const address = new URL(window.location.href);
    const put = (name, value) => (value === null ? address.searchParams.delete(name) : address.searchParams.set(name, value));
    const own = this.inAddress();
    put("heads", own.heads);
    put("colour", own.colour);
    const text = address.toString().replaceAll("%2C", ",");
    if (text !== window.location.href) window.history.replaceState(window.history.state, "", text);
    Object.assign(memory(this.meta.run), own);
  }

  inAddress() {
    const { heads, colour } = this.view;
    return { heads: formatHeads(heads, this.meta.heads), colour: colour === "head" ? null : colour };
  }

  change(what) {
    Object.assign(this.view, what);
    this.writeAddress();
    this.show();
    if (what.heads && this.view.area) {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.report(), 700); // the table counts chosen heads only
    }
  }

  pick(what) {
    Object.assign(this.view, what);
    this.show();
    this.report();
  }

  report() {
    const own = this.inAddress();
    memory(this.meta.run).told = own;
    this.tell("picked", { area: this.view.area, doc: this.view.doc, ...own });
  }

  asked() {
    return {
      mode: () => this.mode,
      place: (x, y) => this.drawing?.place(x, y) ?? null,
      nearest: (x, y, radius, position) => {
        if (!this.painted) return -1;
        const head = this.drawing.headAt ? this.drawing.headAt(...position) : -1;
        return this.map.grid.nearest(x, y, radius, (point) => this.painted.isLit(point) && (head < 0 || point % this.meta.heads === head));
      },
      describe: (point, position) => this.describe(point, position),
      area: (polygon) => this.pick({ area: formatArea(this.meta.stage, polygon) }),
      click: (point) => {
        const doc = point < 0 ? null : this.map.documents.docs[Math.floor(point / this.meta.heads)] + 1;
        if (doc !== this.view.doc || (doc === null && this.view.area)) this.pick(doc === null ? { doc, area: null } : { doc });
      },
    };
  }

  describe(point, position) {
    const { heads } = this.meta;
    const at = Math.floor(point / heads);
    const parts = [`head ${(point % heads) + 1}`];
    const column = this.meta.columns.find((own) => own.name === this.view.colour) ?? this.meta.columns[0];
    const code = column ? this.map.documents.codes[column.key][at] : -1;
    if (column && code >= 0) parts.push(column.values[code]);
    const { low, high } = this.meta;
    const activation = low + ((high - low) * this.map.activation[point]) / 255;
    parts.push(`activation ${activation.toLocaleString("en", { maximumSignificantDigits: 2 })}`);
    const [left, top, right, bottom] = this.drawing.place(...position);
    const spot = [left + ((right - left) * this.map.x[point]) / 65535, bottom - ((bottom - top) * this.map.y[point]) / 65535];
    return { title: `${this.map.documents.docs[at] + 1} · ${this.map.documents.title(at)}`, meta: parts.join(" · "), spot };
  }

  colours() {
    const style = getComputedStyle(this.root);
    const paper = mix(style.getPropertyValue("--st-background-color") || "#ffffff", "#000000", 0);
    const ink = mix(style.getPropertyValue("--st-text-color") || "#111111", "#000000", 0);
    const [r, g, b] = rgb(paper);
    const dark = r * 0.3 + g * 0.59 + b * 0.11 < 128;
    return { paper, ink, dark, ground: mix(paper, ink, dark ? 0.15 : 0.12) };
  }

  show() {
    const { paper, ink, dark, ground } = this.colours();
    this.paper = paper;
    const change = (what) => this.change(what);
    const focus = this.root.getRootNode().activeElement;
    const mark = focus && this.root.contains(focus) ? [focus.tagName, focus.getAttribute("aria-label") ?? focus.textContent] : null;
    this.side.replaceChildren(chips(this.meta, this.view, dark, change), colourChoice(this.meta, this.view, change), legend(this.meta, this.view, this.map, dark, change));
    this.tools();
    if (mark) [...this.root.querySelectorAll(mark[0])].find((own) => (own.getAttribute("aria-label") ?? own.textContent) === mark[1])?.focus({ preventScroll: true });
    this.painted = paint(this.view, this.map, this.meta, dark, ground, paper);
    this.ensureDrawing();
    const { drawing } = this;
    drawing.draw(this.map, this.painted, paper, this.meta, this.view, ink).then(() => this.mark(drawing));
    this.say();
  }

  ensureDrawing() {
    this.webgl ??= hasWebGL();
    const kind = this.perHead ? "heads" : this.webgl ? "gl" : "flat";
    if (this.kind === kind) return;
    this.drawing?.destroy();
    this.kind = kind;
    if (kind === "gl") {
      try {
        this.drawing = new GlMap(this.box, () => this.gestures.hide(), this.map.x.length);
        return;
      } catch (error) {
        console.warn("The map falls back to an image:", error);
        this.webgl = false;
        this.kind = "flat";
        this.box.querySelectorAll("canvas").forEach((canvas) => canvas.remove());
      }
    }
    this.drawing = new FlatMap(this.box, this.perHead);
  }

  tools() {
    const modes = { pan: ["Move", "Drag to move, scroll to zoom, click a point to choose its document."], lasso: ["Lasso", "Draw around points to choose them."], box: ["Box", "Drag a rectangle around points to choose them."] };
    const made = Object.entries(modes).map(([mode, [name, title]]) =>
      button(name, title, () => { this.mode = mode; this.tools(); }, { "aria-pressed": String(this.mode === mode) }));
    const views = [[false, "One map", "All heads on one map."], [true, "One a head", "A small map for every head, each on the same ground."]].map(([perHead, name, title]) =>
      button(name, title, () => { this.perHead = perHead; this.show(); }, { "aria-pressed": String(this.perHead === perHead) }));
    const groups = [element("div", { class: "segmented", role: "group", "aria-label": "Gesture" }, ...made), element("div", { class: "segmented", role: "group", "aria-label": "Layout" }, ...views)];
    const rest = [];
    if (this.webgl !== false && !this.perHead) rest.push(button("Reset view", "Show the whole map again.", () => this.drawing.reset(), { class: "plain" }));
    if (this.view.area || this.view.doc !== null) rest.push(button("Clear selection", "Forget the chosen document and area (Escape on the map).", () => this.pick({ area: null, doc: null }), { class: "plain" }));
    this.bar.replaceChildren(...groups, ...rest);
    this.box.dataset.mode = this.mode;
  }

  say() {
    const count = this.map.x.length.toLocaleString("en");
    const said = [`${count} points`];
    if (this.view.heads.size < this.meta.heads) said.push(`${(this.map.documents.docs.length * this.view.heads.size).toLocaleString("en")} of chosen heads`);
    if (this.painted.strong) said.push(`${this.painted.strong.toLocaleString("en")} lit up`);
    if (!this.webgl) said.push("This browser has no WebGL: you see an image of the density, which can be chosen from but not zoomed");
    this.status.textContent = said.join(" · ");
    this.root.dataset.heads = formatHeads(this.view.heads, this.meta.heads) ?? "all";
    this.root.dataset.lit = String(this.painted.strong);
    this.root.dataset.colour = this.view.colour;
    this.root.dataset.key = this.meta.key;
  }

  // For whoever drives the page: where the map lies, and that what is shown is drawn.
  mark(drawing) {
    if (drawing !== this.drawing || drawing.destroyed) return;
    this.box.dataset.place = (drawing.place(0, 0) ?? []).map((value) => value.toFixed(1)).join(" ");
  }

  resize() {
    const { width, height } = this.box.getBoundingClientRect();
    if (this.drawing && width && height) this.drawing.resize(width, height);
  }

  destroy() {
    window.removeEventListener("popstate", this.onBack);
    this.sizes.disconnect();
    this.themes.disconnect();
    this.drawing?.destroy();
  }
}
