"""Small maps of the stages side by side: arrays in, figures out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from core.palette import head_colours
from core.shape import ModelShape
from core.stages import STAGES
from pages.shared.figures import INK, QUIET, template

_MOST_POINTS = 2_500
"""Of a small map: more would only lie on each other."""
_APART = 0.03
"""Between two small maps, as a share of the figure's width."""


def stage_maps_figure(
    maps: Mapping[int, np.ndarray], shape: ModelShape, theme: str, doc: int | None = None, height: int = 300
) -> go.Figure:
    """Each stage's ``[doc, head, 2]`` as a small map, coloured by head.

    With ``doc`` its heads stand out, numbered, and all other points are a grey ground.
    """
    colours = head_colours(shape.heads, shape.kv_heads, theme)
    wide = (1 - _APART * (len(maps) - 1)) / len(maps)
    data: list[dict[str, object]] = []
    layout: dict[str, object] = {}
    titles = []
    for number, (stage, places) in enumerate(maps.items()):
        left, name = number * (wide + _APART), str(number + 1) if number else ""
        on = {"xaxis": f"x{name}", "yaxis": f"y{name}"}
        data.append(_ground(places, colours if doc is None else [QUIET[theme]], 0.6 if doc is None else 0.28) | on)
        if doc is not None:
            data.append(_one_document(places[doc], colours, theme) | on)
        layout[f"xaxis{name}"] = {"domain": [left, left + wide], "anchor": f"y{name}", "visible": False}
        layout[f"yaxis{name}"] = {"anchor": f"x{name}", "visible": False}
        titles.append(_title(f"Stage {stage} · {STAGES[stage].name}", left + wide / 2, theme))
    # In one piece: subplots, traces and titles one by one take plotly ten times as long.
    return go.Figure(
        data,
        layout
        | {
            "template": template(theme),
            "height": height,
            "showlegend": False,
            "margin": {"l": 4, "r": 4, "t": 30, "b": 4},
            "dragmode": False,
            "annotations": titles,
        },
    )


def _title(text: str, middle: float, theme: str) -> dict[str, object]:
    place = {"x": middle, "xanchor": "center", "xref": "paper", "y": 1, "yanchor": "bottom", "yref": "paper"}
    return place | {"text": text, "showarrow": False, "font": {"size": 13, "color": INK[theme]}}


def _ground(places: np.ndarray, colours: Sequence[str], opacity: float) -> dict[str, object]:
    docs, heads, _ = places.shape
    many = docs * heads
    chosen = np.random.default_rng(0).choice(many, min(many, _MOST_POINTS), replace=False)  # shuffled: later paint over
    flat = places.reshape(-1, 2)[chosen]
    marker: dict[str, object] = {"size": 3, "opacity": opacity, "color": colours[0]}
    if len(colours) > 1:
        # Numbers on a scale of steps, for plotly looks at every text of a list of colours: a tenth of a second a map.
        steps = [[at / heads, colour] for head, colour in enumerate(colours) for at in (head, head + 1)]
        marker |= {"color": chosen % heads + 0.5, "cmin": 0, "cmax": heads, "colorscale": steps, "showscale": False}
    points = {"type": "scattergl", "x": flat[:, 0], "y": flat[:, 1], "mode": "markers"}
    return points | {"marker": marker, "hoverinfo": "skip"}


def _one_document(places: np.ndarray, colours: Sequence[str], theme: str) -> dict[str, object]:
    return {
        "type": "scatter",
        "x": places[:, 0],
        "y": places[:, 1],
        "mode": "markers+text",
        "text": [str(head) for head in range(1, len(places) + 1)],
        "textposition": "top center",
        "textfont": {"size": 11, "color": INK[theme]},
        "marker": {"size": 10, "color": list(colours), "line": {"color": INK[theme], "width": 1}},
        "hovertemplate": "head %{text}<extra></extra>",
    }
