"""The figures of the Stages page: rows and arrays in, figures out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from core.analysis import study
from core.analysis.probe import BY_DOCUMENT, BY_SAMPLE
from core.model.shape import ModelShape
from core.model.stages import HEADS, RANDOM, STAGES
from core.runs.tables import Tables
from pages.shared.figures.template import LEGEND_ABOVE, row_error_bars, template
from pages.shared.theme import CLEAR, GRID_LINE, QUIET, SEQUENTIAL, SERIES, TICK_SIZE

_SERIES = (
    ("heads, by sample", HEADS, BY_SAMPLE, "circle-open", 0),
    ("heads, by document", HEADS, BY_DOCUMENT, "circle", 0),
    ("random slices, by document", RANDOM, BY_DOCUMENT, "square", 1),
)


def probe_figure(tables: Tables, theme: str) -> go.Figure:
    """The probe's accuracy at each stage, with intervals, chance and what the study found."""
    stages = tables.manifest.stages
    figure = go.Figure()
    for number, (name, slicing, split, symbol, colour) in enumerate(_SERIES):
        rows = [tables.one("probe", stage=stage, slicing=slicing, split=split, head=0) for stage in stages]
        found = [row for row in rows if row is not None]
        figure.add_trace(
            go.Scatter(
                name=name,
                x=[row["stage"] + (number - 1) * 0.13 for row in found],
                y=[row["value"] for row in found],
                error_y=row_error_bars(found),
                mode="markers",
                marker={"size": 10, "symbol": symbol, "color": SERIES[theme][colour]},
                customdata=[[row["low"], row["high"]] for row in found],
                hovertemplate=f"{name}<br>%{{y:.3f}} (%{{customdata[0]:.3f}}–%{{customdata[1]:.3f}})<extra></extra>",
            )
        )
    figure.add_trace(
        go.Scatter(
            name="the study, by sample",
            x=[stage + 0.26 for stage in tables.manifest.study_stages],
            y=[study.PROBE_ACCURACY[stage] for stage in tables.manifest.study_stages],
            mode="markers",
            marker={"size": 10, "symbol": "diamond-open", "color": QUIET[theme], "line": {"width": 2}},
            hovertemplate="the study (32 heads)<br>%{y:.3f}<extra></extra>",
        )
    )
    chance = 1 / tables.manifest.shape.heads
    figure.add_hline(y=chance, line={"dash": "dot", "color": QUIET[theme], "width": 1.5})
    figure.add_annotation(
        x=1, xref="paper", y=chance, text=f"chance {chance:.3f}", showarrow=False, yshift=10, xanchor="right"
    )
    figure.update_layout(
        template=template(theme),
        height=340,
        yaxis={"range": [0, 1.04], "title": {"text": "accuracy"}, "showgrid": True, "gridcolor": GRID_LINE[theme]},
        xaxis={
            "tickvals": list(stages),
            "ticktext": [f"stage {stage}<br>{STAGES[stage].name}" for stage in stages],
            "range": [min(stages) - 0.5, max(stages) + 0.6],
        },
        legend=LEGEND_ABOVE,
        margin={"t": 60},
        dragmode=False,
    )
    return figure


def matrix_figure(
    values: np.ndarray,
    order: Sequence[int],
    shape: ModelShape,
    theme: str,
    what: str,
    axes: tuple[str, str] = ("head", "head"),
) -> go.Figure:
    """``values[head, head]`` with the heads in ``order`` (from 0); rows name each head's key/value group, too.

    ``axes`` are the titles of columns and rows.
    """
    rows, columns = [_name(head, shape) for head in order], [str(head + 1) for head in order]
    ordered = values[np.ix_(order, order)]
    figure = go.Figure(
        go.Heatmap(
            z=ordered,
            x=columns,
            y=rows,
            zmin=0,
            zmax=1,
            colorscale=SEQUENTIAL[theme],
            xgap=1,
            ygap=1,
            hovertemplate="heads %{y} and %{x}<br>" + what + " %{z:.2f}<extra></extra>",
            colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".1f"},
        )
    )
    # Group numbers only: a frame would have to jump about, for the clustering parts what belongs to one group.
    figure.layout = {
        "template": template(theme),
        "height": max(320, min(720, 90 + 24 * len(rows))),
        "yaxis": {
            "autorange": "reversed",
            "type": "category",
            "tickfont": {"size": TICK_SIZE},
            "title": {"text": axes[1]},
            "automargin": True,
        },
        "xaxis": {
            "type": "category",
            "side": "top",
            "tickangle": 0,
            "tickfont": {"size": TICK_SIZE},
            "title": {"text": axes[0]},
        },
        "margin": {"l": 60, "r": 10, "t": 60, "b": 10},
        "dragmode": False,
    }
    return figure


def groups_figure(cka: np.ndarray, shape: ModelShape, theme: str) -> go.Figure:
    """Every pair's CKA, pairs of one key/value group beside the others."""
    first, second = np.triu_indices(shape.heads, 1)
    group = np.array([shape.group_of(head) for head in range(shape.heads)])
    same = group[first] == group[second]
    figure = go.Figure()
    for name, chosen, colour in (("same key/value group", same, 0), ("different groups", ~same, 5)):
        pairs = [f"heads {a + 1} and {b + 1}" for a, b in zip(first[chosen], second[chosen], strict=True)]
        figure.add_trace(
            go.Box(
                name=name,
                x=cka[first, second][chosen],
                boxpoints="all",
                jitter=0.5,
                pointpos=0,
                fillcolor=CLEAR,
                line={"color": SERIES[theme][colour], "width": 1.5},
                marker={"size": 6, "color": SERIES[theme][colour], "opacity": 0.7},
                text=pairs,
                hovertemplate="%{text}<br>CKA %{x:.2f}<extra></extra>",
                orientation="h",
            )
        )
    figure.layout = {
        "template": template(theme),
        "height": 210,
        "showlegend": False,
        "xaxis": {"title": {"text": "CKA of a pair of heads"}, "range": [min(-0.05, float(cka.min())), 1.03]},
        "yaxis": {"autorange": "reversed"},
        "margin": {"l": 150, "t": 10},
        "dragmode": False,
    }
    return figure


def _name(head: int, shape: ModelShape) -> str:
    if shape.kv_heads in (1, shape.heads):
        return str(head + 1)
    return f"{head + 1} (group {shape.group_of(head) + 1})"
