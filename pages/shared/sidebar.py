"""The sidebar: which run is looked at."""

from __future__ import annotations

import streamlit as st

from core.model.presets import PRESETS
from core.runs.backend import fetched_by, trouble_at
from core.runs.replace import is_being_renewed
from core.settings import setting
from pages.shared.components.copy_link import copy_link
from pages.shared.data import RunState, cache_folder, runs
from pages.shared.text import plain
from pages.shared.url import choice_from_url, choice_to_url, keep_choices


def choose_run() -> RunState | None:
    """The run that is chosen, or None where the cache is empty."""
    keep_choices()
    states = {state.run.name: state for state in runs()}
    if not states:
        return None
    if trouble := trouble_at(cache_folder()):
        when = f"by {moment}" if (moment := fetched_by(cache_folder())) else "before"
        st.sidebar.warning(
            f"You see what this server had fetched {when}. {plain(trouble)}", icon=":material/cloud_off:"
        )
    names = list(states)
    first = next((name for name in (setting("HEADSCOPE_RUN"), "demo") if name in states), names[0])
    choice_from_url("run", names, first)
    name = st.sidebar.selectbox(
        "Run",
        names,
        key="run",
        help="A run is one corpus embedded with one model at one layer: a folder of the cache.",
    )
    choice_to_url("run", name, first)
    state = states[name]
    if state.manifest is not None:
        model = state.manifest.model
        st.sidebar.caption(
            f"{plain(model['name'])}  \nlayer {model['layer']} of {model['layers']} · {model['heads']} heads on "
            f"{model['kv_heads']}"
        )
        preset = PRESETS.get(model["name"])
        if preset:
            st.sidebar.caption(f"Licence of the model: {plain(preset.licence)}")
        if state.finished and is_being_renewed(state.run):
            st.sidebar.caption("A new version of this run is being built. Until it is finished you see this one.")
    with st.sidebar:
        copy_link()
    return state
