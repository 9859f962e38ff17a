"""A click on a picture turns to another page; the other half is turn_page.js.

``st.switch_page`` does not do: it writes the next page's choices into this page's address first, and the browser's Back
leads there.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.shared.components.mount import component

_PRESSES = "pages turned by a click on a picture"
_mount = component("turn_page", "turn_page.js", html="<span></span>")


def ask_to_turn() -> None:
    """Called by the click: the next ``turn_page`` turns."""
    st.session_state[_PRESSES] = st.session_state.get(_PRESSES, 0) + 1


def turn_page(page: str, label: str, choices: Mapping[str, str]) -> None:
    """A link to the page with these choices in its address, followed once for each ``ask_to_turn``."""
    with st.container(key="page-to-turn-to"):
        st.page_link(page, label=label, icon=":material/person_search:", query_params=dict(choices))
        _mount(key="turn page", data={"press": st.session_state.get(_PRESSES, 0)}, height=1)
