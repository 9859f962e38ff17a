"""The findings in front: cards side by side, each a sentence, its number, a small picture and a link."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from core.analysis.aspect_findings import AspectRows
from core.analysis.headlines import Headline, headlines
from core.errors import Mistake
from core.runs.run import Run
from core.runs.tables import Row, Tables
from pages.explore.overview.pictures import STYLE, picture
from pages.shared.aspects import aspect_rows
from pages.shared.data import RunState, tables
from pages.shared.findings import caution_findings
from pages.shared.glossary import why
from pages.shared.notices import show_problem, shows_mistakes
from pages.shared.run_version import FIGURES, version_of
from pages.shared.section import SEE
from pages.shared.show import theme
from pages.shared.text import plain, safe
from pages.shared.whose import term_rows

_CARDS = """
<style>
.st-key-findings { display: grid !important; gap: .8rem !important; align-items: stretch;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, max(17rem, 30%)), 1fr)); }
.st-key-findings > * { width: auto !important; min-width: 0 !important; max-width: none !important; }
.hs-story h3 { font-size: .95rem; font-weight: 650; padding: 0; margin: 0 0 .1rem; }
.hs-story .hs-number { font-size: 1.5rem; font-weight: 650; line-height: 1.25; font-variant-numeric: tabular-nums; }
.hs-story .hs-number small { font-size: .8rem; font-weight: 400; margin-left: .45rem; }
.hs-story .hs-against { font-size: .8rem; opacity: .85; margin-bottom: .35rem; }
.hs-story p { margin: .45rem 0 0; line-height: 1.4; font-size: .92rem; overflow-wrap: anywhere; }
</style>
"""
_PAGES = {
    "specialisation": ("pages/understand/stages/page.py", "Stages"),
    "heads": ("pages/explore/head_profile/page.py", "Head profile"),
    "aspects": ("pages/understand/aspects/page.py", "Aspects"),
    "redundancy": ("pages/understand/stages/page.py", "Stages"),
    "layers": ("pages/understand/layers/page.py", "Layers"),
}
"""Where a headline can be seen in full."""


@shows_mistakes
def story(state: RunState) -> None:
    """What was found, first what cannot be concluded; findings that are not there are a line each."""
    if not state.analysed:
        return
    st.subheader("Findings", help=why("random slices", "topic match", "CKA", "aspect"), anchor="findings")
    caution_findings(state)
    assert state.manifest is not None
    none: AspectRows = {}
    aspects = _or_nothing(lambda: aspect_rows(state), none)
    layers: list[Row] = _or_nothing(lambda: term_rows(state, "layer_null_summary"), [])
    version = version_of(state.manifest, (*FIGURES, "aspects", "layers"))
    every = _headlines(state.run, f"{version}/{len(aspects)}/{len(layers)}", tables(state), aspects, layers)
    shown = [one for one in every if one.number]
    st.html(_CARDS + STYLE)
    with st.container(horizontal=True, key="findings"):
        for one in shown:
            with st.container(border=True, height="stretch", gap="xsmall"):
                _card(one)
    if missing := [one for one in every if not one.number]:
        st.markdown("\n".join(f"- **{plain(one.title)}** {plain(one.sentence)}" for one in missing))


def _card(one: Headline) -> None:
    drawn = picture(one.picture, one.alt, theme()) if one.picture is not None else ""
    st.html(
        f'<div class="hs-story"><h3>{safe(one.title)}</h3><div class="hs-number">{safe(one.number)}'
        f'<small>{safe(one.spread)}</small></div><div class="hs-against">{safe(one.against)}</div>{drawn}'
        f"<p>{safe(one.sentence)}</p></div>"
    )
    page, label = _PAGES[one.about]
    asked = {name: value for name, value in st.query_params.items() if name == "run"} | one.at
    if one.about == "redundancy":  # far down its page
        asked[SEE] = "redundant-heads"
    st.page_link(page, label=f"See it on {label}", icon=":material/arrow_forward:", query_params=asked)


@st.cache_resource(max_entries=16, show_spinner=False)
def _headlines(run: Run, version: str, _tables: Tables, _aspects: AspectRows, _layers: list[Row]) -> list[Headline]:
    return headlines(_tables, _aspects, _layers)


Read = TypeVar("Read")


def _or_nothing(read: Callable[[], Read], nothing: Read) -> Read:
    """What is read; a damaged file of one step is reported, and costs its own headline alone."""
    try:
        return read()
    except Mistake as mistake:
        show_problem(mistake)
        return nothing
