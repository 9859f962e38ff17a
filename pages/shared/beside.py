"""Another run to set beside the chosen one: another model, or another layer. The choice is in the address."""

from __future__ import annotations

import streamlit as st

from pages.shared.data import RunState, runs
from pages.shared.url import choice_from_url, choice_to_url


def other_run(state: RunState) -> RunState | None:
    """The run that is chosen to compare with; without another one that has figures, nothing is asked."""
    others = {other.run.name: other for other in runs() if other.analysed and other.run.name != state.run.name}
    if not others:
        return None
    names = ["", *others]
    choice_from_url("beside", names, "")
    name = st.selectbox(
        "Beside another run",
        names,
        key="beside",
        format_func=lambda name: name or "none",
        help="Another model, or the same one at another layer.",
    )
    choice_to_url("beside", name, "")
    return others.get(name)
