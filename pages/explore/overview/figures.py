"""A drawing of the three stages, for readers who have not read the study."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.shape import ModelShape
from pages.shared.theme import head_colours

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
    """HTML: a text goes in, and where in the model the three stages are read; those that are not ``kept`` are faint."""
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
            return " (not in this run: it cannot be cut evenly)"
        return "" if stage in kept else " (not kept in this run)"

    steps = [
        ("hs-plain", "A document", "", "goes through the model, word by word."),
        (
            _kind(1, kept),
            "1 · attention",
            own,
            f"{shape.heads} heads each write {shape.head_dim} numbers: what each of them read from the text"
            f"{lacking(1)}.{groups}",
        ),
        (
            _kind(2, kept),
            "2 · projected",
            mixed,
            f"A matrix mixes all heads: {slices}, no longer quite the heads' own{lacking(2)}.",
        ),
        (
            _kind(3, kept),
            "3 · output",
            mixed,
            f"The model's own embedding: {slices} in the same way{lacking(3)}.",
        ),
    ]
    boxes = "".join(
        f'<div class="hs-step {kind}"><b>{title}</b>{f"<div class=hs-strip>{strip}</div>" if strip else ""}'
        f"<small>{text}</small></div>"
        for kind, title, strip, text in steps
    )
    return f'{_STYLE}<div class="hs-stages">{boxes}</div>'


def _kind(stage: int, kept: Sequence[int]) -> str:
    return "" if stage in kept else "hs-lacking"
