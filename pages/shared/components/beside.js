// The panel beside a picture: its close button, its height, and where the focus goes. The panel itself is a container of
// the page, filled by the server; this script lives in its first element. The focus follows the result after a key; after
// a click it stays in the picture, where arrow keys go on from what was clicked (copy_link.js, on every page, knows which).

const hub = (window.headscopeBeside ??= {}); // by name: how many gestures have been answered
const panels = new WeakMap(); // one a container: a rerun of the page finds it as it was
const WIDE = window.matchMedia("(min-width: 1100px)");
const TOP = 64, LEAST = 320, ENOUGH = 560, MARGIN = 16; // pixels: the app's header, heights of a panel, the air below it
const PICTURES = '[role="application"][tabindex], [role="grid"] [tabindex="0"]';

export default function beside({ data, parentElement, setTriggerValue }) {
  const button = parentElement.querySelector("button");
  const element = (parentElement.getRootNode().host ?? parentElement).closest('[class*="st-key-hs-result-"]');
  if (!element) return;
  let panel = panels.get(element);
  if (!panel) panels.set(element, (panel = new Panel(element)));
  element.setAttribute("aria-label", data.label);
  panel.close = () => {
    setTriggerValue("closed", true);
    panel.picture()?.focus();
  };
  button.onclick = panel.close;
  if (data.asked > (hub[data.name] ?? 0)) panel.open(); // a gesture has asked for it; a link has not
  hub[data.name] = Math.max(hub[data.name] ?? 0, data.asked);
}

class Panel {
  constructor(element) {
    this.element = element;
    element.setAttribute("role", "region");
    element.tabIndex = -1;
    element.addEventListener("keydown", (event) => {
      const inside = event.target === element || event.composedPath()[0]?.classList?.contains("close");
      if (event.key === "Escape" && inside) this.close();
    });
    const fit = () => (element.isConnected ? this.fit() : this.forget());
    this.sizes = new ResizeObserver(() => this.opening && this.reveal());
    this.sizes.observe(element);
    this.forget = () => {
      this.sizes.disconnect();
      window.removeEventListener("resize", fit);
      document.removeEventListener("scroll", fit, true);
    };
    window.addEventListener("resize", fit);
    document.addEventListener("scroll", fit, { capture: true, passive: true });
    this.fit();
  }

  // As high as the screen has room for it, so that no part of it is below the fold; and not much higher than the picture.
  fit() {
    const { top } = this.element.getBoundingClientRect();
    const most = Math.max(ENOUGH, this.around("picture")?.offsetHeight ?? 0);
    const room = Math.max(LEAST, Math.min(most, Math.floor(window.innerHeight - Math.max(TOP, top) - MARGIN)));
    this.element.style.setProperty("--beside-room", `${room}px`);
  }

  // What it shows comes piece by piece: it stays in view until somebody does something.
  open() {
    this.opening = true;
    const done = () => { this.opening = false; };
    for (const kind of ["wheel", "touchstart", "pointerdown", "keydown"]) window.addEventListener(kind, done, { once: true, capture: true });
    this.element.scrollTop = 0;
    this.reveal();
    if ((window.headscopeInput?.keys ?? true) || !this.right()) this.element.focus({ preventScroll: true });
  }

  reveal() {
    this.fit();
    this.element.scrollIntoView({ block: this.right() ? "nearest" : "start" });
  }

  // Whether it is to the right of the picture, not below it.
  right() {
    return WIDE.matches && !this.element.closest('[class*="st-key-hs-beside-"][class*="-below"]');
  }

  around(what) {
    return this.element.closest('[class*="st-key-hs-beside-"]')?.querySelector(`[class*="st-key-hs-${what}-"]`);
  }

  // What takes the keys in the picture: components live in shadow roots.
  picture() {
    for (const host of this.around("picture")?.querySelectorAll("*") ?? []) {
      const found = host.shadowRoot?.querySelector(PICTURES);
      if (found) return found;
    }
    return null;
  }
}
