"""Arrow keys that step through numbers, for a choice whose widget knows no keys; its other half is step_keys.js.

A button's ``shortcut`` does not do: presses that reach the server together count once, and what the button adds to is
what the browser last heard of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.shared.components.mount import component

_mount = component(
    "step_keys",
    "step_keys.js",
    html='<span class="step-keys"></span>',
)


def step_keys(key: str, number: int, count: int, on_step: Callable[[int], None]) -> None:
    """Left and right go from ``number`` round the numbers 1 to ``count``; ``on_step`` gets where they have come to."""
    seen = f"{key}: presses that were seen"

    def pressed() -> None:
        given: Any = (st.session_state.get(key) or {}).get("pressed")
        if not isinstance(given, dict):
            return
        to, press = given.get("number"), given.get("press")
        if type(to) is int and type(press) is int and 1 <= to <= count:
            st.session_state[seen] = press
            on_step(to)

    data = {"name": key, "number": number, "count": count, "press": st.session_state.get(seen, 0)}
    _mount(key=key, data=data, height=1, on_pressed_change=pressed)
