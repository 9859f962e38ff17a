/* Plotly.js and what it needs: licences in LICENSES.txt. Built from frontend/plotly. */
import{U as a}from"./common.js";export{a as default};
