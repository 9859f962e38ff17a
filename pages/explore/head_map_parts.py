"""The parts of the Head map: the map itself, and the chosen document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import streamlit as st

from core.errors import Mistake
from core.stages import STAGES
from pages.explore.head_map_selection import selection
from pages.shared.cards import Card, open_card
from pages.shared.components.map import head_map
from pages.shared.components.map_data import StageMap, message, read_area, stage_map
from pages.shared.controls import choose_stage, search
from pages.shared.data import RunState, documents
from pages.shared.head_choice import parse_heads
from pages.shared.text import plain
from pages.shared.url import choice_to_url

_KNOWN = "maps the browser has"


@dataclass(frozen=True)
class View:
    """What the address says: ``doc`` from 0, or None; ``polygon`` on the map's grid, or None."""

    doc: int | None
    polygon: np.ndarray | None
    heads: frozenset[int]


@st.fragment
def one_map(state: RunState) -> None:
    """The map with all that is linked to it; it reruns without the rest of the page."""
    try:
        _one_map(state)
    except Mistake as mistake:  # a file of the run is missing or damaged
        st.error(plain(mistake), icon=":material/error:")


def _one_map(state: RunState) -> None:
    assert state.manifest is not None
    heads, table = state.manifest.shape.heads, documents(state)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        stage = choose_stage(state.manifest.stages)
    with right:
        found = _search(table)
    drawn = stage_map(state, stage)
    _say_what_is_left_out(drawn)
    known: set[str] = st.session_state.setdefault(_KNOWN, set())
    told = message(state, stage, found, known)
    event = head_map(told)
    known |= {told["key"], told["base"]}
    if event.wanted:  # another tab of this session, or a message that was lost
        known -= {told["key"], told["base"]}
        st.rerun(scope="fragment")
    if event.picked is not None:
        _to_address(event.picked)
    view = _view(stage, heads, len(table))
    if view.doc is not None:
        _document(state, table, view.doc)
    if view.polygon is not None:
        selection(state, drawn, view.polygon, view.heads)
    elif view.doc is None:
        st.caption(
            "Click a point to read its document; draw a lasso or a box to see which documents and heads are there."
        )


def _search(table: pa.Table) -> np.ndarray | None:
    words = st.text_input(
        "Light up documents", key="find", placeholder="words of a title or text", help="All words must occur."
    ).split()
    if not words:
        return None
    found = search(table, " ".join(words))
    if len(found):
        st.caption(f"{len(found):,} of {len(table):,} documents have {'all of these words' if words[1:] else 'it'}.")
    else:
        st.caption("No document has all of these words. Try fewer.")
    return found


def _say_what_is_left_out(drawn: StageMap) -> None:
    if drawn.left_out:
        st.caption(
            f":material/filter_alt: {len(drawn.docs):,} of {len(drawn.docs) + drawn.left_out:,} documents are drawn: "
            "the map was fitted to a sample, in which every topic has its share."
        )


def _to_address(picked: Mapping[str, Any]) -> None:
    """What was chosen on the map goes into the address, from where it is read like a link's."""
    for name in ("area", "doc", "heads", "colour"):
        value = picked.get(name)
        choice_to_url(name, "" if value is None else str(value)[:1_200], "")


def _view(stage: int, heads: int, count: int) -> View:
    """Reads the address; what is not there is taken out of it, with a notice."""
    given = st.query_params.get("doc", "")
    known = given.isascii() and given.isdecimal() and len(given) < 10 and 1 <= int(given) <= count
    chosen = parse_heads(st.query_params.get("heads"), heads)
    area = st.query_params.get("area", "")
    polygon = read_area(area, stage)
    wrong = {
        "doc": "doc" in st.query_params and not known,
        "heads": chosen is None,
        # An area belongs to the stage that it was drawn on: that of another one goes without a word.
        "area": "area" in st.query_params and all(read_area(area, other) is None for other in STAGES),
    }
    for name, bad in wrong.items():
        if bad:
            st.toast(f"The link names a {name} that is not here; it is left out.", icon=":material/link_off:")
            choice_to_url(name, "", "")
    if polygon is None and area and not wrong["area"]:
        choice_to_url("area", "", "")
    return View(
        int(given) - 1 if known else None,
        polygon,
        parse_heads(None, heads) or frozenset() if chosen is None else chosen,
    )


def _document(state: RunState, table: pa.Table, doc: int) -> None:
    assert state.manifest is not None
    row = table.slice(doc, 1).to_pylist()[0]
    st.subheader(f"Document {doc + 1}")
    with st.container(height=260, border=False):
        open_card(Card(row["title"], [row["topic"], f"{row['tokens']:,} tokens"], row["text"]))
