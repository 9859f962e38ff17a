"""What Plotly figures have in common: the template, and intervals as bars or bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import plotly.graph_objects as go

from core.analysis.wording import PERCENT
from core.runs.tables import Row
from pages.shared.theme import CHART_SIZE, CLEAR, FONT, GROUND, INK, LABEL_SIZE


@cache
def template(theme: str) -> go.layout.Template:
    """Fonts, colours and margins of every figure."""
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": CHART_SIZE, "color": INK[theme]},
            "paper_bgcolor": GROUND[theme],  # the page's own: a saved picture has it too
            "plot_bgcolor": CLEAR,
            "margin": {"l": 66, "r": 10, "t": 10, "b": 40},
            "xaxis": {
                "showgrid": False,
                "zeroline": False,
                "ticks": "",
                "title": {"standoff": 8, "font": {"size": LABEL_SIZE}},
            },
            "yaxis": {
                "showgrid": False,
                "zeroline": False,
                "ticks": "",
                "ticklabelstandoff": 6,
                "title": {"standoff": 6, "font": {"size": LABEL_SIZE}},
            },
            "hoverlabel": {"font": {"family": FONT, "color": INK[theme]}, "bgcolor": GROUND[theme]},
        }
    )


PERCENT_TICKS: Mapping[str, Any] = {"ticksuffix": PERCENT}
"""Of an axis or a colour bar in percent, shares times 100: Plotly's own format for shares has no space before the
sign."""
LEGEND_ABOVE: Mapping[str, Any] = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}


def hover_number(name: str, in_percent: bool) -> str:
    """How a hover box writes a figure: as ``59.1 %``, shares times 100, or with three decimals."""
    return f"%{{{name}:.1f}}{PERCENT}" if in_percent else f"%{{{name}:.3f}}"


def error_bars(value: Any, low: Any, high: Any, **looks: Any) -> dict[str, Any]:
    """``error_x`` or ``error_y`` of intervals from ``low`` to ``high``; missing ends have no bar."""
    value, low, high = (np.asarray(part, dtype=float) for part in (value, low, high))
    return {
        "type": "data",
        "symmetric": False,
        "array": np.nan_to_num(high - value),
        "arrayminus": np.nan_to_num(value - low),
        "thickness": 1.5,
        "width": 4,
        **looks,
    }


def row_error_bars(rows: Sequence[Row], name: str = "value", prefix: str = "", **looks: Any) -> dict[str, Any]:
    """The same from rows that have ``low`` and ``high``, or these with a prefix."""
    return error_bars(*([row[key] for row in rows] for key in (name, f"{prefix}low", f"{prefix}high")), **looks)


def band(x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str, **looks: Any) -> dict[str, Any]:
    """The area between two curves, in a pale tone of ``colour``."""
    return {
        "type": "scatter",
        "x": [*x, *x[::-1]],
        "y": [*high, *low[::-1]],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": f"{colour}2B",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        **looks,
    }


def in_steps(codes: np.ndarray, colours: Sequence[str]) -> dict[str, object]:
    """What makes a marker's points ``colours[code]`` of ``codes[point]``.

    Numbers on a scale of steps: plotly looks at every text of a list of colours, a tenth of a second for a map.
    """
    count = len(colours)
    steps = [[at / count, colour] for code, colour in enumerate(colours) for at in (code, code + 1)]
    numbers = codes.astype(np.min_scalar_type(count - 1))  # a byte per point is sent, where that is enough
    return {"color": numbers, "cmin": -0.5, "cmax": count - 0.5, "colorscale": steps, "showscale": False}
