"""A Plotly figure, drawn by the part of Plotly that our figures need (``pages/shared/plotly``).

Streamlit's own chart brings the whole of Plotly, which takes a browser more than ten times as long to start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from pages.shared.components.mount import component
from pages.shared.plotly import ADDRESS

_HEIGHT = 450
"""Pixels of a figure that says nothing of its own, as Plotly has it."""
_LARGEST = sys.float_info.max
_mount = component("figure", "figure.js", html='<div class="hs-figure"></div>', isolated=False)


def plotted(
    figure: go.Figure,
    key: str,
    alt: str | None,
    config: Mapping[str, Any],
    on_pick: Callable[[], None] | None = None,
    on_area: Callable[[], None] | None = None,
) -> None:
    """Draws the figure as wide as its place.

    ``on_pick`` is called when a point is clicked, ``on_area`` when a box or a lasso is drawn or taken back; then
    ``picked(key)`` is the point's custom data, ``area(key)`` the corners.
    """
    height = int(figure.layout.height or _HEIGHT)
    _mount(
        key=key,
        height=height,
        data={
            "spec": figure.to_json(validate=False),
            "height": height,
            "config": dict(config),
            "alt": alt,
            "picks": on_pick is not None,
            "encloses": on_area is not None,
            "plotly": ADDRESS,
        },
        on_picked_change=on_pick or _nothing,
        on_area_change=on_area or _nothing,
    )


def picked(key: str) -> list[object]:
    """The custom data of the point that was clicked last; empty where none was."""
    found = (st.session_state.get(key) or {}).get("picked")
    data = found.get("data") if isinstance(found, Mapping) else None
    return list(data) if isinstance(data, (list, tuple)) else []


def area(key: str) -> tuple[list[float], list[float]]:
    """``x`` and ``y`` of the corners of the box or lasso that was drawn last; a box has two. Empty where none was."""
    found = (st.session_state.get(key) or {}).get("area")
    x, y = (_numbers(found.get(name)) for name in "xy") if isinstance(found, Mapping) else ([], [])
    return (x, y) if len(x) == len(y) else ([], [])


def _numbers(given: object) -> list[float]:
    """Of what a browser sends; empty where it is something else than numbers that a float holds."""
    if not isinstance(given, (list, tuple)):
        return []
    numbers = [one for one in given if type(one) in (int, float) and -_LARGEST < one < _LARGEST]
    return [float(one) for one in numbers] if len(numbers) == len(given) else []


def _nothing() -> None:
    """What the browser tells of no interest is for."""
