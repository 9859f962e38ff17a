"""What the Layers page reads: the tables of the layer sweep, and what is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from core.analysis.layer_measures import MEASURES
from core.errors import Mistake
from core.runs.manifest import Manifest
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.tables import Row
from pages.shared.data import RunState
from pages.shared.run_version import LAYERS, one_version, version_of


@dataclass(frozen=True)
class LayerView:
    """What is looked at; ``layer`` counts from 1, ``head`` too, 0 is the full embedding."""

    stage: int
    measure: str
    layer: int
    head: int
    null_measure: str | None = None
    """The measure's name in the tables ``layer_null…``; None where heads are not compared with slices by it."""
    details: bool = True
    """Whether the panel beside the grid is open."""

    @property
    def who(self) -> str:
        return f"head {self.head}" if self.head else "full embedding"


@dataclass(frozen=True)
class LayerSweep:
    """A run's sweep."""

    run: Run
    version: str
    manifest: Manifest

    @property
    def documents(self) -> int:
        return int(self.manifest.steps["layers"].counts.get("documents", 0))

    @property
    def labelled(self) -> int:
        return int(self.manifest.steps["layers"].counts.get("labelled", 0))

    @property
    def centred(self) -> bool:
        return bool(self.manifest.steps["layers"].options.get("centre", False))

    @property
    def measures(self) -> list[str]:
        """Those that this run has a figure of."""
        table = self.table("layers")
        known = set(table.filter(pc.is_valid(table["value"]))["measure"].unique().to_pylist())
        if not known:
            raise Mistake(
                f"layers.parquet has no figures. Rebuild it with 'python -m precompute layers {self.run.name} --again'."
            )
        return [name for name in MEASURES if name in known]

    @property
    def compared(self) -> bool:
        """Whether heads are compared with random slices; runs of older versions do not have those tables."""
        return self.run.has(self.run.analysis_path("layer_null_summary"))

    def compared_by(self, stage: int) -> list[str]:
        """Measures by which heads of ``stage`` are compared with random slices."""
        return self.table("layer_null_summary", stage=stage)["measure"].unique().to_pylist() if self.compared else []

    def table(self, name: str, **wanted: Any) -> pa.Table:
        """The rows of a table in which every column of ``wanted`` has that value."""
        table = _table(self.run, self.version, name)
        for column, value in wanted.items():
            table = table.filter(pc.equal(table[column], value))
        return table

    def rows(self, name: str, **wanted: Any) -> list[Row]:
        rows: list[Row] = self.table(name, **wanted).to_pylist()
        return rows

    def cells(self, stage: int, measure: str) -> dict[str, np.ndarray]:
        """``value``, ``low`` and ``high`` of a measure, each ``[layer, 1 + head]``; NaN where there is none."""
        table, shape = self.table("layers", stage=stage, measure=measure), self.manifest.shape
        at = (table["layer"].to_numpy() - 1, table["head"].to_numpy())
        found = {}
        for name in ("value", "low", "high"):
            found[name] = np.full((shape.layers, 1 + shape.heads), np.nan)
            found[name][at] = table[name].cast(pa.float64()).to_numpy()
        return found

    def compared_cells(self, stage: int, measure: str) -> dict[str, np.ndarray]:
        """The same of a measure of ``layer_null``, which has no intervals."""
        shape = self.manifest.shape
        value = np.full((shape.layers, 1 + shape.heads), np.nan)
        for row in self.rows("layer_null_summary", stage=stage, measure=measure):
            value[row["layer"] - 1, 0] = np.nan if row["full"] is None else row["full"]
        for row in self.rows("layer_null", stage=stage, measure=measure):
            value[row["layer"] - 1, row["head"]] = row["value"]
        return {"value": value, **dict.fromkeys(("low", "high"), np.full_like(value, np.nan))}


def layer_sweep(state: RunState) -> LayerSweep:
    """Of a run whose step ``layers`` is done."""
    assert state.manifest is not None
    return LayerSweep(state.run, version_of(state.manifest, LAYERS), state.manifest)


@st.cache_resource(max_entries=32, show_spinner="Reading the figures of the layers …")
@one_version(*LAYERS)
def _table(run: Run, version: str, name: str) -> pa.Table:
    return read_analysis(run, name)
