"""From a topic to its heads: how well each head sets a topic's documents apart, beyond random slices and beyond chance.

A head's score of a document is its cosine with the topic's name, as in the study. The AUC says how often a document of
the topic scores higher than a document of another topic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.auc import Auc, auc
from core.analysis.head_measures import LabelledSample
from core.analysis.null import LEVEL, SLICINGS, benjamini_hochberg, random_orders, two_sided
from core.analysis.profiles import LEAST_IN_TOPIC
from core.analysis.similarity import similarity
from core.analysis.wording import interval, percent

MOST_OF_TOPIC, MOST_OTHERS = 200, 400
"""Documents that are compared, at most."""
FOLLOWS, AVOIDS, UNCLEAR = "follows", "avoids", "no clear difference"


@dataclass(frozen=True)
class TopicHeads:
    """How well each head sets one topic's documents apart from all others."""

    auc: Auc
    """``[1 + head]`` with 95 % intervals; index 0 is the full embedding. 0.5 is chance."""
    null: np.ndarray
    """``[slicing, slice]``: AUCs of random slices of the same size."""
    p_slices: np.ndarray
    """``[head]``: two-sided, against random slices, Benjamini–Hochberg over the heads."""
    p_chance: np.ndarray
    """``[head]``: two-sided, against an AUC of 0.5 (Mann–Whitney), Benjamini–Hochberg over the heads."""
    documents: int
    others: int
    topics: int
    """Topics that could have been chosen: the level of ``p_chance`` is divided by them."""

    @property
    def ranking(self) -> np.ndarray:
        """Heads from 1, the largest AUC first."""
        return np.argsort(-self.auc.value[1:], kind="stable") + 1

    @property
    def verdicts(self) -> list[str]:
        """``[head]``: a head follows the topic, or avoids it, beyond random slices and beyond chance at once.

        Random slices alone do not do: they are alike, so with shuffled labels heads lie beyond them by accident.
        """
        value, middle = self.auc.value[1:], float(np.median(self.null))
        shown = (self.p_slices <= LEVEL) & (self.p_chance <= LEVEL / self.topics)
        follows, avoids = shown & (value > max(middle, 0.5)), shown & (value < min(middle, 0.5))
        return [str(name) for name in np.select([follows, avoids], [FOLLOWS, AVOIDS], UNCLEAR)]

    def heads(self, verdict: str) -> list[int]:
        """Those with a verdict, from 1, in the order of the ranking."""
        found = self.verdicts
        return [head for head in self.ranking.tolist() if found[head - 1] == verdict]


def topic_heads(
    sample: LabelledSample, topic: int, topics: int, slicings: int = SLICINGS, seed: int = 0
) -> TopicHeads | None:
    """Of the documents of ``sample``; None where the topic or the rest has fewer than LEAST_IN_TOPIC documents.

    ``topics`` is how many could have been chosen: whoever looks at many finds something in one of them by accident.
    """
    mine = sample.labels == topic
    inside, outside = int(mine.sum()), int((~mine).sum())
    if min(inside, outside) < LEAST_IN_TOPIC:
        return None
    scores = _scores(sample, topic)
    found = Auc.stacked([auc(scores[:, row], mine) for row in range(scores.shape[1])])
    orders = random_orders(sample.width, slicings, seed)
    null = _auc_values(_sliced_scores(sample, topic, orders), mine).reshape(slicings, sample.heads)
    return TopicHeads(
        auc=found,
        null=null,
        p_slices=benjamini_hochberg(two_sided(found.value[1:], null)),
        p_chance=benjamini_hochberg(_mann_whitney(found.value[1:], inside, outside)),
        documents=inside,
        others=outside,
        topics=topics,
    )


def topic_sentence(found: TopicHeads) -> str:
    """Which heads follow or avoid the topic, with the figures of the first; one short sentence where none does."""
    follows, avoids = found.heads(FOLLOWS), found.heads(AVOIDS)[::-1]
    said = []
    if follows:
        said.append(
            f"{_named(follows)} this topic more closely than random slices do: in head {follows[0]} its documents "
            f"score higher than others in {_share(found, follows[0])} of pairs, in the full embedding in "
            f"{_share(found, 0)}; 97.5 % of random slices reach at most {percent(np.quantile(found.null, 0.975))}."
        )
    if avoids:
        said.append(
            f"{_named(avoids, 'avoid')} it: in head {avoids[0]} its documents score lower than others in "
            f"{percent(1 - found.auc.value[avoids[0]])} of pairs."
        )
    return " ".join(said) or "No head is shown to follow this topic more closely than random slices do."


def choose_documents(labels: np.ndarray, topic: int, seed: int = 0) -> np.ndarray:
    """Documents to compare, in order: the topic's and others, at random where there are too many."""
    chance = np.random.default_rng([seed, 4])
    parts = (np.flatnonzero(labels == topic), np.flatnonzero((labels >= 0) & (labels != topic)))
    chosen = [chance.permutation(part)[:most] for part, most in zip(parts, (MOST_OF_TOPIC, MOST_OTHERS), strict=True)]
    return np.sort(np.concatenate(chosen))


def _scores(sample: LabelledSample, topic: int, order: np.ndarray | None = None) -> np.ndarray:
    """``[doc, 1 + head]``: cosines with the topic's name."""
    docs, topics, mean = sample.cut(order)
    shift, (docs_full, topics_full) = (mean if sample.centre else np.float32(0)), sample.full
    only = slice(topic, topic + 1)
    return similarity(docs - shift, topics[only] - shift, (docs_full, topics_full[only]))[:, :, 0]


def _sliced_scores(sample: LabelledSample, topic: int, orders: list[np.ndarray]) -> np.ndarray:
    """``[slice, doc]``, the slices of one order after another: cosines of random slices with the topic's name.

    A slice's dot products and squared lengths are sums over its dimensions, so nothing needs to be cut.
    """
    if sample.space is not None:
        return np.concatenate([_scores(sample, topic, order)[:, 1:].T for order in orders])
    from scipy.sparse import csr_array

    dims, starts = np.concatenate(orders), np.arange(0, len(orders) * sample.width + 1, sample.width // sample.heads)
    slices = csr_array((np.ones(len(dims), np.float32), dims, starts), shape=(len(starts) - 1, sample.width))
    docs, name = sample.full[0], sample.full[1][topic]
    dots = slices @ (docs * name).T
    lengths = np.sqrt((slices @ (docs * docs).T) * (slices @ (name * name))[:, None])
    return np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)


def _auc_values(scores: np.ndarray, mine: np.ndarray) -> np.ndarray:
    """``[row]`` of ``scores[row, doc]``, without intervals: pairs that are won, and half of those that are equal."""
    inside, others = np.sort(scores[:, mine], axis=1), np.sort(scores[:, ~mine], axis=1)
    won = [
        np.searchsorted(below, values, "left").sum() + np.searchsorted(below, values, "right").sum()
        for below, values in zip(others, inside, strict=True)
    ]
    return np.array(won) / (2 * inside.shape[1] * others.shape[1])


def _mann_whitney(value: np.ndarray, inside: int, outside: int) -> np.ndarray:
    """Two-sided p of AUCs, by the normal approximation: labels that say nothing give 0.5 on average."""
    from scipy.special import ndtr

    deviation = ((inside + outside + 1) / (12 * inside * outside)) ** 0.5
    return np.asarray(2 * ndtr(-np.abs(value - 0.5) / deviation))


def _named(heads: list[int], verb: str = "follow") -> str:
    """``Head 3 follows``, ``Heads 3 and 7 follow``."""
    if len(heads) == 1:
        return f"Head {heads[0]} {verb}s"
    return f"Heads {', '.join(map(str, heads[:-1]))} and {heads[-1]} {verb}"


def _share(found: TopicHeads, row: int) -> str:
    value, low, high = (float(part[row]) for part in (found.auc.value, found.auc.low, found.auc.high))
    return f"{percent(value)} ({interval(low, high)})"
