// A part whose script is on its way is a grey bar, and a picture of ours is blank until its own script has drawn it.
// Until then the place of all that follows is unknown: what is late is marked, and the style does not paint what follows
// (index_page.py). The style could look for itself with :has(); the browser would do so again for every text that
// Plotly measures.
{
  let marked = new Set();
  const has = (part) => document.querySelector(`[data-testid="${part}"]`) !== null;

  const mark = () => {
    const late = new Set();
    for (const part of document.querySelectorAll(LATE)) {
      for (let at = part; at; at = at.parentElement) {
        if (at.parentElement?.matches(BLOCK) && !at.matches(IN_PLACE) && !at.querySelector(IN_PLACE)) late.add(at);
      }
    }
    for (const at of marked) if (!late.has(at)) at.removeAttribute("data-late");
    for (const at of late) if (!marked.has(at)) at.setAttribute("data-late", "");
    marked = late;
    document.documentElement.toggleAttribute("data-sidebar", has("stSidebar"));
    document.documentElement.toggleAttribute("data-navigation", has("stSidebarNav"));
  };

  // It is called before anything is painted.
  const seen = { childList: true, subtree: true, attributeFilter: ["class", "data-drawn", "data-testid", "height"] };
  new MutationObserver(mark).observe(document, seen);
}
