"""The figures of the page Your document: arrays in, Plotly figures out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from core.analysis.document_profile import Ranks, Reliability
from pages.shared.figures.reliability import LINE, fade, rates_below_numbers, right_for, solidity
from pages.shared.figures.similarity import colour_limit
from pages.shared.figures.template import template
from pages.shared.text import drawn, short_names
from pages.shared.theme import DIVERGING, FRAME, GROUND, INK, LABEL_SIZE, QUIET, SERIES, TICK_SIZE

MOST_TOPICS = 40
"""Rows of a heat map; more could not be read."""
_ROW = 20
_ABOVE, _BELOW = 30, 48
"""Pixels: of a row, and of the heat map's margins for the columns' names and for the scale."""


def shown_topics(order: np.ndarray, choices: np.ndarray) -> np.ndarray:
    """The topics to draw, in the full embedding's order: the first ones, and those that heads vote for."""
    order = np.asarray(order)
    keep = np.zeros(len(order), dtype=bool)
    keep[:MOST_TOPICS] = True
    keep |= np.isin(order, choices)
    if keep.sum() > MOST_TOPICS:  # many topics, and votes far down: those give way that nobody votes for
        spare = np.flatnonzero(keep & ~np.isin(order, choices))
        keep[spare[max(0, MOST_TOPICS - int(np.isin(order, choices).sum())) :]] = False
    found: np.ndarray = order[keep]
    return found


def scale(values: np.ndarray, measure: str) -> dict[str, Any]:
    """The ends of the colours: percentiles go from 0 to 100 around 50, cosines as far as they reach around 0."""
    if measure == "percentile":
        return {"zmin": 0, "zmax": 100}
    limit = colour_limit(values)
    return {"zmin": -limit, "zmax": limit}


def profile_figure(
    values: np.ndarray,
    topics: Sequence[str],
    votes: np.ndarray,
    head: int,
    measure: str,
    theme: str,
    reliability: Reliability | None = None,
) -> go.Figure:
    """``values[1 + head, topic]`` as cells, a column a head, for topics have long names and screens may be narrow.

    A dot stands where each head votes (``votes[head]``, an index into ``topics``, -1 for one that is not drawn). With
    ``reliability``, unreliable heads fade, and those without a vote have no dot.
    """
    heads = len(values) - 1
    columns = ["full", *(str(number) for number in range(1, 1 + heads))]
    names = ["full embedding", *(f"head {name}" for name in columns[1:])]
    if reliability is not None:
        names = [f"{name}, {right_for(rate)}" for name, rate in zip(names, reliability.rates, strict=True)]
        votes = np.where(reliability.weights > 0, votes, -1)
    figure = _cells(values, columns, names, topics, measure, theme)
    solid = solidity(reliability, heads)
    if reliability is not None:
        fade(figure, solid, range(len(columns)), range(len(topics)), theme)
        if rates_below_numbers(figure, columns, reliability.rates, range(len(columns))):
            figure.update_layout(margin={"t": _ABOVE + LINE})
            _name_ticks(figure, "head<br>right of 100")
    places = np.flatnonzero(votes >= 0)
    figure.add_trace(
        go.Scatter(
            x=places + 1,
            y=votes[places],
            mode="markers",
            marker={
                "size": 7,
                "color": INK[theme],
                "line": {"color": GROUND[theme], "width": 1.5},
                "opacity": 0.4 + 0.6 * solid[places + 1],
            },
            hoverinfo="skip",
        )
    )
    ends = {"y0": -0.5, "y1": len(topics) - 0.5}
    figure.add_shape(type="rect", x0=head - 0.5, x1=head + 0.5, **ends, line={"color": FRAME[theme], "width": 2})
    figure.add_shape(type="line", x0=0.5, x1=0.5, **ends, line={"color": INK[theme], "width": 1})
    return figure


def _name_ticks(figure: go.Figure, text: str) -> None:
    """Left of the ticks above the cells, over the topics' names."""
    ends = {"x": 0, "xref": "x domain", "xanchor": "right", "y": 1, "yref": "y domain", "yanchor": "bottom"}
    figure.add_annotation(text=text, align="right", xshift=-4, showarrow=False, font={"size": TICK_SIZE}, **ends)


def along_figure(values: np.ndarray, topics: Sequence[str], measure: str, theme: str) -> go.Figure:
    """``values[chunk, topic]`` of one head: the document from left to right."""
    numbers = [str(number) for number in range(1, len(values) + 1)]
    figure = _cells(values, numbers, [f"chunk {number}" for number in numbers], topics, measure, theme)
    figure.update_xaxes(title={"text": "chunk, from the beginning of the document to its end"})
    return figure.update_layout(height=figure.layout.height + 20, margin={"t": _ABOVE + 20})


def _cells(
    values: np.ndarray,
    columns: Sequence[str],
    long_names: Sequence[str],
    topics: Sequence[str],
    measure: str,
    theme: str,
) -> go.Figure:
    """``values[column, topic]`` with topics from top to bottom."""
    unit = "percentile %{z:.0f}" if measure == "percentile" else "cosine %{z:+.3f}"
    figure = go.Figure(
        go.Heatmap(
            z=values.T,
            x=list(range(len(columns))),
            y=list(range(len(topics))),
            customdata=np.array([[[name, drawn(topic)] for name in long_names] for topic in topics]),
            colorscale=DIVERGING[theme],
            xgap=1,
            ygap=1,
            hovertemplate="%{customdata[0]}, %{customdata[1]}<br>" + unit + "<extra></extra>",
            # Below: beside the cells it would take the width that a narrow screen has not got.
            colorbar={
                "orientation": "h",
                "thickness": 8,
                "outlinewidth": 0,
                "len": 0.6,
                "lenmode": "fraction",
                "x": 0,
                "xanchor": "left",
                "y": -8 / (_ROW * len(topics)),
                "yanchor": "top",
                "tickfont": {"size": TICK_SIZE},
            },
            **scale(values, measure),
        )
    )
    step = max(1, len(columns) // 33)
    figure.layout = {
        "template": template(theme),
        "height": _ABOVE + _BELOW + _ROW * len(topics),
        "margin": {"l": 8, "r": 4, "t": _ABOVE, "b": _BELOW},
        "xaxis": {
            "side": "top",
            "tickangle": 0,
            "tickfont": {"size": TICK_SIZE},
            "tickvals": list(range(0, len(columns), step)),
            "ticktext": list(columns[::step]),
            "range": [-0.5, len(columns) - 0.5],
            "fixedrange": True,
        },
        "yaxis": {
            "range": [len(topics) - 0.5, -0.5],
            "tickvals": list(range(len(topics))),
            "ticktext": short_names(topics, 24),
            "tickfont": {"size": LABEL_SIZE},
            "automargin": True,
            "fixedrange": True,
        },
        "showlegend": False,
        "dragmode": False,
    }
    return figure


def activation_figure(activation: np.ndarray, corpus: Ranks, head: int, theme: str) -> go.Figure:
    """``activation[head]`` as dots over what the corpus's ``[head, doc]`` have: its middle half, and nine tenths."""
    names = [f"head {number}" for number in range(1, len(activation) + 1)]
    bands = {"middle 90 % of the corpus": (0.05, 0.95, 3, 0.45), "middle half of the corpus": (0.25, 0.75, 10, 0.4)}
    figure = _over_the_corpus(activation, corpus, names, bands, "this document", "activation", theme)
    chosen = np.arange(1, len(activation) + 1) == head
    line = {"color": INK[theme], "width": np.where(chosen, 2, 0)}
    figure.data[-1].marker.update(size=np.where(chosen, 13, 9), line=line)
    return figure.update_xaxes(rangemode="tozero")


def pair_figure(cosines: np.ndarray, usual: Ranks, order: np.ndarray, theme: str) -> go.Figure:
    """Two documents' ``cosines[1 + head]`` over what pairs of the corpus have, rows in ``order`` of rows."""
    names = ["full" if row == 0 else f"head {row}" for row in order]
    bands = {"middle half of pairs of corpus documents": (0.25, 0.75, 10, 0.4)}
    ranks = Ranks(usual.values[order])
    return _over_the_corpus(cosines[order], ranks, names, bands, "these two", "cosine of the two documents", theme)


def _over_the_corpus(
    values: np.ndarray,
    corpus: Ranks,
    names: Sequence[str],
    bands: Mapping[str, tuple[float, float, int, float]],
    own: str,
    what: str,
    theme: str,
) -> go.Figure:
    """``values[row]`` as dots over bands of the corpus: by name the lower and upper share, the width, the opacity."""
    rows = np.arange(len(values))
    figure = go.Figure()
    for name, (low, high, width, opacity) in bands.items():
        ends = np.stack([_quantile(corpus, low), _quantile(corpus, high), np.full(len(rows), np.nan)], axis=1)
        figure.add_scatter(
            x=ends.reshape(-1),
            y=np.repeat(rows, 3),
            mode="lines",
            line={"color": QUIET[theme], "width": width},
            opacity=opacity,
            name=name,
            hoverinfo="skip",
        )
    figure.add_scatter(
        x=values,
        y=rows,
        mode="markers",
        marker={"size": 10, "color": SERIES[theme][1]},
        text=names,
        customdata=corpus.percentile(values),
        hovertemplate="%{text}<br>" + what.split()[0] + " %{x:.2f}, percentile %{customdata:.0f}<extra></extra>",
        name=own,
    )
    step = max(1, len(rows) // 33)
    return figure.update_layout(
        template=template(theme),
        height=110 + _ROW * len(rows),
        margin={"l": 62, "r": 14, "t": 34, "b": 44},
        xaxis={"title": {"text": what}, "fixedrange": True},
        yaxis={
            "range": [len(rows) - 0.4, -0.6],
            "tickvals": rows[::step],
            "ticktext": list(names[::step]),
            "fixedrange": True,
        },
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": LABEL_SIZE}},
        dragmode=False,
    )


def _quantile(ranks: Ranks, share: float) -> np.ndarray:
    """``[row]``: the value below which ``share`` of the corpus lies; its values are sorted already."""
    last = ranks.values.shape[-1] - 1
    found: np.ndarray = ranks.values[..., round(share * last)].astype(np.float32)
    return found
