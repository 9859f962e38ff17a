"""What the Overview draws: the stages as HTML, and the heads' vectors of one document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from core.model.shape import ModelShape
from core.model.stages import SHARE
from pages.shared.figures.template import template
from pages.shared.theme import DIVERGING, FRAME, head_colours

_STYLE = """
<style>
.hs-stages { display: flex; flex-wrap: wrap; gap: .6rem; align-items: stretch; }
.hs-step { flex: 1 1 11rem; border: 1px solid color-mix(in srgb, currentColor 16%, transparent); border-radius: .5rem;
  padding: .7rem .8rem; display: flex; flex-direction: column; gap: .45rem; }
.hs-step.hs-plain { flex: 0 1 8.5rem; border-style: dashed; }
.hs-step.hs-lacking { border-style: dashed; }
.hs-step.hs-lacking .hs-strip { opacity: .3; }
.hs-step b { font-size: .95em; }
.hs-step small { opacity: .8; line-height: 1.35; }
.hs-strip { display: flex; gap: 2px; height: 1.15rem; }
.hs-strip i { flex: 1; border-radius: 2px; }
.hs-strip.hs-mixed i { background: linear-gradient(90deg, var(--a), var(--b)); }
</style>
"""


def stages_drawing(shape: ModelShape, kept: Sequence[int]) -> str:
    """HTML: a text goes in, and where in the model the stages are read; those of the study not ``kept`` are faint."""
    colours = head_colours(shape.heads, shape.kv_heads, "light")
    own = "".join(f'<i style="background:{colour}"></i>' for colour in colours)
    mixed = "".join(
        f'<i style="background:linear-gradient(90deg,{colour},{colours[(number * 5 + 3) % len(colours)]})"></i>'
        for number, colour in enumerate(colours)
    )
    groups = ""
    if shape.kv_heads not in (1, shape.heads):
        groups = f" Heads of one hue share one of {shape.kv_heads} key/value heads."
    slices = f"{shape.hidden} numbers, cut into {shape.heads} slices"

    def lacking(stage: int) -> str:
        if stage not in shape.stages:
            return " (not in this run: the model's output cannot be cut evenly)"
        return "" if stage in kept else " (not stored in this run)"

    steps = [
        ("hs-plain", "A document", "", "goes through the model, word by word."),
        (
            _kind(1, kept),
            "1 · attention",
            own,
            f"Each of {shape.heads} heads writes {shape.head_dim} numbers: what it read from the text"
            f"{lacking(1)}.{groups}",
        ),
        (
            _kind(2, kept),
            "2 · projected",
            mixed,
            f"A matrix mixes all heads: {slices}, which no longer correspond exactly to heads{lacking(2)}.",
        ),
        (
            _kind(3, kept),
            "3 · output",
            mixed,
            f"The model's own embedding: {slices} in the same way{lacking(3)}.",
        ),
    ]
    if SHARE in kept:
        adds = "What each head adds to the model's own embedding, exactly: again one part per head."
        steps.append(("", "4 · share", own, f"{adds} The embedding is their sum plus a rest."))
    boxes = "".join(
        f'<div class="hs-step {kind}"><b>{title}</b>{f"<div class=hs-strip>{strip}</div>" if strip else ""}'
        f"<small>{text}</small></div>"
        for kind, title, strip, text in steps
    )
    return f'{_STYLE}<div class="hs-stages">{boxes}</div>'


def _kind(stage: int, kept: Sequence[int]) -> str:
    return "" if stage in kept else "hs-lacking"


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
    step = max(1, heads // 16)
    figure.layout = {
        "template": template(theme),
        "height": 90 + max(14, min(24, 480 // heads)) * heads,
        "yaxis": {
            "autorange": "reversed",
            "tickvals": list(range(1, heads + 1, step)),
            "ticktext": [f"head {head}" for head in range(1, heads + 1, step)],
        },
        "xaxis": {"title": {"text": "number within the head's vector"}},
        "dragmode": False,
    }
    figure.add_shape(
        type="rect", x0=0.5, x1=dims + 0.5, y0=chosen - 0.5, y1=chosen + 0.5, line={"color": FRAME[theme], "width": 2}
    )
    return figure
