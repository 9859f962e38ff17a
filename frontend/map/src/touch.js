// Fingers on the map: one moves it (in Move mode), two zoom it about the middle between them. The library listens to a
// mouse alone. What is done with one finger otherwise (a tap, a lasso) is in gestures.js, as for any pointer.

const SLOP = 8; // pixels that a finger may tremble

export function fingers(layer, ask, onSecond) {
  const down = new Map(); // pointer → where it is
  let start = null;
  let several = false;
  let moving = false;

  const at = (event) => {
    const box = layer.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const middle = ([a, b]) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  const apart = ([a, b]) => Math.max(1, Math.hypot(a[0] - b[0], a[1] - b[1]));

  layer.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" || (!ask.movable() && ask.mode() === "pan")) return;
    event.preventDefault(); // no mouse events after it, which the library would take for a drag
    if (!down.size) [several, moving, start] = [false, false, at(event)];
    down.set(event.pointerId, at(event));
    if (down.size === 2) {
      several = true;
      onSecond();
    }
  });
  layer.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId)) return;
    const before = [...down.values()];
    const position = at(event);
    if (down.size === 1) {
      moving ||= Math.hypot(position[0] - start[0], position[1] - start[1]) > SLOP;
      if (!several && ask.mode() === "pan" && !moving) return; // where it was put down counts until it has moved
    }
    down.set(event.pointerId, position);
    const now = [...down.values()];
    if (down.size === 2) {
      const [from, to] = [middle(before), middle(now)];
      ask.pan(to[0] - from[0], to[1] - from[1]);
      ask.zoom(apart(now) / apart(before), ...to);
    } else if (down.size === 1 && ask.mode() === "pan") {
      ask.pan(position[0] - before[0][0], position[1] - before[0][1]);
    }
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    layer.addEventListener(kind, (event) => down.delete(event.pointerId));
  }
  // Until every finger is up and another comes down, none of them can tap or draw.
  return { several: () => several };
}
