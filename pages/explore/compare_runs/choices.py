"""Which two runs are compared, and at which stage."""

from __future__ import annotations

import streamlit as st

from pages.explore.compare_runs.state import Pair, pair_of
from pages.shared.controls import choose_stage, other_runs
from pages.shared.data import RunState
from pages.shared.url import linked


def choose_pair(state: RunState) -> Pair | None:
    """The chosen run and the one to compare it with; if there is no other run, a message says how to build one."""
    others = other_runs(state)
    if not others:
        st.info("There is no other run with figures to compare with.", icon=":material/compare:")
        st.caption("Embed the corpus with another model, or at another layer. In a terminal:")
        st.code("python -m precompute all another-run --layer 4", language=None, wrap_lines=True)
        return None
    assert state.manifest is not None
    corpus = state.manifest.corpus["fingerprint"]
    alike = [name for name, one in others.items() if one.manifest and one.manifest.corpus["fingerprint"] == corpus]
    name = linked(
        st.selectbox,
        "Compare with",
        "beside",
        list(others),
        (alike or list(others))[0],
        help="Another model, or the same one at another layer.",
    )
    return pair_of(state, others[name])


def common_stage(pair: Pair) -> int | None:
    """The stage to compare, of those that both runs store; None, with a message, if they share none."""
    if not pair.stages:
        st.info("The two runs store no stage in common, so their maps and heads cannot be compared.")
        return None
    return choose_stage(pair.manifests[0], pair.stages)
