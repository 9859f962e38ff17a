// The head map. The server sends a stage once; heads, colours, hover and highlighting never ask it again. The view is
// in the address: heads, colouring, camera and layout are put there from here, the chosen document and area by the
// server, which has to be told of them anyway for the table below the map.

import "./style.css";
import { ownPart, readOwnPart, writeOwnPart } from "./address.js";
import { forKeys, forPointers } from "./answers.js";
import { parseArea } from "./area.js";
import { formatCamera } from "./camera.js";
import { closeUp, covers, formatWindow, hasHeads } from "./close_up.js";
import { chips, colourChoice, frontNote, legend } from "./controls.js";
import { densityOf, rowsAround } from "./density.js";
import { spotOf } from "./direction.js";
import { fitting } from "./fit.js";
import { frame } from "./frame.js";
import { listen } from "./gestures.js";
import { formatHeads, parseHeads } from "./heads.js";
import { paintedOver } from "./hidden.js";
import { listenToKeys } from "./keyboard.js";
import { islands, labelsLayer, placed } from "./labels.js";
import { mount } from "./mount.js";
import { colouring, paint, themeOf } from "./paint.js";
import { dots, download, offerPicture } from "../../../pages/shared/components/dom.js";
import { fileName, FINE, SCALE, sheet, withoutGround } from "./picture.js";
import { RasterMap } from "./raster.js";
import { ringsLayer, ringsOf } from "./rings.js";
import { SmallMaps } from "./small_maps.js";
import { keep, mapOf, memory, windowOf } from "./store.js";
import { toolBar } from "./tools.js";
import { captionWords, densityWords, islandNames, kindNames, legendEntries, placeWords, pointWords, statusWords } from "./words.js";

const SETTLED = 300; // milliseconds without a move until the camera goes into the address
const STILL = 150; // and until single points are asked for
const TRIES = 3; // a message may cross another one

export default function headMap({ parentElement }) {
  return mount(parentElement, () => new HeadMap(parentElement.querySelector(".head-map")));
}

class HeadMap {
  constructor(root) {
    this.root = root;
    this.view = null;
    this.mode = "pan";
    this.names = new WeakMap(); // by a map's points
    Object.assign(this, frame(root));
    this.bar.replaceChildren(...toolBar({ mode: this.mode, layout: "one", movable: true }, {})); // as high as it will be
    this.bar.inert = true;
    this.drawLabels = labelsLayer(this.svg);
    this.drawRings = ringsLayer(this.svg);
    this.svg.append(this.ring);
    this.gestures = listen({ layer: this.box, svg: this.svg, tip: this.tip, ring: this.ring }, forPointers(this));
    this.keys = listenToKeys(this.box, forKeys(this));
    this.path = window.location.pathname;
    this.onBack = () => setTimeout(() => this.view && this.root.isConnected && this.readAddress(), 0);
    window.addEventListener("popstate", this.onBack);
    // The server's own writing pushes the address as it last heard of it.
    this.onEntry = (event) => event.navigationType === "push" && this.writeSoon();
    window.navigation?.addEventListener("currententrychange", this.onEntry);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.box);
    // Streamlit's colours are variables of an element around the component: another theme is another class of it.
    this.themes = new MutationObserver(() => this.map && themeOf(root).paper !== this.paper && this.show());
    for (let around = root.getRootNode().host ?? root; around; around = around.parentElement) {
      this.themes.observe(around, { attributes: true, attributeFilter: ["class", "style"] });
    }
  }

  receive(message) {
    const { data: meta, tell } = message;
    this.message = message;
    offerPicture("head-map", this);
    this.tell = tell;
    if (!meta?.key) return;
    keep(meta);
    const [before, drawn] = [this.meta, this.map];
    this.meta = meta;
    if (this.needed) this.needed.waiting = false;
    this.map = mapOf(meta, drawn?.window && windowOf(meta));
    if (!this.map) {
      if (this.asking !== meta.key) {
        this.asking = meta.key;
        this.tell("want", meta.key);
      }
      this.status.textContent = "Fetching the map …";
      return;
    }
    this.asking = null;
    if (drawn !== this.map) this.keys.drop(); // its point is another one's now
    if (!this.view || before.run !== meta.run) {
      this.view = { heads: parseHeads(null, meta.heads), colour: "head", focus: null, area: null, doc: null, hits: null, camera: null, layout: "one", list: false, front: null };
      this.readAddress(true);
    } else {
      this.writeAddress();
      if (before.stage !== meta.stage) this.view.area = null;
      if (before.turn !== meta.turn) this.readChosen(); // the panel beside the map has opened or closed something
      if (before.turn !== meta.turn) this.takeGiven();
    }
    this.takeHits();
    this.show();
  }

  takeHits() {
    this.view.hits = this.meta.hits ? new Set(this.meta.hits.map((doc) => this.map.documents.position(doc))) : null;
  }

  // Beyond a million points: single points where few enough are in view, their density everywhere else. Asks the server
  // for what is missing.
  lookCloser() {
    const { meta, view, drawing } = this;
    if (!meta.density) return;
    const near = drawing.movable ? closeUp(drawing.visible(), this.map.counts, view.heads, meta.density) : null;
    const window = windowOf(meta);
    const used = near && hasHeads(window, view.heads) ? window : null;
    if (used !== this.map.window) {
      this.map = mapOf(meta, used);
      this.keys.drop();
      this.takeHits();
    }
    this.isClose = near !== null && (near.count === 0 || covers(window, near.cells, view.heads));
    const column = meta.columns.find((own) => own.name === view.colour);
    this.need({
      column: column && !this.map.values[column.key] ? column.name : null,
      window: near && !this.isClose ? formatWindow(near.asked, view.heads, meta.heads) : null,
    });
  }

  need(what) {
    const sign = what.column || what.window ? JSON.stringify(what) : null;
    const times = this.needed?.sign === sign ? this.needed.times : 0;
    if (sign && ((times && this.needed.waiting) || times >= TRIES)) return;
    this.needed = sign && { sign, times: times + 1, waiting: true };
    if (sign) this.tell("need", what);
  }

  // The camera is still: other points may be in view.
  settle() {
    const before = this.map;
    if (!before || !this.meta.density || !this.root.isConnected) return;
    this.lookCloser();
    if (this.map !== before) this.show();
    else this.say();
  }

  // Where the page is not ours (a notebook), the address is not the view's: what is shown comes with the message.
  takeGiven() {
    const { given, heads, columns } = this.meta;
    if (!given) return;
    this.view.heads = parseHeads(given.heads, heads);
    const known = ["head", "group", "activation", ...columns.map((column) => column.name)];
    if (known.includes(given.colour) && given.colour !== this.view.colour) Object.assign(this.view, { colour: given.colour, focus: null });
  }

  readAddress(arrival = false) {
    if (this.meta.given) {
      if (arrival) this.takeGiven();
      return;
    }
    Object.assign(this.view, readOwnPart(this.meta, arrival));
    const address = new URLSearchParams(window.location.search);
    this.setChosen(address.get("area"), Number(address.get("doc")));
    this.writeAddress();
    if (this.drawing?.movable) this.drawing.lookAt(this.view.camera);
    if (!arrival) this.show();
  }

  // As the server says, which has put it into the address as well.
  readChosen() {
    const { area, doc, list } = this.meta.chosen ?? {};
    this.setChosen(area ?? null, doc ?? null);
    this.view.list = Boolean(list) && this.view.focus !== null;
    this.writeAddress();
  }

  setChosen(area, doc) {
    this.view.area = parseArea(area, this.meta.stage) ? area : null;
    this.view.doc = Number.isInteger(doc) && this.map.documents.position(doc - 1) >= 0 ? doc : null;
  }

  writeAddress() {
    clearTimeout(this.writing);
    if (this.view && !this.meta.given && this.root.isConnected && window.location.pathname === this.path) writeOwnPart(this.view, this.meta);
  }

  writeSoon() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.writeAddress(), SETTLED);
  }

  change(what) {
    const focus = this.view.focus;
    const listed = this.view.list;
    Object.assign(this.view, what);
    if (this.view.focus === null) this.view.list = false;
    this.writeAddress();
    this.show();
    if (this.meta.given) this.tell("view", ownPart(this.view, this.meta));
    if (listed && this.view.focus !== focus) this.report();
    if (what.heads && this.view.area) {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.report(), 700); // the table counts chosen heads only
    }
  }

  pick(what) {
    Object.assign(this.view, what);
    this.show();
    this.report(Object.values(what).some(Boolean));
  }

  // ``opens`` where a gesture has chosen something, which the panel beside the map then shows.
  report(opens = false) {
    const own = ownPart(this.view, this.meta);
    memory(this.meta.run).told = own;
    this.tell("picked", { area: this.view.area, doc: this.view.doc, ...own, opens });
  }

  clear() {
    if (this.chosen()) this.pick({ area: null, doc: null, list: false });
  }

  chosen() {
    return Boolean(this.view.area) || this.view.doc !== null || this.view.list;
  }

  whole() {
    if (!this.drawing?.movable) return;
    this.drawing.lookAt(null);
    this.view.camera = null;
    this.writeAddress();
  }

  fit() {
    const place = this.drawing?.movable && this.drawing.place();
    const [points, { isLit }] = this.density ? [this.density.rows, this.density.painted] : [this.map, this.painted];
    const camera = place && fitting(points, isLit, this.size(), (place[2] - place[0]) / this.drawing.camera().zoom);
    if (camera) this.drawing.lookAt(camera, true);
  }

  choose(point) {
    const doc = point < 0 ? null : this.map.documents.docs[this.map.row[point]] + 1;
    if (doc !== this.view.doc || (doc === null && this.view.area)) this.pick(doc === null ? { doc, area: null } : { doc });
  }

  describe(point) {
    return { ...pointWords(point, this.view, this.map, this.meta), spot: this.spot(point) };
  }

  // Where the density is drawn: which heads or topics have the most points near a place of the map.
  describePlace(at, radius) {
    const { density, view, meta } = this;
    if (!density?.isCurrent || this.isClose || !this.drawing.movable) return null;
    const of = view.colour === "activation" ? (row) => density.rows.head[row] : density.painted.of;
    return placeWords(density.rows, rowsAround(density.rows, at, radius), of, kindNames(view, meta), density.painted.isLit);
  }

  spot(point) {
    return spotOf(this.map, this.drawing.places(this.meta.heads)[this.map.head[point]], point);
  }

  chosenAt() {
    return this.view.doc === null ? -1 : this.map.documents.position(this.view.doc - 1);
  }

  chosenPoints() {
    const [at, found] = [this.chosenAt(), []];
    for (let point = 0; at >= 0 && point < this.map.row.length; point += 1) if (this.map.row[point] === at) found.push(point);
    return found;
  }

  show() {
    const theme = themeOf(this.root);
    const { paper, ink, dark, ground } = theme;
    this.paper = paper;
    const change = (what) => this.change(what);
    const focus = this.root.getRootNode().activeElement;
    const mark = focus && this.root.contains(focus) ? [focus.tagName, focus.getAttribute("aria-label") ?? focus.textContent] : null;
    this.ensureDrawing();
    this.lookCloser();
    this.painted = paint(this.view, this.map, this.meta, dark, ground, paper);
    this.density = this.meta.density ? densityOf(this.view, this.map, this.meta, theme) : null;
    this.name(dark);
    const note = frontNote(this.view, this.hidden, change);
    this.side.replaceChildren(chips(this.meta, this.view, dark, change), ...(note ? [note] : []), colourChoice(this.meta, this.view, change), legend(this.meta, this.view, this.map, dark, change, () => this.pick({ list: true })));
    this.tools();
    this.ringed = this.chosenPoints();
    if (mark) [...this.root.querySelectorAll(mark[0])].find((own) => (own.getAttribute("aria-label") ?? own.textContent) === mark[1])?.focus({ preventScroll: true });
    const { drawing } = this;
    drawing.draw(this, paper, this.meta, this.view, ink).then(() => this.follow(drawing));
    this.follow(drawing);
    this.say();
  }

  // Names of the islands and heads that are painted over: they change with the map, heads, colouring and order alone.
  // Those of a stage that was seen before are kept.
  name(dark) {
    const { view, meta, density } = this;
    const map = density?.rows ?? this.map;
    const sign = [meta.key, map.x.length, density?.isCurrent, formatHeads(view.heads, meta.heads), view.colour, view.focus, view.front].join("/");
    let kept = this.names.get(map.x);
    if (kept?.sign !== sign) this.names.set(map.x, (kept = { sign, ...this.namesOf(map, dark) }));
    Object.assign(this, { islands: kept.islands, hidden: kept.hidden });
  }

  namesOf(map, dark) {
    const { view, meta, density } = this;
    const shownHeads = new Uint8Array(meta.heads);
    for (const head of view.heads) shownHeads[head - 1] = 1;
    const { of, column } = colouring(view, map, meta, dark);
    // By activation every shade is a colour; what is named are heads.
    const kind = view.colour === "activation" ? (point) => map.head[point] : of;
    const named = !density || density.isCurrent ? islands(map, islandNames(view, meta), kind, (point) => shownHeads[map.head[point]] === 1, Boolean(column)) : [];
    return {
      islands: named.map((island) => ({ ...island, spot: (place) => spotOf(map, place, island.point) })),
      hidden: paintedOver(this.map.counts ?? map, meta.heads, view),
    };
  }

  ensureDrawing() {
    const kind = this.view.layout;
    if (this.kind === kind) return;
    this.drawing?.destroy();
    this.kind = kind;
    this.drawing = kind === "heads" ? new SmallMaps(this.box) : new RasterMap(this.box, (drawing) => this.follow(drawing));
    if (this.drawing.movable && this.view.camera) this.drawing.lookAt(this.view.camera);
  }

  tools() {
    const shown = { mode: this.mode, layout: this.view.layout, movable: this.drawing.movable, chosen: this.chosen(), some: this.view.heads.size && this.view.heads.size < this.meta.heads };
    this.bar.replaceChildren(...toolBar(shown, {
      mode: (mode) => { this.mode = mode; this.tools(); },
      layout: (layout) => { this.keys.drop(); this.change({ layout }); },
      whole: () => this.whole(),
      fit: () => this.fit(),
      save: () => this.save(),
      clear: () => this.clear(),
    }));
    this.bar.inert = false;
    this.box.dataset.mode = this.mode;
    this.box.dataset.movable = String(this.drawing.movable);
  }

  say() {
    const { density } = this;
    const next = this.needed ? ["fetching …"] : this.drawing.movable ? ["zoom in for single points"] : [];
    this.status.textContent = density ? densityWords({ lit: density.isCurrent ? density.painted.lit : this.meta.density.points, inView: this.isClose ? this.countInView() : null, next }, this.meta.density) : statusWords(this.map, this.painted);
    this.root.dataset.shown = density && !this.isClose ? "density" : "points";
    this.root.dataset.heads = formatHeads(this.view.heads, this.meta.heads) ?? "all";
    this.root.dataset.lit = String(this.painted.strong);
    this.root.dataset.colour = this.view.colour;
    this.root.dataset.key = this.meta.key;
  }

  countInView() {
    const [left, low, right, high] = this.drawing.visible().map((share) => share * 65535);
    const { x, y } = this.map;
    let count = 0;
    for (let point = 0; point < x.length; point += 1) {
      if (x[point] >= left && x[point] <= right && y[point] >= low && y[point] <= high && this.painted.isLit(point)) count += 1;
    }
    return count;
  }

  // After every frame: rings, tip and address go with the map.
  follow(drawing) {
    if (drawing !== this.drawing || drawing.destroyed || !this.view) return;
    const places = drawing.places(this.meta.heads);
    if (!places) return;
    const place = (drawing.place(0, 0) ?? []).map((value) => value.toFixed(1)).join(" ");
    if (drawing.movable && place !== this.box.dataset.place) {
      const cursor = this.keys.cursor();
      if (cursor < 0) this.gestures.hide();
      else this.gestures.show(cursor);
      this.view.camera = drawing.camera();
      this.root.dataset.camera = formatCamera(this.view.camera) ?? "whole";
      this.writeSoon();
      clearTimeout(this.moving);
      this.moving = setTimeout(() => this.settle(), STILL);
    }
    this.box.dataset.place = place; // for whoever drives the page: where the map lies, and that it is drawn
    const { rings, labels } = this.marks();
    this.drawRings(rings);
    this.drawLabels(labels);
  }

  // What lies over the points, on the screen or on a picture that is ``share`` as wide. A chosen document's rings say
  // which head is where; small maps are named already.
  marks(share = 1) {
    const { drawing, meta, view } = this;
    const scaled = (spot) => spot.map((value) => value * share);
    const size = scaled(this.size());
    const places = drawing.places(meta.heads);
    const spots = this.ringed.map((point) => {
      const head = this.map.head[point];
      const [x, y] = scaled(spotOf(this.map, places[head], point));
      return { x, y, head };
    });
    const rings = ringsOf(spots, size, view.layout === "one");
    const named = view.layout === "one" && !rings.length;
    const labels = named ? placed(this.islands, (island) => scaled(island.spot(places[0])), size, drawing.movable ? drawing.camera().zoom : 1, []) : [];
    return { rings, labels };
  }

  async save() {
    const marks = this.marks();
    const image = await this.drawing.picture(SCALE);
    const svg = sheet(image, this.size(), { ...marks, caption: captionWords(this.view, this.meta) }, themeOf(this.root));
    await download(await dots(svg), fileName(this.meta.run, this.meta.stage));
  }

  // For a paper (picture.js of the app): letters keep their size, however narrow the picture is.
  async paperSvg(width) {
    const size = this.size();
    const share = width / size[0];
    const theme = themeOf(this.root);
    const marks = this.marks(share);
    const legend = legendEntries(this.view, this.map, this.meta, theme.dark);
    const image = await this.drawing.picture(FINE * share);
    return sheet(theme.dark ? image : withoutGround(image, theme.paper), [width, size[1] * share], { ...marks, legend }, theme);
  }

  size() {
    const { width, height } = this.box.getBoundingClientRect();
    return [width, height];
  }

  resize() {
    const [width, height] = this.size();
    if (!this.drawing || !width || !height) return;
    this.drawing.resize(width, height);
    this.follow(this.drawing);
  }

  destroy() {
    clearTimeout(this.writing);
    clearTimeout(this.later);
    clearTimeout(this.moving);
    window.removeEventListener("popstate", this.onBack);
    window.navigation?.removeEventListener("currententrychange", this.onEntry);
    this.sizes.disconnect();
    this.themes.disconnect();
    this.drawing?.destroy();
  }
}
