"""One document's similarity in every head at every stage, drawn: arrays in, figures out."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from core.model.stages import STAGES
from pages.shared.figures.template import ACCENT, DIVERGING, template


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
            "shapes": [frame | {"line": {"color": ACCENT[look], "width": 2}}],
            "annotations": [
                {
                    "x": stage_at,
                    "y": head,
                    "text": signed(value),
                    "showarrow": False,
                    "font": {"size": 11.5, "color": ink_on(value / limit, look)},
                }
                for (head, stage_at), value in np.ndenumerate(values.astype(float))
            ],
        },
    )


def signed(value: float) -> str:
    """``+0.41``, ``−0.20``, ``0.00``."""
    text = f"{value:+.2f}"
    return "0.00" if text[1:] == "0.00" else text.replace("-", "−")


def ink_on(share: float, look: str) -> str:
    """Black or white, whichever reads better on the scale's colour for ``share``, from -1 to 1."""
    places = [float(str(at)) for at, _ in DIVERGING[look]]
    rgb = np.array([[int(str(colour)[at : at + 2], 16) for at in (1, 3, 5)] for _, colour in DIVERGING[look]]) / 255
    place = (min(1.0, max(-1.0, share)) + 1) / 2
    cell = np.array([np.interp(place, places, rgb[:, channel]) for channel in range(3)])
    linear = np.where(cell <= 0.04045, cell / 12.92, ((cell + 0.055) / 1.055) ** 2.4)
    light = float(linear @ np.array([0.2126, 0.7152, 0.0722]))  # WCAG's relative luminance
    return "#000000" if (light + 0.05) ** 2 > 1.05 * 0.05 else "#FFFFFF"  # never less than WCAG's 4.5 : 1
