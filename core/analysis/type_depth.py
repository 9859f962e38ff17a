"""Families of types over depth, beside the textbook picture: early positional, middle syntactic, late abstract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.attention_types import FAMILIES, FAMILY_OF

PERMUTATIONS = 2_000
_ORDER = {"positional": 0, "syntactic": 1, "semantic": 2, "task": 2}
"""From early to late, as textbooks have it; what is semantic or done for a task is abstract."""
_NAMES = ("positional", "syntactic", "semantic or task")


@dataclass(frozen=True)
class TypeDepth:
    """Families by layer, and whether later layers have the more abstract ones."""

    counts: Mapping[str, np.ndarray]
    """By family ``[layer]``: heads."""
    means: tuple[float | None, ...]
    """The mean layer, from 1, of positional, syntactic and abstract heads; None for a kind without heads."""
    correlation: float | None
    """Of a head's layer with the place of its family in the textbook's order; None where nothing varies."""
    p: float
    """Two-sided, over permutations of the families among all heads that have one."""

    @property
    def sentence(self) -> str:
        """The answer, with its figures."""
        there = [(name, mean) for name, mean in zip(_NAMES, self.means, strict=True) if mean is not None]
        means = "Mean layer of heads: " + ", ".join(f"{name} {mean:.1f}" for name, mean in there) + "." if there else ""
        if self.correlation is None or len(there) < 2:
            return f"{means} Too few families have heads for a trend over depth.".strip()
        values = [mean for _, mean in there]
        clear = self.p < 0.05
        figures = f"(correlation of layer and family {_signed(self.correlation)}, permutation p = {self.p:.3f})"
        if not clear:
            return f"{means} No trend over depth is shown {figures}."
        if self.correlation < 0:
            return f"{means} The opposite of the textbook order {figures}."
        if values == sorted(values) and len(values) == len(_NAMES):
            return f"{means} In the textbook's order {figures}."
        return f"{means} Later layers have the more abstract heads, but the three do not follow in order {figures}."


def type_depth(heads: Sequence[tuple[int, str]], layers: int, seed: int = 0) -> TypeDepth:
    """Of ``(layer, type)`` of every head, layers from 1."""
    counts = {family: np.zeros(layers, dtype=np.int64) for family in FAMILIES}
    for layer, type_ in heads:
        counts[FAMILY_OF[type_]][layer - 1] += 1
    placed = [(layer, _ORDER[FAMILY_OF[type_]]) for layer, type_ in heads if FAMILY_OF[type_] in _ORDER]
    depth, order = np.array(placed, dtype=np.float64).reshape(-1, 2).T
    means = tuple(float(depth[order == place].mean()) if (order == place).any() else None for place in range(3))
    if len(set(depth)) < 2 or len(set(order)) < 2:
        return TypeDepth(counts, means, None, 1.0)
    found = float(np.corrcoef(depth, order)[0, 1])
    chance = np.random.default_rng(seed)
    drawn = np.stack([chance.permutation(order) for _ in range(PERMUTATIONS)])
    centred = depth - depth.mean()
    products = drawn @ centred / (np.linalg.norm(centred) * np.linalg.norm(order - order.mean()))
    p = (1 + (np.abs(products) >= abs(found) - 1e-12).sum()) / (1 + PERMUTATIONS)
    return TypeDepth(counts, means, found, float(p))


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else ''}{abs(value):.2f}"
