"""Heads as dots on the band of random slices: rows in, a figure out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from core.analysis.head_measures import TITLES
from core.analysis.null import WITHIN
from core.model.stages import STAGES
from core.runs.tables import Row, Tables
from pages.shared.figures.template import LEGEND_ABOVE, PERCENT_TICKS, hover_number, template
from pages.shared.theme import GRID_LINE, QUIET, SERIES

_HALF = 0.36
"""Of the room between two stages that the heads of one take."""
SHARES = ("names", "examples", "neighbour", "probe")
"""Measures between 0 and 1 that are drawn in percent."""


def slices_figure(tables: Tables, measure: str, theme: str, chosen: int | None = None, height: int = 330) -> go.Figure:
    """One measure at every stage: each head a dot, the random slices' 95 % band and range behind it.

    Heads beyond the band after correction are filled and numbered; ``chosen`` is one more to number.
    """
    summaries = [row for stage in tables.manifest.stages if (row := _summary(tables, stage, measure))]
    figure = go.Figure()
    for number, row in enumerate(summaries):
        _add_band(figure, row, measure, theme, first=number == 0)
    for number, row in enumerate(summaries):
        heads = tables.pick("null", stage=row["stage"], measure=measure)
        beyond = [one for one in heads if one["verdict"] != WITHIN]
        within = [one for one in heads if one["verdict"] == WITHIN]
        _add_heads(figure, "head within", within, len(heads), measure, theme, False, chosen, number == 0)
        _add_heads(figure, "head beyond", beyond, len(heads), measure, theme, True, chosen, number == 0)
        full = _full(tables, row["stage"], measure)
        if full is not None:
            figure.add_trace(
                go.Scatter(
                    name="all heads together",
                    x=[row["stage"] - _HALF, row["stage"] + _HALF],
                    y=[_height(measure, full)] * 2,
                    mode="lines",
                    line={"color": SERIES[theme][2], "width": 2, "dash": "dash"},
                    legendgroup="full",
                    showlegend=number == 0,
                    hovertemplate=f"all heads together<br>{_form(measure)}<extra></extra>",
                )
            )
    stages = [row["stage"] for row in summaries]
    figure.layout = {
        "template": template(theme),
        "height": height,
        "yaxis": {
            "title": {"text": TITLES[measure]},
            **(PERCENT_TICKS if measure in SHARES else {}),
            "showgrid": True,
            "gridcolor": GRID_LINE[theme],
            "rangemode": "tozero",
        },
        "xaxis": {
            "tickvals": stages,
            "ticktext": [f"stage {stage}<br>{STAGES[stage].name}" for stage in stages],
            "range": [min(stages, default=1) - 0.5, max(stages, default=1) + 0.5],
        },
        "legend": LEGEND_ABOVE,
        "margin": {"t": 52},
        "dragmode": False,
    }
    return figure


def slices_alt(tables: Tables, measure: str) -> str:
    """What the figure shows, for people who do not see it."""
    parts = []
    for stage in tables.manifest.stages:
        rows = tables.pick("null", stage=stage, measure=measure)
        beyond = [f"head {row['head']} {row['verdict']}" for row in rows if row["verdict"] != WITHIN]
        parts.append(f"stage {stage}: {', '.join(beyond) or 'no head'} beyond random slices")
    return f"{TITLES[measure]} of every head and of random slices. {'; '.join(parts)}."


def slices_rows(tables: Tables, measure: str) -> list[Row]:
    """The figure's numbers."""
    return [row for stage in tables.manifest.stages for row in tables.pick("null", stage=stage, measure=measure)]


def _add_band(figure: go.Figure, row: Row, measure: str, theme: str, first: bool) -> None:
    stage, colour = row["stage"], QUIET[theme]
    for low, high, shade, name in (
        (row["slices_least"], row["slices_most"], "22", "all random slices"),
        (row["slices_low"], row["slices_high"], "55", "95 % of random slices"),
    ):
        figure.add_trace(
            go.Scatter(
                name=name,
                x=[stage - 0.42, stage + 0.42, stage + 0.42, stage - 0.42],
                y=[_height(measure, end) for end in (low, low, high, high)],
                mode="lines",
                line={"width": 0},
                fill="toself",
                fillcolor=f"{colour}{shade}",
                hoverinfo="skip",
                legendgroup=name,
                showlegend=first,
            )
        )


def _add_heads(
    figure: go.Figure,
    name: str,
    rows: Sequence[Row],
    heads: int,
    measure: str,
    theme: str,
    filled: bool,
    chosen: int | None,
    first: bool,
) -> None:
    colour = SERIES[theme][1 if filled else 0]
    figure.add_trace(
        go.Scatter(
            name=name,
            x=[row["stage"] + _HALF * (2 * (row["head"] - 0.5) / heads - 1) for row in rows],
            y=[_height(measure, row["value"]) for row in rows],
            mode="markers+text",
            text=[str(row["head"]) if filled or row["head"] == chosen else "" for row in rows],
            textposition="top center",
            marker={
                "size": [13 if row["head"] == chosen else 8 for row in rows],
                "symbol": "circle" if filled else "circle-open",
                "color": colour,
                "line": {"width": 1.5, "color": colour},
            },
            customdata=[[row["head"], row["verdict"], row["p_adjusted"]] for row in rows],
            hovertemplate=(
                f"head %{{customdata[0]}}: {_form(measure)}<br>%{{customdata[1]}} random slices, corrected p "
                "%{customdata[2]:.3f}<extra></extra>"
            ),
            legendgroup=name,
            showlegend=first,
            cliponaxis=False,
        )
    )


def _summary(tables: Tables, stage: int, measure: str) -> Row | None:
    return tables.one("null_summary", stage=stage, measure=measure)


def _full(tables: Tables, stage: int, measure: str) -> float | None:
    """What all heads together reach, where the measure has that."""
    row = None
    if measure == "names":
        row = tables.one("topic_match", stage=stage, method="full", slicing="heads", within=1)
    elif measure == "examples":
        row = tables.one("example_match", stage=stage, head=0)
    return None if row is None else float(row["rate"])


def _height(measure: str, value: float) -> float:
    return 100 * value if measure in SHARES else value


def _form(measure: str) -> str:
    return hover_number("y", measure in SHARES)
