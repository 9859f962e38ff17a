"""Heads and relations between words: arrows over a sentence, heads ranked beside their baselines, families by layer.

Words may come from anybody's treebank. The arrows are an image, in which nothing can run, and every word is escaped.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from core.analysis.type_claims import signed
from core.analysis.wording import PERCENT
from pages.shared.figures.template import LEGEND_ABOVE, PERCENT_TICKS, error_bars, template
from pages.shared.text import drawn, safe, shortened
from pages.shared.theme import ATTENTION_FAMILIES, FONT, GRID_LINE, GROUND, INK, MUTED, QUIET, SERIES

MOST_WORDS, _LONGEST_WORD = 100, 18
_SIZE, _LETTER, _GAP, _STEP, _LOWEST = 15, 8.2, 14, 17, 24
"""Pixels: of letters, their usual width, between words, by which an arrow over more words is higher, of the lowest."""


@dataclass(frozen=True)
class Arrows:
    """A sentence, and from some of its words where a head attends to and what would be right; indices from 0."""

    words: Sequence[str]
    starts: Sequence[int]
    right: Sequence[int]
    attended: Sequence[int]
    """−1 where it attends to no other word."""

    @property
    def known(self) -> list[tuple[int, int, int]]:
        """``(start, right, attended)``, without any that point outside the sentence."""
        places = range(min(len(self.words), MOST_WORDS))
        return [
            (start, right, attended)
            for start, right, attended in zip(self.starts, self.right, self.attended, strict=False)
            if start in places and right in places and attended in (*places, -1)
        ]

    @property
    def hits(self) -> int:
        return sum(right == attended for _, right, attended in self.known)


def arrows_html(found: Arrows, theme: str) -> str:
    """The sentence with its arrows as HTML; it scrolls where it is wider than the page."""
    image, width = _svg(found, theme)
    said = spoken(found).replace("<", "‹").replace(">", "›")  # with "]>" or "-->" in it the browser's filter drops it
    source = b64encode(image.encode()).decode()
    return (
        f'<div class="hs-arrows" tabindex="0" role="group" aria-label="Sentence with arrows" '
        f'style="overflow-x: auto; max-width: 100%"><img alt="{safe(said)}" '
        f'width="{width:.0f}" style="max-width: none; display: block" src="data:image/svg+xml;base64,{source}"></div>'
    )


def spoken(found: Arrows) -> str:
    """The arrows in words, for those who cannot see them."""
    words = [shortened(word, _LONGEST_WORD) for word in found.words]
    lines = []
    for start, right, attended in found.known:
        if right == attended:
            lines.append(f"{words[start]} to {words[right]}: right")
        else:
            instead = words[attended] if attended >= 0 else "no other word"
            lines.append(f"{words[start]} to {instead}: wrong, right is {words[right]}")
    return shortened("; ".join(lines), 900)


def _svg(found: Arrows, theme: str) -> tuple[str, float]:
    words = [_cut(word) for word in found.words[:MOST_WORDS]]
    widths = [max(14.0, len(word) * _LETTER) for word in words]
    ends = np.cumsum(np.array(widths) + _GAP)
    centres = ends - np.array(widths) / 2 - _GAP / 2
    width = float(ends[-1]) + _GAP if words else 40.0
    known = found.known
    farthest = max((abs(start - end) for start, *others in known for end in others if end >= 0), default=1)
    base = _LOWEST + _STEP * min(farthest, 9) + 14.0
    marks = []
    good, bad = SERIES[theme][2], SERIES[theme][1]
    for start, right, attended in known:
        if right != attended:
            marks.append(_arc(centres, start, right, base, MUTED[theme], "missed"))
        if attended >= 0:
            hit = right == attended
            marks.append(_arc(centres, start, attended, base, good if hit else bad, "hit" if hit else "wrong"))
    texts = "".join(
        f'<text x="{centre:.1f}" y="{base + 20:.1f}" text-anchor="middle">{safe(word)}</text>'
        for centre, word in zip(centres, words, strict=True)
    )
    heads = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>'
        for name, colour in (("hit", good), ("wrong", bad), ("missed", MUTED[theme]))
    )
    height = base + 32
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{safe(FONT)}" font-size="{_SIZE}" '
        f'fill="{INK[theme]}"><defs>{heads}</defs>{"".join(marks)}{texts}</svg>',
        width,
    )


def _arc(centres: np.ndarray, start: int, end: int, base: float, colour: str, name: str) -> str:
    # Arrows leave a word on the side that they go to, so that those in and out do not meet.
    side = 4.0 if end > start else -4.0
    left, right = float(centres[start]) + side, float(centres[end]) - side
    top = base - _LOWEST - _STEP * (min(abs(end - start), 9) - 1)
    dash = ' stroke-dasharray="4 4"' if name == "missed" else ""
    # The control points are a third higher than the arc is to be.
    high = base - (base - top) * 4 / 3
    return (
        f'<path d="M{left:.1f} {base:.1f} C{left:.1f} {high:.1f} {right:.1f} {high:.1f} {right:.1f} {base:.1f}" '
        f'fill="none" stroke="{colour}" stroke-width="{1.4 if dash else 2}"{dash} marker-end="url(#{name})"/>'
    )


def _cut(word: str) -> str:
    short = shortened(word, _LONGEST_WORD) or "␣"
    return short if len(short) <= _LONGEST_WORD + 2 else short[:_LONGEST_WORD] + "…"


@dataclass(frozen=True)
class Ranked:
    """One head in a ranking, with its interval and baselines."""

    name: str
    value: float
    low: float
    high: float
    shuffled: float
    beyond: bool


def ranking_figure(
    heads: Sequence[Ranked], line: float | None, line_name: str, other_name: str, theme: str, unit: str = "right words"
) -> go.Figure:
    """Heads from left to right; the baseline of all as a line, each one's own as a mark."""
    per_cent = unit != "correlation"
    blue, quiet = SERIES[theme][0], QUIET[theme]
    factor, form = (100, f"%{{y:.0f}}{PERCENT}") if per_cent else (1, "%{y:.2f}")
    figure = go.Figure(
        go.Bar(
            name="head",
            x=[one.name for one in heads],
            y=[factor * one.value for one in heads],
            marker={"color": [blue if one.beyond else quiet for one in heads], "line": {"width": 0}},
            error_y=error_bars(
                [factor * one.value for one in heads],
                [factor * one.low for one in heads],
                [factor * one.high for one in heads],
                color=INK[theme],
            ),
            customdata=["above its baselines" if one.beyond else "not above its baselines" for one in heads],
            hovertemplate=f"head %{{x}}: {form}<br>%{{customdata}}<extra></extra>",
            showlegend=False,
        )
    )
    figure.add_trace(
        go.Scatter(
            name=drawn(other_name),
            x=[one.name for one in heads],
            y=[factor * one.shuffled for one in heads],
            mode="markers",
            marker={"symbol": "line-ew-open", "size": 13, "color": INK[theme], "line": {"width": 2}},
            hovertemplate=f"{drawn(other_name)}: {form}<extra></extra>",
        )
    )
    if line is not None:
        figure.add_trace(
            go.Scatter(
                name=drawn(line_name),
                x=[heads[0].name, heads[-1].name] if heads else [],
                y=[factor * line] * 2,
                mode="lines",
                line={"color": SERIES[theme][1], "width": 2, "dash": "dash"},
                hovertemplate=f"{drawn(line_name)}: {form}<extra></extra>",
            )
        )
    figure.layout = {
        "template": template(theme),
        "height": 330,
        "bargap": 0.3,
        "xaxis": {"type": "category", "title": {"text": "layer.head"}},
        "yaxis": {
            **(PERCENT_TICKS if per_cent else {}),
            "rangemode": "tozero",
            "showgrid": True,
            "gridcolor": GRID_LINE[theme],
            "title": {"text": unit},
        },
        "legend": LEGEND_ABOVE,
        "dragmode": False,
    }
    return figure


def offset_name(offset: int) -> str:
    return f"best fixed offset ({signed(offset)})"


def families_figure(counts: Mapping[str, np.ndarray], theme: str) -> go.Figure:
    """``counts[family][layer]`` as bars, a layer each."""
    figure = go.Figure()
    colours = ATTENTION_FAMILIES[theme]
    for family, by_layer in counts.items():
        name = "none of these" if family == "none" else family
        figure.add_trace(
            go.Bar(
                name=name,
                x=np.arange(1, len(by_layer) + 1),
                y=by_layer,
                marker={"color": colours[family], "line": {"width": 1, "color": GROUND[theme]}},
                hovertemplate=f"layer %{{x}}: %{{y}} {name}<extra></extra>",
            )
        )
    figure.layout = {
        "template": template(theme),
        "height": 300,
        "barmode": "stack",
        "bargap": 0.2,
        "xaxis": {"title": {"text": "layer"}, "dtick": 1 if len(counts["none"]) <= 16 else 2},
        "yaxis": {"title": {"text": "heads"}, "showgrid": True, "gridcolor": GRID_LINE[theme]},
        "legend": {**LEGEND_ABOVE, "traceorder": "normal"},
        "dragmode": False,
    }
    return figure
