// What the components share: elements, and a canvas as a file. It goes before a component's own script (mount.py).

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
