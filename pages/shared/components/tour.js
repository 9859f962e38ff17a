// The tour's step on this page. Whether it has begun or is closed is remembered in this browser alone; a reader whose
// first page is not the first step's is left in peace.

const KEY = "headscope: tour";
const CLOSED = "closed";
const BEGUN = "begun";

export default function tour({ data, parentElement }) {
  const panel = parentElement.querySelector(".tour");
  if (data.asked > (window.headscopeTourAsked ?? 0)) remember(BEGUN);
  window.headscopeTourAsked = data.asked;
  const at = data.steps.findIndex((step) => step.page === data.page);
  const state = recalled();
  panel.hidden = at < 0 || state === CLOSED || (at > 0 && state !== BEGUN);
  if (panel.hidden || panel.dataset.step === String(at)) return;
  panel.dataset.step = String(at);
  const step = data.steps[at];
  const following = data.steps[at + 1];
  const close = () => {
    remember(CLOSED);
    panel.hidden = true;
    delete panel.dataset.step;
  };
  panel.replaceChildren(
    written("div", `Step ${at + 1} of ${data.steps.length}`, "steps"),
    written("h2", step.title),
    written("p", step.text),
    row(following ? link(step.next, following.address) : button(step.next, close), button(following ? "Skip the tour" : "Close", close)),
  );
  if (!following) panel.querySelector(".row").lastChild.remove(); // it ends here: one button does
  panel.onkeydown = (event) => event.key === "Escape" && close();
}

function written(kind, text, name = "") {
  const element = document.createElement(kind);
  element.textContent = text;
  element.className = name;
  return element;
}

function row(...parts) {
  const element = written("div", "", "row");
  element.append(...parts);
  return element;
}

function button(text, act) {
  const element = written("button", text);
  element.type = "button";
  element.onclick = act;
  return element;
}

function link(text, address) {
  const element = written("a", text);
  const goal = new URL(address, window.location.href);
  const run = new URL(window.location.href).searchParams.get("run");
  if (run) goal.searchParams.set("run", run);
  element.href = goal.href;
  element.onclick = () => remember(BEGUN);
  return element;
}

function recalled() {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return CLOSED; // a browser that forbids storage would show it on every page
  }
}

function remember(state) {
  try {
    window.localStorage.setItem(KEY, state);
  } catch {
    // nothing to be done
  }
}
