"""Repeated random tokens through a model: every head's induction and duplicate-token scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.analysis.induction import LENGTH, SEQUENCES, InductionScores, random_tokens, repeated_scores
from core.errors import Mistake
from core.model.attention import read_attention

if TYPE_CHECKING:
    from torch import Tensor

    from core.model.extract import HeadExtractor
    from core.model.tokens import Tokens

_SHORTEST = 4


def read_induction(
    extractor: HeadExtractor, tokens: Tokens, length: int = LENGTH, sequences: int = SEQUENCES, seed: int = 0
) -> InductionScores:
    """Means over ``sequences`` of ``length`` random tokens, each twice in a row between the model's special tokens.

    Shorter where the model does not take so many. The caller makes sure that no other thread uses the model meanwhile.
    """
    length = min(length, (tokens.max_tokens - len(tokens.begin) - len(tokens.end)) // 2)
    if length < _SHORTEST:
        raise Mistake(
            f"Induction needs texts of {2 * _SHORTEST} tokens, but this model reads {tokens.max_tokens}. "
            "Give a larger --max-tokens."
        )
    vocabulary = extractor.model.get_input_embeddings().num_embeddings  # type: ignore[operator]
    sums = np.zeros((3, extractor.shape.layers, extractor.shape.heads))

    def keep(layer: int, weights: Tensor) -> None:
        sums[:, layer] += repeated_scores(weights.float().cpu().numpy(), len(tokens.begin), length)

    for row in random_tokens(vocabulary, tokens.special_ids, length, sequences, seed).tolist():
        ids = [*tokens.begin, *row, *row, *tokens.end]
        read_attention(extractor, ids, range(extractor.shape.layers), keep)
    return InductionScores(*(sums / sequences))
