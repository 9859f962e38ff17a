"""The parts of the Head map: the map itself, and beside it what was chosen on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.model.stages import STAGES
from core.runs.results import read_map
from pages.explore.head_map.selection import found_list, selection, value_list
from pages.explore.head_map.state import (
    MapView,
    chosen_in_address,
    decide_view,
    decided,
    linked_document,
    read_address,
    to_address,
)
from pages.shared.components.beside import asked, beside
from pages.shared.components.map import head_map, map_needs
from pages.shared.components.map_data import MOST_EXTRA, MOST_IN_VIEW, StageMap, message, stage_map
from pages.shared.controls import SEARCH_HELP, choose_stage, say_what_was_searched
from pages.shared.data import RunState, search
from pages.shared.document_list import read_document
from pages.shared.notices import shows_mistakes
from pages.shared.show import Paper, downloads
from pages.shared.url import MOST_LETTERS, choice_to_url, words_from_url

_KNOWN = "maps the browser has"


@dataclass(frozen=True)
class Found:
    """What a search brought; ``more`` where there are more documents than these."""

    words: str
    docs: np.ndarray
    more: bool


@st.fragment
@shows_mistakes
def one_map(state: RunState) -> None:
    """The map with all that is linked to it; it reruns without the rest of the page."""
    assert state.manifest is not None
    count = int(state.manifest.corpus["documents"])
    left, right = st.columns([3, 2], gap="medium")
    with left:
        stage = choose_stage(state.manifest)
    with right:
        found = _search(state)
    drawn = stage_map(state, stage)
    _say_that_density_is_shown(drawn)
    turn = decided()
    known: set[str] = st.session_state.setdefault(_KNOWN, set())
    docs = None if found is None else found.docs
    told = message(state, stage, docs, known, linked_document(count), map_needs(st.query_params.get("colour")))
    told |= {"turn": turn, "chosen": chosen_in_address(count)}
    places = beside("map")
    with places.picture:
        event = head_map(told, lambda: asked("map"))
        known |= {told["key"], told["base"], f"{told['key']}/{told.get('column')}"}
        if event.wanted:  # another tab of this session, or a message that was lost
            known.clear()
            st.rerun(scope="fragment")
        if event.picked is not None:
            to_address(event.picked)
        view = read_address(state, stage)
        _take_away(state, stage, drawn)
        if not view.chosen and found is None:
            st.caption(
                "Click a point to read its document. Draw a lasso or a box to list the documents and heads inside it."
            )
    if view.chosen or (found is not None and len(found.docs)):
        with places.result("Your selection on the map", _close):
            _results(state, drawn, view, found)


def _take_away(state: RunState, stage: int, drawn: StageMap) -> None:
    assert state.manifest is not None
    documents, heads = drawn.places.shape[:2]
    sentence = (
        f"Map (t-SNE) of {documents * heads:,} vectors at stage {stage} {STAGES[stage].name}: {heads} heads of "
        f"{documents:,} documents. Nearby points are similar vectors; axes have no unit."
    )
    downloads("head-map", lambda: read_map(state.run, stage), Paper(None, [sentence], own="head-map"))


def _results(state: RunState, drawn: StageMap, view: MapView, found: Found | None) -> None:
    """A list where an area, a legend entry or words were chosen, the document that is open, and the list's figures."""

    def document() -> None:
        if view.doc is not None:
            read_document(state, view.doc)

    if view.polygon is not None:
        selection(state, drawn, view.polygon, view.heads, document)
    elif view.value is not None:
        value_list(state, view.value)
        document()
    elif found is not None and len(found.docs):
        found_list(state, found.docs, found.words, found.more)
        document()
    else:
        document()


def _close() -> None:
    decide_view(doc="", area="", list="")
    st.session_state["words"] = ""


def _search(state: RunState) -> Found | None:
    assert state.manifest is not None
    words_from_url("words")
    given = st.text_input(
        "Highlight documents",
        key="words",
        max_chars=MOST_LETTERS,
        placeholder="words in a title or text",
        help=SEARCH_HELP,
    )
    words = given.split()
    choice_to_url("words", " ".join(words), "")
    if not words:
        return None
    found = search(state, " ".join(words))
    count, every = len(found.docs), int(state.manifest.corpus["documents"])
    if count:
        contain = "contains" if count == 1 else "contain"
        more = f"More than {count:,}" if found.more else f"{count:,}"
        first = " The first ones are highlighted." if found.more else ""
        what = "all of these words" if words[1:] else "this word"
        st.caption(f"{more} of {found.searched or every:,} documents {contain} {what}.{first}")
    else:
        st.caption("No document contains all of these words. Try fewer.")
    say_what_was_searched(state, found)
    return Found(" ".join(words), found.docs, found.more)


def _say_that_density_is_shown(drawn: StageMap) -> None:
    if not drawn.is_drawn_whole:
        st.caption(
            f":material/blur_on: {drawn.shades.size:,} points are too many to draw one by one: the map shows their "
            "density, coloured by the head or topic with the most points in each place. Zoom in, or choose fewer "
            f"heads, to see single points (up to {MOST_IN_VIEW:,} in view). The open document and up to {MOST_EXTRA} "
            "search results are always drawn as points."
        )
