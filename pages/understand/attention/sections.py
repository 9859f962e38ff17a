"""The Attention page's upper part: the grid of all heads by type, and beside it one head's type and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.attention_measures import OFFSETS
from core.analysis.attention_types import TYPES, sentence
from core.analysis.wording import percent
from core.model.shape import ModelShape
from core.runs.steps import command
from core.runs.tables import Row
from pages.shared import show
from pages.shared.attention import LETTERS, attention_patterns, attention_rows, evidence_of, experiments
from pages.shared.components.beside import asked
from pages.shared.components.layer_grid import Cell, ColourKey, GridCell, LayerGrid, layer_grid
from pages.shared.controls import choose_head
from pages.shared.data import RunState
from pages.shared.figures.table import figure_table, interval, number
from pages.shared.glossary import why, why_rule
from pages.shared.notices import shows_mistakes
from pages.shared.section import section
from pages.shared.text import plain, safe
from pages.shared.theme import ATTENTION_TYPES
from pages.shared.url import decide, linked, linked_clicks
from pages.understand.attention.figures import NEAR, Pattern, pattern_figure

WORDS = {
    "previous": "Token before",
    "same": "Itself",
    "next": "Token after",
    "first": "First token",
    "delimiters": "Delimiters",
    "rare": "Rare tokens",
    "window": "Within 8 tokens",
    "distance": "Mean distance, tokens",
    "entropy": "Entropy",
}
"""The measures as people read them, in the order of the table."""


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
            format_func=lambda number: f"{number} · this run's layer" if number == own else str(number),
            help="Layers are counted from 1. The run's vectors, and so the heads' roles, come from one layer.",
        )
        return layer, choose_head(shape.heads)


@shows_mistakes
def overview(shown: AttentionView) -> None:
    """Every head of every layer by its type."""
    rows = attention_rows(shown.state)
    counts = Counter(row["type"] for row in rows.values())
    manifest = shown.state.manifest
    assert manifest is not None
    step = manifest.steps["attention"]
    said = ", ".join(f"{counts[name]} {name}" for name in TYPES if counts[name])
    st.markdown(plain(f"{len(rows):,} heads: {said}."))
    if experiments(shown.state) is None:
        st.info(
            "An older version measured this run: induction, relations and word similarity are missing. Run "
            f"`{command('attention', shown.state.run.name, '--again')}` to add them.",
            icon=":material/info:",
        )
    grid = type_grid(rows, shown.shape, show.theme())
    layer_grid(grid, "attention grid", GridCell(shown.layer - 1, shown.head - 1), _pick)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        told = (
            f"From {step.counts.get('documents', 0):,} documents, {step.counts.get('tokens', 0):,} tokens"
            f"{_sentences(step.counts)}."
        )
        st.caption(plain(f"{told} Click a head for its type and evidence."))
        table = partial(pa.Table.from_pylist, list(rows.values()))
        show.downloads("attention types", table, show.grid_paper(grid, told))


def _sentences(counts: Mapping[str, int]) -> str:
    return f", and {counts['sentences']:,} sentences with gold relations" if counts.get("sentences") else ""


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
        label="Attention type of every head, layers down and heads across.",
        rows=[f"layer {layer}" for layer in range(1, shape.layers + 1)],
        columns=[str(head) for head in range(1, shape.heads + 1)],
        cells=[[cell(layer, head) for head in range(1, shape.heads + 1)] for layer in range(1, shape.layers + 1)],
        legend=ColourKey([kind for kind, name in zip(kinds, TYPES, strict=True) if name in present]),
        breaks=tuple(range(group, shape.heads, group)) if group > 1 else (),
        name="attention-types",
    )


def details_open() -> bool:
    """Whether the panel beside the grid is open, by clicks or the address."""
    return bool(linked_clicks({"details": ((0, 1), 1)})["details"])


def close_details() -> None:
    """The panel beside the grid goes; a click on a cell brings it back."""
    decide("details", 0)


def _pick(place: GridCell) -> None:
    asked("types")
    decide("details", 1)
    decide("layer", place.row + 1)
    decide("head", place.column + 1)


@shows_mistakes
def verdict(shown: AttentionView) -> None:
    """The type, the rule in words, and the numbers that decided."""
    row = shown.row
    st.subheader(f"{shown.name}: {plain(row['type'])}", help=why_rule("attention type", row["type"]), anchor="head")
    st.markdown(plain(sentence(row["type"])))
    said = evidence_of(row, row["type"]).removeprefix("no rule holds: ")
    st.markdown(f"**Evidence** – {plain(said)}")
    for other in (row["types"] or [])[1:]:
        st.markdown(f"**Also {plain(other)}** – {plain(evidence_of(row, other))}")
    st.html(figure_table(["share", "shuffled"], 0, [(safe(WORDS[name]), _cells(row, name)) for name in WORDS]))
    st.caption(
        "Means over all tokens that can attend to more than one token, with 95 % CI over documents. Baseline: shuffled "
        "positions.",
        help=why("shuffled", "interval", "entropy", "sink", "delimiters", "rare tokens"),
    )


def _cells(row: Row, name: str) -> list[str]:
    value, shuffled = row[name], row[f"{name}_shuffled"]
    if value is None:
        return ["not possible", "–"]
    if name == "distance":
        ends = f"{row['distance_low']:.0f} to {row['distance_high']:.0f}"
        return [f"{value:.0f}<small>{safe(ends)}</small>", f"{shuffled:.0f}"]
    if name == "entropy":
        return [f"{safe(number(value))}<small>{safe(interval(row, name))}</small>", "the same"]
    ends = f"{percent(row[f'{name}_low'], 1)} to {percent(row[f'{name}_high'], 1)}"
    return [f"{percent(value, 1)}<small>{safe(ends)}</small>", percent(shuffled, 1)]


@shows_mistakes
def average(shown: AttentionView) -> None:
    """How far away it looks, on average."""
    section(f"Average pattern of layer {shown.layer}, head {shown.head}", "pattern", "attention", "sink", "shuffled")
    patterns, row = attention_patterns(shown.state), shown.row
    share, shuffled = patterns.share[shown.layer - 1, shown.head - 1], patterns.shuffled[shown.layer - 1]
    if not np.isfinite(share).all():
        st.info("No document in the sample has two tokens or more.", icon=":material/info:")
        return
    found, causal = Pattern.of(share), row["next"] is None
    show.figure(
        pattern_figure(found, Pattern.of(shuffled), causal, show.theme()),
        f"pattern of layer {shown.layer} head {shown.head}",
        pa.table({"offset": OFFSETS, "share": share, "shuffled": shuffled}),
        "Top: all of its attention, red on the text's first token, grey 32 or more tokens away, blue nearer. Bottom: "
        "the near part by distance." + (" A causal model never looks ahead." if causal else ""),
        alt=f"{shown.name} attends {percent(found.first)} to the first token, {percent(found.before)} far before, "
        f"{percent(found.near.sum())} nearby, most at distance {int(NEAR[int(np.argmax(found.near))])}, and "
        f"{percent(found.after)} far after.",
    )
