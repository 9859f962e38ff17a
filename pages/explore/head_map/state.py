"""What of the Head map stands in the address, as the server reads it; the browser reads the same texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from core.model.stages import STAGES
from pages.shared.components.map_data import read_area
from pages.shared.heads_in_address import parse_heads
from pages.shared.url import choice_to_url

_CAMERA = re.compile(r"-?[0-9](\.[0-9]{1,6})?,-?[0-9](\.[0-9]{1,6})?,[0-9]{1,3}(\.[0-9]{1,2})?")
_NAMES = ("area", "doc", "heads", "colour", "camera", "layout")
"""What the browser tells, with a document or an area that was chosen. The camera is not ``view``: that is the Head
profile's, and choices go from page to page."""


@dataclass(frozen=True)
class MapView:
    """What the address says: ``doc`` from 0, or None; ``polygon`` on the map's grid, or None."""

    doc: int | None
    polygon: np.ndarray | None
    heads: frozenset[int]


def to_address(picked: Mapping[str, Any]) -> None:
    """What was chosen on the map goes into the address, from where it is read like a link's."""
    for name in _NAMES:
        value = picked.get(name)
        choice_to_url(name, "" if value is None else str(value)[:1_200], "")


def linked_document(count: int) -> int | None:
    """The document that the address names, from 0; None where it names none of the ``count``."""
    given = st.query_params.get("doc", "")
    known = given.isascii() and given.isdecimal() and len(given) < 10 and 1 <= int(given) <= count
    return int(given) - 1 if known else None


def read_address(stage: int, heads: int, count: int) -> MapView:
    """Reads the address; what is not there is taken out of it, with a notice."""
    doc = linked_document(count)
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
    }
    for name, bad in wrong.items():
        if bad:
            st.toast(f"The link names a {name} that does not exist; it is ignored.", icon=":material/link_off:")
            choice_to_url(name, "", "")
    if polygon is None and area and not wrong["area"]:
        choice_to_url("area", "", "")
    return MapView(
        doc,
        polygon,
        parse_heads(None, heads) or frozenset() if chosen is None else chosen,
    )


def _is_camera(text: str) -> bool:
    if _CAMERA.fullmatch(text) is None:
        return False
    x, y, zoom = (float(part) for part in text.split(","))
    return -1 <= x <= 2 and -1 <= y <= 2 and 0.2 <= zoom <= 500
