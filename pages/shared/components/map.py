"""The head map's component: the bundle of frontend/map, and a messenger that carries what changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from pages.shared.components.map_data import Needs
from pages.shared.components.mount import component

_FEED, _NEEDS = "head map feed", "what the head map needs"
_HERE = Path(__file__).parent
_map = component(
    "map", "map.js", html='<div class="head-map"></div>', css=(_HERE / "map.css").read_text(encoding="utf-8")
)
_feed = component("map_feed", "map_feed.js")


@dataclass(frozen=True)
class MapEvent:
    """What the browser said: what was chosen (``area``, ``doc``, and the rest of its view), or which map it lacks."""

    picked: Mapping[str, Any] | None
    wanted: str | None


def map_needs(colour: str | None) -> Needs:
    """What the browser has asked for and was not sent yet; at first it needs the column that the address names."""
    asked: Mapping[str, Any] = st.session_state.pop(_NEEDS, {})
    column, window = asked.get("column", colour), asked.get("window")
    return Needs(column if isinstance(column, str) else None, window if isinstance(window, str) else None)


def head_map(message: Mapping[str, Any], on_pick: Callable[[], None] = lambda: None) -> MapEvent:
    """Draws the map; ``on_pick`` is called when a gesture has chosen something on it.

    The bundle's own message never changes: Streamlit sends it once a session.
    """

    def picked_on_map() -> None:
        told = (st.session_state.get(_FEED) or {}).get("picked")
        if isinstance(told, Mapping) and told.get("opens") is True:
            on_pick()

    def needs_more() -> None:
        told = (st.session_state.get(_FEED) or {}).get("need")
        if isinstance(told, Mapping):
            st.session_state[_NEEDS] = told

    _map(key="head map")
    result = _feed(
        key=_FEED,
        data=dict(message),
        height=1,
        on_picked_change=picked_on_map,
        on_want_change=lambda: None,
        on_need_change=needs_more,
    )
    picked, wanted = result.get("picked"), result.get("want")
    return MapEvent(
        picked if isinstance(picked, Mapping) else None,
        wanted if isinstance(wanted, str) else None,
    )
