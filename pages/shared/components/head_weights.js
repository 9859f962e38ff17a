// Every head is a switch and a weight. What is set here counts at once; the server is told a moment later, and an answer
// to something older does not take it back.

const own = new WeakMap(); // one panel per element
const WAIT = 150; // milliseconds without another change
const MOST = 99;

export default function headWeights({ data, parentElement, setTriggerValue }) {
  let panel = own.get(parentElement);
  if (!panel) own.set(parentElement, (panel = { press: -1, built: null, before: [] }));
  panel.send = (given) => setTriggerValue("set", given);
  const root = parentElement.querySelector(".hs-head-weights");
  if (panel.built !== data.version) build(panel, root, data);
  if (data.press >= panel.press) {
    panel.press = data.press;
    panel.weights = data.weights.slice();
    show(panel);
  }
  root.dataset.press = String(data.press); // for whoever drives the page
}

function build(panel, root, data) {
  panel.built = data.version;
  panel.press = -1;
  panel.weights = data.weights.slice();
  panel.before = data.weights.map((weight) => weight || 1);
  panel.tiles = [];
  panel.groups = [];
  root.replaceChildren();
  data.groups.forEach((heads, number) => {
    const box = element("div", "group", root);
    if (data.grouped) {
      const all = element("button", "all", box);
      all.type = "button";
      all.textContent = `Group ${number + 1}`;
      all.title = "Switch the heads that share this key/value head together";
      all.addEventListener("click", () => {
        const on = heads.every((head) => panel.weights[head] > 0);
        heads.forEach((head) => turn(panel, head, !on));
        change(panel);
      });
      panel.groups.push({ all, heads });
    }
    const row = element("div", "heads", box);
    heads.forEach((head) => (panel.tiles[head] = tile(panel, row, head, data)));
  });
}

function tile(panel, row, head, data) {
  const box = element("div", "tile", row);
  box.style.setProperty("--own", data.colours[head]);
  box.style.setProperty("--ink", data.inks[head]);
  const chip = element("button", "chip", box);
  chip.type = "button";
  chip.textContent = String(head + 1);
  chip.title = data.labels[head];
  chip.setAttribute("aria-label", `Head ${head + 1}. ${data.labels[head]}`);
  chip.dataset.head = String(head + 1);
  chip.addEventListener("click", () => {
    turn(panel, head, !(panel.weights[head] > 0));
    change(panel);
  });
  const weight = element("input", "weight", box);
  Object.assign(weight, { type: "number", min: "0", max: String(MOST), step: "0.1", inputMode: "decimal" });
  weight.setAttribute("aria-label", `Weight of head ${head + 1}`);
  weight.addEventListener("input", () => {
    const value = Number.parseFloat(weight.value);
    if (!Number.isFinite(value)) return; // an empty box while somebody types
    panel.weights[head] = Math.min(MOST, Math.max(0, Math.round(value * 100) / 100));
    if (panel.weights[head] > 0) panel.before[head] = panel.weights[head];
    change(panel, weight);
  });
  weight.addEventListener("blur", () => show(panel));
  return { chip, weight };
}

function turn(panel, head, on) {
  if (on === panel.weights[head] > 0) return;
  panel.weights[head] = on ? panel.before[head] : 0;
}

function change(panel, typing) {
  show(panel, typing);
  clearTimeout(panel.timer);
  panel.press += 1;
  panel.timer = setTimeout(() => panel.send({ weights: panel.weights, press: panel.press }), WAIT);
}

function show(panel, typing) {
  panel.tiles.forEach(({ chip, weight }, head) => {
    const on = panel.weights[head] > 0;
    chip.setAttribute("aria-pressed", String(on));
    // What somebody is typing is not written over.
    if (weight !== typing && weight !== weight.getRootNode().activeElement) weight.value = String(panel.weights[head]);
    weight.classList.toggle("off", !on);
  });
  panel.groups.forEach(({ all, heads }) => {
    const on = heads.filter((head) => panel.weights[head] > 0).length;
    all.setAttribute("aria-pressed", on === heads.length ? "true" : on ? "mixed" : "false");
  });
}
