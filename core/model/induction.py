"""Repeated random tokens through a model: what every head attends to when it sees them again."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from core.errors import Mistake
from core.model.attention import read_attention

if TYPE_CHECKING:
    from torch import Tensor

    from core.model.extract import HeadExtractor
    from core.model.tokens import Tokens

LENGTH, SEQUENCES = 50, 8
_SHORTEST = 4


def random_tokens(vocabulary: int, special: Collection[int], length: int, sequences: int, seed: int) -> np.ndarray:
    """``[sequence, token]``: ids below ``vocabulary``, none special and none twice in a sequence."""
    ordinary = np.setdiff1d(np.arange(vocabulary), np.fromiter(special, dtype=np.int64))
    chance = np.random.default_rng(seed)
    return np.stack([chance.choice(ordinary, size=length, replace=False) for _ in range(sequences)])


def repeated_attention(
    extractor: HeadExtractor, tokens: Tokens, length: int = LENGTH, sequences: int = SEQUENCES, seed: int = 0
) -> np.ndarray:
    """Attention ``[layer, head, second, first]`` from the second copy of random tokens to the first, in float32.

    The mean over ``sequences`` of ``length`` tokens, each twice in a row between the model's special tokens; shorter
    where the model reads fewer. The axis ``first`` goes on to the second copy's first token. The caller makes sure that
    no other thread uses the model meanwhile.
    """
    length = min(length, (tokens.max_tokens - len(tokens.begin) - len(tokens.end)) // 2)
    if length < _SHORTEST:
        raise Mistake(
            f"Induction needs {2 * _SHORTEST} tokens besides special ones, but this model reads {tokens.max_tokens}. "
            "Give a larger --max-tokens."
        )
    vocabulary = extractor.model.get_input_embeddings().num_embeddings  # type: ignore[operator]
    start = len(tokens.begin)
    mean = np.zeros((extractor.shape.layers, extractor.shape.heads, length, length + 1), dtype=np.float32)

    def keep(layer: int, weights: Tensor) -> None:
        block = weights[:, start + length : start + 2 * length, start : start + length + 1]
        mean[layer] += block.float().cpu().numpy() / sequences

    for row in random_tokens(vocabulary, tokens.special_ids, length, sequences, seed).tolist():
        ids = [*tokens.begin, *row, *row, *tokens.end]
        read_attention(extractor, ids, range(extractor.shape.layers), keep)
    return mean
