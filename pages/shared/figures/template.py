"""Plotly figures in the project's own look: arrays in, figures out, nothing of Streamlit."""

from __future__ import annotations

from functools import cache

import numpy as np
import plotly.graph_objects as go

FONT = "Inter, 'Segoe UI', 'Helvetica Neue', 'Noto Sans', sans-serif"
INK = {"light": "#10141D", "dark": "#E8E6E1"}
GROUND = {"light": "#FCFBF8", "dark": "#14171D"}
ACCENT = {"light": "#10141D", "dark": "#FFFFFF"}
# Blue low, red high, around a middle that is the page's own ground: no value, no ink.
DIVERGING = {
    "light": [[0, "#2B5C9E"], [0.25, "#89AFD9"], [0.5, "#F4F1EA"], [0.75, "#E29A7B"], [1, "#B03A2E"]],
    "dark": [[0, "#6FA8F0"], [0.25, "#3B5F93"], [0.5, "#1F242D"], [0.75, "#9A4B3A"], [1, "#F2876B"]],
}
# From the page's own ground to a deep blue: nothing, then more and more.
SEQUENTIAL = {
    "light": [[0, "#F4F1EA"], [0.35, "#A9C3E2"], [0.7, "#4C78C8"], [1, "#1D3A73"]],
    "dark": [[0, "#1F242D"], [0.35, "#2F4C7E"], [0.7, "#6F9BE8"], [1, "#D5E3FF"]],
}
# Told apart by most colour-blind readers (after Okabe and Ito), on either ground.
SERIES = {
    "light": ("#2B5C9E", "#C2543F", "#3A8C6E", "#8A6FB0", "#B58A1F", "#5F6B7A"),
    "dark": ("#7FB0F5", "#F2957B", "#6FCBA6", "#BFA5E6", "#E3BE5C", "#A7B0BD"),
}
QUIET = {"light": "#8C8678", "dark": "#7D8694"}


@cache
def template(theme: str) -> go.layout.Template:
    """Fonts, colours and margins of every figure."""
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": INK[theme]},
            "paper_bgcolor": GROUND[theme],  # the page's own: a saved picture has it too
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 66, "r": 10, "t": 10, "b": 40},
            "xaxis": {
                "showgrid": False,
                "zeroline": False,
                "ticks": "",
                "title": {"standoff": 8, "font": {"size": 12}},
            },
            "yaxis": {
                "showgrid": False,
                "zeroline": False,
                "ticks": "",
                "ticklabelstandoff": 6,
                "title": {"font": {"size": 12}},
            },
            "hoverlabel": {"font": {"family": FONT, "color": INK[theme]}, "bgcolor": GROUND[theme]},
        }
    )


def head_vectors_figure(vectors: np.ndarray, chosen: int, theme: str) -> go.Figure:
    """One document's ``vectors[head, dim]`` as coloured cells; ``chosen`` (from 1) is framed."""
    heads, dims = vectors.shape
    limit = float(np.quantile(np.abs(vectors), 0.98)) or 1.0
    figure = go.Figure(
        go.Heatmap(
            z=vectors,
            x=np.arange(1, dims + 1),
            y=np.arange(1, heads + 1),
            zmin=-limit,
            zmax=limit,
            colorscale=DIVERGING[theme],
            xgap=1 if dims <= 64 else 0,
            ygap=1,
            hovertemplate="head %{y}, number %{x} of " + str(dims) + "<br>%{z:.3f}<extra></extra>",
            colorbar={"thickness": 10, "outlinewidth": 0, "tickformat": ".2~g", "len": 1, "y": 0.5},
        )
    )
    figure.add_shape(
        type="rect", x0=0.5, x1=dims + 0.5, y0=chosen - 0.5, y1=chosen + 0.5, line={"color": ACCENT[theme], "width": 2}
    )
    step = max(1, heads // 16)
    figure.update_layout(
        template=template(theme),
        height=90 + max(14, min(24, 480 // heads)) * heads,
        yaxis={
            "autorange": "reversed",
            "tickvals": list(range(1, heads + 1, step)),
            "ticktext": [f"head {head}" for head in range(1, heads + 1, step)],
        },
        xaxis={"title": {"text": "number within the head's vector"}},
        dragmode=False,
    )
    return figure
