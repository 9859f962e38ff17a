// Saves a figure as a picture, or as a file for a paper. Plotly's own toolbar knows one format; its download button is
// pressed with the format asked for, so that the picture is Plotly's own work and nothing leaves the browser. For a
// paper the SVG is caught on its way to the disk: it gets its fonts and caption, or becomes a PDF (paper/paper.js).

export default function picture({ parentElement, data }) {
  const one = (name) => parentElement.querySelector(name);
  one(".caption").textContent = captionNow(data);
  for (const button of parentElement.querySelectorAll("button[data-format]")) {
    button.onclick = async () => {
      one(".problem").textContent = "";
      one(".caption").textContent = captionNow(data);
      try {
        await save(data, button.dataset.format, one("select").value);
      } catch (error) {
        console.error(error);
        one(".problem").textContent = "The figure could not be saved. Reload the page and try again.";
      }
    };
    button.disabled = false; // until now a press would have been lost
  }
  const copy = one(".copy");
  copy.onclick = async () => {
    const done = await copied(captionNow(data));
    copy.textContent = done ? "Copied" : "Select the text and copy it";
    clearTimeout(copy.later);
    copy.later = setTimeout(() => { copy.textContent = "Copy caption"; }, 2500);
  };
  copy.disabled = false;
}

// A figure that only this page draws is made again by its address, which changes without the server.
function captionNow({ caption, by_address }) {
  return by_address ? `${caption} ${window.location.pathname}${window.location.search}` : caption;
}

async function chartOf(figure) {
  for (let tries = 0; tries < 25; tries += 1) {
    const chart = document.querySelector(`.st-key-${CSS.escape(figure)} .js-plotly-plot`);
    if (chart?.querySelector(".modebar-btn")) return chart;
    await new Promise((resolve) => setTimeout(resolve, 200)); // Plotly is still on its way
  }
  throw new Error(`There is no figure ${figure}.`);
}

async function save(data, format, width) {
  const own = window.headscopeFigures?.get(data.own); // not Plotly's: it draws its own picture
  const chart = own?.root.isConnected ? null : await chartOf(data.figure);
  if (format === "png") {
    if (chart) press(chart, { format, filename: data.name, scale: 2 });
    else await own.save();
    return;
  }
  const { paper, pixelsOf, saveAs } = await import(new URL("paper/paper.js", document.baseURI));
  const svg = chart ? await plotted(chart, data.name, pixelsOf(width, chart._fullLayout)) : await own.paperSvg(pixelsOf(width));
  const about = { title: data.name, caption: captionNow(data), creator: data.creator };
  saveAs(await paper(svg, format, width, about), `${data.name}.${format}`);
}

function plotted(chart, filename, width) {
  return caught(chart, { filename, format: "svg", scale: 1, width, height: chart._fullLayout.height });
}

function press(chart, options) {
  const button = chart.querySelector('.modebar-btn[data-attr="toImage"], .modebar-btn[data-title^="Download"]');
  const before = chart._context.toImageButtonOptions;
  chart._context.toImageButtonOptions = options;
  button.dispatchEvent(new MouseEvent("click"));
  chart._context.toImageButtonOptions = before;
}

// The text of the file that Plotly would have saved.
function caught(chart, options) {
  return new Promise((resolve, reject) => {
    const file = `${options.filename}.${options.format}`;
    const end = (then, what) => {
      clearTimeout(late);
      document.removeEventListener("click", take, true);
      then(what);
    };
    const take = (event) => {
      const link = event.target.closest?.("a[download]");
      if (link?.download !== file) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      fetch(link.href).then((answer) => answer.text()).then((text) => end(resolve, text), (error) => end(reject, error));
    };
    const late = setTimeout(() => end(reject, new Error("Plotly did not answer.")), 30_000);
    document.addEventListener("click", take, true);
    press(chart, options);
  });
}
