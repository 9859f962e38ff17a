"""The pictures of the Head profile: arrays in, a figure or a piece of SVG out, nothing of Streamlit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from core.analysis.by_topic import ByTopic
from pages.shared.figures.template import error_bars, template
from pages.shared.text import drawn, safe, shortened
from pages.shared.theme import CHART_SIZE, DIVERGING, GROUND, INK, LABEL_SIZE, MUTED

MOST = 30
"""Topics in one figure; of more, those at both ends."""
_ROW = 36
"""Pixels of a topic's row: its name, and below it the dot with its interval."""
GRID = """
<style>
[class*="st-key-grid-"] { display: grid !important; gap: .7rem !important;
  grid-template-columns: repeat(auto-fill, minmax(max(10.2rem, 23%), 1fr)); align-items: stretch; }
[class*="st-key-grid-"] > * { width: auto !important; min-width: 0 !important; max-width: none !important; }
</style>
"""
"""Cards of equal size: two side by side on a narrow screen, four on a wide one."""
_SIDES = {1: "follows", -1: "avoids", 0: "no clear difference"}


def side_colour(side: int, theme: str) -> str:
    """Red where a head is above the rest, blue where it is below, as in the heat map."""
    scale = DIVERGING[theme]
    return {1: str(scale[-1][1]), -1: str(scale[0][1]), 0: MUTED[theme]}[side]


def shown_topics(found: ByTopic, most: int = MOST) -> np.ndarray:
    """Positions in ``found`` of the topics that are drawn: all, or ``most`` of them, from both ends."""
    count = len(found.topic)
    if count <= most:
        return np.arange(count)
    return np.concatenate([np.arange(most // 2), np.arange(count - most // 2, count)])


def gaps_figure(found: ByTopic, names: Sequence[str], theme: str, most: int = MOST) -> go.Figure:
    """Each topic's gap as a dot with its interval, the largest on top; names stand above their rows, on any width."""
    shown = shown_topics(found, most)
    place = np.arange(len(shown))[::-1]
    side = found.side[shown]
    # In one piece: adding thirty names one by one takes plotly a fifth of a second.
    return go.Figure(
        data=[_dots(found, names, shown[side == value], place[side == value], value, theme) for value in _SIDES],
        layout={
            "template": template(theme),
            "height": 96 + _ROW * len(shown),
            "margin": {"l": 6, "r": 12, "t": 34, "b": 50},
            "xaxis": {
                "title": {"text": "gap in similarity to the own topic", "font": {"size": CHART_SIZE}},
                "tickformat": ".2~f",
                "nticks": 7,
                "zeroline": True,
                "zerolinecolor": MUTED[theme],
                "zerolinewidth": 1,
            },
            "yaxis": {"visible": False, "range": [-0.6, len(shown) - 0.1]},
            "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": LABEL_SIZE}},
            "dragmode": False,
            "annotations": [
                {
                    "x": 0,
                    "xref": "paper",
                    "xanchor": "left",
                    "y": int(y),
                    "yshift": 13,
                    "text": drawn(shortened(names[found.topic[at]], 60)),
                    "showarrow": False,
                    "font": {"size": LABEL_SIZE},
                    "bgcolor": GROUND[theme],
                    "borderpad": 0,
                }
                for at, y in zip(shown, place, strict=True)
            ],
        },
    )


def _dots(
    found: ByTopic, names: Sequence[str], mine: np.ndarray, place: np.ndarray, side: int, theme: str
) -> dict[str, object]:
    """The topics at positions ``mine`` of ``found``, all of one side, at heights ``place``."""
    colour = side_colour(side, theme)
    return {
        "type": "scatter",
        "x": found.gap[mine],
        "y": place,
        "mode": "markers",
        "name": _SIDES[side],
        "marker": {"size": 9, "color": colour, "symbol": "circle" if side else "circle-open", "line": {"width": 1.5}},
        "error_x": error_bars(found.gap[mine], found.low[mine], found.high[mine], color=colour, thickness=1.8, width=0),
        "customdata": [
            [drawn(names[found.topic[at]]), found.low[at], found.high[at], int(found.documents[at])] for at in mine
        ],
        "hovertemplate": "%{customdata[0]}<br>%{x:+.2f} (%{customdata[1]:+.2f} to %{customdata[2]:+.2f})"
        "<br>%{customdata[3]} documents<extra></extra>",
    }


def bars(gaps: np.ndarray, sides: np.ndarray, limit: float, theme: str, said: str) -> str:
    """A bar a topic around a middle line, as HTML: up and red follows, down and blue avoids, pale grey is not clear.

    ``limit`` is the gap that a bar of full height has; ``said`` is what the picture says, for those who cannot see it.
    """
    drawn = []
    for gap, side in zip(gaps.tolist(), sides.tolist(), strict=True):
        tall = 50 * min(1.0, abs(gap) / limit if limit else 0.0)
        drawn.append(
            f'<span style="flex: 1; position: relative"><span style="position: absolute; left: 10%; right: 10%; '
            f"{'bottom' if gap > 0 else 'top'}: 50%; height: {tall:.1f}%; border-radius: 1px; "
            f'background: {side_colour(side, theme)}; opacity: {1 if side else 0.5}"></span></span>'
        )
    return (
        f'<div role="img" aria-label="{safe(said)}" style="position: relative; display: flex; height: 3rem">'
        f'<span style="position: absolute; left: 0; right: 0; top: 50%; height: 1px; background: {INK[theme]}; '
        f'opacity: 0.4"></span>{"".join(drawn)}</div>'
    )
