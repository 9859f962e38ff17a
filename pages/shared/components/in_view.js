// Scrolls to where it stands, once for every press, and gives it the focus. What is around it may still be on its way, so
// it stays in view while the page grows, until the reader moves.

const MOST = 8000; // milliseconds
const seen = (window.headscopeInView ??= {});

export default function inView({ data, parentElement }) {
  if (data.press <= (seen[data.name] ?? 0)) return;
  seen[data.name] = data.press;
  const host = parentElement.getRootNode().host ?? parentElement;
  host.style.scrollMarginTop = window.innerWidth > 768 ? "4.5rem" : "9rem"; // below a header and a strip that stay in view
  host.style.outline = "none";
  host.tabIndex = -1;
  const show = () => host.isConnected && host.scrollIntoView({ block: "start" });
  const grows = new ResizeObserver(show);
  const main = host.closest("[data-testid=stMainBlockContainer]");
  if (main) grows.observe(main);
  const end = () => grows.disconnect();
  for (const kind of ["wheel", "touchstart", "pointerdown", "keydown"]) window.addEventListener(kind, end, { once: true, passive: true });
  setTimeout(end, MOST);
  host.focus({ preventScroll: true });
  show();
}
