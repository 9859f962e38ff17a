"""Which tokens of one text each head looks at, from the token that is pooled, at one layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.model.attention import read_attention
from core.model.pooling import Pool
from core.model.tokens import Spans

if TYPE_CHECKING:
    from torch import Tensor

    from core.model.extract import HeadExtractor


@dataclass(frozen=True)
class Piece:
    """A token and what it stands for."""

    start: int | None
    """Characters ``[start, end)`` of the text; None for a token that is none of the text's, or cannot be traced."""
    end: int | None
    text: str
    """The characters, or the token's own name where there are none."""
    special: bool
    """None of the text's own: a special token, or the prompt's."""


@dataclass(frozen=True)
class Attended:
    """A text's tokens as the model saw them, and every head's attention to them."""

    pieces: tuple[Piece, ...]
    weights: np.ndarray
    """``[head, token]``; each head's add up to 1, special tokens included (on which heads with nothing to do rest)."""
    total: int
    """Tokens before anything was cut."""

    @classmethod
    def of(cls, text: str, spans: Spans, weights: np.ndarray) -> Attended:
        return cls(pieces_of(text, spans), weights, spans.total)


@dataclass(frozen=True)
class Matrix:
    """A text's tokens as the model saw them, and at one layer every head's attention from each to each."""

    pieces: tuple[Piece, ...]
    weights: np.ndarray
    """``[head, from, to]``; each row adds up to 1."""
    total: int
    """Tokens before anything was cut."""

    def seen_from(self, token: int) -> Attended:
        """Where every head looks from one token (from 0)."""
        return Attended(self.pieces, self.weights[:, token].astype(np.float32), self.total)


def pieces_of(text: str, spans: Spans) -> tuple[Piece, ...]:
    pieces = []
    for place, word, special in zip(spans.characters, spans.words, spans.special, strict=True):
        start, end = place if place is not None else (None, None)
        pieces.append(Piece(start, end, word if place is None else text[start:end], special))
    return tuple(pieces)


def attention(extractor: HeadExtractor, ids: list[int], layer: int) -> np.ndarray:
    """Attention of every head at ``layer`` (from 0) from the pooled token, ``[head, token]``, in float32.

    With mean pooling every token is pooled, so that it is the mean over all tokens' attention.
    """
    import torch

    mask = torch.ones((extractor.shape.heads, len(ids)), device=next(extractor.model.parameters()).device)
    pool = Pool(extractor.pooling, mask)
    found: list[Tensor] = []
    # [head, from, to] -> [head, to]: rows are pooled as the token vectors are.
    read_attention(extractor, ids, [layer], lambda _, weights: found.append(pool(weights)))
    return found[0].float().cpu().numpy()


def attention_matrix(extractor: HeadExtractor, ids: list[int], layer: int) -> np.ndarray:
    """Attention of every head at ``layer`` (from 0), ``[head, from, to]``, in float32."""
    found: list[np.ndarray] = []
    read_attention(extractor, ids, [layer], lambda _, weights: found.append(weights.float().cpu().numpy()))
    return found[0]
