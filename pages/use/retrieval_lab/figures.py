"""The figures of the Retrieval lab: rows and arrays in, figures out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from core.analysis.document_profile import Reliability
from core.retrieval.study import CHANCE
from core.runs.tables import Row
from pages.shared.figures.reliability import LINE, fade, rates_below_numbers, right_for, solidity
from pages.shared.figures.template import LEGEND_ABOVE, band, row_error_bars, template
from pages.shared.theme import CLEAR, DIVERGING, GRID_LINE, QUIET, SEQUENTIAL, SERIES, TICK_SIZE

_ORDERS = {
    "greedy": "least needed head first",
    "activation": "weakest head first",
    "random": "random order",
}


_BELOW = 46
"""Pixels: of the margin for ticks and their title."""


def votes_figure(
    given: np.ndarray, names: Sequence[str], theme: str, reliability: Reliability | None = None
) -> go.Figure:
    """``given[rank, head]``: what each head gave each document; unreliable heads fade."""
    limit = float(np.abs(given).max()) or 1.0
    negative = bool((given < 0).any())
    ranks, heads = given.shape
    columns, places = range(1, heads + 1), range(1, ranks + 1)
    rates = [""] * heads if reliability is None else [f", {right_for(rate)}" for rate in reliability.rates[1:]]
    figure = go.Figure(
        go.Heatmap(
            z=given,
            x=list(columns),
            y=list(places),
            zmin=-limit if negative else 0,
            zmax=limit,
            colorscale=(DIVERGING if negative else SEQUENTIAL)[theme],
            xgap=1,
            ygap=1,
            text=[[name] * heads for name in names],
            customdata=[rates] * ranks,
            hovertemplate="%{text}<br>head %{x}%{customdata}<br>contributes %{z:.3f}<extra></extra>",
            colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".2~g"},
        )
    )
    step = max(1, heads // 16)
    figure.layout = {
        "template": template(theme),
        "height": 90 + 22 * ranks,
        "xaxis": {"title": {"text": "head"}, "tickvals": list(columns[::step])},
        "yaxis": {"autorange": "reversed", "tickvals": list(places), "title": {"text": "place"}},
        "margin": {"l": 50},
        "dragmode": False,
    }
    if reliability is not None:
        fade(figure, solidity(reliability, heads)[1:], columns, places, theme)
        if rates_below_numbers(figure, [str(head) for head in columns], reliability.rates[1:], columns):
            figure.update_xaxes(title={"text": "head; below: right for … of 100", "standoff": 6})
            figure.update_layout(margin={"b": _BELOW + LINE})
    return figure


def ways_figure(rows: Sequence[Row], theme: str, what: str) -> go.Figure:
    """One metric by every way, with intervals; chance is a line."""
    ways = sorted((row for row in rows if row["way"] != CHANCE), key=lambda row: row["value"])
    chance = next((row["value"] for row in rows if row["way"] == CHANCE), None)
    figure = go.Figure(
        go.Scatter(
            x=[row["value"] for row in ways],
            y=[row["way"] for row in ways],
            error_x=row_error_bars(ways),
            mode="markers",
            marker={"size": 10, "color": SERIES[theme][0]},
            customdata=[[row["low"], row["high"]] for row in ways],
            hovertemplate="%{y}<br>%{x:.3f} (%{customdata[0]:.3f}–%{customdata[1]:.3f})<extra></extra>",
        )
    )
    if chance is not None:
        figure.add_vline(x=chance, line={"dash": "dot", "color": QUIET[theme], "width": 1.5})
        figure.add_annotation(
            x=chance, y=1, yref="paper", text=f"chance {chance:.3f}", showarrow=False, xanchor="left", xshift=4
        )
    figure.update_layout(
        template=template(theme),
        height=90 + 26 * len(ways),
        xaxis={"title": {"text": what}, "rangemode": "tozero", "showgrid": True, "gridcolor": GRID_LINE[theme]},
        yaxis={"type": "category", "title": {"text": "way to rank"}, "automargin": True},
        margin={"l": 100, "t": 24},
        dragmode=False,
    )
    return figure


def curve_figure(rows: Sequence[Row], enough: int, theme: str, what: str) -> go.Figure:
    """The metric with fewer and fewer heads, in three orders; ``enough`` heads are marked."""
    figure = go.Figure()
    for number, (order, name) in enumerate(_ORDERS.items()):
        found = sorted((row for row in rows if row["order"] == order), key=lambda row: row["heads"])
        sizes, colour = [row["heads"] for row in found], SERIES[theme][(0, 4, 5)[number]]
        figure.add_trace(band(sizes, [row["low"] for row in found], [row["high"] for row in found], colour))
        figure.add_trace(
            go.Scatter(
                name=name,
                x=sizes,
                y=[row["value"] for row in found],
                mode="lines+markers",
                line={"color": colour, "width": 2, "dash": ("solid", "dash", "dot")[number]},
                marker={"size": 6},
                customdata=[[row["low"], row["high"]] for row in found],
                hovertemplate=f"{name}<br>%{{x}} heads: %{{y:.3f}} (%{{customdata[0]:.3f}}–%{{customdata[1]:.3f}})"
                "<extra></extra>",
            )
        )
    figure.add_vline(x=enough, line={"dash": "dot", "color": QUIET[theme], "width": 1.5})
    figure.add_annotation(
        x=enough, y=0, yref="paper", text=f"{enough} kept", showarrow=False, xanchor="left", xshift=4, yshift=12
    )
    figure.update_layout(
        template=template(theme),
        height=360,
        xaxis={"title": {"text": "kept heads"}, "dtick": max(1, len(rows) // 3 // 12)},
        yaxis={"title": {"text": what}, "showgrid": True, "gridcolor": GRID_LINE[theme]},
        legend=LEGEND_ABOVE,
        margin={"t": 80},
        dragmode=False,
    )
    return figure


def importance_figure(rows: Sequence[Row], theme: str, what: str) -> go.Figure:
    """What is lost without each head, with intervals; heads that are kept are filled."""
    found = sorted(rows, key=lambda row: -row["lost"])
    figure = go.Figure(
        go.Bar(
            x=[str(row["head"]) for row in found],
            y=[row["lost"] for row in found],
            error_y=row_error_bars(found, "lost", "lost_"),
            marker={
                "color": [SERIES[theme][0] if row["kept"] else CLEAR for row in found],
                "line": {"color": SERIES[theme][0], "width": 1.5},
            },
            customdata=[
                [row["lost_low"], row["lost_high"], row["alone"], row["alone_low"], row["alone_high"]] for row in found
            ],
            hovertemplate="head %{x}<br>without it: %{y:.4f} lost (%{customdata[0]:.4f}–%{customdata[1]:.4f})<br>"
            "alone: %{customdata[2]:.3f} (%{customdata[3]:.3f}–%{customdata[4]:.3f})<extra></extra>",
        )
    )
    figure.layout = {
        "template": template(theme),
        "height": 300,
        "yaxis": {"title": {"text": f"{what} lost without the head"}, "showgrid": True, "gridcolor": GRID_LINE[theme]},
        "xaxis": {
            "type": "category",
            "tickangle": 0,
            "tickfont": {"size": TICK_SIZE},
            "title": {"text": "head, most needed first"},
        },
        "margin": {"b": 52},
        "dragmode": False,
    }
    return figure


def aspects_figure(aspects: Sequence[int], values: Mapping[str, Sequence[Row]], theme: str, what: str) -> go.Figure:
    """One metric by the number of things asked for at once, one line per way; equal steps are equally far apart."""
    figure = go.Figure()
    for number, (way, rows) in enumerate(values.items()):
        colour = SERIES[theme][number % len(SERIES[theme])]
        figure.add_trace(
            go.Scatter(
                name=way,
                x=list(aspects),
                y=[row["value"] for row in rows],
                error_y=row_error_bars(rows),
                mode="lines+markers",
                line={"color": colour, "dash": ("solid", "dash")[number % 2]},
                marker={"size": 8},
                customdata=[[row["queries"]] for row in rows],
                hovertemplate=f"{way}<br>%{{x}} aspects, %{{customdata[0]}} queries: %{{y:.3f}}<extra></extra>",
            )
        )
    figure.layout = {
        "template": template(theme),
        "height": 300,
        "xaxis": {"title": {"text": "documents that a query asks for"}, "tickvals": list(aspects)},
        "yaxis": {"title": {"text": what}, "rangemode": "tozero", "showgrid": True, "gridcolor": GRID_LINE[theme]},
        "legend": LEGEND_ABOVE,
        "margin": {"t": 50},
        "dragmode": False,
    }
    return figure
