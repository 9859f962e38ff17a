"""The Attention page's way in: the layer and the head, and the grid of all of them by type."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import streamlit as st

from core.analysis.attention_types import TYPES
from core.model.shape import ModelShape
from core.runs.tables import Row
from pages.shared import show
from pages.shared.attention import LETTERS, attention_rows, evidence_of
from pages.shared.components.layer_grid import Cell, ColourKey, GridCell, LayerGrid, layer_grid
from pages.shared.controls import choose_head
from pages.shared.data import RunState
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.text import plain
from pages.shared.theme import ATTENTION_TYPES
from pages.shared.url import decide, linked


@dataclass(frozen=True)
class AttentionView:
    """What the page is about; layer and head count from 1."""

    state: RunState
    layer: int
    head: int

    @property
    def row(self) -> Row:
        return attention_rows(self.state)[self.layer, self.head]

    @property
    def shape(self) -> ModelShape:
        assert self.state.manifest is not None
        return self.state.manifest.shape

    @property
    def name(self) -> str:
        return f"Layer {self.layer}, head {self.head}"


def chosen_head(state: RunState) -> tuple[int, int]:
    """The layer and the head; at first those of the run's own layer."""
    assert state.manifest is not None
    shape, own = state.manifest.shape, int(state.manifest.model["layer"])
    layers = list(range(1, shape.layers + 1))
    with st.container(horizontal=True, gap="small"):
        layer = linked(
            st.selectbox,
            "Layer",
            "layer",
            layers,
            own,
            format_func=lambda number: f"{number} · this run's" if number == own else str(number),
            help="Layers are counted from 1. The run's vectors, and with them the heads' roles, are of one layer.",
        )
        return layer, choose_head(shape.heads)


@shows_mistakes
def overview(shown: AttentionView) -> None:
    """Every head of every layer by its type."""
    st.subheader("Every head by its type", help=why("attention type", "attention", "sink", "delimiters"), anchor=False)
    rows = attention_rows(shown.state)
    counts = Counter(row["type"] for row in rows.values())
    manifest = shown.state.manifest
    assert manifest is not None
    step = manifest.steps["attention"]
    said = ", ".join(f"{counts[name]} {name}" for name in TYPES if counts[name])
    st.markdown(plain(f"{len(rows):,} heads: {said}."))
    grid = type_grid(rows, shown.shape, show.theme())
    layer_grid(grid, "attention grid", GridCell(shown.layer - 1, shown.head - 1), _pick)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            plain(
                f"From {step.counts.get('documents', 0):,} documents, {step.counts.get('tokens', 0):,} tokens. Click a "
                "head to look at it."
            )
        )
        show.downloads("attention types", lambda: pa.Table.from_pylist(list(rows.values())))


def type_grid(rows: dict[tuple[int, int], Row], shape: ModelShape, theme: str) -> LayerGrid:
    colours = ATTENTION_TYPES[theme]

    def cell(layer: int, head: int) -> Cell:
        row = rows[layer, head]
        said = evidence_of(row, row["type"]).removeprefix("no rule holds: ")
        return Cell(colours[row["type"]], f"Layer {layer}, head {head}: {row['type']}\n{said}", LETTERS[row["type"]])

    group = shape.heads // shape.kv_heads
    present = {row["type"] for row in rows.values()}
    kinds = [(colours[name], f"{name} ({LETTERS[name]})" if LETTERS[name] else name) for name in TYPES]
    return LayerGrid(
        label="Attention type of every head.",
        rows=[f"layer {layer}" for layer in range(1, shape.layers + 1)],
        columns=[str(head) for head in range(1, shape.heads + 1)],
        cells=[[cell(layer, head) for head in range(1, shape.heads + 1)] for layer in range(1, shape.layers + 1)],
        legend=ColourKey([kind for kind, name in zip(kinds, TYPES, strict=True) if name in present]),
        breaks=tuple(range(group, shape.heads, group)) if group > 1 else (),
        name="attention-types",
    )


def _pick(place: GridCell) -> None:
    decide("layer", place.row + 1)
    decide("head", place.column + 1)
