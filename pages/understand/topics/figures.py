"""The figures of the page Topics: arrays in, Plotly figures out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from core.analysis import study
from core.analysis.wording import PERCENT
from core.runs.tables import Row
from pages.shared.figures.template import PERCENT_TICKS, error_bars, template
from pages.shared.text import drawn, short_names
from pages.shared.theme import GRID_LINE, INK, LABEL_SIZE, QUIET, SEQUENTIAL, SERIES, SMALL_TICK_SIZE, TICK_SIZE

_ROW = 24
"""Pixels of height for a row with a name."""


@dataclass(frozen=True)
class Rates:
    """``value[method, k]`` with their 95 % intervals, ``chance[k]`` and ``majority[k]``, for the nearest ``within[k]``.

    ``study[k]``, or None, belongs to the first method.
    """

    methods: Sequence[str]
    within: Sequence[int]
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    chance: np.ndarray
    majority: np.ndarray
    study: Sequence[float] | None = None


def rates_of(
    found: dict[tuple[object, int], Row], methods: dict[object, str], within: Sequence[int], stage: int
) -> Rates:
    """From the rows of ``topic_match`` at one stage, by method or head and by ``within``."""

    def values(column: str) -> np.ndarray:
        return np.array([[found[method, k][column] for k in within] for method in methods])

    return Rates(
        list(methods.values()),
        within,
        values("rate"),
        values("low"),
        values("high"),
        chance=values("chance")[0],
        majority=values("majority")[0],
        study=[study.TOPIC_MATCH[k] for k in within] if stage == 3 else None,
    )


def rates_figure(rates: Rates, theme: str) -> go.Figure:
    """A panel for each k, one under another: a dot and its interval for each method, guessing as lines."""
    figure, panels = go.Figure(), len(rates.within)
    colour, share = SERIES[theme], 1 / panels
    for k, within in enumerate(rates.within):
        axis = "y" if k == 0 else f"y{k + 1}"
        top = 1 - k * share
        figure.update_layout(
            {
                axis.replace("y", "yaxis"): {
                    "domain": [top - share + 0.02, top - 0.075],
                    "anchor": "x",
                    "range": [len(rates.methods) - 0.5, -0.5],
                    "tickvals": list(range(len(rates.methods))),
                    "ticktext": list(rates.methods),
                    "fixedrange": True,
                }
            }
        )
        figure.add_annotation(
            text=f"<b>Top {within}</b>" if within > 1 else "<b>Top 1</b>, the nearest topic",
            x=0, xref="paper", xanchor="left", y=top - 0.068, yref="paper", yanchor="bottom", showarrow=False,
        )  # fmt: skip
        lines = (
            ("always the most frequent topics", rates.majority[k], {"color": colour[4], "width": 5}, 0.6),
            ("chance", rates.chance[k], {"color": INK[theme], "width": 1.5, "dash": "dot"}, 1),
        )
        for name, at, line, opacity in lines:
            figure.add_scatter(
                x=[100 * at, 100 * at], y=[-0.5, len(rates.methods) - 0.5], yaxis=axis, mode="lines", line=line,
                opacity=opacity, name=name, legendgroup=name, showlegend=k == 0,
                hovertemplate=f"{name}: %{{x:.1f}}{PERCENT}<extra></extra>",
            )  # fmt: skip
        value, low, high = (100 * part[:, k] for part in (rates.value, rates.low, rates.high))
        figure.add_scatter(
            x=value, y=np.arange(len(value)), yaxis=axis, mode="markers", name="this run, 95 % CI",
            legendgroup="run", showlegend=k == 0, marker={"size": 10, "color": colour[0]},
            error_x=error_bars(value, low, high, thickness=2.5, width=0, color=colour[0]),
            customdata=np.stack([low, high], axis=1),
            hovertemplate=f"%{{y}}: %{{x:.1f}}{PERCENT} (%{{customdata[0]:.1f}}–%{{customdata[1]:.1f}})<extra></extra>",
        )  # fmt: skip
        if rates.study:
            figure.add_scatter(
                x=[100 * rates.study[k]], y=[0], yaxis=axis, mode="markers", name="the study", legendgroup="study",
                showlegend=k == 0, marker={"size": 12, "symbol": "diamond-open", "color": colour[1], "line_width": 2.5},
                hovertemplate=f"the study: %{{x:.2f}}{PERCENT}<extra></extra>",
            )  # fmt: skip
    figure.update_layout(
        template=template(theme),
        height=panels * (len(rates.methods) * _ROW + 52) + 90,
        margin={"l": 128, "t": 0, "b": 96, "r": 30},
        xaxis={
            "title": {"text": "documents whose topic is found"},
            "range": [0, 101], **PERCENT_TICKS, "nticks": 6, "showgrid": True, "gridcolor": GRID_LINE[theme],
            "anchor": f"y{panels}" if panels > 1 else "y", "fixedrange": True,
        },
        legend={"orientation": "h", "x": 0, "y": -0.06, "yanchor": "top", "font_color": INK[theme]},
        dragmode=False,
    )  # fmt: skip
    return figure


def nearest_figure(
    names: Sequence[str], values: np.ndarray, ranks: Sequence[int], label: int | None, theme: str
) -> go.Figure:
    """One document's similarity to some topics, best first; the first is the nearest, ``label`` a position."""
    colours = [QUIET[theme]] * len(values)
    colours[0] = SERIES[theme][0]
    if label is not None:
        colours[label] = SERIES[theme][1]
    short = short_names([f"{rank}. {name}" for rank, name in zip(ranks, names, strict=True)])
    bars = _bars(values, short, names, colours, "%{customdata}: %{x:.3f}<extra></extra>")
    # The numbers stand right of the bars, of negative ones too: on their left are the names.
    numbers = go.Scatter(
        x=np.maximum(values, 0), y=short, mode="text", textposition="middle right", hoverinfo="skip", cliponaxis=False,
        text=[f" {value:.2f}".replace("-", "−") for value in values],
    )  # fmt: skip
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    across = {
        "range": [low, high + 0.2 * ((high - low) or 1)], "showticklabels": False,
        "title": {"text": "cosine"}, "zeroline": low < 0,
        "zerolinecolor": GRID_LINE[theme],
    }  # fmt: skip
    return go.Figure([bars, numbers], _named_rows(len(names), theme, across, below=36))


def map_figure(names: Sequence[str], cosine: np.ndarray, order: np.ndarray, theme: str) -> go.Figure:
    """``cosine[topic, topic]`` in the given order; the diagonal, 1 by definition, is left blank."""
    ordered = [names[topic] for topic in order]
    short, full = _numbered(ordered), [drawn(name) for name in ordered]
    values = cosine[np.ix_(order, order)].astype(np.float64)
    np.fill_diagonal(values, np.nan)
    gap = 1 if len(names) <= 60 else 0
    hover = "%{customdata[0]}<br>%{customdata[1]}" if gap else "%{y}<br>%{x}"
    cells = go.Heatmap(
        z=values, x=_numbers(len(short)), y=short, colorscale=SEQUENTIAL[theme], xgap=gap, ygap=gap, hoverongaps=False,
        # Full names for each cell: beyond some topics too many to send, and the short ones have to do.
        customdata=[[[mine, other] for other in full] for mine in full] if gap else None,
        hovertemplate=f"{hover}<br>cosine %{{z:.3f}}<extra></extra>",
        colorbar={
            "orientation": "h", "thickness": 10, "outlinewidth": 0, "tickformat": ".2f", "nticks": 5, "len": 0.6,
            "x": 0, "xanchor": "left", "y": 1.005, "yanchor": "bottom", "ticks": "",
        },
    )  # fmt: skip
    row = max(2, min(22, 1_100 // max(1, len(names))))
    return go.Figure(cells, _matrix(len(names), theme, ("topic, by its number", "topic"), row))


def confusion_figure(names: Sequence[str], counts: np.ndarray, axes: tuple[str, str], theme: str) -> go.Figure:
    """``counts[topic, topic]`` of two labellings, coloured by the share of the row; empty rows stay blank."""
    short, full = _numbered(names), [drawn(name) for name in names]
    rows = counts.sum(axis=1, keepdims=True)
    shares = np.divide(100 * counts, rows, out=np.full(counts.shape, np.nan), where=rows > 0)
    told = [[[mine, other, int(counts[y, x])] for x, other in enumerate(full)] for y, mine in enumerate(full)]
    cells = go.Heatmap(
        z=shares, x=_numbers(len(short)), y=short, zmin=0, zmax=100, colorscale=SEQUENTIAL[theme], xgap=1, ygap=1,
        customdata=told, hoverongaps=False,
        hovertemplate=f"{drawn(axes[0])}: %{{customdata[0]}}<br>{drawn(axes[1])}: %{{customdata[1]}}"
        f"<br>documents: %{{customdata[2]:,}}, %{{z:.0f}}{PERCENT} of the row<extra></extra>",
        colorbar={
            "orientation": "h", "thickness": 10, "outlinewidth": 0, **PERCENT_TICKS, "nticks": 5, "len": 0.6,
            "x": 0, "xanchor": "left", "y": 1.005, "yanchor": "bottom", "ticks": "",
        },
    )  # fmt: skip
    return go.Figure(
        cells, _matrix(len(names), theme, (f"topic by {drawn(axes[1])}", f"topic by {drawn(axes[0])}"), 22)
    )


def _numbered(names: Sequence[str]) -> list[str]:
    """``12 Sports``: the number stands across as well, upright, where a name would have to lie on its side."""
    return short_names([f"{number} {name}" for number, name in enumerate(names, start=1)], 26)


def _numbers(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


def _matrix(count: int, theme: str, titles: tuple[str, str], row: int) -> dict[str, Any]:
    """The layout of a square of topics; ``titles`` are those of columns and rows."""
    across = {
        "type": "category", "tickangle": 0, "tickfont": {"size": TICK_SIZE if count <= 60 else SMALL_TICK_SIZE},
        "title": {"text": titles[0]}, "nticks": min(count, 40),
    }  # fmt: skip
    layout = _named_rows(count, theme, across, row, above=40, below=54)
    layout["yaxis"] |= {"title": {"text": titles[1]}}
    return layout


def counts_figure(names: Sequence[str], counts: np.ndarray, theme: str) -> go.Figure:
    """Documents of each topic, as they come; a topic without one has the word instead of a bar."""
    bars = _bars(counts, short_names(names), names, SERIES[theme][0], "%{customdata}: %{x:,}<extra></extra>")
    bars.update(
        text=[f"{count:,}" if count else "no document" for count in counts], textposition="outside", cliponaxis=False,
        textfont={"color": [INK[theme] if count else QUIET[theme] for count in counts]},
    )  # fmt: skip
    across = {
        "range": [0, 1.16 * max(1, int(counts.max(initial=0)))], "showticklabels": False,
        "title": {"text": "documents"},
    }  # fmt: skip
    return go.Figure(bars, _named_rows(len(names), theme, across, below=36))


def _bars(values: np.ndarray, short: list[str], names: Sequence[str], colour: str | list[str], hover: str) -> go.Bar:
    return go.Bar(
        x=values, y=short, orientation="h", marker={"color": colour, "cornerradius": 3}, width=0.66,
        customdata=[drawn(name) for name in names], hovertemplate=hover,
    )  # fmt: skip


def _named_rows(
    count: int, theme: str, across: dict[str, Any], row: int = _ROW, above: int = 4, below: int = 16
) -> dict[str, Any]:
    """The layout of rows from top to bottom with their names; ``row``, ``above`` and ``below`` are pixels."""
    return {
        "template": template(theme),
        "height": row * count + above + below,
        "margin": {"l": 10, "r": 10, "t": above, "b": max(8, below - 8)},
        "dragmode": False,
        "showlegend": False,
        "xaxis": across | {"fixedrange": True},
        "yaxis": {
            "type": "category",
            "autorange": "reversed",
            "automargin": True,
            "tickfont": {"size": LABEL_SIZE if row >= 20 else SMALL_TICK_SIZE},
            "fixedrange": True,
        },
    }
