// Thousands of points in one figure (scattergl), for the page that has them.
import scattergl from "plotly.js/lib/scattergl";
import Plotly from "./plotly.js";

Plotly.register([scattergl]);
