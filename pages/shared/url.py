"""A view is a link: a choice is read from the query string, and written back to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import streamlit as st

Choice = TypeVar("Choice", int, str)


def choice_from_url(name: str, options: Sequence[Choice], default: Choice) -> None:
    """Sets the widget of key ``name`` to what the address says, before the widget is drawn.

    The address wins when somebody else changed it: on arrival by a link, and after the browser's Back. Values that are
    no option (stale, mistyped or hostile) fall back to the default, with a notice; so does, without one, a choice that
    another run does not offer.
    """
    given = st.query_params.get(name)
    ours = given == st.session_state.get(_written(name))
    if ours and st.session_state.get(name) in options:
        return
    found = next((option for option in options if str(option) == given), None)
    if found is None and not ours:
        st.toast(f"The link names a {name} that is not here; the first one is shown.", icon=":material/link_off:")
    st.session_state[name] = default if found is None else found


def choice_to_url(name: str, value: Choice, default: Choice) -> None:
    """Puts the choice into the address; a default leaves no trace there."""
    text = None if value == default else str(value)
    if text != st.query_params.get(name):
        if text is None:
            del st.query_params[name]
        else:
            st.query_params[name] = text
    st.session_state[_written(name)] = text


def _written(name: str) -> str:
    return f"written to the address: {name}"
