"""From documents' sums, and from what experiments show, to rows by head: measures, patterns, types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.analysis.attention_measures import MEASURES, OFFSETS, Sums, measures
from core.analysis.attention_types import MIXED, AttentionEvidence, because, type_of
from core.analysis.type_claims import TypeClaim
from core.model.shape import ModelShape
from precompute.job.step import Rows, add

Claims = Mapping[tuple[int, int], Mapping[str, TypeClaim]]
"""By layer and head, from 1: the types that experiments show."""


class Collected:
    """What the documents that were seen so far say; for each one only what its intervals need."""

    def __init__(self, shape: ModelShape) -> None:
        self.shape = shape
        self.value: list[np.ndarray] = []
        """By document ``[layer, head, measure]``."""
        self.weight: list[np.ndarray] = []
        """By document ``[layer, measure]``."""
        self.shuffled = np.zeros((shape.layers, shape.heads, len(MEASURES)))
        self.pattern = np.zeros((shape.layers, shape.heads, len(OFFSETS)))
        self.pattern_shuffled = np.zeros((shape.layers, len(OFFSETS)))
        self._rests = np.zeros((shape.layers, shape.heads))

    def add(self, sums: list[Sums]) -> None:
        """One document's, by layer."""
        self.value.append(np.stack([one.value for one in sums]).astype(np.float32))
        self.weight.append(np.stack([one.weight for one in sums]).astype(np.float32))
        self.shuffled += np.stack([one.shuffled for one in sums])
        self.pattern += np.stack([one.pattern for one in sums])
        self.pattern_shuffled += np.stack([one.pattern_shuffled for one in sums])
        self._rests += np.stack([one.rests for one in sums])

    @property
    def rests(self) -> np.ndarray:
        """``[layer, head]``: the share of tokens that give the first one more than half; NaN where none looks."""
        looked = np.sum([one[:, list(MEASURES).index("first")] for one in self.weight], axis=0, dtype=np.float64)
        return self._rests / np.where(looked > 0, looked, np.nan)[:, None]


def attention_rows(found: Collected, seed: int, claims: Claims | None = None) -> Rows:
    """A row for every layer and head."""
    rows: Rows = {}
    rests = found.rests
    for layer in range(found.shape.layers):
        value, weight = (np.stack([one[layer] for one in many]) for many in (found.value, found.weight))
        means = measures(value, found.shuffled[layer], weight, seed)
        for head in range(found.shape.heads):
            columns: dict[str, Any] = {}
            for number, name in enumerate(MEASURES):
                columns[name] = _number(means.value.value[head, number])
                columns[f"{name}_low"] = _number(means.value.low[head, number])
                columns[f"{name}_high"] = _number(means.value.high[head, number])
                columns[f"{name}_shuffled"] = _number(means.shuffled[head, number])
            shown = (claims or {}).get((layer + 1, head + 1))
            kind = type_of(AttentionEvidence.of({**columns, "rests": float(rests[layer, head])}, shown))
            add(
                rows,
                layer=layer + 1,
                head=head + 1,
                **columns,
                type=kind.name or MIXED,
                types=list(kind.names),
                because=kind.because,
            )
    return rows


def claim_rows(attention: Rows, rests: np.ndarray, claims: Claims) -> Rows:
    """A row for every type of every head; ``attention`` are the rows that say which."""
    rows: Rows = {}
    for at, types in enumerate(attention["types"]):
        layer, head = attention["layer"][at], attention["head"][at]
        figures = {name: column[at] for name, column in attention.items()} | {
            "rests": float(rests[layer - 1, head - 1])
        }
        evidence = AttentionEvidence.of(figures, claims.get((layer, head)))
        for nth, type_ in enumerate(types, start=1):
            strength = evidence.strength(type_) or None
            why = because(evidence, type_)
            add(rows, layer=layer, head=head, nth=nth, type=type_, strength=strength, because=why)
    return rows


def pattern_rows(found: Collected) -> Rows:
    """A row for every layer, head and distance."""
    # [layer]: the tokens that looked at anything at all.
    looked = np.stack([one[:, list(MEASURES).index("entropy")] for one in found.weight]).sum(axis=0, dtype=np.float64)
    rows: Rows = {}
    for layer, head, place in np.ndindex(found.pattern.shape):
        tokens = looked[layer]
        add(
            rows,
            layer=layer + 1,
            head=head + 1,
            offset=int(OFFSETS[place]),
            share=found.pattern[layer, head, place] / tokens if tokens else None,
            shuffled=found.pattern_shuffled[layer, place] / tokens if tokens else None,
        )
    return rows


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
