"""The pictures of the Layers page: rows and arrays in, a figure or a grid out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from core.analysis.layer_measures import BETWEEN_GROUPS, DIFFERENCE, FULL, MEASURES, WITHIN_GROUP
from core.analysis.null import WITHIN
from core.analysis.wording import PERCENT, percent
from core.model.shape import ModelShape
from core.model.stages import HEADS, RANDOM
from core.runs.tables import Row
from pages.shared.components.layer_grid import Cell, LayerGrid, Scale
from pages.shared.figures.template import LEGEND_ABOVE, PERCENT_TICKS, band, hover_number, template
from pages.shared.theme import DIVERGING, GRID_LINE, INK, QUIET, SEQUENTIAL, SERIES, colour_at
from pages.understand.layers.state import LayerView

_LOOK: dict[str, tuple[int, str, str]] = {
    FULL: (3, "solid", "diamond"),
    HEADS: (0, "solid", "circle"),
    RANDOM: (1, "dash", "square"),
    WITHIN_GROUP: (0, "solid", "circle"),
    BETWEEN_GROUPS: (5, "dash", "square"),
}
"""By series: its colour, its line and its marks."""
MOST_NUMBERS = 40
"""Heads beyond random slices that are numbered in a figure, the farthest ones."""


def curves_figure(rows: Sequence[Row], cells: np.ndarray, view: LayerView, theme: str) -> go.Figure:
    """A measure's curves over depth with their bands, single heads as dots, chance, and the layer that is looked at.

    ``rows`` are those of ``layer_curves`` for one stage and measure; ``cells`` is ``[layer, 1 + head]``.
    """
    rows, cells = _drawn(rows, view), _factor(view.measure) * cells
    layers, form = np.arange(1, len(cells) + 1), _form(view.measure, "y")
    traces: list[dict[str, Any]] = []
    if view.measure != "groups":  # a head's own gap there is no value of either curve
        across = np.repeat(layers, cells.shape[1] - 1)
        traces.append(
            {
                "type": "scatter",
                "name": "single heads",
                "x": across,
                "y": cells[:, 1:].ravel(),
                "mode": "markers",
                "marker": {"size": 4, "color": SERIES[theme][0], "opacity": 0.28},
                "customdata": np.tile(np.arange(1, cells.shape[1]), len(cells)),
                "hovertemplate": f"layer %{{x}}, head %{{customdata}}<br>{form}<extra></extra>",
            }
        )
    for series, name in MEASURES[view.measure].series.items():
        if series == DIFFERENCE:
            continue
        mine = sorted((row for row in rows if row["series"] == series and row["value"] is not None), key=_layer)
        traces += _curve(mine, name, series, view.measure, theme)
    chance = next((row["chance"] for row in rows if row["chance"] is not None), None)
    if chance is not None and view.measure != "groups":
        traces.append(_chance(chance, len(cells), view.measure, theme))
    return _over_depth(traces, len(cells), view, theme)


def null_figure(
    summary: Sequence[Row], heads: Sequence[Row], chance: float | None, view: LayerView, theme: str
) -> go.Figure:
    """Heads as dots on the band of random slices; those beyond it have their numbers.

    ``summary`` and ``heads`` are the rows of ``layer_null_summary`` and ``layer_null`` for one stage and measure.
    """
    summary, heads, form = _drawn(summary, view), _drawn(heads, view), _form(view.measure, "y")
    layers = max(_layer(row) for row in summary)
    traces = _slices(summary, *("slices", "slices_low", "slices_high"), view.measure, theme)
    if all(row["full"] is not None for row in summary):
        full = [row["full"] for row in summary]
        traces.append(_line([_layer(row) for row in summary], full, FULL, view.measure, theme))
    ends = {_layer(row): row for row in summary}
    within = [row for row in heads if row["verdict"] == WITHIN]
    beyond = sorted(
        (row for row in heads if row["verdict"] != WITHIN),
        key=lambda row: -abs(row["value"] - ends[_layer(row)]["slices"]),
    )
    numbers = shared_numbers(beyond[:MOST_NUMBERS])
    ink = SERIES[theme][0]
    for name, rows, marker in (
        ("heads within", within, {"size": 6, "color": ink, "opacity": 0.4}),
        ("heads beyond", beyond, {"size": 8, "color": ink, "line": {"width": 1, "color": INK[theme]}}),
    ):
        traces.append(
            {
                "type": "scatter",
                "name": name,
                "x": [row["layer"] for row in rows],
                "y": [row["value"] for row in rows],
                "mode": "markers+text",
                "text": [numbers.get((row["layer"], row["head"]), "") for row in rows],
                "textposition": "middle right",
                "marker": marker,
                "customdata": [[row["head"], row["verdict"], row["p_adjusted"]] for row in rows],
                "hovertemplate": f"layer %{{x}}, head %{{customdata[0]}}<br>{form}, %{{customdata[1]}} random slices "
                "(p = %{customdata[2]:.3f})<extra></extra>",
            }
        )
    if chance is not None:
        traces.append(_chance(_factor(view.measure) * chance, layers, view.measure, theme))
    return _over_depth(traces, layers, view, theme, 400)


def shared_numbers(rows: Sequence[Row]) -> dict[tuple[int, int], str]:
    """By layer and head what stands beside its dot: heads whose numbers would overlap share one place."""
    values = [row["value"] for row in rows]
    near = 0.05 * max(values, default=0.0)
    groups: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (row["layer"], row["value"])):
        last = groups[-1][-1] if groups else None
        if last and last["layer"] == row["layer"] and row["value"] - last["value"] < near:
            groups[-1].append(row)
        else:
            groups.append([row])
    found = {}
    for group in groups:
        middle = group[len(group) // 2]
        found[middle["layer"], middle["head"]] = ", ".join(str(head) for head in sorted(row["head"] for row in group))
    return found


def spread_figure(summary: Sequence[Row], shown: Sequence[int], view: LayerView, theme: str) -> go.Figure:
    """The spread over heads at every layer and, as a band, that over random slices; ``shown`` layers are filled."""
    rows = _drawn([{**row, "least": min(row["slices_spreads"])} for row in summary], view)
    traces = _slices(rows, *("slices_spread", "least", "slices_spread_high"), view.measure, theme)
    layers = [_layer(row) for row in rows]
    line = _line(layers, [row["spread"] for row in rows], HEADS, view.measure, theme)
    symbols = ["circle" if layer in shown else "circle-open" for layer in layers]
    line |= {"name": "heads", "marker": line["marker"] | {"symbol": symbols, "size": 9, "line": {"width": 2}}}
    return _over_depth([*traces, line], max(layers), view, theme, 280, "SD over heads")


_FIGURES = (
    "value", "low", "high", "chance", "full", "slices", "slices_low", "slices_high", "spread", "slices_spread",
    "slices_spread_high", "least",
)  # fmt: skip
"""Columns that are drawn."""


def _drawn(rows: Sequence[Row], view: LayerView) -> list[Row]:
    """The rows with their figures as they are drawn: in percent, where the measure is a share."""
    factor = _factor(view.measure)
    return [
        {name: factor * cell if name in _FIGURES and cell is not None else cell for name, cell in row.items()}
        for row in rows
    ]


def _factor(measure: str) -> int:
    return 100 if MEASURES[measure].in_percent else 1


def _form(measure: str, name: str) -> str:
    """How a hover box writes a figure that is drawn."""
    return hover_number(name, MEASURES[measure].in_percent)


def _slices(rows: Sequence[Row], middle: str, low: str, high: str, measure: str, theme: str) -> list[dict[str, Any]]:
    layers = [_layer(row) for row in rows]
    line = _line(layers, [row[middle] for row in rows], RANDOM, measure, theme)
    ends = [[row[end] for row in rows] for end in (low, high)]
    return [band(layers, ends[0], ends[1], SERIES[theme][1], legendgroup=RANDOM), line | {"name": "random slices"}]


def _line(layers: Sequence[int], values: Sequence[float], series: str, measure: str, theme: str) -> dict[str, Any]:
    colour, dash, symbol = _LOOK[series]
    ink = SERIES[theme][colour]
    return {
        "type": "scatter",
        "name": "full embedding",
        "x": layers,
        "y": values,
        "mode": "lines+markers",
        "line": {"color": ink, "width": 2, "dash": dash},
        "marker": {"size": 7 if len(layers) <= 16 else 5, "symbol": symbol, "color": ink},
        "legendgroup": series,
        "hovertemplate": f"layer %{{x}}<br>{_form(measure, 'y')}<extra>%{{fullData.name}}</extra>",
    }


def _chance(chance: float, layers: int, measure: str, theme: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": f"chance {chance:.1f}{PERCENT}" if MEASURES[measure].in_percent else f"chance {chance:.2f}",
        "x": [0.5, layers + 0.5],
        "y": [chance, chance],
        "mode": "lines",
        "line": {"dash": "dot", "color": QUIET[theme], "width": 1.5},
        "hoverinfo": "skip",
    }


def _over_depth(
    traces: list[dict[str, Any]],
    layers: int,
    view: LayerView,
    theme: str,
    height: int = 360,
    title: str | None = None,
) -> go.Figure:
    figure = go.Figure(
        data=traces,
        layout={
            "template": template(theme),
            "height": height,
            "margin": {"t": 58, "b": 48},
            "xaxis": {"title": {"text": "layer"}, "range": [0.5, layers + 0.5], **_ticks(layers)},
            "yaxis": {
                "showgrid": True,
                "gridcolor": GRID_LINE[theme],
                "rangemode": "tozero",
                **(PERCENT_TICKS if MEASURES[view.measure].in_percent else {}),
                "title": {"text": title or MEASURES[view.measure].name.lower()},
            },
            "legend": LEGEND_ABOVE,
            "dragmode": False,
            "hovermode": "closest",
        },
    )
    figure.add_vline(x=view.layer, line={"color": INK[theme] + "55", "width": 1})
    return figure


def _layer(row: Row) -> int:
    return int(row["layer"])


def _curve(rows: Sequence[Row], name: str, series: str, measure: str, theme: str) -> list[dict[str, Any]]:
    """A line, and the space around it where it has one."""
    x, value = [row["layer"] for row in rows], [row["value"] for row in rows]
    low = [row["value"] if row["low"] is None else row["low"] for row in rows]
    high = [row["value"] if row["high"] is None else row["high"] for row in rows]
    ends = " to ".join(_form(measure, f"customdata[{end}]") for end in (0, 1))
    hover = f"layer %{{x}}, {name}<br>{_form(measure, 'y')} ({ends})<extra></extra>"
    looks = {"name": name, "customdata": list(zip(low, high, strict=True)), "hovertemplate": hover}
    ink = SERIES[theme][_LOOK[series][0]]
    return [band(x, low, high, ink, legendgroup=series), _line(x, value, series, measure, theme) | looks]


def _ticks(layers: int) -> dict[str, Any]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1_000) if layers / step <= 16)
    marks = sorted({1, *range(step if step != 2 else 4, layers + 1, step), layers})  # 2 would stand on 1
    if len(marks) > 2 and step > 2 and layers - marks[-2] < step / 2:
        marks.pop(-2)  # the last layer's number would stand on its neighbour's
    return {"tickvals": marks}


def grid_of(
    cells: Mapping[str, np.ndarray],
    measure: str,
    notes: Mapping[tuple[int, int], str],
    shape: ModelShape,
    theme: str,
) -> LayerGrid:
    """The grid of ``value``, ``low`` and ``high``, each ``[layer, 1 + head]``; ``notes`` by layer and head, from 1."""
    value = cells["value"]
    shown = value.copy()
    if measure == "activation":
        shown[:, 0] /= shape.heads**0.5  # all heads' length is that much larger than theirs: coloured as one of them
    low, high = colour_ends(shown, measure, shape.heads)
    stops = DIVERGING[theme] if measure == "groups" else SEQUENTIAL[theme]
    name = MEASURES[measure].name

    def cell(layer: int, head: int) -> Cell | None:
        if not np.isfinite(value[layer, head]):
            return None
        who = f"head {head}" if head else "all heads"
        ends = [cells[end][layer, head] for end in ("low", "high")]
        number, between = _number(value[layer, head], measure), ""
        if np.isfinite(ends).all():
            between = f" ({_number(ends[0], measure)} to {_number(ends[1], measure)})"
        note = notes.get((layer + 1, head))
        label = f"Layer {layer + 1}, {who}\n{name} {number}{between}" + (f"\n{note}" if note else "")
        share = (shown[layer, head] - low) / (high - low)
        return Cell(colour_at(share, stops), label.replace("-", "−"), short(_factor(measure) * value[layer, head]))

    breaks = [1]
    if 1 < shape.kv_heads < shape.heads:
        breaks = list(range(1, shape.heads, shape.heads // shape.kv_heads))
    return LayerGrid(
        label=f"{name} of {shape.layers} layers and {shape.heads} heads.",
        rows=[f"layer {layer}" for layer in range(1, shape.layers + 1)],
        columns=["all", *(str(head) for head in range(1, shape.heads + 1))],
        cells=[[cell(layer, head) for head in range(1 + shape.heads)] for layer in range(shape.layers)],
        legend=Scale(stops, _end(low, measure), _end(high, measure)),
        breaks=breaks,
        name=f"layers-{measure}",
    )


def colour_ends(values: np.ndarray, measure: str, heads: int) -> tuple[float, float]:
    """From where to where the colours go: from nothing, or from chance, to the highest; around 0 for a difference."""
    known = values[np.isfinite(values)]
    if measure == "groups":
        most = max(0.05, float(np.abs(known).max(initial=0.0)))
        return -most, most
    if measure == "activation":
        return 0.0, float(np.quantile(known, 0.99)) if known.size and known.max() > 0 else 1.0
    low = 1 / heads if measure == "probe" else 0.0
    return low, max(low + 0.05, float(known.max(initial=0.0)))


def short(value: float) -> str:
    """A number in three letters: ".69", "1.0", "−.2", "12", "9k". Of a share it is the percent."""
    size, sign = abs(value), "−" if value < 0 else ""
    if round(size, 2) < 1:
        digits = 1 if sign else 2
        text = f"{size:.{digits}f}"
        return "0" if float(text) == 0 else sign + text.lstrip("0")
    if round(size, 1) < 10:
        return sign + (f"{size:.0f}" if sign else f"{size:.1f}")
    if size < 999.5:
        return sign + f"{size:.0f}"[:3]
    return f"{sign}{size / 1_000:.0f}k" if size < 99_500 else "∞"


def _number(value: float, measure: str) -> str:
    if MEASURES[measure].in_percent:
        return percent(value, 1)
    return f"{value:.3g}" if measure == "activation" else f"{value:.2f}"


def _end(value: float, measure: str) -> str:
    if MEASURES[measure].in_percent:
        return percent(value)
    return f"{value:.2f}".replace("-", "−") if abs(value) < 100 else f"{value:,.0f}".replace("-", "−")
