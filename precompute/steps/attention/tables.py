"""From documents' sums to the rows of ``analysis/attention.parquet`` and ``analysis/attention_patterns.parquet``."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.analysis.attention_measures import MEASURES, OFFSETS, Sums, measures
from core.analysis.attention_types import MIXED, AttentionEvidence, type_of
from core.model.shape import ModelShape
from precompute.job.step import Rows, add


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

    def add(self, sums: list[Sums]) -> None:
        """One document's, by layer."""
        self.value.append(np.stack([one.value for one in sums]).astype(np.float32))
        self.weight.append(np.stack([one.weight for one in sums]).astype(np.float32))
        self.shuffled += np.stack([one.shuffled for one in sums])
        self.pattern += np.stack([one.pattern for one in sums])
        self.pattern_shuffled += np.stack([one.pattern_shuffled for one in sums])


def attention_rows(found: Collected, seed: int) -> Rows:
    """A row for every layer and head."""
    rows: Rows = {}
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
            kind = type_of(AttentionEvidence.of(columns))
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
