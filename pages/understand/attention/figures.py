"""The figures of the Attention page: arrays in, figures or HTML out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.analysis.attention_measures import FARTHEST, OFFSETS
from core.analysis.wording import PERCENT, percent
from pages.shared.figures.template import PERCENT_TICKS, template
from pages.shared.text import drawn, safe, shortened
from pages.shared.theme import GROUND, INK, QUIET, SEQUENTIAL, SERIES, SMALL_TICK_SIZE

NEAR = OFFSETS[1:-1]
_NAMED = 36
"""Tokens whose names fit above and beside a matrix; of more, every N-th is named."""


@dataclass(frozen=True)
class Pattern:
    """A head's average pattern in parts that add up to 1."""

    first: float
    """On the text's first token."""
    before: float
    """On tokens FARTHEST or more before."""
    near: np.ndarray
    """By distance, NEAR."""
    after: float

    @classmethod
    def of(cls, share: np.ndarray) -> Pattern:
        """From ``share[offset]``, OFFSETS, which has everything but the first token's part."""
        return cls(max(0.0, 1 - float(share.sum())), float(share[0]), share[1:-1], float(share[-1]))


def pattern_figure(found: Pattern, shuffled: Pattern, causal: bool, theme: str) -> go.Figure:
    """On top how the whole is divided, below it the near tokens by distance, with shuffled positions as a line."""
    mine = NEAR <= 0 if causal else np.ones(len(NEAR), dtype=bool)
    figure = make_subplots(rows=2, cols=1, row_heights=[0.12, 0.88], vertical_spacing=0.14)
    quiet, near, first = SERIES[theme][5], SERIES[theme][0], SERIES[theme][1]
    far = f"{FARTHEST} or more"
    parts = [
        ("the first token", found.first, shuffled.first, first),
        (f"{far} before", found.before, shuffled.before, quiet),
        ("near", float(found.near.sum()), float(shuffled.near.sum()), near),
        *([] if causal else [(f"{far} after", found.after, shuffled.after, quiet)]),
    ]
    for name, value, even, colour in parts:
        figure.add_trace(
            go.Bar(
                x=[value],
                y=["all"],
                orientation="h",
                name=name,
                marker={"color": colour, "line": {"width": 1, "color": GROUND[theme]}},
                text=f"{percent(value)} {name}" if value >= 0.4 else percent(value) if value >= 0.08 else "",
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                constraintext="none",
                hovertemplate=f"{name}: {percent(value, 1)}<br>shuffled {percent(even, 1)}<extra></extra>",
                showlegend=False,
            ),
            row=1,
            col=1,
        )
    figure.add_trace(
        go.Bar(
            x=NEAR[mine],
            y=100 * found.near[mine],
            marker={"color": near, "line": {"width": 0}},
            customdata=[_distance(int(offset)) for offset in NEAR[mine]],
            hovertemplate=f"%{{customdata}}<br>%{{y:.1f}}{PERCENT}<extra></extra>",
            showlegend=False,
        ),
        row=2,
        col=1,
    )
    figure.add_trace(
        go.Scatter(
            x=NEAR[mine],
            y=100 * shuffled.near[mine],
            name="shuffled positions",
            mode="lines",
            line={"color": INK[theme], "width": 1.5, "dash": "dot"},
            hovertemplate=f"shuffled: %{{y:.1f}}{PERCENT}<extra></extra>",
        ),
        row=2,
        col=1,
    )
    ticks = [offset for offset in (-24, -16, -8, -1, 8, 16, 24) if not (causal and offset > 0)]
    figure.update_layout(
        template=template(theme),
        height=430,
        barmode="stack",
        bargap=0.15,
        xaxis={"visible": False, "range": [0, 1]},
        yaxis={"visible": False},
        xaxis2={
            "tickvals": ticks,
            "ticktext": [f"{'−' if offset < 0 else '+'}{abs(offset)}" for offset in ticks],
            "title": {"text": "distance in tokens (− before, + after)"},
        },
        yaxis2={**PERCENT_TICKS, "title": {"text": "share of attention"}, "rangemode": "tozero"},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 0.79, "yanchor": "bottom"},
        margin={"t": 10, "b": 50},
        dragmode=False,
    )
    return figure


def matrix_figure(weights: np.ndarray, tokens: Sequence[str], chosen: int, theme: str) -> go.Figure:
    """``weights[from, to]`` of one head; the row of the ``chosen`` token (from 0) is framed."""
    count = len(tokens)
    # Numbered, for a word may occur twice and an axis knows a category once.
    names = [f"{number} {drawn(shortened(token, 14) or '␣')}" for number, token in enumerate(tokens, 1)]
    step = max(1, -(-count // _NAMED))
    ticks = {"tickvals": names[::step], "tickfont": {"size": SMALL_TICK_SIZE}, "type": "category"}
    top = float(np.quantile(weights[weights > 0], 0.98)) if (weights > 0).any() else 1.0
    figure = go.Figure(
        go.Heatmap(
            z=100 * weights,
            x=names,
            y=names,
            zmin=0,
            zmax=100 * top,
            colorscale=SEQUENTIAL[theme],
            hovertemplate=f"from %{{y}}<br>to %{{x}}<br>%{{z:.1f}}{PERCENT}<extra></extra>",
            colorbar={"thickness": 10, "outlinewidth": 0, **PERCENT_TICKS, "len": 0.5, "y": 1, "yanchor": "top"},
        )
    )
    figure.add_shape(
        type="rect", x0=-0.5, x1=count - 0.5, y0=chosen - 0.5, y1=chosen + 0.5, line={"color": INK[theme], "width": 1.5}
    )
    figure.update_layout(
        template=template(theme),
        height=640,
        xaxis={
            **ticks,
            "side": "top",
            "tickangle": -90,
            "range": [-0.5, count - 0.5],
            "constrain": "domain",
            "title": {"text": "to"},
        },
        # Square cells, whatever the width.
        yaxis={
            **ticks,
            "range": [count - 0.5, -0.5],
            "scaleanchor": "x",
            "constrain": "domain",
            "constraintoward": "top",
            "title": {"text": "from"},
        },
        margin={"l": 110, "r": 10, "t": 110, "b": 10},
        dragmode=False,
    )
    return figure


def small_pattern(found: Pattern, causal: bool, theme: str, said: str) -> str:
    """A head's average pattern as a small picture in HTML; ``said`` is for those who cannot see it.

    The near tokens are to their own scale. The three wide columns are to that of the whole: on the left the first token
    and all that is far before, on the right all that is far after.
    """
    top = float(found.near.max(initial=0.0)) or 1.0
    quiet, near, first = SERIES[theme][5], SERIES[theme][0], SERIES[theme][1]
    columns = [(4, found.first, first), (4, found.before, quiet)]
    columns += [(1, value / top, near) for value in found.near[(0 if causal else FARTHEST) >= NEAR].tolist()]
    columns += [] if causal else [(4, found.after, quiet)]
    bars = "".join(
        f'<span style="flex: {wide}; align-self: flex-end; height: {100 * min(1.0, share):.1f}%; background: {colour}; '
        f'margin-right: {2 if wide > 1 else 0}px"></span>'
        for wide, share, colour in columns
    )
    return (
        f'<div role="img" aria-label="{safe(said)}" style="display: flex; height: 3.2rem; gap: .5px; '
        f'border-bottom: 1px solid {QUIET[theme]}">{bars}</div>'
    )


def _distance(offset: int) -> str:
    return f"{abs(offset)} {'after' if offset > 0 else 'before'}" if offset else "the token itself"
