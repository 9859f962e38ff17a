"""How often the word that a head attends to most is the right one, for relations between words (Clark et al., 2019).

A head is compared with the best fixed offset of the relation and with itself on shuffled sentences. Heads and offsets
are chosen on one half of the sentences and reported on the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, ratios
from core.analysis.treebank import OffsetBaseline, Pairs, offset_baseline

ALPHA = 0.05


@dataclass(frozen=True)
class MostAttended:
    """The other word that each head attends to most, from every word of every sentence."""

    plain: Sequence[np.ndarray]
    """By sentence ``[layer, head, word]``; −1 where no attention falls on another word."""
    shuffled: Sequence[np.ndarray]
    """The same for the sentence's words in another order; places are those in that order."""
    places: Sequence[np.ndarray]
    """By sentence ``[word]``: each word's place in the shuffled sentence."""
    causal: bool
    """Whether a word sees only those before it."""
    without_first: bool = False
    """Whether the first word is left out: where no special token stands before it, heads rest on it."""


@dataclass(frozen=True)
class RelationScores:
    """Shares of a relation's pairs in which the most attended other word is the right one."""

    offset: OffsetBaseline
    chosen: np.ndarray
    """``[layer, head]``, on the choosing half."""
    interval: Interval
    """``[layer, head]`` each, on the held-out half, over its sentences."""
    shuffled: np.ndarray
    """``[layer, head]``: on the held-out half with its words shuffled."""
    single: np.ndarray
    """``p`` before the adjustment."""
    p: np.ndarray
    """``[layer, head]``: of being no better than the offset or than itself on shuffled words, adjusted over heads."""
    pairs_chosen: int
    pairs_held_out: int

    @property
    def held_out(self) -> np.ndarray:
        """``[layer, head]``."""
        return self.interval.value

    @property
    def best(self) -> tuple[int, int]:
        """Layer and head, from 0, with the highest share on the choosing half."""
        layer, head = np.unravel_index(int(np.argmax(self.chosen)), self.chosen.shape)
        return int(layer), int(head)

    @property
    def beyond(self) -> np.ndarray:
        """``[layer, head]``: better than both baselines on the held-out half."""
        return self.p < ALPHA


def words_of_tokens(characters: Sequence[tuple[int, int] | None], words: Sequence[tuple[int, int]]) -> np.ndarray:
    """``[token]``: the word that shares most characters with each token; −1 for special tokens."""
    found = np.full(len(characters), -1)
    for token, place in enumerate(characters):
        if place is not None and words:
            shared = [min(place[1], end) - max(place[0], start) for start, end in words]
            if max(shared) > 0:
                found[token] = int(np.argmax(shared))
    return found


def word_attention(weights: np.ndarray, tokens: np.ndarray, words: int) -> np.ndarray:
    """``[head, from, to]`` between words: the sum over the pieces attended to, the mean over the pieces attending.

    ``weights`` are those between tokens, and ``tokens`` each one's word. Attention to special tokens is left out, so
    rows add up to less than 1; a word without a token of its own neither attends nor is attended to.
    """
    piece = (tokens[:, None] == np.arange(words)).astype(np.float64)  # [token, word]
    return (piece / np.maximum(piece.sum(axis=0), 1)).T @ weights @ piece


def most_attended(between: np.ndarray, without_first: bool = False) -> np.ndarray:
    """``[head, word]``: the other word with the most of ``between[head, from, to]``; −1 where none has any."""
    others = between * ~np.eye(between.shape[-1], dtype=bool)
    if without_first:
        others[..., 0] = 0
    return np.where(others.max(axis=2) > 0, others.argmax(axis=2), -1)


def relation_scores(attended: MostAttended, relation: Pairs, choosing: np.ndarray) -> RelationScores | None:
    """Every head's share of right words; ``choosing[sentence]`` marks the half that choices are made on.

    In a causal model only pairs whose right word comes first can be seen: the others are left out, for the offset too.
    So are pairs with a first word that is left out. None where a half has no pairs.
    """
    seen = relation[visible(attended, relation)]
    first = choosing[seen.sentence]
    if not first.any() or first.all():
        return None
    hits = _hits(attended.plain, seen)
    held = seen[~first]
    offset = offset_baseline(seen, first)
    moved = Pairs(held.sentence, _moved(attended, held, held.start), _moved(attended, held, held.end))
    possible = visible(attended, moved)
    shuffled = _hits(attended.shuffled, moved)
    held_hits = hits[..., ~first]
    p = np.maximum(
        paired_p(held_hits, held.offset == offset.offset), paired_p(held_hits[..., possible], shuffled[..., possible])
    )
    return RelationScores(
        offset=offset,
        chosen=hits[..., first].mean(axis=-1),
        interval=_interval(held_hits, held.sentence),
        shuffled=shuffled[..., possible].sum(axis=-1) / max(int(possible.sum()), 1),
        single=p,
        p=adjusted(p),
        pairs_chosen=int(first.sum()),
        pairs_held_out=len(held),
    )


def paired_p(hits: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """Exact one-sided McNemar test that ``hits[..., pair]`` are more than ``baseline``'s on the same pairs."""
    from scipy.special import bdtrc  # late: the app only reads what was computed

    wins = (hits & ~baseline).sum(axis=-1)
    decided = wins + (~hits & baseline).sum(axis=-1)
    # P(X >= wins) of X ~ Binomial(decided, 1/2); with no wins it is 1.
    return np.where(wins > 0, bdtrc(np.maximum(wins, 1) - 1.0, np.maximum(decided, 1), 0.5), 1.0)


def _moved(attended: MostAttended, found: Pairs, words: np.ndarray) -> np.ndarray:
    """``[pair]``: the words' places in the shuffled sentences."""
    return np.array([attended.places[number][word] for number, word in zip(found.sentence, words, strict=True)])


def _hits(attended: Sequence[np.ndarray], found: Pairs) -> np.ndarray:
    """``[layer, head, pair]``: whether the most attended word is the right one."""
    rows = zip(found.sentence, found.start, found.end, strict=True)
    return np.stack([attended[sentence][:, :, start] == end for sentence, start, end in rows], axis=-1)


def visible(attended: MostAttended, found: Pairs) -> np.ndarray:
    """``[pair]``: whether a head can attend from the one word to the other."""
    seen = found.offset < 0 if attended.causal else np.ones(len(found), dtype=bool)
    return seen & (found.end > 0) if attended.without_first else seen


def _interval(hits: np.ndarray, sentence: np.ndarray) -> Interval:
    """The share of ``hits[layer, head, pair]``; pairs of one sentence are drawn together."""
    of = np.unique(sentence, return_inverse=True)[1]
    sums = np.zeros((of.max() + 1, hits[..., 0].size))
    np.add.at(sums, of, hits.reshape(-1, hits.shape[-1]).T)
    weights = np.repeat(np.bincount(of)[:, None], sums.shape[1], axis=1)
    found = ratios(sums, weights)
    return Interval(*(part.reshape(hits.shape[:-1]) for part in (found.value, found.low, found.high)))


def adjusted(p: np.ndarray) -> np.ndarray:
    """Benjamini–Hochberg over all of them."""
    from scipy.stats import false_discovery_control

    return false_discovery_control(p.ravel()).reshape(p.shape)
