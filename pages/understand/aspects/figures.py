"""The pictures of the Aspects page: rows and arrays in, a grid or a figure out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from core.analysis.aspect_probe import MEASURES
from core.analysis.null import ABOVE, BELOW
from core.analysis.wording import PERCENT, percent
from core.runs.tables import Row
from pages.shared.components.layer_grid import Cell, LayerGrid, Scale
from pages.shared.figures.template import LEGEND_ABOVE, PERCENT_TICKS, template
from pages.shared.text import drawn, short_names, shortened
from pages.shared.theme import GRID_LINE, QUIET, SEQUENTIAL, SERIES, SMALL_TICK_SIZE, colour_at

_MARKS = {ABOVE: "▲", BELOW: "▼"}
_RADIUS = float(np.sqrt(5.991))
"""Of the ellipse that holds 95 % of a bivariate normal distribution, in standard deviations."""
_LABEL = np.array([0.03, 0.1])
"""A label's width and height, as shares of what the points span."""
_KINDS = ("both", "across", "up", "neither")
_LOOK = {"both": (3, "star"), "across": (1, "circle"), "up": (2, "diamond"), "neither": (5, "circle-open")}


@dataclass(frozen=True)
class Slices:
    """Random slices by two aspects: means, standard deviations, and how the two go together."""

    mean: tuple[float, ...]
    sd: tuple[float, ...]
    correlation: float


def shares(rows: Sequence[Row], chance: float) -> np.ndarray:
    """``[1 + head]``: how far each is on the way from chance to the best, between 0 and 1."""
    values = np.array([row["value"] for row in rows])
    best = values.max()
    return np.clip((values - chance) / (best - chance), 0, 1) if best > chance else np.zeros(len(values))


def matrix_grid(
    names: Sequence[str], heads: Mapping[str, Sequence[Row]], summaries: Mapping[str, Row], theme: str
) -> LayerGrid:
    """Aspects in rows, the full embedding and the heads in columns."""
    stops = SEQUENTIAL[theme]

    def cell(name: str, row: Row, share: float) -> Cell:
        who = f"head {row['head']}" if row["head"] else "all heads together"
        against = f"\n{row['verdict']} random slices, p = {row['p_adjusted']:.3f}" if row["head"] else ""
        label = (
            f"{shortened(name, 60)}, {who}\n{percent(row['value'], 1)} (95 % CI {percent(row['low'], 1)} to "
            f"{percent(row['high'], 1)}); chance "
            f"{percent(summaries[name]['chance'], 1)}{against}"
        )
        return Cell(colour_at(share, stops), label, f"{100 * share:.0f}" + _MARKS.get(row["verdict"], ""))

    count = len(next(iter(heads.values())))
    return LayerGrid(
        label="How well each aspect can be read from each head.",
        rows=[shortened(name, 16) for name in names],
        columns=["all", *(str(head) for head in range(1, count))],
        cells=[
            [
                cell(name, row, float(share))
                for row, share in zip(heads[name], shares(heads[name], summaries[name]["chance"]), strict=True)
            ]
            for name in names
        ],
        legend=Scale(stops, "chance", "best"),
        breaks=(1,),
        name="aspects",
    )


def pair_figure(
    names: tuple[str, str], rows: tuple[Sequence[Row], ...], slices: Slices, measure: str, theme: str
) -> go.Figure:
    """Every head a labelled point, and random slices as an ellipse."""
    figure = go.Figure()
    angle = np.linspace(0, 2 * np.pi, 90)
    first, second = np.cos(angle), np.sin(angle)
    second = slices.correlation * first + np.sqrt(max(0.0, 1 - slices.correlation**2)) * second
    figure.add_scatter(
        x=100 * (slices.mean[0] + _RADIUS * slices.sd[0] * first),
        y=100 * (slices.mean[1] + _RADIUS * slices.sd[1] * second),
        mode="lines",
        fill="toself",
        fillcolor=f"{QUIET[theme]}33",
        line={"color": QUIET[theme], "width": 1.5, "dash": "dot"},
        name="95 % of random slices",
        hoverinfo="skip",
    )
    places = _label_places(np.array([[row["value"] for row in each[1:]] for each in rows]).T)
    for kind in _KINDS:
        pairs = [pair for pair in zip(rows[0][1:], rows[1][1:], strict=True) if _kind(*pair) == kind]
        colour, symbol = _LOOK[kind]
        if not pairs:
            continue
        figure.add_scatter(
            x=[100 * one["value"] for one, _ in pairs],
            y=[100 * other["value"] for _, other in pairs],
            mode="markers+text",
            text=[str(one["head"]) for one, _ in pairs],
            textposition=[places[int(one["head"]) - 1] for one, _ in pairs],
            marker={"size": 12, "symbol": symbol, "color": SERIES[theme][colour], "line": {"width": 1.5}},
            name=_named(kind, names),
            customdata=[[one["head"], one["verdict"], other["verdict"]] for one, other in pairs],
            hovertemplate=(
                f"head %{{customdata[0]}}<br>{drawn(names[0])} %{{x:.1f}}{PERCENT}, %{{customdata[1]}}<br>"
                f"{drawn(names[1])} %{{y:.1f}}{PERCENT}, %{{customdata[2]}}<extra></extra>"
            ),
            cliponaxis=False,
        )
    axis = {**PERCENT_TICKS, "showgrid": True, "gridcolor": GRID_LINE[theme], "zeroline": False}
    figure.layout = {
        "template": template(theme),
        "height": 460,
        "xaxis": {**axis, "title": {"text": f"{drawn(shortened(names[0], 40))}: {MEASURES[measure]}"}},
        "yaxis": {**axis, "title": {"text": drawn(shortened(names[1], 40))}},
        "legend": LEGEND_ABOVE,
        "margin": {"t": 70},
        "dragmode": False,
    }
    return figure


def _label_places(points: np.ndarray) -> list[str]:
    """``[head]`` of ``points[head, axis]``: above, or below where a point just above or beside it has its label."""
    spread = np.ptp(points, axis=0)
    scaled = points / np.where(spread > 0, spread, 1)
    found = ["top center"] * len(points)
    order = np.argsort(-scaled[:, 1], kind="stable")
    for at, head in enumerate(order):
        near = (np.abs(scaled[order[:at]] - scaled[head]) < _LABEL).all(axis=1)
        if any(found[other] == "top center" for other in order[:at][near]):
            found[head] = "bottom center"
    return found


def pair_alt(names: tuple[str, str], rows: tuple[Sequence[Row], ...]) -> str:
    """What the figure shows, for people who do not see it."""
    kinds: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for one, other in zip(rows[0][1:], rows[1][1:], strict=True):
        kinds[_kind(one, other)].append(str(one["head"]))
    said = "; ".join(f"{_named(kind, names)}: heads {', '.join(heads)}" for kind, heads in kinds.items() if heads)
    return f"Heads by {shortened(names[0], 60)} and {shortened(names[1], 60)} against random slices. {said}."


def confusion_figure(counts: np.ndarray, names: Sequence[str], theme: str) -> go.Figure:
    """``counts[value, read as]``, as shares of each value's documents."""
    shown = short_names(names, 22)
    percents_of = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure = go.Figure(
        go.Heatmap(
            z=percents_of,
            x=shown,
            y=shown,
            customdata=counts,
            zmin=0,
            zmax=100,
            colorscale=SEQUENTIAL[theme],
            hovertemplate=f"%{{y}}<br>read as %{{x}}<br>%{{z:.0f}}{PERCENT}, documents: %{{customdata}}<extra></extra>",
            colorbar={"thickness": 10, "outlinewidth": 0, **PERCENT_TICKS},
        )
    )
    figure.layout = {
        "template": template(theme),
        "height": max(320, min(820, 190 + 18 * len(names))),
        "xaxis": {
            "title": {"text": "read as"},
            "tickangle": -60,
            "type": "category",
            "tickfont": {"size": SMALL_TICK_SIZE},
            "automargin": True,
        },
        "yaxis": {
            "autorange": "reversed",
            "type": "category",
            "tickfont": {"size": SMALL_TICK_SIZE},
            "automargin": True,
        },
        "margin": {"l": 10, "r": 10, "t": 20, "b": 10},
        "dragmode": False,
    }
    return figure


def _kind(one: Row, other: Row) -> str:
    above = (one["verdict"] == ABOVE, other["verdict"] == ABOVE)
    return {(True, True): "both", (True, False): "across", (False, True): "up", (False, False): "neither"}[above]


def _named(kind: str, names: tuple[str, str]) -> str:
    first, second = (drawn(shortened(name, 24)) for name in names)
    return {"both": f"{first} and {second}", "across": first, "up": second, "neither": "not above slices"}[kind]
