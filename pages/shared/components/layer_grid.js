// A grid of layers by heads. Every cell is an element with a name, so that keys and screen readers reach it.
// Names and labels may quote topics, which are untrusted: they reach the page through textContent and attributes alone.

const instances = new WeakMap(); // one grid an element: a rerun of the page finds it as it was

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let grid = instances.get(parentElement);
  if (!grid) instances.set(parentElement, (grid = new LayerGrid(parentElement)));
  grid.send = (pick) => setTriggerValue("pick", pick);
  grid.show(data);
  offerPicture(data.name, grid);
}

const GAP = 5; // pixels where the columns are parted, on a picture
const LEAST = 23, TALL = 22; // pixels: the narrowest cell, which has room for three letters, and a row's height

class LayerGrid {
  constructor(parent) {
    this.root = parent.querySelector(".hs-grid");
    this.root.replaceChildren();
    const tools = element("div", "tools", this.root);
    this.legend = element("div", "legend", tools);
    const save = element("button", "", tools);
    save.type = "button";
    save.textContent = "PNG";
    save.title = "Save as a picture";
    save.setAttribute("aria-label", "Save as a picture, PNG"); // its name has what is written on it
    save.addEventListener("click", () => this.save());
    this.frame = element("div", "frame", this.root);
    this.grid = element("div", "grid", this.frame);
    this.grid.setAttribute("role", "grid");
    this.tip = element("div", "tip", this.root);
    this.tip.hidden = true;
    this.grid.addEventListener("click", (event) => this.pick(this.placeOf(event.target)));
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("pointerover", (event) => this.tell(this.placeOf(event.target)));
    this.grid.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.grid.addEventListener("focusin", (event) => this.tell(this.placeOf(event.target)));
    this.grid.addEventListener("focusout", () => (this.tip.hidden = true));
    this.frame.addEventListener("scroll", () => (this.tip.hidden = true));
  }

  show(data) {
    if (data.version !== this.version) {
      this.data = data;
      this.version = data.version;
      this.build();
    }
    this.setMark(data.mark ? { row: data.mark[0], column: data.mark[1] } : null);
    this.root.dataset.version = data.version;
    noteDrawn(this.root);
  }

  build() {
    const { data, grid } = this, focused = this.root.getRootNode().activeElement;
    const kept = focused && this.placeOf(focused); // a colouring that changes under the cursor leaves it where it was
    grid.replaceChildren();
    this.tip.hidden = true;
    this.drawLegend();
    grid.setAttribute("aria-label", `${data.label} Arrow keys move, Enter opens.`);
    const longest = Math.max(...data.rows.map((name) => name.length));
    this.gutter = 14 + 7 * longest;
    grid.style.setProperty("--gutter", `${this.gutter}px`);
    grid.style.setProperty("--least", `${data.least ?? LEAST}px`);
    grid.style.setProperty("--tall", `${TALL}px`);
    const parted = new Set(data.breaks);
    const top = element("div", "row", grid);
    top.setAttribute("role", "row");
    element("div", "name", top).setAttribute("role", "columnheader");
    data.columns.forEach((name, column) => {
      const header = element("div", parted.has(column) ? "top parted" : "top", top);
      header.setAttribute("role", "columnheader");
      header.textContent = name;
    });
    this.cells = data.cells.map((row, number) => {
      const line = element("div", "row", grid);
      line.setAttribute("role", "row");
      const name = element("div", "name", line);
      name.setAttribute("role", "rowheader");
      name.textContent = data.rows[number];
      return row.map((cell, column) => {
        const made = element("div", `cell${cell ? "" : " none"}${parted.has(column) ? " parted" : ""}`, line);
        made.setAttribute("role", "gridcell");
        made.dataset.row = number;
        made.dataset.column = column;
        made.tabIndex = -1;
        const said = cell ? [...cell[2].split("\n"), cell[1]].filter(Boolean).join(", ") : "nothing to show";
        made.setAttribute("aria-label", said); // with what is written in the cell, in the end
        if (!cell) return made;
        made.style.background = cell[0];
        made.style.color = cell[3];
        made.textContent = cell[1];
        return made;
      });
    });
    if (kept && this.cells[kept.row]?.[kept.column]) this.cells[kept.row][kept.column].focus({ preventScroll: true });
  }

  drawLegend() {
    const { kinds, scale, ends } = this.data;
    this.legend.replaceChildren();
    for (const [colour, name] of kinds ?? []) {
      const kind = element("span", "kind", this.legend);
      element("i", "", kind).style.background = colour;
      element("span", "", kind).textContent = name;
    }
    if (!scale) return;
    element("span", "", this.legend).textContent = ends[0];
    const stops = scale.map(([at, colour]) => `${colour} ${at * 100}%`).join(", ");
    element("span", "scale", this.legend).style.background = `linear-gradient(90deg, ${stops})`;
    element("span", "", this.legend).textContent = ends[1];
  }

  setMark(mark) {
    if (this.mark) this.cells[this.mark.row]?.[this.mark.column]?.removeAttribute("aria-selected");
    this.mark = mark && this.cells[mark.row]?.[mark.column] ? mark : null;
    if (this.mark) this.cells[mark.row][mark.column].setAttribute("aria-selected", "true");
    if (!this.grid.contains(this.root.getRootNode().activeElement)) this.rove(this.mark ?? { row: 0, column: 0 });
  }

  // One cell is reached by Tab, the others by arrows from there.
  rove({ row, column }) {
    this.grid.querySelectorAll('[tabindex="0"]').forEach((cell) => (cell.tabIndex = -1));
    const cell = this.cells[row]?.[column];
    if (cell) cell.tabIndex = 0;
    return cell;
  }

  placeOf(target) {
    const cell = target.closest?.(".cell");
    return cell ? { row: Number(cell.dataset.row), column: Number(cell.dataset.column) } : null;
  }

  pick(place) {
    if (!place || !this.data.cells[place.row][place.column]) return;
    this.setMark(place);
    this.rove(place);
    this.send({ ...place, version: this.version });
  }

  key(event) {
    const now = this.placeOf(event.target);
    if (!now || event.metaKey || event.altKey) return;
    const rows = this.cells.length - 1, columns = this.cells[0].length - 1, next = { ...now };
    if (event.key === "ArrowRight") next.column = Math.min(columns, now.column + 1);
    else if (event.key === "ArrowLeft") next.column = Math.max(0, now.column - 1);
    else if (event.key === "ArrowDown") next.row = Math.min(rows, now.row + 1);
    else if (event.key === "ArrowUp") next.row = Math.max(0, now.row - 1);
    else if (event.key === "Home") { next.column = 0; if (event.ctrlKey) next.row = 0; }
    else if (event.key === "End") { next.column = columns; if (event.ctrlKey) next.row = rows; }
    else if (event.key === "Enter" || event.key === " ") this.pick(now);
    else if (event.key === "Escape") this.tip.hidden = true;
    else return;
    event.preventDefault();
    if (next.row !== now.row || next.column !== now.column) this.rove(next).focus();
  }

  tell(place) {
    const cell = place && this.data.cells[place.row][place.column];
    this.tip.hidden = !cell;
    if (!cell) return;
    this.tip.replaceChildren();
    for (const line of cell[2].split("\n")) element("div", "", this.tip).textContent = line;
    const whole = this.root.getBoundingClientRect(), box = this.cells[place.row][place.column].getBoundingClientRect();
    const wide = this.tip.offsetWidth, right = box.right - whole.left + 10, left = box.left - whole.left - wide - 10;
    const beside = right + wide <= whole.width ? right : left; // no room on either side: under the cell
    const middle = (box.left + box.right) / 2 - whole.left - wide / 2;
    this.tip.style.left = `${beside >= 0 ? beside : Math.max(0, Math.min(whole.width - wide, middle))}px`;
    this.tip.style.top = `${beside >= 0 ? box.top - whole.top - 6 : box.bottom - whole.top + 8}px`;
  }

  // For a paper: cells as narrow as the column asks for, without their letters where there is no room.
  async paperSvg(width) {
    const { data } = this, room = width - 12 - this.gutter - GAP * data.breaks.length;
    return this.sheet(Math.max(5, Math.min(40, room / data.columns.length)), 6);
  }

  async save() { await download(await dots(this.sheet(34, 14)), `${this.data.name}.png`); }

  // Names, cells and legend as one picture.
  sheet(wide, pad) {
    const { data } = this, line = TALL + 2, made = [];
    const style = getComputedStyle(this.root), ground = style.getPropertyValue("--st-background-color");
    const left = (column) => this.gutter + column * wide + GAP * data.breaks.filter((at) => at <= column).length;
    const measure = document.createElement("canvas").getContext("2d");
    measure.font = `12px ${style.fontFamily}`;
    const text = (x, y, words, looks) => `<text x="${x}" y="${y + 4}" ${looks}>${escaped(words)}</text>`;
    const box = (x, y, across, down, colour) => `<rect x="${x}" y="${y}" width="${across}" height="${down}" style="fill: ${colour}"/>`;
    const said = data.kinds ?? [[data.scale[0][1], data.ends[0]], [data.scale.at(-1)[1], data.ends[1]]];
    const across = Math.max(left(data.columns.length), 160);
    let x = 0, y = 0; // of the legend's entries, over as many lines as they need
    for (const [colour, name] of said) {
      const room = 34 + measure.measureText(name).width;
      if (x && x + room > across) { x = 0; y += 20; }
      made.push(box(x, y, 12, 12, colour), text(x + 18, y + 6, name, 'font-size="12"'));
      x += room;
    }
    const high = y + 30, every = Math.ceil(14 / wide); // numbers that would overlap are left out
    data.columns.forEach((name, column) => {
      if (column % every === 0 || Number.isNaN(Number(name))) made.push(text(left(column) + wide / 2, high + TALL / 2, name, 'text-anchor="middle"'));
    });
    data.cells.forEach((row, number) => {
      const top = high + line * (number + 1);
      made.push(text(this.gutter - 7, top + TALL / 2, data.rows[number], 'text-anchor="end"'));
      row.forEach((cell, column) => {
        if (!cell) return;
        made.push(box(left(column), top, wide - Math.min(2, wide / 8), TALL, cell[0]));
        if (wide > 6 * cell[1].length) made.push(text(left(column) + wide / 2 - 1, top + TALL / 2, cell[1], `text-anchor="middle" style="fill: ${cell[3]}"`));
      });
    });
    const [whole, tall] = [across + 2 * pad, high + line * (data.rows.length + 1) + 2 * pad];
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${whole} ${tall}" width="${whole}" height="${tall}" font-family="${escaped(style.fontFamily)}" font-size="11" fill="${style.color}"><rect width="${whole}" height="${tall}" style="fill: ${ground}"/><g transform="translate(${pad} ${pad})">${made.join("")}</g></svg>`;
  }
}
