"""One head's value in the cosine of two texts by words, and the pairs of words that make up most of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.model.attention import Piece
from core.model.ledger import WordPairs

MOST_WORDS = 12
"""Words of each text that have a row or column of their own."""
_LONGEST = 24
"""Letters of a word: scripts without spaces are cut."""


@dataclass(frozen=True)
class HeadWords:
    """What each token and each pair of words adds; all of it is signed."""

    pieces: tuple[tuple[Piece, ...], tuple[Piece, ...]]
    values: tuple[np.ndarray, np.ndarray]
    """``[token]`` of each text; together they add up to the head's value."""
    words: tuple[tuple[str, ...], tuple[str, ...]]
    """The rows and columns of ``matrix`` but the last ones."""
    matrix: np.ndarray
    """``[word of the first, word of the second]``, the last row and column for all other words: it adds up to what the
    head's shares of the two texts have in common."""

    @property
    def value(self) -> float:
        return float(self.values[0].sum() + self.values[1].sum())

    @property
    def shared(self) -> float:
        """The part of the value that lies between the head's own shares of the two texts."""
        return float(self.matrix.sum())


def head_words(
    texts: Sequence[str], pieces: tuple[tuple[Piece, ...], tuple[Piece, ...]], found: WordPairs
) -> HeadWords:
    """``pieces`` are the tokens of each text, as the model saw them."""
    joined = [words_of(text, own) for text, own in zip(texts, pieces, strict=True)]
    rows, row_names = _strongest(joined[0], found.pairs)
    columns, column_names = _strongest(joined[1], found.pairs.T)
    matrix = rows @ found.pairs @ columns.T
    return HeadWords(pieces, (found.first, found.second), (row_names, column_names), matrix)


def words_of(text: str, pieces: Sequence[Piece]) -> list[str]:
    """``[token]``: the word that each token is a part of, in small letters; of a special token its own name."""
    starts: list[int] = []
    for at, piece in enumerate(pieces):
        starts.append(starts[-1] if at and _continues(text, pieces[starts[-1]], pieces[at - 1], piece) else at)
    ends = {start: pieces[at].end for at, start in enumerate(starts)}
    return [_name(text, pieces[start], ends[start]) for start in starts]


def _continues(text: str, first: Piece, before: Piece, piece: Piece) -> bool:
    """Whether a token goes on with the word of the one before, which began with ``first``."""
    if first.start is None or before.end is None or piece.start is None or piece.end is None:
        return False
    if piece.special or before.special or piece.end - first.start > _LONGEST:
        return False
    if piece.start < before.end or piece.start == piece.end:  # several tokens of one character
        return True
    return piece.start == before.end and text[before.end - 1].isalnum() and text[piece.start].isalnum()


def _name(text: str, first: Piece, end: int | None) -> str:
    if first.special or first.start is None or end is None:
        return first.text
    return text[first.start : end].strip().casefold() or first.text


def _strongest(words: Sequence[str], pairs: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """``[word, token]``, 1 where a token is one of the word's: those that add most, then all others as one."""
    names = list(dict.fromkeys(words))
    member = np.array([[word == name for word in words] for name in names], dtype=np.float64)
    strength = np.abs(member @ pairs).sum(axis=1)
    order = np.argsort(-strength, kind="stable")
    chosen, others = order[:MOST_WORDS], order[MOST_WORDS:]
    return np.vstack([member[chosen], member[others].sum(axis=0)]), tuple(names[at] for at in chosen)
