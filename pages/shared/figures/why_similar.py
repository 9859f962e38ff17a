"""Why two texts are similar, drawn: the waterfall, the words of both texts, and the matrix of word pairs."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from core.analysis.explained import rounded_to_sum, signed, term_name
from core.model.attention import Attended, Piece
from core.model.head_words import HeadWords
from core.model.ledger import Explanation
from pages.shared.figures.template import template
from pages.shared.figures.words import STEPS, STYLE, cut_off, runs
from pages.shared.text import safe, short_names
from pages.shared.theme import DIVERGING, MUTED, NEGATIVE, QUIET, SERIES, SMALL_TICK_SIZE, WORD_SHADE

TOP = 8
"""Terms that have a bar of their own."""
PLACES = 3
"""Decimals of all that is shown; they add up to the cosine."""
_STYLE = f"""{STYLE.replace(".hs-words", ".hs-shaded")}<style>
.hs-shaded .hs-less {{ background: color-mix(in srgb, {NEGATIVE} calc(var(--s) * 1%), transparent); }}
.hs-legend span.hs-both {{ background: linear-gradient(to right, {NEGATIVE}, transparent, {WORD_SHADE}); }}
</style>"""


def waterfall(found: Explanation, start: float, theme: str) -> go.Figure:
    """From ``start`` to the cosine: the terms that add or take away most, and all others together.

    ``found`` holds values that add up to the cosine less ``start``, which is 0 or what random pairs have.
    """
    order = np.argsort(-np.abs(found.values), kind="stable")
    largest = sorted(order[:TOP], key=lambda at: -found.values[at])
    begins, total = round(start, PLACES), round(found.cosine, PLACES)
    values = [float(found.values[at]) for at in largest]
    names = [term_name(found.terms[at]) for at in largest]
    if len(order) > TOP:
        values.append(float(found.values[order[TOP:]].sum()))
        names.append(f"{len(order) - TOP} other terms")
    shown = rounded_to_sum(values, total - begins, PLACES).tolist()
    first = ["random pairs"] if start else []
    series = SERIES[theme]
    figure = go.Figure(
        go.Waterfall(
            orientation="h",
            y=[*first, *names, "cosine"],
            x=[*([begins] if start else []), *shown, total],
            measure=[*(["absolute"] * len(first)), *(["relative"] * len(shown)), "total"],
            text=[
                *([signed(begins, PLACES)] if start else []),
                *(signed(value, PLACES, plus=True) for value in shown),
                signed(total, PLACES),
            ],
            textposition="outside",
            cliponaxis=False,
            increasing={"marker": {"color": series[1]}},
            decreasing={"marker": {"color": series[0]}},
            totals={"marker": {"color": QUIET[theme]}},
            connector={"line": {"color": MUTED[theme], "width": 1}},
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    steps = np.concatenate([[begins], begins + np.cumsum(shown), [0.0]])
    span = float(steps.max() - steps.min()) or 1.0
    figure.layout = {
        "template": template(theme),
        "height": 80 + 30 * (len(names) + 1 + len(first)),
        "margin": {"l": 172, "r": 14, "t": 6, "b": 36},
        "yaxis": {"autorange": "reversed", "type": "category"},
        "xaxis": {
            "range": [steps.min() - (0.16 * span if steps.min() < 0 else 0), steps.max() + 0.2 * span],
            "zeroline": True,
            "zerolinecolor": MUTED[theme],
            "zerolinewidth": 1,
            "title": {"text": "cosine"},
        },
        "showlegend": False,
        "dragmode": False,
    }
    return figure


def shaded(text: str, pieces: tuple[Piece, ...], values: np.ndarray, limit: float) -> str:
    """A text as HTML, each token in the strength of what it adds in orange, or takes away in blue."""
    seen = Attended(pieces, values[None], len(pieces))
    parts = []
    traced = any(piece.start is not None for piece in pieces)
    for run in runs(text, seen, 1):
        if run.share is None:
            parts.append(safe(run.text))
            continue
        tag = "small" if run.special else "b"
        step = round(STEPS * min(1.0, abs(run.share) / limit))
        less = ' class="hs-less"' if run.share < 0 else ""
        parts.append(
            f'<{tag}{less} style="--s:{step}" title="{signed(run.share, 4, plus=True)}">{safe(run.text)}</{tag}>'
            + ("" if traced or run.special else " ")
        )
    rest = cut_off(text, seen).rstrip()
    if rest:
        parts.append(f"<i>{safe(rest[:300])}{' …' if len(rest) > 300 else ''}</i>")
    return f'{_STYLE}<div class="hs-shaded" dir="auto">{"".join(parts)}</div>'


def shade_limit(found: HeadWords) -> float:
    """What a token of full colour adds or takes away: the 98th percentile of both texts."""
    strength = np.abs(np.concatenate(found.values))
    return float(np.quantile(strength, 0.98)) or float(strength.max()) or 1.0


def shade_legend(limit: float) -> str:
    ends = (signed(-limit, 4), signed(limit, 4, plus=True))
    return (
        f'{_STYLE}<div class="hs-legend">{ends[0]} <span class="hs-both"></span> {ends[1]} '
        "of the cosine per token</div>"
    )


def matrix_figure(found: HeadWords, theme: str) -> go.Figure:
    """Words of the first text by words of the second; the last row and column are all other words."""
    others = "all other words"
    rows, columns = (short_names([*words, others], 18) for words in found.words)
    own = found.matrix[:-1, :-1]
    limit = float(np.abs(own).max(initial=0.0)) or 1.0
    figure = go.Figure(
        go.Heatmap(
            z=found.matrix,
            x=columns,
            y=rows,
            zmin=-limit,
            zmax=limit,
            colorscale=DIVERGING[theme],
            xgap=1,
            ygap=1,
            hovertemplate="%{y} – %{x}<br>%{z:+.4f}<extra></extra>",
            colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".2~g"},
        )
    )
    figure.layout = {
        "template": template(theme),
        "height": 170 + 24 * len(rows),
        "xaxis": {
            "side": "top",
            "tickangle": -60,
            "type": "category",
            "title": {"text": "second text"},
            "tickfont": {"size": SMALL_TICK_SIZE},
        },
        "yaxis": {
            "autorange": "reversed",
            "type": "category",
            "title": {"text": "first text"},
            "tickfont": {"size": SMALL_TICK_SIZE},
        },
        "margin": {"l": 120, "r": 10, "t": 120, "b": 10},
        "dragmode": False,
    }
    return figure
