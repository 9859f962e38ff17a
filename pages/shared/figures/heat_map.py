"""The topic heat map as a Plotly figure: for notebooks and papers. The app draws it on a canvas, which is faster."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from core.analysis.heat_map import HeatMap
from pages.shared.figures.similarity import colour_limit
from pages.shared.figures.template import template
from pages.shared.text import short_names
from pages.shared.theme import DIVERGING, INK, TICK_SIZE


def heat_map_figure(cells: HeatMap, names: Sequence[str], theme: str) -> go.Figure:
    """``names[topic]``; rows are the full embedding and the heads, columns documents in blocks by topic."""
    rows, columns = cells.values.shape
    limit, starts = colour_limit(cells.values), cells.starts.tolist()
    ends = [*starts[1:], columns]
    step = max(1, (rows - 1) // 16)
    shown = [0, *range(1, rows, step)]
    blocks = short_names([names[topic] for topic in cells.topics[cells.starts]], 22)
    return go.Figure(
        go.Heatmap(
            z=cells.values,
            zmin=-limit,
            zmax=limit,
            colorscale=DIVERGING[theme],
            hovertemplate="row %{y}, column %{x}<br>%{z:+.3f}<extra></extra>",
            colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": "+.2~f"},
        ),
        layout={
            "template": template(theme),
            "height": 150 + max(11, min(26, 460 // rows)) * rows,
            "margin": {"l": 66, "r": 10, "t": 110, "b": 10},
            "xaxis": {
                "side": "top",
                "tickvals": [(first + last - 1) / 2 for first, last in zip(starts, ends, strict=True)],
                "ticktext": blocks,
                "tickangle": -35,
                "tickfont": {"size": TICK_SIZE},
            },
            "yaxis": {
                "autorange": "reversed",
                "tickvals": shown,
                "ticktext": ["full" if not row else f"head {row}" for row in shown],
                "tickfont": {"size": TICK_SIZE},
            },
            "shapes": [
                {"type": "line", "x0": at - 0.5, "x1": at - 0.5, "y0": -0.5, "y1": rows - 0.5, "line": line(theme)}
                for at in starts[1:]
            ],
        },
    )


def line(theme: str) -> dict[str, object]:
    """Between two blocks."""
    return {"color": INK[theme], "width": 1}
