"""The parts of an embedding's length as one bar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from core.analysis.explained import rounded_to_sum, signed
from core.analysis.wording import PERCENT
from core.runs.tables import Row
from pages.shared.figures.template import LEGEND_ABOVE, PERCENT_TICKS, template
from pages.shared.theme import GROUND, INK, MUTED, SEQUENTIAL, SERIES, colour_at, ink_on

_NAMED = 0.055
"""A part from which on it has its name within the bar."""


def segments(rows: Sequence[Row]) -> list[tuple[str, str, Row]]:
    """``(name, short name, row)`` of the bar's parts from left to right; their means add up to 1."""
    sums = {row["kind"]: row for row in rows if row["layer"] is None}
    layers = sorted((row for row in rows if row["kind"] == "heads" and row["layer"]), key=lambda row: int(row["layer"]))
    found = [("embeddings", "embeddings", sums["embedding"])]
    found += [(f"heads of layer {row['layer']}", f"heads {row['layer']}", row) for row in layers]
    return [*found, ("feed-forward blocks", "feed-forward", sums["mlps"]), ("biases", "biases", sums["biases"])]


def whose_figure(rows: Sequence[Row], theme: str) -> go.Figure:
    """Embeddings, the heads of every layer, feed-forward blocks and biases; what is negative lies left of 0."""
    parts = segments(rows)
    shown = 100 * rounded_to_sum([row["mean"] for *_, row in parts], 1.0, 3)
    layers = len(parts) - 3
    colours = [SERIES[theme][4]]
    colours += [colour_at(0.25 + 0.75 * (at + 1) / layers, SEQUENTIAL[theme]) for at in range(layers)]
    colours += [SERIES[theme][2], SERIES[theme][5]]
    of_heads = float(shown[1 : 1 + layers].sum())
    depth = f"layers 1 (pale) to {layers}" if layers > 1 else "layer 1"
    traces = []
    for at, ((name, short, row), value, colour) in enumerate(zip(parts, shown.tolist(), colours, strict=True)):
        of_a_head = 1 <= at <= layers
        wide = abs(value) >= 100 * _NAMED
        text = f"{short}<br>{signed(value, 1)} %" if wide else ""
        traces.append(
            go.Bar(
                orientation="h",
                y=[""],
                x=[value],
                name=f"heads of {depth}: {signed(of_heads, 1)}{PERCENT}"
                if of_a_head
                else f"{name}: {signed(value, 1)}{PERCENT}",
                showlegend=not of_a_head or at == layers,
                marker={"color": colour, "line": {"color": GROUND[theme], "width": 1}},
                text=[text],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                textfont={"color": ink_on(colour)},
                customdata=[[signed(value, 1), *(signed(100 * row[end], 1) for end in ("low", "high"))]],
                hovertemplate=f"{name}<br>%{{customdata[0]}}{PERCENT} (95{PERCENT} CI %{{customdata[1]}} to "
                f"%{{customdata[2]}}{PERCENT})<extra></extra>",
            )
        )
    low = min(0.0, float(np.minimum(shown, 0).sum()))
    figure = go.Figure(traces)
    figure.layout = {
        "template": template(theme),
        "barmode": "relative",
        "height": 190,
        "margin": {"l": 10, "r": 14, "t": 46, "b": 40},
        "uniformtext": {"minsize": 10, "mode": "hide"},
        "legend": {**LEGEND_ABOVE, "traceorder": "normal"},
        "yaxis": {"visible": False},
        "xaxis": {
            "range": [1.02 * low, 100 - low + 1],
            **PERCENT_TICKS,
            "zeroline": True,
            "zerolinecolor": INK[theme],
            "title": {"text": "of the embedding's length", "font": {"color": MUTED[theme]}},
        },
        "dragmode": False,
    }
    return figure
