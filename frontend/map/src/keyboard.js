// The map by keys, while its box has the focus: a cursor that goes from point to point, zoom, choosing, clearing.

export const HELP = "Arrow keys move from point to point (with Shift in larger steps), Enter opens the document, plus and minus zoom, F fits the chosen heads, 0 shows the whole map, Escape clears the selection.";
export const SHORT_HELP = "Arrow keys: next point · Enter: open · + −: zoom · F: fit · 0: whole map · Esc: clear";
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEP = 3; // pixels at least: in a cloud every press is to be seen
const LEAP = 60;
const ZOOM = 1.5;

export function listenToKeys(box, ask) {
  let cursor = -1;

  const drop = () => {
    cursor = -1;
    ask.hide();
  };
  const zoom = (factor) => ask.zoom(factor, ...(cursor < 0 ? ask.centre() : ask.spot(cursor)));
  const acts = {
    Enter: () => cursor >= 0 && ask.choose(cursor),
    "+": () => zoom(ZOOM),
    "=": () => zoom(ZOOM),
    "-": () => zoom(1 / ZOOM),
    0: () => ask.whole(),
    f: () => ask.fit(),
    Escape: () => {
      drop();
      ask.clear();
    },
  };

  box.addEventListener("keydown", (event) => {
    if (event.target !== box || event.ctrlKey || event.metaKey || event.altKey || !ask.ready()) return;
    const direction = DIRECTIONS[event.key];
    if (!direction && !acts[event.key]) return;
    event.preventDefault();
    if (!direction) {
      acts[event.key]();
      return;
    }
    // The first key shows where the cursor is, as in the heat map.
    const next = cursor < 0 ? ask.start() : ask.towards(ask.spot(cursor), direction, event.shiftKey ? LEAP : STEP);
    if (next < 0) return;
    cursor = next;
    ask.show(cursor);
  });
  box.addEventListener("blur", drop);
  return { cursor: () => cursor, drop };
}
