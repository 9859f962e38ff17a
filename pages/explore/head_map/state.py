"""The Head map's part of the address, as the server reads it; the browser reads the same parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from core.model.stages import STAGES
from pages.shared.components.map_data import Column, columns, read_area
from pages.shared.data import RunState
from pages.shared.heads_in_address import parse_heads
from pages.shared.url import choice_to_url

_CAMERA = re.compile(r"-?[0-9](\.[0-9]{1,6})?,-?[0-9](\.[0-9]{1,6})?,[0-9]{1,3}(\.[0-9]{1,3})?")
_NAMES = ("area", "doc", "heads", "colour", "camera", "layout", "focus", "list", "front")
"""What the browser reports when a document or an area is chosen. The camera is not called ``view``: the Head profile
has a parameter of that name, and parameters are carried from page to page."""
_DECIDED, _TURN = "what the panel beside the map has decided", "times that the panel has decided"


@dataclass(frozen=True)
class Value:
    """A value of a column that the map is coloured by; ``code`` is -1 for documents without one."""

    column: Column
    code: int

    @property
    def name(self) -> str:
        return self.column.values[self.code] if self.code >= 0 else "none"

    @property
    def docs(self) -> np.ndarray:
        return np.flatnonzero(self.column.codes == self.code)


@dataclass(frozen=True)
class MapView:
    """The view that the address describes: ``doc`` counts from 0; ``polygon`` is on the map's grid."""

    doc: int | None
    polygon: np.ndarray | None
    heads: frozenset[int]
    value: Value | None
    """The legend entry whose documents are listed."""

    @property
    def chosen(self) -> bool:
        return self.doc is not None or self.polygon is not None or self.value is not None


def to_address(picked: Mapping[str, Any]) -> None:
    """Writes what was chosen on the map into the address, from where it is read as a link would be."""
    for name in _NAMES:
        value = picked.get(name)
        choice_to_url(name, "" if value is None else str(value)[:1_200], "")


def decide_view(**choices: str) -> None:
    """Called by the panel's callbacks: choices made outside the map; "" clears one."""
    st.session_state[_DECIDED] = {**st.session_state.get(_DECIDED, {}), **choices}


def decided() -> int:
    """Writes the callbacks' choices into the address; returns how often there were any, for the map to notice."""
    choices: dict[str, str] = st.session_state.pop(_DECIDED, {})
    for name, value in choices.items():
        choice_to_url(name, value, "")
    turn: int = st.session_state.get(_TURN, 0) + bool(choices)
    st.session_state[_TURN] = turn
    return turn


def chosen_in_address(count: int) -> dict[str, str | int | None]:
    """What is sent to the map when ``decided`` has increased; the document counts from 1."""
    doc = linked_document(count)
    return {
        "area": st.query_params.get("area"),
        "doc": None if doc is None else doc + 1,
        "list": st.query_params.get("list"),
    }


def linked_document(count: int) -> int | None:
    """The document in the address, counted from 0; None if it is not one of the ``count``."""
    number = _number(st.query_params.get("doc", ""), count)
    return None if number is None else number - 1


def read_address(state: RunState, stage: int) -> MapView:
    """Reads the address; parameters that name something that does not exist are removed, with a notice."""
    assert state.manifest is not None
    heads, count = state.manifest.shape.heads, int(state.manifest.corpus["documents"])
    doc, value = linked_document(count), _linked_value(state)
    chosen = parse_heads(st.query_params.get("heads"), heads)
    area = st.query_params.get("area", "")
    polygon = read_area(area, stage)
    wrong = {
        "doc": "doc" in st.query_params and doc is None,
        "heads": chosen is None,
        # An area belongs to the stage that it was drawn on: that of another one goes without a word.
        "area": "area" in st.query_params and all(read_area(area, other) is None for other in STAGES),
        # Camera and layout are the browser's alone; but it would be told to put back what it has taken out.
        "camera": "camera" in st.query_params and not _is_camera(st.query_params["camera"]),
        "layout": st.query_params.get("layout", "heads") != "heads",
        "focus": "focus" in st.query_params and value is None,
        "list": st.query_params.get("list", "1") != "1",
        "front": _number(st.query_params.get("front", "1"), heads) is None,
    }
    for name, bad in wrong.items():
        if bad:
            st.toast(f"The link has an unknown value for '{name}'; it is ignored.", icon=":material/link_off:")
            choice_to_url(name, "", "")
    if polygon is None and area and not wrong["area"]:
        choice_to_url("area", "", "")
    if value is None and not wrong["list"]:
        choice_to_url("list", "", "")
    return MapView(
        doc,
        polygon,
        parse_heads(None, heads) or frozenset() if chosen is None else chosen,
        value if st.query_params.get("list") == "1" else None,
    )


def _linked_value(state: RunState) -> Value | None:
    """The legend entry in the address, counted from 1; one more than the last is for documents without a value."""
    colour, given = st.query_params.get("colour", "head"), st.query_params.get("focus", "")
    column = next((column for column in columns(state) if column.name == colour), None)
    if column is None:
        return None
    entries = len(column.values) + bool((column.codes < 0).any())
    number = _number(given, entries)
    return None if number is None else Value(column, number - 1 if number <= len(column.values) else -1)


def _number(text: str, most: int) -> int | None:
    known = text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most
    return int(text) if known else None


def _is_camera(text: str) -> bool:
    if _CAMERA.fullmatch(text) is None:
        return False
    x, y, zoom = (float(part) for part in text.split(","))
    return -1 <= x <= 2 and -1 <= y <= 2 and 0.2 <= zoom <= 500
