// Draws the page's Plotly figures (components/figure.py). Plotly takes a seventh of a second to start and every figure a
// tenth or two, in which a browser does nothing else: the app's own pictures come first, then the figures in view, then
// those at most a screen away, with a pause after each one. The others are drawn when they come as near, or are printed.
const BLANK = ':is(.st-key-heat-map, [class*="st-key-hs-grid-"]):not([data-drawn])'; // as in index_page.py
const PATIENCE = 3000; // ms
const NARROWEST = 150; // pixels
const EXPAND = { width: 24, height: 24, path: "M3 3h7v2H5v5H3zM14 3h7v7h-2V5h-5zM3 14h2v5h5v2H3zM19 14h2v7h-7v-2h5z" };

const figures = new Map(); // by their elements
const loaded = {}; // parts of Plotly, by their files' names
let began = null, turning = false;

addEventListener("beforeprint", () => [...figures.values()].filter((one) => one.stale).forEach(draw));

/** Draws ``data.spec`` into ``root``, or changes what is drawn there; ``send`` takes what a reader picks or encloses. */
export function show(root, data, send) {
  let figure = figures.get(root);
  if (!figure) figures.set(root, (figure = new Figure(root, data)));
  figure.send = send;
  figure.set(data);
}

export function remove(root) {
  figures.get(root)?.remove();
  figures.delete(root);
}

// Ends once a frame is painted: work done before would delay it. A tab in the background has no frames.
const frame = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 100); });

// Ends when what was drawn is on the screen. Frames that are late come at once, so one is not enough.
async function onScreen() {
  for (let frames = 0; frames < 3; frames++) await frame();
}

async function ownPictures() {
  const start = performance.now();
  do await frame();
  while (document.querySelector(BLANK) && performance.now() - start < PATIENCE);
}

async function takeTurns() {
  if (turning) return;
  turning = true;
  try {
    await (began ??= ownPictures());
    for (let next; (next = waiting()); await onScreen()) await draw(next);
  } finally {
    turning = false;
  }
}

const draw = (figure) => figure.draw().catch((error) => figure.fail(error));

// The next of the near figures to draw: one in view before those that are not, each from the top.
function waiting() {
  const all = [...figures.values()].filter((one) => one.stale && one.near && one.root.clientWidth > 0);
  const placed = all.map((one) => ({ one, place: one.root.getBoundingClientRect() }));
  const hidden = ({ place: { top, bottom } }) => top > innerHeight || bottom < 0;
  placed.sort((here, there) => hidden(here) - hidden(there) || here.place.top - there.place.top);
  return placed[0]?.one;
}

class Figure {
  constructor(root, { plotly }) {
    this.root = root;
    this.times = 0; // drawn
    this.near = document.hidden; // in the background nothing is said to come near
    this.plotly = new URL(plotly, document.baseURI);
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(root);
    this.seen = new IntersectionObserver((all) => this.comes(all.at(-1).isIntersecting), {
      root: root.closest("[data-testid=stMain]"), // it scrolls, not the window
      rootMargin: "100% 0px",
    });
    this.seen.observe(root);
  }

  set({ spec, config, alt, picks, encloses, height }) {
    if (alt) {
      this.root.setAttribute("role", "figure");
      this.root.setAttribute("aria-label", alt);
    }
    if (spec === this.spec) return;
    Object.assign(this, { spec, config, picks, encloses, height, stale: true });
    takeTurns();
  }

  async draw() {
    this.stale = false;
    const { data, layout } = JSON.parse(this.spec);
    const needed = ["plotly.js", ...(data.some((trace) => trace.type === "scattergl") ? ["many_points.js"] : [])];
    for (const name of needed) loaded[name] ??= await import(new URL(name, this.plotly)); // a printer waits for nothing
    const Plotly = loaded["plotly.js"].default;
    if (!this.root.isConnected) return;
    if (this.picks) {
      layout.clickmode = "event+select";
      layout.hovermode ??= "closest";
      layout.dragmode ??= "pan";
    }
    Object.assign(layout, this.size());
    if (!this.Plotly) this.root.textContent = ""; // what a failed try has said
    await Plotly.react(this.root, data, layout, this.settings());
    this.root.dataset.drawn = (this.times += 1);
    if (this.Plotly) return;
    this.Plotly = Plotly;
    this.listen();
  }

  fail(error) {
    console.error(error);
    if (!this.Plotly) this.root.textContent = "This figure could not be drawn. Reload the page.";
  }

  settings() {
    const whole = { name: "fullscreen", title: "Full screen", icon: EXPAND, click: () => this.expand() };
    const kept = { displaylogo: false, showSendToCloud: false, ...this.config, modeBarButtonsToAdd: [whole] };
    kept.modeBarButtonsToRemove = [...(this.config.modeBarButtonsToRemove ?? []), "sendChartToCloud"]; // data stay here
    return kept;
  }

  listen() {
    this.root.on("plotly_click", ({ points }) => {
      if (this.picks) this.send("picked", { data: points[0]?.customdata ?? null, at: Date.now() });
    });
    this.root.on("plotly_selected", (event) => {
      if (!this.encloses) return;
      const area = event?.lassoPoints ?? event?.range;
      if (area) this.send("area", { x: area.x, y: area.y });
    });
    this.root.on("plotly_deselect", () => this.encloses && this.send("area", { x: [], y: [] }));
  }

  expand() {
    if (document.fullscreenElement === this.root) document.exitFullscreen();
    else this.root.requestFullscreen();
  }

  size() {
    const height = document.fullscreenElement === this.root ? innerHeight : this.height;
    return { width: Math.max(this.root.clientWidth, NARROWEST), height };
  }

  comes(near) {
    this.near = near;
    if (near) takeTurns();
  }

  fit() {
    if (this.stale) takeTurns(); // it had no width until now
    const { width, height } = this.size(), drawn = this.root._fullLayout;
    if (!this.Plotly || !this.root.clientWidth || (drawn.width === width && drawn.height === height)) return;
    this.Plotly.relayout(this.root, { width, height });
  }

  remove() {
    this.resized.disconnect();
    this.seen.disconnect();
    this.Plotly?.purge(this.root);
  }
}
