"""How a head's reliability is shown beside its votes: in words, below its number, and by fading what it says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from core.analysis.document_profile import Reliability
from pages.shared.theme import GROUND

_MOST_FADED = 0.75
_MOST_RATES = 16
"""Columns; with more of them rates would not fit below the heads' numbers."""
LINE = 14
"""Pixels: of a second line of ticks."""


def right_for(rate: float) -> str:
    return f"right for {100 * rate:.0f} of 100 documents"


def solidity(reliability: Reliability | None, heads: int) -> np.ndarray:
    """``[1 + head]``, 0 to 1: the full embedding's is 1, a head's its weight against the best head's."""
    weights = np.ones(heads) if reliability is None else reliability.weights
    found: np.ndarray = np.concatenate([[1.0], weights / max(float(weights.max()), 1e-12)])
    return found


def fade(figure: go.Figure, solid: np.ndarray, x: Sequence[int], y: Sequence[int], theme: str) -> None:
    """Lays a veil over the columns ``x`` of a heat map, thicker the less ``solid[column]`` they are."""
    clear = "rgba({}, {}, {}, 0)".format(*(int(GROUND[theme][at : at + 2], 16) for at in (1, 3, 5)))
    figure.add_trace(
        go.Heatmap(
            z=np.tile(_MOST_FADED * (1 - solid), (len(y), 1)),
            x=list(x),
            y=list(y),
            colorscale=[[0, clear], [1, GROUND[theme]]],
            zmin=0,
            zmax=1,
            showscale=False,
            hoverinfo="skip",
        )
    )


def rates_below_numbers(figure: go.Figure, names: Sequence[str], rates: np.ndarray, x: Sequence[int]) -> bool:
    """A second line for the columns' ticks, right for how many of 100; False where there is no room for it."""
    if len(names) > 1 + _MOST_RATES:
        return False
    ticks = [f"{name}<br>{100 * rate:.0f}" for name, rate in zip(names, rates, strict=True)]
    figure.update_xaxes(tickvals=list(x), ticktext=ticks)
    figure.update_layout(height=figure.layout.height + LINE)
    return True
