// Every head is a switch and a weight. What is set here counts at once; the server is told a moment later, and an answer
// to something older does not take it back.

const own = new WeakMap(); // one desk an element
const WAIT = 150; // milliseconds without another change
const MOST = 99;

export default function headDesk({ data, parentElement, setTriggerValue }) {
  let desk = own.get(parentElement);
  if (!desk) own.set(parentElement, (desk = { press: -1, built: null, before: [] }));
  desk.send = (given) => setTriggerValue("set", given);
  const root = parentElement.querySelector(".hs-desk");
  if (desk.built !== data.version) build(desk, root, data);
  if (data.press >= desk.press) {
    desk.press = data.press;
    desk.weights = data.weights.slice();
    show(desk);
  }
  root.dataset.press = String(data.press); // for whoever drives the page
}

function build(desk, root, data) {
  desk.built = data.version;
  desk.press = -1;
  desk.weights = data.weights.slice();
  desk.before = data.weights.map((weight) => weight || 1);
  desk.tiles = [];
  desk.groups = [];
  root.replaceChildren();
  data.groups.forEach((heads, number) => {
    const box = element("div", "group", root);
    if (data.grouped) {
      const all = element("button", "all", box);
      all.type = "button";
      all.textContent = `Group ${number + 1}`;
      all.title = "Switch the heads that share this key/value head together";
      all.addEventListener("click", () => {
        const on = heads.every((head) => desk.weights[head] > 0);
        heads.forEach((head) => turn(desk, head, !on));
        change(desk);
      });
      desk.groups.push({ all, heads });
    }
    const row = element("div", "heads", box);
    heads.forEach((head) => (desk.tiles[head] = tile(desk, row, head, data)));
  });
}

function tile(desk, row, head, data) {
  const box = element("div", "tile", row);
  box.style.setProperty("--own", data.colours[head]);
  const chip = element("button", "chip", box);
  chip.type = "button";
  chip.textContent = String(head + 1);
  chip.title = data.labels[head];
  chip.setAttribute("aria-label", `Head ${head + 1}. ${data.labels[head]}`);
  chip.dataset.head = String(head + 1);
  chip.addEventListener("click", () => {
    turn(desk, head, !(desk.weights[head] > 0));
    change(desk);
  });
  const weight = element("input", "weight", box);
  Object.assign(weight, { type: "number", min: "0", max: String(MOST), step: "0.1", inputMode: "decimal" });
  weight.setAttribute("aria-label", `Weight of head ${head + 1}`);
  weight.addEventListener("input", () => {
    const value = Number.parseFloat(weight.value);
    if (!Number.isFinite(value)) return; // an empty box while somebody types
    desk.weights[head] = Math.min(MOST, Math.max(0, Math.round(value * 100) / 100));
    if (desk.weights[head] > 0) desk.before[head] = desk.weights[head];
    change(desk, weight);
  });
  weight.addEventListener("blur", () => show(desk));
  return { chip, weight };
}

function turn(desk, head, on) {
  if (on === desk.weights[head] > 0) return;
  desk.weights[head] = on ? desk.before[head] : 0;
}

function change(desk, typing) {
  show(desk, typing);
  clearTimeout(desk.timer);
  desk.press += 1;
  desk.timer = setTimeout(() => desk.send({ weights: desk.weights, press: desk.press }), WAIT);
}

function show(desk, typing) {
  desk.tiles.forEach(({ chip, weight }, head) => {
    const on = desk.weights[head] > 0;
    chip.setAttribute("aria-pressed", String(on));
    // What somebody is typing is not written over.
    if (weight !== typing && weight !== weight.getRootNode().activeElement) weight.value = String(desk.weights[head]);
    weight.classList.toggle("off", !on);
  });
  desk.groups.forEach(({ all, heads }) => {
    const on = heads.filter((head) => desk.weights[head] > 0).length;
    all.setAttribute("aria-pressed", on === heads.length ? "true" : on ? "mixed" : "false");
  });
}

function element(tag, name, parent) {
  const made = document.createElement(tag);
  made.className = name;
  parent.append(made);
  return made;
}
