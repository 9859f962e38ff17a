"""The figures of the Ablation page: rows in, figures out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from core.analysis.ablation_effects import ANGLE, measure_name
from core.analysis.ablation_findings import amount, described
from core.analysis.null import WITHIN
from core.analysis.wording import PERCENT
from core.model.shape import ModelShape
from core.runs.tables import Row
from pages.shared.components.layer_grid import Cell, LayerGrid, Scale
from pages.shared.figures.template import LEGEND_ABOVE, PERCENT_TICKS, template
from pages.shared.text import drawn
from pages.shared.theme import DIVERGING, GRID_LINE, INK, MUTED, SEQUENTIAL, SERIES, SMALL_TICK_SIZE, colour_at

MOST_NAMED = 14
"""Heads whose names are in the scatter plot."""


def effect_grid(cells: Mapping[tuple[int, int], Row], measure: str, shape: ModelShape, theme: str) -> LayerGrid:
    """``cells`` by layer and head, head 0 for all heads of a layer; the colours are scaled by single heads."""
    single = np.array([row["change"] for (_, head), row in cells.items() if head])
    top = float(np.abs(single).max(initial=0.0)) or 1.0
    stops = SEQUENTIAL[theme] if measure == ANGLE else DIVERGING[theme]

    def cell(layer: int, head: int) -> Cell | None:
        row = cells.get((layer, head))
        if row is None:
            return None
        share = row["change"] / top if measure == ANGLE else 0.5 - 0.5 * row["change"] / top
        who = f"head {head}" if head else "all heads"
        label = f"Layer {layer}, {who}\n{measure_name(measure)} {described(row)}".replace("; ", "\n")
        return Cell(colour_at(share, stops), label, "●" if row["verdict"] not in (None, WITHIN) else "")

    ends = (amount(measure, 0.0), amount(measure, top)) if measure == ANGLE else (_points(top), _points(-top))
    breaks = [1]
    if 1 < shape.kv_heads < shape.heads:
        breaks = list(range(1, shape.heads, shape.heads // shape.kv_heads))
    return LayerGrid(
        label=f"Change of {measure_name(measure)} without each of {shape.heads} heads of {shape.layers} layers.",
        rows=[f"layer {layer}" for layer in range(1, shape.layers + 1)],
        columns=["all", *(str(head) for head in range(1, shape.heads + 1))],
        cells=[[cell(layer, head) for head in range(shape.heads + 1)] for layer in range(1, shape.layers + 1)],
        legend=Scale(stops, *ends),
        breaks=breaks,
        name=f"ablation-{measure.replace(' ', '-')}",
    )


@dataclass(frozen=True)
class Reading:
    """What an instrument that only reads says of one head."""

    value: float
    stands_out: bool


@dataclass(frozen=True)
class Instrument:
    """A way to read a head without switching it off."""

    name: str
    axis: str
    sign: str
    """What makes a head stand out."""
    missing: str

    def verdict(self, stands_out: bool, matters: bool) -> str:
        """The legend's words."""
        if stands_out:
            return f"{self.sign}, and matters" if matters else f"{self.sign}, but its removal stays within the noise"
        return f"matters, but {self.missing}" if matters else "neither"


SLICE = Instrument(
    "slice", "topic match of the head's slice alone, stage 1", "reads the topic", "its slice does not show it"
)
SHARE = Instrument("share", "direct share of the embedding", "has a large share", "its share is small")


@dataclass(frozen=True)
class ComparedHead:
    """One head by two instruments: what reading it says, and what its removal changes."""

    layer: int
    head: int
    read: float
    reads: bool
    """It stands out by what is read."""
    change: float
    matters: bool
    """Its removal changes the measure beyond the noise."""

    @property
    def name(self) -> str:
        return f"{self.layer}.{self.head}"


QUADRANTS = ((True, True), (True, False), (False, True), (False, False))
"""``reads`` and ``matters``, in the order of the legend."""


def compared(cells: Mapping[tuple[int, int], Row], readings: Mapping[tuple[int, int], Reading]) -> list[ComparedHead]:
    """The heads that both instruments know."""
    return [
        ComparedHead(
            *place, readings[place].value, readings[place].stands_out, float(row["change"]), row["verdict"] != WITHIN
        )
        for place, row in cells.items()
        if place in readings
    ]


def scatter_figure(
    heads: Sequence[ComparedHead], read_by: Instrument, measure: str, chosen: tuple[int, int], theme: str
) -> go.Figure:
    """What is read to the right, what the removal changes upwards; heads that disagree have names."""
    colours = dict(zip(QUADRANTS, (SERIES[theme][1], SERIES[theme][4], SERIES[theme][3], MUTED[theme]), strict=True))
    symbols = dict(zip(QUADRANTS, ("circle", "diamond", "square", "circle-open"), strict=True))
    factor = 1 if measure == ANGLE else 100
    named = [one for one in heads if one.reads or one.matters]
    named = sorted(named, key=lambda one: (one.reads == one.matters, -abs(one.change)))[:MOST_NAMED]
    figure = go.Figure()
    for kind in QUADRANTS:
        some = [one for one in heads if (one.reads, one.matters) == kind]
        if not some:
            continue
        figure.add_trace(
            go.Scatter(
                x=[100 * one.read for one in some],
                y=[factor * one.change for one in some],
                mode="markers+text",
                name=read_by.verdict(*kind),
                text=[one.name if one in named else "" for one in some],
                textposition="top center",
                textfont={"size": SMALL_TICK_SIZE},
                marker={
                    "size": 9,
                    "symbol": symbols[kind],
                    "color": colours[kind],
                    "line": {"width": [2.5 if (one.layer, one.head) == chosen else 0.5 for one in some]},
                },
                customdata=[[one.layer, one.head] for one in some],
                hovertemplate="layer %{customdata[0]}, head %{customdata[1]}<br>"
                f"{read_by.name} %{{x:.1f}}{PERCENT}<br>without it %{{y:+.1f}}<extra></extra>",
            )
        )
    figure.add_hline(y=0, line={"color": GRID_LINE[theme], "width": 1})
    figure.update_layout(
        template=template(theme),
        height=430,
        xaxis={**PERCENT_TICKS, "title": {"text": read_by.axis}},
        yaxis={
            "title": {
                "text": f"{drawn(measure_name(measure))} without it, {'degrees' if measure == ANGLE else 'points'}"
            },
            "tickfont": {"color": INK[theme]},
        },
        legend={**LEGEND_ABOVE, "font": {"size": SMALL_TICK_SIZE}},
        margin={"t": 70, "b": 50},
        dragmode=False,
    )
    return figure


def _points(change: float) -> str:
    return amount("names", change, signed=True)
