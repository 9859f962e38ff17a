"""Heads by how well they follow a topic: arrays in, a Plotly figure out."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from core.analysis.topic_heads import AVOIDS, FOLLOWS, UNCLEAR, TopicHeads
from pages.shared.figures.template import LEGEND_ABOVE, error_bars, template
from pages.shared.figures.topic_gaps import side_colour
from pages.shared.theme import GRID_LINE, INK, QUIET, SERIES

_SIDES = {FOLLOWS: 1, AVOIDS: -1, UNCLEAR: 0}


def heads_figure(found: TopicHeads, theme: str) -> go.Figure:
    """The full embedding, then every head, best first: a dot with its interval on the band of random slices."""
    order = [0, *found.ranking.tolist()]
    place = {row: at for at, row in enumerate(order)}
    figure, ends = go.Figure(), [-0.6, len(order) - 0.4]
    quiet = QUIET[theme]
    for low, high, shade, name in (
        (found.null.min(), found.null.max(), "22", "all random slices"),
        (*np.quantile(found.null, [0.025, 0.975]), "55", "95 % of random slices"),
    ):
        figure.add_scatter(
            x=[low, high, high, low], y=[ends[0], ends[0], ends[1], ends[1]], fill="toself",
            fillcolor=f"{quiet}{shade}", mode="lines", line={"width": 0}, name=name, hoverinfo="skip",
        )  # fmt: skip
    figure.add_scatter(
        x=[0.5, 0.5], y=ends, mode="lines", line={"color": INK[theme], "width": 1.5, "dash": "dot"}, name="chance",
        hoverinfo="skip",
    )  # fmt: skip
    verdicts = ["full embedding", *found.verdicts]
    for name in ("full embedding", *_SIDES):
        rows = [row for row in order if verdicts[row] == name]
        if not rows:
            continue
        colour = SERIES[theme][2] if name == "full embedding" else side_colour(_SIDES[name], theme)
        value, low, high = (part[rows] for part in (found.auc.value, found.auc.low, found.auc.high))
        symbol = {"full embedding": "diamond", UNCLEAR: "circle-open"}.get(name, "circle")
        figure.add_scatter(
            x=value, y=[place[row] for row in rows], mode="markers", name=name,
            marker={"size": 9, "color": colour, "symbol": symbol, "line": {"width": 1.5}},
            error_x=error_bars(value, low, high, thickness=1.8, width=0, color=colour),
            customdata=[[_name(row), low_, high_] for row, low_, high_ in zip(rows, low, high, strict=True)],
            hovertemplate=f"%{{customdata[0]}}: %{{x:.2f}} (%{{customdata[1]:.2f}}–%{{customdata[2]:.2f}})<br>{name}"
            "<extra></extra>",
        )  # fmt: skip
    row = max(15, min(24, 460 // len(order)))
    figure.layout = {
        "template": template(theme),
        "height": 110 + row * len(order),
        "margin": {"l": 110, "r": 14, "t": 52, "b": 46},
        "yaxis": {
            "range": ends[::-1],
            "tickvals": list(range(len(order))),
            "ticktext": [_name(row) for row in order],
            "fixedrange": True,
        },
        "xaxis": {
            "title": {"text": "AUC: how often a document of the topic scores higher than another one"},
            "tickformat": ".2~f",
            "showgrid": True,
            "gridcolor": GRID_LINE[theme],
            "fixedrange": True,
        },
        "legend": LEGEND_ABOVE,
        "dragmode": False,
    }
    return figure


def _name(row: int) -> str:
    return f"head {row}" if row else "full embedding"
