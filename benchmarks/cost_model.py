"""What a run costs before it is started: floating-point operations, hours of a processor, bytes.

A multiplication and an addition are two operations. Counted are the matrices of all layers and the two products of
attention; norms, activations, embeddings and the tokenizer are not (under 1 % of a large model's operations).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.errors import Mistake
from core.model.shape import ModelShape

FLOAT16, INT8, SCALE = 2, 1, 4
"""Bytes of a number, and of the scale that each head of an int8 vector has."""

PEAKS = {"L4": 121e12, "A100": 312e12, "H100 SXM": 989e12}
"""Operations a second in bfloat16, dense, by the makers' data sheets."""


@dataclass(frozen=True)
class Layout:
    """The matrices of a model: its attention's, and those of the feed-forward part behind it."""

    shape: ModelShape
    intermediate: int
    """Width of the feed-forward part."""
    gated: bool
    """Three matrices in the feed-forward part (Llama, Mistral, Qwen) instead of two (BERT)."""
    causal: bool
    """A token looks at itself and at those before it, instead of at all."""

    @property
    def weights(self) -> int:
        """Numbers in the matrices of all layers: each is multiplied and added once for every token."""
        shape = self.shape
        attention = 2 * shape.hidden * shape.head_dim * (shape.heads + shape.kv_heads)
        return shape.layers * (attention + (3 if self.gated else 2) * shape.hidden * self.intermediate)


LAYOUTS: dict[str, Layout] = {
    "all-MiniLM-L6-v2": Layout(ModelShape(6, 12, 12, 384, 32), 1536, gated=False, causal=False),
    "SmolLM2-135M": Layout(ModelShape(30, 9, 3, 576, 64), 1536, gated=True, causal=True),
    "Salesforce/SFR-Embedding-Mistral": Layout(ModelShape(32, 32, 8, 4096, 128), 14336, gated=True, causal=True),
}
"""By the names of ``core.model.presets``."""


def flops(layout: Layout, tokens: ArrayLike) -> np.ndarray:
    """Operations of documents that have ``tokens[...]`` tokens each, in the same shape."""
    length = np.asarray(tokens, dtype=np.float64)
    if (length < 0).any():
        raise Mistake("A document cannot have fewer than 0 tokens.")
    seen = (length + 1) / 2 if layout.causal else length  # by a token, on average
    # Scores and the weighted sum of the values: each a product of the head's width for every token that is seen.
    attention = 4 * layout.shape.layers * layout.shape.heads * layout.shape.head_dim * seen
    return length * (2 * layout.weights + attention)


def sustained(peak: ArrayLike, utilisation: ArrayLike) -> np.ndarray:
    """Operations a second that are left of ``peak`` where the share ``utilisation`` is reached."""
    share = np.asarray(utilisation, dtype=np.float64)
    if not ((share > 0) & (share <= 1)).all():
        raise Mistake("A utilisation is a share of the peak: more than 0, at most 1.")
    return np.asarray(peak, dtype=np.float64) * share


def hours(operations: ArrayLike, rate: ArrayLike) -> np.ndarray:
    """Of one processor that does ``rate`` operations a second; on n of them it takes an n-th of the time."""
    return np.asarray(operations, dtype=np.float64) / np.asarray(rate, dtype=np.float64) / 3600


def vector_bytes(shape: ModelShape, stages: Iterable[int] = (1, 2, 3), number: int = FLOAT16) -> int:
    """A document's head vectors: ``number`` bytes each, and as int8 a scale for every head."""
    scales = shape.heads * SCALE if number == INT8 else 0
    return sum(shape.width(stage) * number + scales for stage in stages)


def quantised_bytes(shape: ModelShape, stages: Iterable[int] = (1, 2, 3), codes: int = 16) -> int:
    """The same product-quantised: ``codes`` bytes a head, each the number of one of 256 centres of a part of it."""
    for stage in (stages := tuple(stages)):
        if shape.width(stage) // shape.heads % codes:
            raise Mistake(
                f"A head of {shape.width(stage) // shape.heads} numbers cannot be cut into {codes} equal parts."
            )
    return len(stages) * shape.heads * codes


def codebook_bytes(shape: ModelShape, stages: Iterable[int] = (1, 2, 3)) -> int:
    """The centres of a product quantiser of each head, once a run: 256 for every part, so 256 of the whole width."""
    return sum(256 * shape.width(stage) * FLOAT16 for stage in stages)


def similarity_bytes(shape: ModelShape, topics: int, stages: Iterable[int] = (1, 2, 3)) -> int:
    """A document's similarities to the topics: of the full embedding and of every head, float16."""
    return len(tuple(stages)) * (1 + shape.heads) * topics * FLOAT16
