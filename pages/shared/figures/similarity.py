"""One document's similarity in every head at every stage, drawn: arrays in, figures out."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from core.model.stages import STAGES
from pages.shared.figures.template import template
from pages.shared.theme import DIVERGING, FRAME, colour_at, ink_on


def colour_limit(values: np.ndarray) -> float:
    """The scale's end: all cells but the strongest hundredth lie within, in steps of 0.05."""
    strong = float(np.quantile(np.abs(values), 0.99)) if values.size else 0.0
    return max(0.05, round(np.ceil(strong * 20 - 1e-6) / 20, 2))


def similarity_figure(values: np.ndarray, stages: tuple[int, ...], row: int, stage: int, look: str) -> go.Figure:
    """One document's ``values[1 + head, stage]``; the clicked cell is framed."""
    limit = colour_limit(values)
    names = ["full", *(f"head {head}" for head in range(1, len(values)))]
    cells = go.Heatmap(
        z=values,
        x=[f"{number} {STAGES[number].name}" for number in stages],
        y=list(range(len(values))),
        customdata=np.array([[name] * len(stages) for name in names]),
        zmin=-limit,
        zmax=limit,
        colorscale=DIVERGING[look],
        showscale=False,
        xgap=2,
        ygap=1,
        hovertemplate="%{customdata}, stage %{x}<br>%{z:+.3f}<extra></extra>",
    )
    at = stages.index(stage)
    frame = {"type": "rect", "x0": at - 0.5, "x1": at + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    # In one piece: adding a hundred numbers one by one takes plotly two seconds.
    return go.Figure(
        cells,
        layout={
            "template": template(look),
            "height": 44 + max(17, min(26, 420 // len(values))) * len(values),
            "margin": {"l": 62, "r": 4, "t": 30, "b": 4},
            "xaxis": {"side": "top", "fixedrange": True},
            "yaxis": {
                "autorange": "reversed",
                "tickvals": list(range(len(names))),
                "ticktext": names,
                "fixedrange": True,
            },
            "dragmode": False,
            "shapes": [frame | {"line": {"color": FRAME[look], "width": 2}}],
            "annotations": [
                {
                    "x": stage_at,
                    "y": head,
                    "text": signed(value),
                    "showarrow": False,
                    "font": {"size": 11.5, "color": ink_on(cell_colour(value / limit, look))},
                }
                for (head, stage_at), value in np.ndenumerate(values.astype(float))
            ],
        },
    )


def signed(value: float) -> str:
    """``+0.41``, ``−0.20``, ``0.00``."""
    text = f"{value:+.2f}"
    return "0.00" if text[1:] == "0.00" else text.replace("-", "−")


def cell_colour(share: float, theme: str) -> str:
    """The diverging scale's colour for ``share``, from -1 to 1."""
    return colour_at((share + 1) / 2, DIVERGING[theme])
