"""The figures of Compare runs: a map with its brush, and the CKA of heads across runs; nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from core.analysis.head_matching import HeadMatches
from core.model.shape import ModelShape
from pages.shared.figures.template import in_steps, template
from pages.shared.theme import CHART_SIZE, CLEAR, INK, QUIET, SEQUENTIAL, SERIES, TICK_SIZE, head_colours, topic_colours

_MOST_LABELS = 40


def map_figure(
    places: np.ndarray,
    shape: ModelShape,
    theme: str,
    head: int | None,
    chosen: np.ndarray | None,
    corners: np.ndarray | None,
    titles: Sequence[str],
    topics: np.ndarray | None,
    height: int,
) -> go.Figure:
    """``places[doc, head, axis]`` coloured by head, or of one ``head`` alone (from 0), by ``topics[doc]``.

    With ``chosen`` documents these stand out, and all others are a grey ground; ``corners`` is the brush that chose
    them, where it was drawn on this map. ``titles`` are escaped.
    """
    heads = np.arange(places.shape[1]) if head is None else np.array([head])
    shown = places[:, heads]
    every = np.arange(len(places))
    if chosen is None:
        data = [_points(shown, heads, every, titles, _colouring(heads, shape, theme, topics, len(places)))]
    else:
        grey = {"color": QUIET[theme], "opacity": 0.25}
        accent = {"color": SERIES[theme][1], "opacity": 0.9 if len(heads) == 1 else 0.55}
        data = [
            _points(shown, heads, every, titles, grey),
            _points(shown[chosen], heads, chosen, titles, accent),
        ]
    layout = {
        "template": template(theme),
        "height": height,
        "showlegend": False,
        "margin": {"l": 4, "r": 4, "t": 4, "b": 4},
        "dragmode": "select",
        "xaxis": {"visible": False},
        # As wide as high in the data's own unit: on a narrow screen a map gets smaller, not thinner.
        "yaxis": {"visible": False, "scaleanchor": "x"},
        "annotations": _labels(shown, heads, theme) if 1 < len(heads) <= _MOST_LABELS else [],
    }
    if corners is not None:
        path = "M" + "L".join(f"{x:.0f},{y:.0f}" for x, y in corners) + "Z"
        layout["shapes"] = [
            {
                "type": "path",
                "path": path,
                "line": {"color": INK[theme], "width": 1.5, "dash": "dot"},
                "fillcolor": CLEAR,
            }
        ]
    return go.Figure(data, layout)


def _colouring(
    heads: np.ndarray, shape: ModelShape, theme: str, topics: np.ndarray | None, docs: int
) -> dict[str, object]:
    """A marker's colours ``[doc × head]``: by head, or for one head by topic, where there are topics."""
    if len(heads) > 1:
        colours, codes = head_colours(shape.heads, shape.kv_heads, theme), np.tile(heads, docs)
    elif topics is not None:
        count = int(topics.max(initial=0)) + 1
        # The last colour is for documents without a topic.
        colours, codes = [*topic_colours(count, theme), QUIET[theme]], np.where(topics < 0, count, topics)
    else:
        return {"color": SERIES[theme][0], "opacity": 0.7}
    return {"opacity": 0.7, **in_steps(codes, colours)}


def _points(
    places: np.ndarray, heads: np.ndarray, docs: np.ndarray, titles: Sequence[str], marker: Mapping[str, object]
) -> dict[str, object]:
    """``places[doc, head, axis]`` as a trace; ``docs`` are their places among the ``titles``."""
    order = np.random.default_rng(0).permutation(len(places) * len(heads))  # later points paint over earlier ones
    flat, of_head = places.reshape(-1, 2)[order], np.tile(heads, len(places))[order]
    colour = marker["color"]
    look = {**marker, "size": 7 if len(heads) == 1 else 4}
    if isinstance(colour, np.ndarray):
        look["color"] = colour[order]
    points: dict[str, object] = {"type": "scattergl", "x": flat[:, 0], "y": flat[:, 1], "mode": "markers"}
    if len(heads) == 1:  # a title per point: with all heads that would be most of what is sent
        hover: dict[str, object] = {
            "text": [titles[doc] for doc in docs[order]],
            "hovertemplate": "%{text}<extra></extra>",
        }
    else:
        hover = {"customdata": of_head + 1, "hovertemplate": "head %{customdata}<extra></extra>"}
    return points | hover | {"marker": look}


def _labels(places: np.ndarray, heads: np.ndarray, theme: str) -> list[dict[str, object]]:
    """Each head's number on its island: at the point that is nearest to the middle of its points."""
    middle = np.median(places, axis=0)
    nearest = np.linalg.norm(places.astype(float) - middle, axis=2).argmin(axis=0)
    at = places[nearest, np.arange(len(heads))]
    look = {"showarrow": False, "font": {"size": CHART_SIZE, "color": INK[theme], "weight": 700}}
    return [{"x": int(x), "y": int(y), "text": str(head + 1), **look} for head, (x, y) in zip(heads, at, strict=True)]


def matches_figure(found: HeadMatches, names: tuple[str, str], theme: str) -> go.Figure:
    """CKA of every head here with every head there; a dot is a head's most similar, a filled one its counterpart."""
    rows, columns = found.cka.shape
    figure = go.Figure(
        go.Heatmap(
            z=found.cka,
            x=[str(head) for head in range(1, columns + 1)],
            y=[str(head) for head in range(1, rows + 1)],
            zmin=0,
            zmax=max(0.2, float(found.cka.max())),
            colorscale=SEQUENTIAL[theme],
            xgap=1,
            ygap=1,
            hovertemplate="head %{y} here, head %{x} there<br>CKA %{z:.2f}<extra></extra>",
            colorbar={
                "thickness": 10,
                "outlinewidth": 0,
                "tickformat": ".1f",
                "tickfont": {"size": TICK_SIZE},
                "title": {"text": "CKA", "font": {"size": TICK_SIZE}},
            },
        )
    )
    for chosen, symbol in ((found.claimed & ~found.counterparts, "circle-open"), (found.counterparts, "circle")):
        heads = np.flatnonzero(chosen)
        figure.add_scatter(
            x=[str(found.best[head] + 1) for head in heads],
            y=[str(head + 1) for head in heads],
            mode="markers",
            marker={
                "symbol": symbol,
                "size": 9,
                "color": SERIES[theme][1],
                "line": {"width": 2, "color": SERIES[theme][1]},
            },
            hoverinfo="skip",
            showlegend=False,
        )
    figure.layout = {
        "template": template(theme),
        "height": max(340, min(760, 110 + 24 * rows)),
        "yaxis": {
            "autorange": "reversed",
            "type": "category",
            "tickfont": {"size": TICK_SIZE},
            "title": {"text": f"head of {names[0]}"},
        },
        "xaxis": {
            "type": "category",
            "side": "top",
            "tickangle": 0,
            "tickfont": {"size": TICK_SIZE},
            "title": {"text": f"head of {names[1]}"},
        },
        "margin": {"l": 60, "r": 10, "t": 60, "b": 10},
        "dragmode": False,
    }
    return figure
