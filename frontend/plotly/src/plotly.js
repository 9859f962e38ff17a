// Scatter is part of the core. The kinds of traces that the app draws, and no others: the whole of Plotly takes a
// browser more than ten times as long to start.
import Plotly from "plotly.js/lib/core";
import bar from "plotly.js/lib/bar";
import box from "plotly.js/lib/box";
import heatmap from "plotly.js/lib/heatmap";
import waterfall from "plotly.js/lib/waterfall";

Plotly.register([bar, box, heatmap, waterfall]);

export default Plotly;
