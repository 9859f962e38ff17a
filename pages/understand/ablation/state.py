"""What the Ablation page is about: the tables of the step ``ablate``, and what other steps say of the same heads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import streamlit as st

from core.analysis.ablation_effects import GROUP, HEAD, LAYER, measures_in_order
from core.analysis.null import ABOVE
from core.model.shape import ModelShape
from core.runs.manifest import Manifest
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.tables import Row
from pages.shared.data import RunState, analysis
from pages.shared.run_version import ABLATION, LAYERS, one_version, version_of
from pages.understand.ablation.figures import SHARE, SLICE, Reading

Place = tuple[int, int]
"""Layer and head, both from 1."""


@dataclass(frozen=True)
class AblationView:
    """The measure, and the head that is looked at: layer and head from 1, head 0 for all heads of the layer."""

    state: RunState
    measure: str
    layer: int
    head: int
    details: bool = True
    """Whether the panel beside the grid is open."""

    @property
    def manifest(self) -> Manifest:
        assert self.state.manifest is not None
        return self.state.manifest

    @property
    def shape(self) -> ModelShape:
        return self.manifest.shape

    @property
    def name(self) -> str:
        return f"Layer {self.layer}, head {self.head}" if self.head else f"Layer {self.layer}, all heads"

    @property
    def group(self) -> int | None:
        """The head's key/value group, from 1; None where every head has its own."""
        size = self.shape.heads // self.shape.kv_heads
        return None if size == 1 or not self.head else (self.head - 1) // size + 1

    def rows(self, kind: str, measure: str | None = None) -> dict[Place, Row]:
        """By layer and head (or group) the rows of a measure, by default of the chosen one."""
        wanted = (kind, measure or self.measure)
        return {
            (row["layer"], row["head"]): row
            for row in ablation_rows(self.state, "ablation")
            if (row["kind"], row["measure"]) == wanted
        }

    @cached_property
    def cells(self) -> dict[Place, Row]:
        """Of the grid: heads, and as head 0 all heads of a layer."""
        return {**self.rows(LAYER), **self.rows(HEAD)}

    def of_head(self) -> dict[str, Row]:
        """By measure: the chosen head's row."""
        kind = HEAD if self.head else LAYER
        found = {name: self.rows(kind, name).get((self.layer, self.head)) for name in measures_of(self.state)}
        return {name: row for name, row in found.items() if row is not None}

    def of_group(self) -> Row | None:
        """The row of the chosen head's key/value group."""
        return None if self.group is None else self.rows(GROUP).get((self.layer, self.group))


def measures_of(state: RunState) -> list[str]:
    return measures_in_order(row["measure"] for row in ablation_rows(state, "ablation"))


def ablation_rows(state: RunState, table: str) -> list[Row]:
    assert state.manifest is not None
    return _rows(state.run, version_of(state.manifest, ABLATION), table)


def slices(state: RunState, measure: str) -> dict[Place, Row]:
    """How often a head's own slice at stage 1 finds the topic, ``value`` and ``verdict`` against random slices.

    Of every layer where the step ``layers`` has compared them, else of the run's own layer; empty if neither is there.
    """
    manifest, run = state.manifest, state.run
    assert manifest is not None
    if measure not in ("names", "examples") or 1 not in manifest.stages:
        measure = "names"
    if manifest.is_done("layers") and run.has(run.analysis_path("layer_null")):
        rows = _layer_table(run, version_of(manifest, LAYERS), "layer_null").to_pylist()
        found = [row for row in rows if (row["stage"], row["measure"]) == (1, measure)]
        return {(row["layer"], row["head"]): row for row in found}
    if manifest.is_done("analyse") and run.has(run.analysis_path("null")):
        rows = analysis(state, "null").to_pylist()
        found = [row for row in rows if (row["stage"], row["measure"]) == (1, measure)]
        return {(int(manifest.model["layer"]), row["head"]): row for row in found}
    return {}


def shares(state: RunState) -> dict[Place, Row]:
    """Each head's direct share of the embedding (docs/shares.md), where the step ``layers`` has measured it."""
    manifest, run = state.manifest, state.run
    assert manifest is not None
    if not manifest.is_done("layers") or not run.has(run.analysis_path("parts")):
        return {}
    rows = _layer_table(run, version_of(manifest, LAYERS), "parts").to_pylist()
    return {(row["layer"], row["head"]): row for row in rows if row["kind"] == HEAD}


def readings(state: RunState, measure: str) -> dict[str, dict[Place, Reading]]:
    """By instrument, those that the run has; a share stands out if its interval is above the mean of all heads."""
    own = shares(state)
    even = sum(row["mean"] for row in own.values()) / max(1, len(own))
    found = {
        SHARE.name: {place: Reading(row["mean"], row["low"] > even) for place, row in own.items()},
        SLICE.name: {
            place: Reading(row["value"], row["verdict"] == ABOVE) for place, row in slices(state, measure).items()
        },
    }
    return {name: each for name, each in found.items() if each}


@st.cache_resource(max_entries=16, show_spinner="Reading the figures …")
@one_version(*ABLATION)
def _rows(run: Run, version: str, table: str) -> list[Row]:
    found: list[Row] = read_analysis(run, table).to_pylist()
    return found


@st.cache_resource(max_entries=8, show_spinner="Reading the figures …")
@one_version(*LAYERS)
def _layer_table(run: Run, version: str, name: str) -> pa.Table:
    return read_analysis(run, name)
