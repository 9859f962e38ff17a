"""Tokens that attention is known to treat apart: delimiters and rare ones."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.model.tokens import Spans

RARE_SHARE = 0.25
"""The rarest tokens that together make up at most this share of a corpus are its rare ones."""
_MARKS = ("##", "Ġ", "▁", "Ċ", "</w>")
"""How tokenizers write that a token goes on, follows a space, or is a line's end."""


@dataclass(frozen=True)
class TokenKinds:
    """What each token of a text is, ``[token]``."""

    delimiter: np.ndarray
    rare: np.ndarray
    """Never the first token: heads rest there, whatever it is."""


def kinds(spans: Spans, text: str, special_ids: Collection[int], rare: Collection[int]) -> TokenKinds:
    """Of one text's tokens; ``rare`` are ids, see ``rare_ids``.

    Delimiters are special tokens ([CLS], [SEP], an end of sequence) and tokens of nothing but punctuation and line
    breaks, wherever they stand.
    """
    marks = delimiters(spans, text, special_ids)
    seldom = np.array([token in rare for token in spans.ids]) & ~marks
    seldom[0] = False
    return TokenKinds(marks, seldom)


def delimiters(spans: Spans, text: str, special_ids: Collection[int]) -> np.ndarray:
    """``[token]``: whether it is one; a prompt's words are not, though none of the text's own."""
    found = []
    for token, place, word, special in zip(spans.ids, spans.characters, spans.words, spans.special, strict=True):
        said = text[place[0] : place[1]] if place is not None else _bare(word)
        found.append((special and token in special_ids) or _is_punctuation(said))
    return np.array(found, dtype=bool)


def counted(texts: Iterable[tuple[Sequence[int], np.ndarray]]) -> Counter[int]:
    """How often each token occurs in ``(ids, delimiter)`` of some texts; delimiters are left out."""
    counts: Counter[int] = Counter()
    for ids, delimiter in texts:
        counts.update(token for token, mark in zip(ids, delimiter, strict=True) if not mark)
    return counts


def rare_ids(counts: Mapping[int, int], share: float = RARE_SHARE) -> frozenset[int]:
    """The tokens that occur at most so often that all of them together are no more than ``share`` of the corpus.

    Tokens that occur once are rare in any case: in a small corpus they may be more than that.
    """
    occurrences = Counter(counts.values())
    most, total, limit = 1, 0, share * sum(counts.values())
    for times in sorted(occurrences):
        total += times * occurrences[times]
        if total > limit:
            break
        most = max(most, times)
    return frozenset(token for token, times in counts.items() if times <= most)


def _bare(word: str) -> str:
    for mark in _MARKS:
        word = word.replace(mark, "\n" if mark == "Ċ" else "")
    return word


def _is_punctuation(said: str) -> bool:
    letters = [letter for letter in said if letter not in " \t"]
    return bool(letters) and all(letter in "\r\n" or unicodedata.category(letter)[0] == "P" for letter in letters)
