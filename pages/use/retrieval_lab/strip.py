"""A strip that stays in view: how good the kept heads are on all queries, whatever part of the page is looked at."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.shared.text import safe
from pages.shared.theme import BORDER, GROUND
from pages.use.retrieval_lab.state import LabView, Standing

_KEY = "lab-strip"
_STYLE = """<style>
div:has(> .st-key-KEY), .st-key-KEY { position: sticky; top: 0; z-index: 90; }
.st-key-KEY { background: GROUND; border-bottom: 1px solid BORDER; gap: 0; }
.hs-strip { display: flex; flex-wrap: wrap; gap: .1rem 2rem; padding: .6rem 0; min-height: 2.9rem;
  align-items: baseline; font-variant-numeric: tabular-nums; }
.hs-strip b { font-size: 1.15em; }
.hs-strip small { opacity: .85; }
@media (max-width: 768px) {  /* there the header is not see-through */
  div:has(> .st-key-KEY), .st-key-KEY { top: 3.75rem; }
  .hs-strip { gap: 0 1rem; padding: .3rem 0; font-size: .9em; }
}
</style>"""


def strip_place() -> DeltaGenerator:
    """Where it is drawn, before what it says is known."""
    place = st.container(key=_KEY)
    style = _STYLE.replace("KEY", _KEY).replace("GROUND", _of_either(GROUND)).replace("BORDER", _of_either(BORDER))
    place.html(style)
    return place


def _of_either(colours: dict[str, str]) -> str:
    """The browser chooses: a reader may change the theme, and nothing is run again then."""
    return f"light-dark({colours['light']}, {colours['dark']})"


def strip(shown: LabView) -> None:
    """The task's metric with the kept heads, the difference from all heads with its 95 % CI, and how many are kept."""
    kept, heads = int((shown.weights > 0).sum()), len(shown.weights)
    parts = [f'<span data-part="heads">kept heads <b>{kept} of {heads}</b></span>']
    if shown.task is not None:
        found = Standing.of(shown)
        parts = [
            f'<span data-part="metric">{safe(shown.metric)} <b>{found.value:.3f}</b></span>',
            f'<span data-part="difference">against all heads <b>{signed(found.difference)}</b> '
            f"<small>(95 % CI {signed(found.low)} to {signed(found.high)})</small></span>",
            *parts,
            f"<small>stage {shown.stage}, {safe(shown.ways[0])}, {found.queries:,} "
            f"{'query' if found.queries == 1 else 'queries'}</small>",
        ]
    st.html(f'<div class="hs-strip" role="status">{"".join(parts)}</div>')


def empty_strip(sentence: str) -> None:
    st.html(f'<div class="hs-strip" role="status"><span>{safe(sentence)}</span></div>')


def signed(value: float) -> str:
    """Three decimals with a sign, a real minus; a rounded zero has none."""
    return "0.000" if abs(value) < 0.0005 else f"{value:+.3f}".replace("-", "−")
