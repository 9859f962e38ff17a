"""What a click has brought is scrolled to and gets the focus; the other half is in_view.js."""

from __future__ import annotations

import streamlit as st

from pages.shared.components.mount import component

_mount = component("in_view", "in_view.js", html='<span class="hs-in-view"></span>')


def bring_into_view(name: str) -> None:
    """Called by whatever a person clicks: the next ``in_view`` of this name is scrolled to."""
    st.session_state[_count(name)] = st.session_state.get(_count(name), 0) + 1


def in_view(name: str) -> None:
    """Stands before what is to be seen; nothing is scrolled on arrival by a link, or a second time."""
    _mount(key=f"in view {name}", data={"name": name, "press": st.session_state.get(_count(name), 0)}, height=1)


def in_view_once_asked(name: str) -> None:
    """The same, but nothing is drawn before the first ``bring_into_view``."""
    if _count(name) in st.session_state:
        in_view(name)


def _count(name: str) -> str:
    return f"brought into view: {name}"
