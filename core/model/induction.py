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


def random_rows(
    extractor: HeadExtractor,
    tokens: Tokens,
    length: int = LENGTH,
    sequences: int = SEQUENCES,
    seed: int = 0,
    parts: int = 1,
) -> list[list[int]]:
    """Random tokens of the model's vocabulary: ``sequences`` of ``parts * length``, shorter where it reads fewer."""
    vocabulary = extractor.model.get_input_embeddings().num_embeddings  # type: ignore[operator]
    ordinary = vocabulary - sum(token < vocabulary for token in tokens.special_ids)
    length = min(length, (tokens.max_tokens - len(tokens.begin) - len(tokens.end)) // 2, ordinary // 2)
    if length < _SHORTEST:
        raise Mistake(
            f"Induction needs {2 * _SHORTEST} tokens besides special ones, but this model reads {tokens.max_tokens} "
            f"and knows {ordinary}. Give a larger --max-tokens, or choose another model."
        )
    rows: list[list[int]] = random_tokens(vocabulary, tokens.special_ids, parts * length, sequences, seed).tolist()
    return rows


def repeated_attention(
    extractor: HeadExtractor,
    tokens: Tokens,
    length: int = LENGTH,
    sequences: int = SEQUENCES,
    seed: int = 0,
    again: bool = True,
) -> np.ndarray:
    """Attention ``[layer, head, second, first]`` from the second copy of random tokens to the first, in float32.

    The mean over ``sequences`` of ``length`` tokens, each twice in a row between the model's special tokens; shorter
    where the model reads fewer. The axis ``first`` goes on to the second copy's first token. Without ``again`` other
    tokens take the second copy's place: what a head does at these distances where nothing is repeated. The caller makes
    sure that no other thread uses the model meanwhile.
    """
    copies = [(row, row) for row in random_rows(extractor, tokens, length, sequences, seed)]
    length = len(copies[0][0])
    if not again:
        twice = random_rows(extractor, tokens, length, sequences, seed, parts=2)
        copies = [(row[:length], row[length:]) for row in twice]
    start = len(tokens.begin)
    mean = np.zeros((extractor.shape.layers, extractor.shape.heads, length, length + 1), dtype=np.float32)

    def keep(layer: int, weights: Tensor) -> None:
        block = weights[:, start + length : start + 2 * length, start : start + length + 1]
        mean[layer] += block.float().cpu().numpy() / sequences

    for first, second in copies:
        ids = [*tokens.begin, *first, *second, *tokens.end]
        read_attention(extractor, ids, range(extractor.shape.layers), keep)
    return mean
