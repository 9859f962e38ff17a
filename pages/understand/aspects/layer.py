"""Aspects at another layer than the run's own, from the sample of the step ``layers``."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.analysis.aspect_probe import ACCURACY
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.steps import command
from core.runs.tables import Row
from pages.shared.data import RunState
from pages.shared.run_version import LAYERS, one_version, version_of
from pages.shared.url import linked
from pages.understand.aspects.sections import AspectView


def choose_layer(state: RunState, stage: int, measure: str) -> int:
    """The layer that is looked at; the run's own where the others are not measured, which it then says."""
    assert state.manifest is not None
    own, layers = int(state.manifest.model["layer"]), state.manifest.shape.layers
    if layers == 1:
        return own
    if not _measured(state):
        st.caption(f"Layer {own}. For aspects at other layers, run `{command('layers', state.run.name)}`.")
        return own
    if measure != ACCURACY:
        st.caption(f"Layer {own}. Other layers are measured by the accuracy of the probe alone.")
        return own
    if not _of_stage(state, stage):
        renewed = command("layers", state.run.name)
        st.caption(f"Layer {own}. For stage {stage} at other layers, run `{renewed}`.")
        return own
    return linked(
        st.selectbox,
        "Layer",
        "layer",
        list(range(1, layers + 1)),
        own,
        format_func=lambda layer: f"{layer} · this run's layer" if layer == own else str(layer),
        help="Other layers are measured on the sample of the step layers, with fewer random slicings.",
    )


def at_layer(shown: AspectView, layer: int) -> AspectView:
    """The same view with the figures of another layer."""
    rows = [row for row in _of_stage(shown.state, shown.stage) if row["layer"] == layer]
    heads: dict[str, list[Row]] = {}
    for row in rows:
        if row["aspect"] in shown.names:
            heads.setdefault(row["aspect"], []).append(row)
    ordered = {name: tuple(sorted(each, key=lambda row: int(row["head"]))) for name, each in heads.items()}
    names = tuple(name for name in shown.names if name in ordered)
    summaries = {name: {**shown.summaries[name], **ordered[name][0]} for name in names}
    return replace(shown, names=names, summaries=summaries, heads=ordered, layer=layer)


def _measured(state: RunState) -> bool:
    assert state.manifest is not None
    return state.manifest.is_done("layers") and state.run.has(state.run.analysis_path("layer_aspects"))


def _of_stage(state: RunState, stage: int) -> list[Row]:
    assert state.manifest is not None
    rows = _rows(state.run, version_of(state.manifest, LAYERS))
    return [row for row in rows if row["stage"] == stage]


@st.cache_resource(max_entries=8, show_spinner="Reading the aspects of the layers …")
@one_version(*LAYERS)
def _rows(run: Run, version: str) -> list[Row]:
    found: list[Row] = read_analysis(run, "layer_aspects").to_pylist()
    return found
