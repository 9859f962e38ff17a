"""A tour of three steps for first-time readers, remembered in the browser; its other half is tour.js."""

from __future__ import annotations

import streamlit as st

from pages.shared.components.mount import BUTTON_CSS, component

STEPS = [
    {
        "page": "overview",
        "address": "",
        "title": "Findings",
        "text": "Each card is a finding about this run: its number, the 95 % CI, and what random slices of the same "
        "size reach. The link on a card opens the page with the details.",
        "next": "Next: a topic's heads",
    },
    {
        "page": "topics",
        "address": "topics?tab=heads",
        "title": "From a topic to its heads",
        "text": "Choose a topic. Heads are ranked by how well they follow it; the topic's documents are beside them.",
        "next": "Next: your own text",
    },
    {
        "page": "your_document",
        "address": "your_document",
        "title": "Your own document",
        "text": "Paste a text or upload a file to see which topics each head finds in it.",
        "next": "Finish",
    },
]
"""In order; each is shown on its page, at its address."""
_ASKED = "how often the tour was asked for"
_mount = component(
    "tour",
    "tour.js",
    html='<section class="tour" aria-label="Tour" hidden></section>',
    css=BUTTON_CSS
    + """
.tour { position: fixed; right: 1rem; bottom: 1rem; z-index: 900; width: min(21rem, calc(100vw - 2rem));
  box-sizing: border-box; padding: .9rem 1rem; border-radius: 10px; background: var(--st-background-color);
  border: 1px solid var(--st-border-color); box-shadow: 0 6px 24px var(--hs-shadow); color: var(--st-text-color);
  font-family: var(--st-font); font-size: var(--hs-name); line-height: 1.45; }
.tour[hidden] { display: none; }
.tour h2 { font-size: 1rem; margin: .1rem 0 .3rem; }
.tour p { margin: 0 0 .7rem; }
.tour .steps { font-size: var(--hs-small); opacity: .8; }
.tour .row { display: flex; justify-content: space-between; align-items: center; gap: .5rem; }
.tour a { color: var(--st-link-color); font-weight: 600; }
.tour a:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
""",
)


def tour(page: str) -> None:
    """The step that belongs to ``page``, for a reader who has not closed the tour."""
    _mount(key="tour", data={"page": page, "steps": STEPS, "asked": st.session_state.get(_ASKED, 0)}, height=1)


def tour_button() -> None:
    """Starts the tour again, for whoever has closed it."""

    def ask() -> None:
        st.session_state[_ASKED] = st.session_state.get(_ASKED, 0) + 1

    st.button("Take the tour", icon=":material/explore:", type="tertiary", key="tour button", on_click=ask)
