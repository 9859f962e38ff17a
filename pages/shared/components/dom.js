// What the components share: elements, and pictures as files. It goes before a component's own script (mount.py).

export function element(tag, kind, parent) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  parent.append(made);
  return made;
}

/** Tells the page that a component has its height: what is below it waits for that (index_page.py). */
export function noteDrawn(root) {
  root.getRootNode().host?.closest("[data-testid=stElementContainer]")?.setAttribute("data-drawn", "");
}

export function download(canvas, name) {
  return new Promise((resolve) => {
    canvas.toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      resolve();
    }, "image/png");
  });
}

// A picture as SVG, drawn as dots: twice as many as the screen's points.
export function dots(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  return image.decode().then(() => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.round(image.width * 2), Math.round(image.height * 2)];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas;
  });
}

export function escaped(text) {
  return String(text).replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

// Where Save finds the pictures that are not Plotly's: each has ``save()`` and ``paperSvg(width)``.
export function offerPicture(name, picture) {
  (window.headscopeFigures ??= new Map()).set(name, picture);
}
