"""A number per term of the model as a grid of layers × heads, feed-forward blocks and biases; they add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from core.analysis.explained import TermGrid, term_name
from core.model.ledger import Term
from pages.shared.components.layer_grid import Cell, LayerGrid, Scale
from pages.shared.theme import DIVERGING, GROUND, colour_at

_LEAST = 34
"""Pixels of a cell: room for "−.012"."""


def term_grid(
    terms: Sequence[Term],
    shown: np.ndarray,
    written: Callable[[float], str],
    note: Callable[[int], str],
    theme: str,
    label: str,
    name: str,
    limit: float | None = None,
) -> LayerGrid:
    """``shown[term]`` as ``written``; ``note(term)`` is what else is said of a term. ``limit`` has the full colour."""
    grid = TermGrid.of(terms, shown)
    number = {(term.layer, term.kind, term.head): at for at, term in enumerate(terms)}
    layers, heads = grid.heads.shape
    limit = limit or float(np.abs(grid.heads).max()) or 1.0
    stops = DIVERGING[theme]

    def cell(layer: int, kind: str, head: int | None) -> Cell | None:
        at = number.get((layer, kind, head))
        if at is None:
            return None
        value = float(shown[at])
        who = term_name(terms[at])
        said = "\n".join(part for part in (who[0].upper() + who[1:], note(at)) if part)
        return Cell(colour_at(0.5 + 0.5 * value / limit, stops), said, written(value))

    def row(layer: int) -> list[Cell | None]:
        total = float(grid.layers[layer - 1])
        whole = Cell(GROUND[theme], f"Layer {layer}, all together\n{written(total)}", written(total))
        own = [cell(layer, "head", head) for head in range(1, heads + 1)]
        return [*own, cell(layer, "mlp", None), *([cell(layer, "bias", None)] if biased else []), whole]

    biased = any(term.kind == "bias" and term.layer is not None for term in terms)
    return LayerGrid(
        label=label,
        rows=[f"layer {layer}" for layer in range(1, layers + 1)],
        columns=[*map(str, range(1, heads + 1)), "ff", *(["bias"] if biased else []), "all"],
        cells=[row(layer) for layer in range(1, layers + 1)],
        legend=Scale(stops, written(-limit), written(limit)),
        breaks=[heads, heads + 1 + biased],
        name=name,
        least=_LEAST,
    )


def decimal(value: float) -> str:
    """Three decimals without the zero before them, and a real minus: ``−.012``."""
    text = f"{value:.3f}"
    if float(text) == 0:
        return "0"
    return text.replace("0.", ".", 1).replace("-", "−") if abs(float(text)) < 1 else text.replace("-", "−")


def hundredths(value: float) -> str:
    """Of 1, with one decimal: ``12.3``."""
    text = f"{100 * value:.1f}"
    return "0" if float(text) == 0 else text.replace("-", "−")
