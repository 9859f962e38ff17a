"""Random tokens twice in a row through a model: every head's induction and duplicate-token scores, and examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.bootstrap import Interval, means
from core.analysis.induction import induction_scores
from core.analysis.word_attention import most_attended
from core.errors import Mistake
from core.model.induction import SEQUENCES
from core.runs.parts import digest_of, write_table
from core.runs.vocabulary import TYPE_EXAMPLES
from precompute.steps.attention.parts import AttentionWork

if TYPE_CHECKING:
    from torch import Tensor

    from core.model.embedder import Embedder

MEASURED = ("induction", "duplicate", "elsewhere", "induction_unrepeated", "duplicate_unrepeated")
SHOWN = 8
"""Tokens of an example, before they come again."""


@dataclass(frozen=True)
class RepeatedExample:
    """A short sequence, its tokens twice."""

    words: list[str]
    attended: np.ndarray
    """``[layer, head, token]``: the other token that each head attends to most."""


def repeated_scores(work: AttentionWork, seed: int) -> dict[str, Interval] | None:
    """By measure, ``[layer, head]`` each, over sequences; None for a model that reads or knows too few tokens."""
    path, shape = work.staging / "repeated.parquet", work.shape
    if digest_of(path) != work.digest:
        try:
            rows = [_sequence(work.model, [seed, number]) for number in range(SEQUENCES)]
        except Mistake:
            return None
        table = pa.table({"scores": [row.astype(np.float64).ravel() for row in rows]})
        write_table(path, table, work.digest, compression="none")
    values = np.array(pq.read_table(path)["scores"].to_pylist())
    found = means(values)
    parts = (
        np.reshape(part, (len(MEASURED), shape.layers, shape.heads)) for part in (found.value, found.low, found.high)
    )
    value, low, high = parts
    return {name: Interval(value[at], low[at], high[at]) for at, name in enumerate(MEASURED)}


def repeated_examples(model: Embedder, seed: int, without_first: bool) -> list[RepeatedExample]:
    """A few short sequences; none for a model that reads or knows too few tokens."""
    try:
        rows = model.random_rows(SHOWN, TYPE_EXAMPLES, seed)
    except Mistake:
        return []
    return [_example(model, row, without_first) for row in rows]


def _sequence(model: Embedder, seed: list[int]) -> np.ndarray:
    """``[measure, layer, head]``, MEASURED, of one sequence."""
    number = int(np.random.SeedSequence(seed).generate_state(1)[0])
    again = induction_scores(model.repeated_attention(number))
    other = induction_scores(model.repeated_attention(number, again=False))
    return np.stack([again.induction, again.duplicate, again.baseline, other.induction, other.duplicate])


def _example(model: Embedder, row: list[int], without_first: bool) -> RepeatedExample:
    begin, twice = len(model.tokens.begin), [*row, *row]
    here = slice(begin, begin + len(twice))
    found: list[np.ndarray] = []

    def keep(layer: int, weights: Tensor) -> None:
        found.append(most_attended(weights[:, here, here].double().cpu().numpy(), without_first))

    model.read_attention([*model.tokens.begin, *twice, *model.tokens.end], keep)
    return RepeatedExample(model.tokens.names(twice), np.stack(found))
