// What a reader does is a step of the browser's history; what the page then writes into the address by itself is not.
// Streamlit makes a step of every change: choices that a page is given on arrival would be one of their own, and one
// Back would lead to the same page without them.

if (!window.headscopeHistory) {
  const state = (window.headscopeHistory = { gestures: 0, atLastStep: -1 });
  for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, () => { state.gestures += 1; }, true);
  const push = window.history.pushState.bind(window.history);
  window.history.pushState = (data, unused, url) => {
    const samePage = new URL(url, window.location.href).pathname === window.location.pathname;
    if (samePage && state.gestures === state.atLastStep) {
      window.history.replaceState(data, unused, url);
    } else {
      state.atLastStep = state.gestures;
      push(data, unused, url);
    }
  };
}
