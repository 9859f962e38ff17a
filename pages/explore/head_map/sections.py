"""The parts of the Head map: the map itself, and the chosen document."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.explore.head_map.selection import selection
from pages.explore.head_map.state import linked_document, read_address, to_address
from pages.shared.cards import Card, open_card
from pages.shared.components.map import head_map
from pages.shared.components.map_data import MOST_EXTRA, StageMap, message, stage_map
from pages.shared.controls import SEARCH_HELP, choose_stage, say_what_was_searched
from pages.shared.data import RunState, documents, search
from pages.shared.notices import shows_mistakes
from pages.shared.url import MOST_LETTERS, choice_to_url, words_from_url

_KNOWN = "maps the browser has"


@st.fragment
@shows_mistakes
def one_map(state: RunState) -> None:
    """The map with all that is linked to it; it reruns without the rest of the page."""
    assert state.manifest is not None
    heads, count = state.manifest.shape.heads, int(state.manifest.corpus["documents"])
    left, right = st.columns([3, 2], gap="medium")
    with left:
        stage = choose_stage(state.manifest)
    with right:
        found = _search(state)
    drawn = stage_map(state, stage)
    _say_what_is_left_out(drawn)
    known: set[str] = st.session_state.setdefault(_KNOWN, set())
    told = message(state, stage, found, known, linked_document(count))
    event = head_map(told)
    known |= {told["key"], told["base"]}
    if event.wanted:  # another tab of this session, or a message that was lost
        known -= {told["key"], told["base"]}
        st.rerun(scope="fragment")
    if event.picked is not None:
        to_address(event.picked)
    view = read_address(stage, heads, count)
    if view.doc is not None:
        _document(state, view.doc)
    if view.polygon is not None:
        selection(state, drawn, view.polygon, view.heads)
    elif view.doc is None:
        st.caption(
            "Click a point to read its document; draw a lasso or a box to see which documents and heads are there."
        )


def _search(state: RunState) -> np.ndarray | None:
    assert state.manifest is not None
    words_from_url("words")
    given = st.text_input(
        "Highlight documents",
        key="words",
        max_chars=MOST_LETTERS,
        placeholder="words of a title or text",
        help=SEARCH_HELP,
    )
    words = given.split()
    choice_to_url("words", " ".join(words), "")
    if not words:
        return None
    found = search(state, " ".join(words))
    count, every = len(found.docs), int(state.manifest.corpus["documents"])
    if count:
        have = "have all of these words" if words[1:] else "have it"
        more = f"More than {count:,}" if found.more else f"{count:,}"
        first = " The first of them are highlighted." if found.more else ""
        st.caption(f"{more} of {found.searched or every:,} documents {have}.{first}")
    else:
        st.caption("No document has all of these words. Try fewer.")
    say_what_was_searched(state, found)
    return found.docs


def _say_what_is_left_out(drawn: StageMap) -> None:
    if drawn.left_out:
        st.caption(
            f":material/filter_alt: {len(drawn.docs):,} of {len(drawn.docs) + drawn.left_out:,} documents are drawn: "
            "a sample, in which every topic has its share. A document that you choose is drawn in any case, and so are "
            f"up to {MOST_EXTRA} that a search finds."
        )


def _document(state: RunState, doc: int) -> None:
    row = documents(state).row(doc)
    st.subheader(f"Document {doc + 1}")
    with st.container(height=260, border=False):
        open_card(Card(row["title"], [row["topic"], f"{row['tokens']:,} tokens"], row["text"]))
