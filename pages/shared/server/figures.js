// Stands before Plotly's script (front_end.py). That script takes half a second to start and every figure a tenth or
// two, in which a browser does nothing else. So the app's own pictures come first, then the figures on the screen, then the
// others, one by one, when the browser is idle or somebody scrolls to them.
const BLANK = ':is(.st-key-heat-map, [class*="st-key-hs-grid-"]):not([data-drawn])'; // as in index_page.py
const HELD = '[data-testid="stFullScreenFrame"]:empty:not([data-near])';
const PATIENCE = 3000; // ms that Plotly waits for a picture of ours

// A tab in the background has no frames.
const frame = () => new Promise((done) => { requestAnimationFrame(done); setTimeout(done, 100); });
const idle = () =>
  new Promise((done) => { window.requestIdleCallback ? requestIdleCallback(done, { timeout: 1000 }) : setTimeout(done, 50); });

// Streamlit draws nothing into a frame that has no width; the frame's place has its height already.
const style = document.createElement("style");
style.textContent = `${HELD} { width: 0 !important; }`;
document.head.append(style);

const release = (held) => { held.dataset.near = ""; near.unobserve(held); };
const near = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => release(entry.target)),
  { rootMargin: "25%" },
);
const isOnScreen = ({ top, bottom, width }) => width > 0 && top < innerHeight && bottom > 0;

let busy = false;
async function drawTheRest() {
  if (busy) return;
  busy = true;
  for (let held; (held = document.querySelector(HELD)); release(held)) {
    await frame();
    await frame();
    await idle();
  }
  busy = false;
}

new MutationObserver(() => {
  const held = [...document.querySelectorAll(HELD)];
  held.filter((each) => isOnScreen(each.parentElement.getBoundingClientRect())).forEach(release);
  const others = held.filter((each) => !("near" in each.dataset));
  others.forEach((each) => near.observe(each));
  if (others.length) drawTheRest();
}).observe(document, { childList: true, subtree: true });
window.addEventListener("beforeprint", () => document.querySelectorAll(HELD).forEach(release));

const began = performance.now();
do await frame();
while (document.querySelector(BLANK) && performance.now() - began < PATIENCE);
await frame(); // the picture is drawn, but not on the screen yet
await frame();

export const { default: PlotlyChart } = await import("headscope/plotly");
export default PlotlyChart;
