"""What each head's attention falls on, in figures that add up over documents, beside what shuffled positions give.

A layer's weights ``[head, from, to]`` of one document are reduced to ``Sums`` at once. Only tokens that have a choice,
two keys or more that they may look at, count as looking: a causal model's first token sees itself alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, ratios

WINDOW = 8
FARTHEST = 32
"""Of the average pattern: what is farther away counts as this far."""
OFFSETS = np.arange(-FARTHEST, FARTHEST + 1)

MEASURES: dict[str, str] = {
    "previous": "attention to the token before",
    "same": "attention to the token itself",
    "next": "attention to the token after",
    "first": "attention to the text's first token, from all others",
    "delimiters": "attention to special tokens, punctuation and line breaks",
    "distance": "mean distance in tokens",
    "entropy": "entropy, as a share of the maximum: 0 one token, 1 all tokens equally",
    "window": f"attention within {WINDOW} tokens on either side, itself included",
    "rare": "attention to rare tokens, except the first token and delimiters",
}
"""The axis ``measure``: shares of attention but for the distance and the entropy, averaged over tokens."""
ENDS = ("", "_low", "_high", "_shuffled")
"""Of the names of columns: a measure's mean, its interval, and what shuffled positions give."""
_PLACE = {name: number for number, name in enumerate(MEASURES)}


@dataclass(frozen=True)
class Sums:
    """One document's part at one layer, or that of several together: everything is a sum over tokens that look."""

    value: np.ndarray
    """``[head, measure]``."""
    shuffled: np.ndarray
    """The same, as expected if what a token looks at were shuffled over all that it may look at."""
    weight: np.ndarray
    """``[measure]``: the tokens that were summed over; none where a measure is impossible."""
    pattern: np.ndarray
    """``[head, offset]``: attention by distance, OFFSETS, without what falls on the first token."""
    pattern_shuffled: np.ndarray
    """``[offset]``."""
    rests: np.ndarray
    """``[head]``: tokens that give the first one more than half of their attention, of those that "first" counts."""

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Measures:
    """Means over tokens with intervals over documents; NaN where a measure is impossible."""

    value: Interval
    """Each ``[head, measure]``."""
    shuffled: np.ndarray
    """``[head, measure]``."""


def measured(weights: np.ndarray, delimiter: np.ndarray, rare: np.ndarray) -> Sums:
    """Of one document's ``weights[head, from, to]`` at one layer; ``delimiter`` and ``rare`` say it of each token.

    Every measure but the entropy is linear in the weights. So its mean over all shuffles is the measure of the mean
    over all shuffles, which is even attention to all that may be seen; and the entropy is the same in any order.
    """
    allowed = may_see(weights)
    choices = allowed.sum(axis=1)
    looks = choices > 1
    even = allowed / np.maximum(choices, 1)[:, None]
    stacked = np.concatenate([weights, even[None].astype(weights.dtype)])
    heads, tokens = len(weights), weights.shape[1]
    value, weight = np.zeros((heads + 1, len(MEASURES))), np.zeros(len(MEASURES))

    def put(name: str, sums: np.ndarray, count: float) -> None:
        if count:
            value[:, _PLACE[name]], weight[_PLACE[name]] = sums, count

    stacked[:, ~looks] = 0
    seen = stacked.sum(axis=1, dtype=np.float64)  # [head, to]
    apart = np.arange(1 - tokens, tokens)
    diagonals = _by_offset(stacked)
    for name, offset in (("previous", -1), ("same", 0), ("next", 1)):
        if tokens > abs(offset):
            # Who has such a neighbour, may look at it, and has a choice.
            able = np.diagonal(allowed & looks[:, None], offset).sum()
            put(name, diagonals[:, tokens - 1 + offset], able)
    others = looks & allowed[:, 0]
    others[0] = False
    put("first", stacked[:, others, 0].sum(axis=1, dtype=np.float64), others.sum())
    rests = (stacked[:-1, others, 0] > 0.5).sum(axis=1, dtype=np.float64)
    count = int(looks.sum())
    put("delimiters", seen @ delimiter, count)
    put("rare", seen @ rare, count)
    put("distance", diagonals @ np.abs(apart), count)
    put("window", diagonals @ (np.abs(apart) <= WINDOW), count)
    entropy = _entropy(stacked[:-1][:, looks], choices[looks])
    put("entropy", np.append(entropy, 0.0), count)
    shuffled = np.repeat(value[-1:], heads, axis=0)
    shuffled[:, _PLACE["entropy"]] = entropy
    stacked[:, :, 0] = 0
    pattern = _clipped(_by_offset(stacked), apart)
    return Sums(value[:-1], shuffled, weight, pattern[:-1], pattern[-1], rests)


def measures(value: np.ndarray, shuffled: np.ndarray, weight: np.ndarray, seed: int = 0) -> Measures:
    """Of documents' sums at one layer: ``value[doc, head, measure]`` and ``weight[doc, measure]`` by document, for the
    intervals; ``shuffled[head, measure]`` of all together.

    Long documents count for more, as they have more tokens that look.
    """
    docs, heads, count = value.shape
    every = np.repeat(weight[:, None], heads, axis=1).reshape(docs, -1)
    found = ratios(value.reshape(docs, -1), every, seed)
    total = weight.sum(axis=0, dtype=np.float64)
    expected = np.where(total > 0, shuffled / np.where(total > 0, total, 1), np.nan)
    parts = (part.reshape(heads, count) for part in (found.value, found.low, found.high))
    return Measures(Interval(*parts), expected)


def may_see(weights: np.ndarray) -> np.ndarray:
    """``[from, to]``: what a token may look at, read off ``weights[head, from, to]`` themselves.

    A mask leaves weights of exactly 0, and forbids whole distances: all that come after (a causal model), or all
    beyond a window (a layer that slides one). So what is as near as the farthest that any token looks at is allowed.
    """
    tokens = weights.shape[1]
    apart = np.arange(tokens)[None] - np.arange(tokens)[:, None]
    looked_at = apart[(weights > 0).any(axis=0)]
    back, ahead = (int(looked_at.min()), int(looked_at.max())) if len(looked_at) else (0, 0)
    return (apart >= back) & (apart <= ahead)


def _by_offset(weights: np.ndarray) -> np.ndarray:
    """``[head, from, to] -> [head, to - from]``, from ``1 - tokens`` to ``tokens - 1``: the sums of all diagonals."""
    heads, tokens, _ = weights.shape
    wide = np.zeros((heads, tokens, 2 * tokens), dtype=weights.dtype)
    wide[:, :, :tokens] = weights[:, ::-1]
    # Read in rows that are one number shorter, each row has moved on by one place: diagonals have become columns.
    shifted = wide.reshape(heads, -1)[:, : tokens * (2 * tokens - 1)].reshape(heads, tokens, 2 * tokens - 1)
    sums: np.ndarray = shifted.sum(axis=1, dtype=np.float64)
    return sums


def _clipped(diagonals: np.ndarray, apart: np.ndarray) -> np.ndarray:
    places = np.clip(apart, -FARTHEST, FARTHEST) + FARTHEST
    return np.stack([np.bincount(places, weights=row, minlength=len(OFFSETS)) for row in diagonals])


def _entropy(weights: np.ndarray, choices: np.ndarray) -> np.ndarray:
    """``[head]``: the sum over tokens of each one's entropy, as a share of what so many choices allow."""
    nats = -(weights * np.log(np.maximum(weights, np.finfo(weights.dtype).tiny))).sum(axis=2, dtype=np.float64)
    shares: np.ndarray = (nats / np.log(choices)).sum(axis=1)
    return shares
