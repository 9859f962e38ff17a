// Saves a Plotly figure as a picture. Plotly's own toolbar knows one format; its download button is pressed with the
// format asked for, so that the picture is Plotly's own work and nothing leaves the browser.

export default function picture({ parentElement, data }) {
  for (const button of parentElement.querySelectorAll("button")) {
    button.onclick = () => save(data, button.dataset.format);
    button.disabled = false; // until now a press would have been lost
  }
}

function save({ figure, name }, format, tries = 25) {
  const chart = document.querySelector(`.st-key-${CSS.escape(figure)} .js-plotly-plot`);
  const press = chart?.querySelector('.modebar-btn[data-attr="toImage"], .modebar-btn[data-title^="Download"]');
  if (!press) {
    if (tries) setTimeout(() => save({ figure, name }, format, tries - 1), 200); // Plotly is still on its way
    return;
  }
  const before = chart._context.toImageButtonOptions;
  chart._context.toImageButtonOptions = { format, filename: name, scale: format === "png" ? 2 : 1 };
  press.dispatchEvent(new MouseEvent("click"));
  chart._context.toImageButtonOptions = before;
}
