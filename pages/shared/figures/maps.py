"""Small maps of the stages side by side: arrays in, figures out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from core.model.shape import ModelShape
from core.model.stages import STAGES
from pages.shared.figures.template import in_steps, template
from pages.shared.theme import CHART_SIZE, INK, QUIET, TICK_SIZE, head_colours

_MOST_POINTS = 2_500
"""Of a small map: more would only lie on each other."""
_APART = 0.03
"""Between two small maps, as a share of the figure's width."""


def stage_maps_figure(
    maps: Mapping[int, np.ndarray],
    shape: ModelShape,
    theme: str,
    own: Mapping[int, np.ndarray] | None = None,
    height: int = 300,
) -> go.Figure:
    """Each stage's ``[doc, head, 2]``, or a sample of them, as a small map, coloured by head.

    With ``own``, by stage the places ``[head, 2]`` of one document, its heads stand out, numbered, and all other points
    are a grey ground.
    """
    colours = head_colours(shape.heads, shape.kv_heads, theme)
    wide = (1 - _APART * (len(maps) - 1)) / len(maps)
    data: list[dict[str, object]] = []
    layout: dict[str, object] = {}
    titles = []
    for number, (stage, places) in enumerate(maps.items()):
        left, name = number * (wide + _APART), str(number + 1) if number else ""
        on = axis_names(number + 1)
        data.append(_ground(places, colours if own is None else [QUIET[theme]], 0.6 if own is None else 0.28) | on)
        if own is not None:
            data.append(_one_document(own[stage], colours, theme) | on)
        layout[f"xaxis{name}"] = {"domain": [left, left + wide], "anchor": f"y{name}", "visible": False}
        # As wide as high in the data's own unit: on a narrow screen a map gets smaller, not thinner.
        layout[f"yaxis{name}"] = {"anchor": f"x{name}", "scaleanchor": f"x{name}", "visible": False}
        titles.append(_title(f"Stage {stage}<br>{STAGES[stage].name}", left + wide / 2, theme))
    # In one piece: subplots, traces and titles one by one take plotly ten times as long.
    return go.Figure(
        data,
        layout
        | {
            "template": template(theme),
            "height": height,
            "showlegend": False,
            "margin": {"l": 4, "r": 4, "t": 44, "b": 4},
            "dragmode": False,
            "annotations": titles,
        },
    )


def axis_names(map_number: int) -> dict[str, str]:
    """What puts a trace onto one of the small maps, from 1."""
    name = str(map_number) if map_number > 1 else ""
    return {"xaxis": f"x{name}", "yaxis": f"y{name}"}


_SIDES = {
    "top center": (0.0, 0.06),
    "bottom center": (0.0, -0.06),
    "middle right": (0.045, 0.0),
    "middle left": (-0.045, 0.0),
    "top right": (0.04, 0.05),
    "bottom left": (-0.04, -0.05),
}
"""Where a label stands beside its point, as shares of a small map."""


def label_positions(places: np.ndarray) -> list[str]:
    """For each of ``places[point, 2]`` the side on which its label keeps farthest from points and other labels.

    Points in the same place get different sides; a point with room around it has its label above.
    """
    spread = float(np.ptp(places, axis=0).max()) or 1.0
    at = places / spread
    taken = at
    found = []
    for point in at:
        spots = {side: point + np.array(shift) for side, shift in _SIDES.items()}
        others = taken[np.abs(taken - point).sum(axis=1) > 1e-9]
        room = {side: min(np.abs(others - spot).max(axis=1).min(initial=1.0), 0.07) for side, spot in spots.items()}
        side = max(room, key=lambda side: room[side])  # the first of equals
        taken = np.vstack([taken, spots[side]])
        found.append(side)
    return found


def small_maps_table(maps: Mapping[int, np.ndarray], numbers: np.ndarray) -> pa.Table:
    """The places of each stage's ``[doc, head, 2]`` that a small map shows; documents and heads from 1.

    ``numbers[doc]`` are the documents, from 0.
    """
    tables = []
    for stage, places in maps.items():
        docs, heads, _ = places.shape
        chosen = _sample(docs * heads)
        flat = places.reshape(-1, 2)[chosen]
        tables.append(
            pa.table(
                {
                    "stage": np.full(len(chosen), stage),
                    "document": numbers[chosen // heads] + 1,
                    "head": chosen % heads + 1,
                    "x": flat[:, 0],
                    "y": flat[:, 1],
                }
            )
        )
    return pa.concat_tables(tables)


def _sample(points: int) -> np.ndarray:
    return np.random.default_rng(0).choice(
        points, min(points, _MOST_POINTS), replace=False
    )  # shuffled: later paint over


def _title(text: str, middle: float, theme: str) -> dict[str, object]:
    place = {"x": middle, "xanchor": "center", "xref": "paper", "y": 1, "yanchor": "bottom", "yref": "paper"}
    return place | {"text": text, "showarrow": False, "font": {"size": CHART_SIZE, "color": INK[theme]}}


def _ground(places: np.ndarray, colours: Sequence[str], opacity: float) -> dict[str, object]:
    docs, heads, _ = places.shape
    chosen = _sample(docs * heads)
    flat = places.reshape(-1, 2)[chosen]
    marker: dict[str, object] = {"size": 3, "opacity": opacity, "color": colours[0]}
    if len(colours) > 1:
        marker |= in_steps(chosen % heads, colours)
    points = {"type": "scattergl", "x": flat[:, 0], "y": flat[:, 1], "mode": "markers"}
    return points | {"marker": marker, "hoverinfo": "skip"}


def _one_document(places: np.ndarray, colours: Sequence[str], theme: str) -> dict[str, object]:
    return {
        "type": "scattergl",  # as the ground: what WebGL draws lies over everything else
        "x": places[:, 0],
        "y": places[:, 1],
        "mode": "markers+text",
        "text": [str(head) for head in range(1, len(places) + 1)],
        "textposition": label_positions(places),
        "textfont": {"size": TICK_SIZE, "color": INK[theme]},
        "marker": {"size": 10, "color": list(colours), "line": {"color": INK[theme], "width": 1}},
        "hovertemplate": "head %{text}<extra></extra>",
    }
