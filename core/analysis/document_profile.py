"""One document against a run's topics: its cosines, where they lie among the corpus's, and what the heads agree on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.examples import Examples
from core.analysis.similarity import full_vectors, head_norms, similarity
from core.errors import Mistake, listed
from core.model.share_space import ShareSpace


@dataclass(frozen=True)
class Ranks:
    """A corpus's values, sorted, so that a new value's place among them is found quickly."""

    values: np.ndarray
    """``[…, doc]``, ascending along the last axis; float16, as the corpus's similarities are stored."""

    @classmethod
    def of(cls, chunks: Iterable[np.ndarray]) -> Ranks:
        """From ``[doc, …]``, some documents at a time: what core.runs.results.read_similarity gives, or activations."""
        values = np.concatenate([np.moveaxis(chunk, 0, -1) for chunk in chunks], axis=-1)
        values = np.ascontiguousarray(values, dtype=np.float16)
        values.sort(axis=-1)
        return cls(values)

    def percentile(self, found: np.ndarray) -> np.ndarray:
        """Where ``found[…]`` lies among the corpus's values, 0 to 100: the share below, and half of the equal ones.

        Rounded as the corpus's were, so that a document of the corpus is equal to itself.
        """
        rounded = found.astype(self.values.dtype)
        below, not_above = self._count(rounded, np.less), self._count(rounded, np.less_equal)
        share: np.ndarray = 50.0 * (below + not_above) / self.values.shape[-1]
        return share

    def _count(self, found: np.ndarray, before: np.ufunc) -> np.ndarray:
        """How many of the corpus's values come before ``found[…]``: all places are halved at once."""
        low = np.zeros(found.shape, dtype=np.intp)
        high = np.full(found.shape, self.values.shape[-1], dtype=np.intp)
        while (open_ := low < high).any():
            middle = (low + high) // 2
            at = np.take_along_axis(self.values, np.minimum(middle, self.values.shape[-1] - 1)[..., None], axis=-1)
            right = open_ & before(at[..., 0], found)
            low = np.where(right, middle + 1, low)
            high = np.where(open_ & ~right, middle, high)
        return low


@dataclass(frozen=True)
class Yardstick:
    """What a document is measured against at one stage of a run."""

    topics: np.ndarray
    """``[topic, head, dim]``: the vectors of the topics' names, or the means of their examples."""
    similarities: Ranks
    """``[1 + head, topic, doc]``: the corpus's."""
    activations: Ranks
    """``[1 + head, doc]``: the corpus's."""
    mean: np.ndarray | None = None
    """``[head, dim]``: the corpus's mean, where cosines are computed around it; None where not."""
    names: tuple[str, ...] = ()
    """``[topic]``."""
    space: ShareSpace | None = None
    """Of stage 4."""

    @classmethod
    def by_examples(
        cls,
        names: Sequence[str],
        examples: Examples,
        mean: np.ndarray,
        corpus: Iterable[np.ndarray],
        labels: np.ndarray,
        activations: Ranks,
        space: ShareSpace | None = None,
    ) -> Yardstick:
        """Topics with too few examples are left out.

        ``corpus`` gives ``[doc, head, dim]``, some documents at a time, with ``labels[doc]`` (-1 for none): each is
        left out of its own topic's examples.
        """
        usable = examples.usable

        def similarities() -> Iterator[np.ndarray]:
            first = 0
            for part in corpus:
                own = labels[first : first + len(part)]
                yield examples.with_full(part.astype(np.float32) - mean, own, space)[:, :, usable]
                first += len(part)

        topics = mean + examples.sums[usable] / examples.counts[usable, None, None]
        known = tuple(name for name, enough in zip(names, usable, strict=True) if enough)
        return cls(topics, Ranks.of(similarities()), activations, mean, known, space)


@dataclass(frozen=True)
class Profile:
    """A document in the full embedding (index 0) and in each head."""

    cosines: np.ndarray
    """``[1 + head, topic]``, as core.analysis.similarity computes the corpus's."""
    percentiles: np.ndarray
    """``[1 + head, topic]``: each cosine among all documents' for the same head and topic."""
    activation: np.ndarray
    """``[1 + head]``: lengths of the vectors."""
    activation_percentiles: np.ndarray
    """``[1 + head]``."""


def profile(vectors: np.ndarray, yardstick: Yardstick) -> Profile:
    """The profile of one document from its head ``vectors[head, dim]`` at the yardstick's stage."""
    vectors = vectors.astype(np.float32, copy=False)
    mean = np.float32(0) if yardstick.mean is None else yardstick.mean.astype(np.float32)
    both, space = ((vectors - mean)[None], yardstick.topics.astype(np.float32) - mean), yardstick.space
    cosines = similarity(*both, (full_vectors(both[0], space), full_vectors(both[1], space)))[0]
    activation = head_norms(vectors[None], space)[0]
    return Profile(
        cosines,
        yardstick.similarities.percentile(cosines),
        activation,
        yardstick.activations.percentile(activation),
    )


def corpus_mean(parts: Iterable[np.ndarray], heads: int) -> np.ndarray:
    """``[head, dim]`` from the corpus's vectors ``[doc, head * dim]``: the run keeps no mean, so it is computed once.

    In float64 and then float32, as the step 'analyse' does it.
    """
    total, count = np.float64(0), 0
    for part in parts:
        total = total + part.astype(np.float32).sum(axis=0, dtype=np.float64)
        count += len(part)
    mean: np.ndarray = (total / count).reshape(heads, -1).astype(np.float32)
    return mean


BY: dict[str, str] = {
    "percentile": "the topic for which the document stands out most among the corpus",
    "cosine": "the topic that is nearest",
}
"""How a head chooses the topic that it votes for."""


@dataclass(frozen=True)
class Reliability:
    """For which share of the corpus's labelled documents the nearest topic is the labelled one."""

    rates: np.ndarray
    """``[1 + head]``: index 0 is the full embedding."""
    chance: float

    @property
    def weights(self) -> np.ndarray:
        """``[head]``: how far a head is above chance; 0 at chance or below, 1 for one that is always right."""
        above: np.ndarray = np.maximum(self.rates[1:] - self.chance, 0) / max(1 - self.chance, 1e-12)
        return above


@dataclass(frozen=True)
class Consensus:
    """What the full embedding says, and what the heads say, each weighted by its reliability where that is known."""

    order: np.ndarray
    """``[topic]``: indices of topics, the full embedding's first choice first."""
    choices: np.ndarray
    """``[head]``: the topic that each head votes for."""
    weights: np.ndarray
    """``[head]``: 0 for a head without a vote."""
    shares: np.ndarray
    """``[topic]``: of all weighted votes; 0 everywhere if no head has a vote."""

    @property
    def first(self) -> int:
        """The full embedding's first choice."""
        return int(self.order[0])

    def voters(self, topic: int) -> list[int]:
        """Heads, from 1, that vote for a topic, those of most weight first."""
        heads = np.flatnonzero((self.choices == topic) & (self.weights > 0))
        return [int(head) + 1 for head in heads[np.argsort(-self.weights[heads], kind="stable")]]


def consensus(found: Profile, by: str = "percentile", reliability: Reliability | None = None) -> Consensus:
    """The heads' votes; equal percentiles, common at the top, go to the larger cosine.

    Without ``reliability`` all heads weigh the same.
    """
    if by not in BY:
        raise Mistake(f"Votes by '{by}' are unknown. Choose one of {listed(BY)}.")
    first = found.percentiles if by == "percentile" else found.cosines
    order = np.lexsort((-found.cosines, -first), axis=-1)  # by the last key first; stable
    choices = order[1:, 0]
    weights = np.ones(len(choices)) if reliability is None else reliability.weights
    votes = np.bincount(choices, weights, minlength=found.cosines.shape[1])
    return Consensus(order[0], choices, weights, votes / max(float(weights.sum()), 1e-12))
