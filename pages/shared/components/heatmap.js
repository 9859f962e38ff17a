// A heat map on a canvas: rows by columns, the columns in named blocks, one or more panels one under another.
// Names of documents and topics are untrusted: they reach the page through textContent alone.

const instances = new WeakMap(); // one chart an element: a rerun of the page finds the chart as it was

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let chart = instances.get(parentElement);
  if (!chart) instances.set(parentElement, (chart = new HeatMap(parentElement)));
  chart.send = (pick) => setTriggerValue("pick", pick);
  chart.show(data);
  offerPicture("topic-heat-map", chart);
}

const WIDEST_CELL = 40, CLICK_MOVES = { mouse: 4, touch: 10 }, FULL_GAP = 4;
const BRACKET = 20; // pixels beside the rows for key/value groups
const SCALE = 66; // width of the colour scale of a saved picture
const PICTURE = 960; // pixels: the least width of a saved picture
const LEVEL = 76, UPRIGHT = 13; // widths that a topic's name needs, in pixels

class HeatMap {
  constructor(parent) {
    this.root = parent.querySelector(".hs-heat-map");
    this.root.replaceChildren();
    const tools = element("div", "tools", this.root);
    this.note = element("div", "note", tools);
    this.zoomOut = tool(tools, "−", "Zoom out", () => this.zoomBy(1 / 1.8));
    this.zoomIn = tool(tools, "+", "Zoom in", () => this.zoomBy(1.8));
    this.whole = tool(tools, "Fit", "Show all columns", () => this.zoomBy(0));
    tool(tools, "PNG", "Save as a picture", () => this.save());
    this.frame = element("div", "frame", this.root);
    this.frame.tabIndex = 0;
    this.frame.setAttribute("role", "application");
    this.panels = element("div", "panels", this.frame);
    this.tip = element("div", "tip", this.frame);
    this.tip.hidden = true;
    this.live = element("div", "unseen", this.root);
    this.live.setAttribute("aria-live", "polite");
    this.frame.addEventListener("keydown", (event) => this.key(event));
    this.frame.addEventListener("blur", () => { this.cursor = null; this.hideTip(); this.draw(); });
    this.zoom = 1;
    this.offset = 0;
    new ResizeObserver(() => this.layOut()).observe(this.frame);
  }

  show(data) {
    if (data.version === this.version) return;
    const same = this.data && String(this.data.starts) === String(data.starts) && this.data.columns === data.columns;
    if (!same) { this.zoom = 1; this.offset = 0; }
    this.data = data;
    this.version = data.version;
    this.titles = data.titles.getChild("title");
    this.values = data.panels.map((panel) => fromHalves(data[panel.values].getChild("value").toArray()));
    this.ends = [...data.starts.slice(1), data.columns];
    this.colours = colourTable(data.colours);
    this.mark = data.mark;
    this.cursor = null;
    this.frame.setAttribute("aria-label", `${data.label} Arrow keys move from cell to cell, Enter opens, plus and minus zoom.`);
    this.hideTip();
    this.build();
    this.layOut();
    this.root.dataset.version = data.version;
    noteDrawn(this.root);
  }

  // Elements that change with the data only.
  build() {
    const { data } = this;
    this.panels.replaceChildren();
    this.parts = data.panels.map((panel, number) => {
      const box = element("div", "panel", this.panels);
      const head = element("div", "head", box);
      element("div", "name", head).textContent = panel.name;
      legend(head, panel.limit, data.colours);
      const topics = element("div", "topics", box);
      const body = element("div", "body", box);
      const rows = element("div", "rows", body);
      const canvas = element("canvas", "", body);
      this.listen(canvas, number);
      return {
        canvas, topics, rows, body,
        groups: data.groups.map((rowsOfGroup, group) => {
          const bracket = element("div", "group", rows);
          bracket.title = `Key/value group ${group + 1}: ${data.rows[rowsOfGroup[0]]} to ${data.rows[rowsOfGroup[1]].replace(/\D+/, "")} share one key/value head`;
          element("span", "", bracket);
          return bracket;
        }),
        rowLabels: data.rows.map((name, row) => {
          const label = button(rows, row ? "row" : "row full", name, () => this.pickRow(number, row));
          label.title = row ? `${name}: link to its profile` : "Full embedding: all heads together";
          return label;
        }),
        topicLabels: data.blocks.map((name, block) => {
          const label = button(topics, "topic", "", () => this.pickTopic(block));
          element("span", "", label).textContent = name;
          label.title = `${name}: list its documents`;
          label.setAttribute("aria-label", name);
          return label;
        }),
      };
    });
  }

  // Sizes that change with the width: rows, gutter, gaps, and where the topic names stand.
  layOut() {
    const wide = this.frame.clientWidth;
    if (!this.data || !wide) return;
    const { data } = this, blocks = data.blocks.length, rows = data.rows.length * data.panels.length;
    const many = data.panels.length > 1;
    this.rowHeight = Math.max(many ? 13 : 15, Math.min(many ? 22 : 28, Math.floor((many ? 780 : 460) / rows)));
    this.gutter = (wide < 520 ? 54 : 64) + (data.groups.length ? BRACKET : 0);
    this.width = Math.max(40, wide - this.gutter);
    this.gap = Math.min(this.width < 500 ? 2 : 3, (0.2 * this.width) / blocks);
    this.base = (this.width - this.gap * (blocks - 1)) / data.columns;
    this.height = this.rowTop(data.rows.length);
    const narrowest = Math.min(...data.starts.map((start, block) => (this.ends[block] - start) * this.base));
    this.upright = narrowest < LEVEL; // then some names stand upright, whatever the zoom: the strip keeps its height
    for (const part of this.parts) {
      part.topics.style.marginLeft = part.canvas.style.marginLeft = `${this.gutter}px`;
      part.topics.classList.toggle("tall", this.upright);
      part.rows.style.width = `${this.gutter - 6}px`;
      part.body.style.height = `${this.height}px`;
      part.canvas.style.width = `${this.width}px`;
      part.canvas.style.height = `${this.height}px`;
      part.groups.forEach((bracket, group) => {
        const [first, last] = data.groups[group], tall = this.rowTop(last + 1) - this.rowTop(first) - 3;
        bracket.style.top = `${this.rowTop(first) + 1}px`;
        bracket.style.height = `${tall}px`;
        bracket.firstChild.textContent = tall > 66 ? `group ${group + 1}` : tall > 26 ? String(group + 1) : "";
      });
      part.rowLabels.forEach((label, row) => {
        label.style.top = `${this.rowTop(row)}px`;
        label.style.height = label.style.lineHeight = `${this.rowHeight}px`;
        label.style.fontSize = `${Math.min(12, this.rowHeight - 2)}px`;
      });
    }
    this.zoomTo(this.zoom, this.width / 2);
  }

  get ratio() { return this.fine ?? devicePixelRatio; }
  rowTop(row) { return row * this.rowHeight + (row ? FULL_GAP : 0); }
  get cell() { return this.base * this.zoom; }
  left(block) { return this.data.starts[block] * this.cell + block * this.gap - this.offset; }
  blockOf(column) { return this.data.starts.findLastIndex((start) => start <= column); }
  columnLeft(column) {
    const block = this.blockOf(column);
    return this.left(block) + (column - this.data.starts[block]) * this.cell;
  }

  // The cell under a place of the canvas, or null in a gap.
  at(x, y) {
    const row = y < this.rowHeight ? 0 : Math.floor((y - FULL_GAP) / this.rowHeight);
    if (x < 0 || x >= this.width || row < 0 || row >= this.data.rows.length) return null;
    if (y >= this.rowHeight && y < this.rowTop(1)) return null;
    for (let block = this.data.blocks.length - 1; block >= 0; block--) {
      const left = this.left(block);
      if (x < left) continue;
      const column = this.data.starts[block] + Math.floor((x - left) / this.cell);
      return column < this.ends[block] ? { row, column } : null;
    }
    return null;
  }

  zoomBy(factor, x = this.width / 2) { this.zoomTo(factor ? this.zoom * factor : 1, x); }
  zoomTo(zoom, x) {
    if (!this.data) return;
    let block = this.data.blocks.length - 1;
    while (block > 0 && this.left(block) > x) block--;
    const column = this.data.starts[block] + (x - this.left(block)) / this.cell;
    this.zoom = Math.max(1, Math.min(Math.max(1, WIDEST_CELL / this.base), zoom));
    this.panTo(column * this.cell + block * this.gap - x);
  }
  panTo(offset) {
    const total = this.data.columns * this.cell + this.gap * (this.data.blocks.length - 1);
    this.offset = Math.max(0, Math.min(total - this.width, offset));
    this.zoomOut.disabled = this.whole.disabled = this.zoom <= 1;
    this.zoomIn.disabled = this.zoom >= WIDEST_CELL / this.base;
    this.root.dataset.zoom = this.zoom.toFixed(3);
    const shared = 1 / (this.cell * devicePixelRatio);
    this.note.textContent = shared > 1.05
      ? `Each pixel shows the mean of about ${shared < 3 ? shared.toFixed(1) : Math.round(shared)} documents. Zoom in to separate them.`
      : matchMedia("(pointer: coarse)").matches
        ? "Tap a cell to read its document; pinch to zoom, drag to move."
        : "Ctrl + wheel zooms, drag to move, arrow keys move from cell to cell.";
    this.placeTopics();
    this.draw();
  }

  // A name stands over the visible part of its block; where two would overlap, the later one waits for a zoom.
  placeTopics() {
    for (const part of this.parts) {
      let free = -Infinity;
      part.topicLabels.forEach((label, block) => {
        const left = Math.max(0, this.left(block));
        const right = Math.min(this.width, this.left(block) + (this.ends[block] - this.data.starts[block]) * this.cell);
        const width = Math.max(UPRIGHT, right - left);
        const from = Math.max(0, Math.min(this.width - width, (left + right - width) / 2));
        label.classList.toggle("upright", width < LEVEL);
        label.hidden = right <= left || from < free - 0.5;
        if (label.hidden) return;
        free = from + width;
        label.style.left = `${from}px`;
        label.style.width = `${width}px`;
      });
    }
  }

  draw() {
    if (!this.data || !this.width) return;
    this.parts.forEach((part, number) => {
      const width = Math.round(this.width * this.ratio), height = Math.round(this.height * this.ratio);
      if (part.canvas.width !== width || part.canvas.height !== height) {
        part.canvas.width = width;
        part.canvas.height = height;
      }
      const context = part.canvas.getContext("2d");
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, width, height);
      this.paint(context, number, width);
      context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      this.rule(context);
      if (this.mark) this.outline(context, this.mark, number, this.data.ink, 2);
      if (this.cursor) this.outline(context, this.cursor, number, this.data.accent, 3);
      part.rowLabels.forEach((label, row) => label.classList.toggle("on", this.onLabel(number, row, -1)));
      part.topicLabels.forEach((label, block) =>
        label.classList.toggle("on", this.onLabel(number, -1, this.data.starts[block])));
    });
  }
  onLabel(panel, row, column) {
    const { cursor } = this;
    return !!cursor && cursor.panel === panel && cursor.row === row &&
      (column < 0 ? cursor.column < 0 : cursor.column >= 0 && this.blockOf(cursor.column) === this.blockOf(column));
  }

  // One picture element a device pixel across and a row down, stretched to the rows' height.
  paint(context, number, width) {
    const values = this.values[number], { columns, rows, panels } = this.data, limit = panels[number].limit;
    const image = new ImageData(width, rows.length), pixels = new Uint32Array(image.data.buffer);
    const step = this.cell * this.ratio, last = this.colours.length - 1;
    this.data.starts.forEach((start, block) => {
      const left = this.left(block) * this.ratio, end = this.ends[block];
      const to = Math.min(width, Math.round(left + (end - start) * step));
      for (let x = Math.max(0, Math.round(left)); x < to; x++) {
        let from = start + Math.floor((x - left) / step), until = start + Math.floor((x + 1 - left) / step);
        if (step >= 1) from = start + Math.floor((x + 0.5 - left) / step);
        from = Math.min(end - 1, Math.max(start, from));
        until = step >= 1 ? from + 1 : Math.min(end, Math.max(from + 1, until));
        for (let row = 0; row < rows.length; row++) {
          let sum = 0;
          for (let column = from; column < until; column++) sum += values[row * columns + column];
          const share = (sum / (until - from) / limit + 1) / 2;
          pixels[row * width + x] = this.colours[Math.max(0, Math.min(last, Math.round(share * last)))];
        }
      }
    });
    const sheet = new OffscreenCanvas(width, rows.length);
    sheet.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    const tall = this.rowHeight * this.ratio, rest = rows.length - 1;
    context.drawImage(sheet, 0, 0, width, 1, 0, 0, width, tall);
    if (rest) context.drawImage(sheet, 0, 1, width, rest, 0, this.rowTop(1) * this.ratio, width, rest * tall);
  }

  // A line between blocks; thin ones of the ground between rows, and between columns once they are wide.
  rule(context) {
    context.fillStyle = `${this.data.ink}66`;
    for (let block = 1; block < this.data.blocks.length; block++) {
      context.fillRect(this.left(block) - this.gap / 2 - 0.5, 0, 1, this.height);
    }
    context.fillStyle = this.data.ground;
    context.fillRect(0, this.rowHeight, this.width, FULL_GAP);
    for (let row = 1; row < this.data.rows.length; row++) context.fillRect(0, this.rowTop(row) - 0.5, this.width, 1);
    if (this.cell < 8) return;
    for (let column = 1; column < this.data.columns; column++) {
      const x = this.columnLeft(column);
      if (x > 0 && x < this.width) context.fillRect(x - 0.5, 0, 1, this.height);
    }
  }

  outline(context, { panel, row, column }, number, colour, thick) {
    if (panel !== number || row < 0 || column < 0) return;
    const wide = Math.max(7, this.cell), x = this.columnLeft(column) + this.cell / 2 - wide / 2, y = this.rowTop(row);
    if (x + wide < 0 || x > this.width) return;
    for (const [style, width] of [[this.data.ground, thick + 2], [colour, thick]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.strokeRect(x + 0.5, y + 1, wide - 1, this.rowHeight - 2);
    }
  }

  listen(canvas, panel) {
    const fingers = new Map(); // pointer → x; up and down is the page's, to scroll
    let down = null, pinched = false;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const pinch = (event) => {
      const before = [...fingers.values()];
      fingers.set(event.pointerId, place(event).x);
      const now = [...fingers.values()], middle = (now[0] + now[1]) / 2;
      this.panTo(this.offset + (before[0] + before[1]) / 2 - middle);
      this.zoomBy(Math.max(8, Math.abs(now[0] - now[1])) / Math.max(8, Math.abs(before[0] - before[1])), middle);
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      if (event.pointerType === "touch") fingers.set(event.pointerId, place(event).x);
      pinched = fingers.size > 1;
      down = pinched ? null : { x: event.clientX, y: event.clientY, offset: this.offset, moved: false };
      canvas.setPointerCapture(event.pointerId);
      this.hideTip();
    });
    canvas.addEventListener("pointermove", (event) => {
      if (fingers.size === 2 && fingers.has(event.pointerId)) return pinch(event);
      if (pinched && event.pointerType === "touch") return; // the finger that is left over
      if (down) {
        const dx = event.clientX - down.x;
        if (Math.hypot(dx, event.clientY - down.y) > CLICK_MOVES[event.pointerType === "touch" ? "touch" : "mouse"]) down.moved = true;
        if (down.moved) this.panTo(down.offset - dx);
        canvas.classList.toggle("moving", down.moved && this.zoom > 1);
        return;
      }
      const { x, y } = place(event), cell = this.at(x, y);
      if (cell) this.tell({ panel, ...cell }, x, false);
      else this.hideTip();
    });
    const lift = (event) => {
      fingers.delete(event.pointerId);
      canvas.classList.remove("moving");
      const clicked = down && !down.moved;
      down = null;
      return clicked;
    };
    canvas.addEventListener("pointerup", (event) => {
      const { x, y } = place(event), cell = lift(event) && this.at(x, y);
      if (cell) this.pickCell({ panel, ...cell });
    });
    canvas.addEventListener("pointercancel", lift);
    canvas.addEventListener("pointerleave", () => { if (!down) this.hideTip(); });
    canvas.addEventListener("wheel", (event) => {
      const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoomBy(Math.exp(-Math.max(-120, Math.min(120, event.deltaY)) / 240), place(event).x);
      } else if (this.zoom > 1 && Math.abs(sideways) > 0 && Math.abs(sideways) >= Math.abs(event.deltaY) - 1) {
        event.preventDefault();
        this.panTo(this.offset + sideways);
      }
    }, { passive: false }); // a plain wheel scrolls the page
  }

  key(event) {
    if (event.target !== this.frame || event.ctrlKey || event.metaKey || event.altKey || !this.data) return;
    const { rows, columns, starts, panels } = this.data, { key } = event;
    const now = this.cursor ?? this.mark ?? { panel: 0, row: 0, column: 0 }, first = !this.cursor;
    const next = { ...now }, block = this.blockOf(Math.max(0, now.column));
    if (key === "+" || key === "=") this.zoomBy(1.8, this.middle(now));
    else if (key === "-") this.zoomBy(1 / 1.8, this.middle(now));
    else if (key === "0") this.zoomBy(0);
    else if (key === "Escape") { this.cursor = null; this.hideTip(); this.draw(); return; }
    else if (key === "Enter" || key === " ") { if (this.cursor) this.pickAt(this.cursor); }
    else if (key === "ArrowRight") next.column = Math.min(columns - 1, now.column + 1);
    else if (key === "ArrowLeft") next.column = Math.max(now.row < 0 ? 0 : -1, now.column - 1);
    else if (key === "Home") next.column = 0;
    else if (key === "End") next.column = columns - 1;
    else if (key === "PageDown") next.column = starts[Math.min(starts.length - 1, block + 1)];
    else if (key === "PageUp") next.column = starts[Math.max(0, block - 1)];
    else if (key === "ArrowDown") {
      if (now.row < rows.length - 1) next.row++;
      else if (now.panel < panels.length - 1) { next.panel++; next.row = now.column < 0 ? 0 : -1; }
    } else if (key === "ArrowUp") {
      if (now.row > (now.column < 0 ? 0 : -1)) next.row--;
      else if (now.panel > 0) { next.panel--; next.row = rows.length - 1; }
    } else return;
    event.preventDefault();
    if (key === "Enter" || key === " ") return;
    this.cursor = first ? now : next; // the first key shows where the cursor is
    this.reveal(this.cursor);
    this.draw();
    this.tell(this.cursor, this.middle(this.cursor), true);
  }
  middle({ column }) { return column < 0 ? 0 : this.columnLeft(column) + this.cell / 2; }
  reveal({ column }) {
    if (column < 0) return;
    const x = this.columnLeft(column);
    if (x < 0) this.panTo(this.offset + x);
    else if (x + this.cell > this.width) this.panTo(this.offset + x + this.cell - this.width);
  }

  pickAt(place) {
    if (place.row < 0) this.pickTopic(this.blockOf(place.column));
    else if (place.column < 0) this.pickRow(place.panel, place.row);
    else this.pickCell(place);
  }
  pickCell({ panel, row, column }) {
    this.mark = { panel, row, column };
    this.draw();
    this.send({ kind: "cell", panel, row, column, version: this.version });
  }
  pickRow(panel, row) { this.send({ kind: "row", panel, row, version: this.version }); }
  pickTopic(block) { this.send({ kind: "topic", block, version: this.version }); }

  tell({ panel, row, column }, x, aloud) {
    const { data } = this, part = this.parts[panel], lines = [];
    if (row < 0) lines.push(data.blocks[this.blockOf(column)], "Enter: list its documents");
    else if (column < 0) lines.push(data.rows[row], row ? "Enter: profile" : "All heads together");
    else {
      const value = this.values[panel][row * data.columns + column];
      lines.push(this.titles.get(column), data.blocks[this.blockOf(column)]);
      lines.push(`${data.rows[row]} · ${data.panels[panel].name}`, signed(value, 3));
    }
    this.tip.replaceChildren();
    for (const [number, text] of lines.entries()) {
      const kind = number === 0 ? "first" : number === 3 ? "value" : "";
      element("div", kind, this.tip).textContent = text;
    }
    this.tip.hidden = false;
    const full = this.frame.clientWidth, wide = this.tip.offsetWidth, middle = this.gutter + x;
    const aside = middle + 16 + wide <= full ? middle + 16 : middle - 16 - wide;
    const top = part.body.offsetTop + this.rowTop(Math.max(0, row));
    const below = aside < 0; // no room on either side: under the row
    this.tip.style.left = `${below ? Math.max(0, Math.min(full - wide, middle - wide / 2)) : aside}px`;
    this.tip.style.top = `${top + (below ? this.rowHeight + 10 : -6)}px`;
    if (aloud) this.live.textContent = lines.join(", ");
  }
  hideTip() { this.tip.hidden = true; }

  // A copy of this chart as wide as it is asked for, somewhere that nobody sees, while ``use`` reads it.
  async elsewhere(width, fine, use) {
    const host = element("div", "", this.root.parentNode);
    host.style.cssText = `position: fixed; left: -20000px; top: 0; width: ${width}px`;
    element("div", "hs-heat-map", host);
    const copy = new HeatMap(host);
    copy.fine = fine;
    copy.show(this.data);
    copy.zoom = this.zoom;
    copy.panTo((this.offset * copy.base) / this.base);
    try {
      return await use(copy);
    } finally {
      host.remove();
    }
  }

  // For a paper: laid out anew at a column's width, with cells four times as fine as the screen's points.
  paperSvg(width) { return this.elsewhere(width, 4, (copy) => copy.sheet(6)); }

  // Panels, names and scales as one picture: letters and lines as such, the cells as an image.
  sheet(pad = 14) {
    const line = 16, high = this.upright ? 120 : 40, tall = line + 12 + high + this.height + 18, { data } = this;
    const [width, height] = [this.gutter + this.width + 2 * pad, tall * this.parts.length + 2 * pad];
    const family = getComputedStyle(this.root).fontFamily, measure = document.createElement("canvas").getContext("2d");
    measure.font = `11px ${family}`;
    const text = (x, y, words, anchor, looks = "") => `<text x="${x}" y="${y}" text-anchor="${anchor}" ${looks}>${escaped(words)}</text>`;
    const parts = this.parts.map((part, number) => {
      const { name, limit } = data.panels[number], y = line + 12 + high, made = [];
      made.push(text(0, line - 3, name, "start", 'font-size="13" font-weight="600"'));
      const right = this.gutter + this.width, from = right - 46 - SCALE;
      made.push(text(from - 6, line - 4, `≤ ${signed(-limit, 2)}`, "end"), text(right, line - 4, `≥ ${signed(limit, 2)}`, "end"));
      made.push(`<rect x="${from}" y="${line - 13}" width="${SCALE}" height="10" style="fill: url(#scale)"/>`);
      part.topicLabels.forEach((label, block) => {
        if (label.hidden) return;
        const upright = label.classList.contains("upright"), wide = parseFloat(label.style.width);
        const words = fitted(measure, data.blocks[block], upright ? high : wide - 4);
        const at = `translate(${this.gutter + parseFloat(label.style.left) + wide / 2} ${line + 6 + high})`;
        made.push(text(0, upright ? 4 : 0, words, upright ? "start" : "middle", `transform="${at}${upright ? " rotate(-90)" : ""}"`));
      });
      data.groups.forEach(([first, last], group) => {
        const [top, bottom] = [y + this.rowTop(first) + 2, y + this.rowTop(last + 1) - 2];
        made.push(`<path d="M14 ${top}H9V${bottom}H14" style="fill: none; stroke: ${data.ink}; stroke-width: 1.2"/>`);
        made.push(text(0, 0, String(group + 1), "middle", `transform="translate(6 ${(top + bottom) / 2}) rotate(-90)"`));
      });
      const size = Math.min(11, this.rowHeight - 2);
      data.rows.forEach((row, index) => made.push(text(this.gutter - 8, y + this.rowTop(index) + this.rowHeight / 2 + 0.36 * size, row, "end", `font-size="${size}"`)));
      made.push(`<image x="${this.gutter}" y="${y}" width="${this.width}" height="${this.height}" preserveAspectRatio="none" href="${part.canvas.toDataURL()}"/>`);
      return `<g transform="translate(${pad} ${pad + number * tall})">${made.join("")}</g>`;
    });
    const stops = data.colours.map(([at, hex]) => `<stop offset="${at}" stop-color="${hex}"/>`).join("");
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="${escaped(family)}" font-size="11" fill="${data.ink}"><defs><linearGradient id="scale">${stops}</linearGradient></defs><rect width="${width}" height="${height}" style="fill: ${data.ground}"/>${parts.join("")}</svg>`;
  }

  // As it is seen, twice as fine as the screen's points.
  // A panel beside the map does not make the picture narrower.
  async save() {
    const wide = Math.max(this.frame.clientWidth, PICTURE);
    await download(await this.elsewhere(wide, 2, (copy) => dots(copy.sheet())), "topic-heat-map.png");
  }
}

function button(parent, kind, text, act) {
  const made = element("button", kind, parent);
  made.type = "button";
  made.tabIndex = -1; // the cursor reaches it by arrow keys
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}
function tool(parent, text, label, act) {
  const made = button(parent, "tool", text, act);
  made.tabIndex = 0;
  made.title = label;
  made.setAttribute("aria-label", `${label}, ${text}`); // its name has what is written on it
  return made;
}
function legend(parent, limit, colours) {
  const box = element("div", "legend", parent);
  element("span", "", box).textContent = `≤ ${signed(-limit, 2)}`;
  const scale = element("div", "scale", box);
  scale.style.background = `linear-gradient(90deg, ${colours.map(([at, hex]) => `${hex} ${at * 100}%`).join(", ")})`;
  element("i", "", scale);
  element("span", "zero", scale).textContent = "0";
  element("span", "", box).textContent = `≥ ${signed(limit, 2)}`;
}
function signed(value, digits) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
}
function fitted(context, text, room) {
  let shown = text;
  while (shown.length > 1 && context.measureText(shown).width > room) shown = `${shown.slice(0, -2).trimEnd()}…`;
  return shown;
}

// 511 steps between the given colours, as the bytes of a picture: red lowest, alpha highest.
function colourTable(stops) {
  const rgb = stops.map(([, hex]) => [1, 3, 5].map((from) => parseInt(hex.slice(from, from + 2), 16)));
  return Uint32Array.from({ length: 511 }, (_, step) => {
    const share = step / 510, stop = Math.max(0, stops.findLastIndex(([at]) => at < share));
    const part = (share - stops[stop][0]) / (stops[stop + 1][0] - stops[stop][0]);
    const [r, g, b] = rgb[stop].map((value, channel) => Math.round(value + part * (rgb[stop + 1][channel] - value)));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

// The cache keeps similarities as 16-bit floats, and so they travel: half the bytes, the same numbers.
function fromHalves(bits) {
  return Float32Array.from(bits, (half) => {
    const sign = half & 0x8000 ? -1 : 1, exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
}
