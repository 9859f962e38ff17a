// Stands before Plotly's script (front_end.py). That script takes half a second to start and every figure a tenth or
// two, in which a browser does nothing else: the app's own pictures come first.
const BLANK = ':is(.st-key-heat-map, [class*="st-key-hs-grid-"]):not([data-drawn])'; // as in index_page.py
const PATIENCE = 3000; // ms

// A tab in the background has no frames.
const frame = () => new Promise((done) => { requestAnimationFrame(done); setTimeout(done, 100); });

const began = performance.now();
do await frame();
while (document.querySelector(BLANK) && performance.now() - began < PATIENCE);
await frame(); // the picture is drawn, but not on the screen yet
await frame();

export const { default: PlotlyChart } = await import("headscope/plotly");
export default PlotlyChart;
