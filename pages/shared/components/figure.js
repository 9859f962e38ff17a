// The drawing is done by a script that all figures of a page share (server/figures.js).
const drawing = import(new URL("figures.js", document.baseURI));

export default function ({ parentElement, data, setStateValue }) {
  const root = parentElement.querySelector(".hs-figure");
  drawing.then(({ show }) => show(root, data, setStateValue));
  return () => drawing.then(({ remove }) => remove(root));
}
