"""The head map's component: the bundle of frontend/map, and a messenger that carries what changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pages.shared.components.mount import component

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


def head_map(message: Mapping[str, Any]) -> MapEvent:
    """Draws the map; the bundle's own message never changes, so that Streamlit sends it once a session."""
    _map(key="head map")
    result = _feed(
        key="head map feed",
        data=dict(message),
        height=1,
        on_picked_change=lambda: None,
        on_want_change=lambda: None,
    )
    picked, wanted = result.get("picked"), result.get("want")
    return MapEvent(
        picked if isinstance(picked, Mapping) else None,
        wanted if isinstance(wanted, str) else None,
    )
