"""Small maps of the stages side by side: arrays in, figures out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
from plotly.subplots import make_subplots

from core.palette import head_colours
from core.shape import ModelShape
from core.stages import STAGES
from pages.shared.figures import INK, QUIET, template

_MOST_POINTS = 2_500
"""Of a small map: more would only lie on each other."""


def stage_maps_figure(
    maps: Mapping[int, np.ndarray], shape: ModelShape, theme: str, doc: int | None = None, height: int = 300
) -> go.Figure:
    """Each stage's ``[doc, head, 2]`` as a small map, coloured by head.

    With ``doc`` its heads stand out, numbered, and all other points are a grey ground.
    """
    titles = [f"Stage {stage} · {STAGES[stage].name}" for stage in maps]
    figure = make_subplots(1, len(maps), subplot_titles=titles, horizontal_spacing=0.03)
    colours = head_colours(shape.heads, shape.kv_heads, theme)
    for column, places in enumerate(maps.values(), start=1):
        figure.add_trace(
            _ground(places, colours if doc is None else [QUIET[theme]], 0.6 if doc is None else 0.28), 1, column
        )
        if doc is not None:
            figure.add_trace(_one_document(places[doc], colours, theme), 1, column)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.update_annotations(font={"size": 13, "color": INK[theme]})
    figure.update_layout(
        template=template(theme),
        height=height,
        showlegend=False,
        margin={"l": 4, "r": 4, "t": 30, "b": 4},
        dragmode=False,
    )
    return figure


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


def small_maps_table(maps: Mapping[int, np.ndarray]) -> pa.Table:
    """The places of each stage's ``[doc, head, 2]`` that a small map shows; documents and heads from 1."""
    tables = []
    for stage, places in maps.items():
        docs, heads, _ = places.shape
        chosen = _sample(docs * heads)
        flat = places.reshape(-1, 2)[chosen]
        tables.append(
            pa.table(
                {
                    "stage": np.full(len(chosen), stage),
                    "document": chosen // heads + 1,
                    "head": chosen % heads + 1,
                    "x": flat[:, 0],
                    "y": flat[:, 1],
                }
            )
        )
    return pa.concat_tables(tables)


def _sample(points: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(points)[:_MOST_POINTS]  # shuffled: later points paint over


def _ground(places: np.ndarray, colours: Sequence[str], opacity: float) -> go.Scattergl:
    docs, heads, _ = places.shape
    chosen = _sample(docs * heads)
    flat = places.reshape(-1, 2)[chosen]
    colour = np.array(colours * heads if len(colours) == 1 else colours)[chosen % heads]
    return go.Scattergl(
        x=flat[:, 0],
        y=flat[:, 1],
        mode="markers",
        marker={"size": 3, "color": colour, "opacity": opacity},
        hoverinfo="skip",
    )


def _one_document(places: np.ndarray, colours: Sequence[str], theme: str) -> go.Scattergl:
    numbers = [str(head) for head in range(1, len(places) + 1)]
    return go.Scattergl(  # as the ground: what WebGL draws lies over everything else
        x=places[:, 0],
        y=places[:, 1],
        mode="markers+text",
        text=numbers,
        textposition=label_positions(places),
        textfont={"size": 11, "color": INK[theme]},
        marker={"size": 10, "color": list(colours), "line": {"color": INK[theme], "width": 1}},
        hovertemplate="head %{text}<extra></extra>",
    )
