"""What switching heads off does to embeddings, document by document, and what of it is beyond noise (DESIGN §10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means
from core.analysis.examples import LEAST_EXAMPLES, examples_of
from core.analysis.moderated_variance import moderated
from core.analysis.null import ABOVE, BELOW, LEVEL, WITHIN, benjamini_hochberg
from core.analysis.similarity import unit
from core.analysis.topic_match import nearest_is_own

HEAD, GROUP, LAYER = "head", "group", "layer"
KINDS = {HEAD: "single head", GROUP: "key/value group", LAYER: "all heads of a layer"}
"""What is switched off at once."""
NAMES, EXAMPLES, SAME_TOPIC, QUERIES, ANGLE = "names", "examples", "same topic", "queries", "angle"
MEASURES = {
    NAMES: "topic match by names",
    EXAMPLES: "topic match by examples",
    SAME_TOPIC: "same-topic nDCG@10",
    QUERIES: "query set nDCG@10",
    ANGLE: "angle by which documents move",
}
QUALITY = tuple(name for name in MEASURES if name != ANGLE)
ASPECT = "aspect:"
"""Before an aspect's name: the measure is how many of the nearest documents have the same value of it."""
PLACES = 10
MOVED, NEIGHBOURS = 10, 5
"""Documents that are listed for each head, and neighbours of each."""
LEAST_RANDOM = 3
"""Random removals per layer: with fewer there is no spread to compare with."""


def measure_name(measure: str) -> str:
    """In words; an aspect's name is the corpus's own."""
    if measure.startswith(ASPECT):
        return f"same {measure.removeprefix(ASPECT)} among the {PLACES} nearest"
    return MEASURES[measure]


def measure_title(measure: str) -> str:
    """The same with a capital letter."""
    words = measure_name(measure)
    return words[0].upper() + words[1:]


def measures_in_order(measures: Iterable[str]) -> list[str]:
    """Those of MEASURES, with aspects as they come before the angle."""
    known, order = dict.fromkeys(measures), list(MEASURES)
    aspects = [name for name in known if name.startswith(ASPECT)]
    return [name for one in order for name in ([*aspects, one] if one == ANGLE else [one]) if name in known]


@dataclass(frozen=True)
class AblationTask:
    """What embeddings are measured by. Their rows are documents, then topics' names, then queries."""

    labels: np.ndarray
    """``[doc]``: indices of topics, -1 for none."""
    topics: int
    relevant: tuple[tuple[int, ...], ...] = ()
    """By query: documents, at least one."""
    centre: bool = False
    """Whether documents and names are compared less the documents' mean."""
    aspects: tuple[tuple[str, np.ndarray], ...] = ()
    """Names, and per document the value's code, -1 for none."""

    @property
    def docs(self) -> int:
        return len(self.labels)

    @property
    def measures(self) -> list[str]:
        """Those that these labels and queries allow."""
        sizes = np.bincount(self.labels[self.labels >= 0], minlength=1)
        able = {
            NAMES: bool(sizes.any()) and self.topics > 1,
            EXAMPLES: bool((sizes >= LEAST_EXAMPLES).sum() > 1),
            SAME_TOPIC: bool((sizes > 1).any()),
            QUERIES: bool(self.relevant),
            ANGLE: True,
        }
        aspects = [ASPECT + name for name, codes in self.aspects if _shared(codes).any()]
        return measures_in_order([*(name for name in MEASURES if able[name]), *aspects])

    def topic_similarity(self, rows: np.ndarray) -> np.ndarray:
        """Cosines of the documents and the topics' names, ``[doc, topic]``."""
        docs, names = rows[: self.docs], rows[self.docs : self.docs + self.topics]
        mean = docs.mean(axis=0) if self.centre else np.float32(0)
        return np.asarray(unit(docs - mean) @ unit(names - mean).T)

    def neighbours(self, rows: np.ndarray, docs: Sequence[int] | np.ndarray) -> np.ndarray:
        """``[doc, rank]``: the documents nearest to each of ``docs``."""
        directions = unit(rows[: self.docs])
        cosines = directions[list(docs)] @ directions.T
        cosines[np.arange(len(docs)), list(docs)] = -np.inf
        return np.argsort(-cosines, axis=1, kind="stable")[:, : min(NEIGHBOURS, self.docs - 1)]

    def measure(self, rows: np.ndarray, plain: np.ndarray) -> dict[str, np.ndarray]:
        """From ``rows[text, hidden]`` and those of the unchanged model: by measure ``[doc]``, or ``[query]``.

        NaN where a document has no such figure. Angles are in degrees.
        """
        found: dict[str, np.ndarray] = {}
        for name in self.measures:
            if name == NAMES:
                found[name] = self._own(self.topic_similarity(rows))
            elif name == EXAMPLES:
                found[name] = self._own(self._to_examples(rows[: self.docs]))
            elif name == SAME_TOPIC:
                found[name] = self.measure_same_topic(rows[: self.docs])
            elif name == QUERIES:
                found[name] = self._queries(rows)
            elif name.startswith(ASPECT):
                found[name] = same_value(rows[: self.docs], dict(self.aspects)[name.removeprefix(ASPECT)])
            else:
                found[name] = angles(rows[: self.docs], plain[: self.docs])
        return found

    def _own(self, similarity: np.ndarray) -> np.ndarray:
        hits = np.full(self.docs, np.nan)
        known = self.labels >= 0
        hits[known] = nearest_is_own(similarity[known][:, None], self.labels[known])[:, 0]
        return hits

    def _to_examples(self, docs: np.ndarray) -> np.ndarray:
        centred = (docs - docs.mean(axis=0))[:, None]
        return np.asarray(examples_of(centred, self.labels, self.topics).similarity(centred, self.labels)[:, 0])

    def measure_same_topic(self, docs: np.ndarray) -> np.ndarray:
        """nDCG@10 of each of ``docs[doc, hidden]`` as a query for the others of its topic; NaN without others."""
        same = (self.labels[:, None] == self.labels) & (self.labels >= 0)
        np.fill_diagonal(same, False)
        asking = np.flatnonzero(same.any(axis=1))
        directions = unit(docs)
        cosines = directions @ directions.T
        np.fill_diagonal(cosines, -np.inf)
        values = np.full(self.docs, np.nan)
        values[asking] = ndcg(cosines[asking], same[asking])
        return values

    def _queries(self, rows: np.ndarray) -> np.ndarray:
        asked = unit(rows[self.docs + self.topics :])
        relevant = np.zeros((len(asked), self.docs), dtype=bool)
        for query, docs in enumerate(self.relevant):
            relevant[query, list(docs)] = True
        return ndcg(asked @ unit(rows[: self.docs]).T, relevant)


def _shared(codes: np.ndarray) -> np.ndarray:
    """``[doc]``: whether another document has the same value."""
    counts = np.bincount(codes[codes >= 0], minlength=1)
    return np.asarray((codes >= 0) & (counts[np.maximum(codes, 0)] > 1))


def same_value(docs: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """``[doc]``: the share of the PLACES nearest of ``docs[doc, hidden]`` with the same one of ``codes[doc]``.

    Only documents that have a value are looked at; NaN for the others, and for a value that no other document has.
    """
    known = np.flatnonzero(codes >= 0)
    own, directions = codes[known], unit(docs[known])
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -np.inf)
    count = min(PLACES, len(known) - 1)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
    values = np.full(len(codes), np.nan)
    values[known] = (own[nearest] == own[:, None]).mean(axis=1) if count else np.nan
    values[~_shared(codes)] = np.nan
    return values


def ndcg(scores: np.ndarray, relevant: np.ndarray) -> np.ndarray:
    """``[query]``: nDCG@10 of ``scores[query, doc]`` with ``relevant[query, doc]``, at least one each."""
    ranked = np.argsort(-scores, axis=1, kind="stable")[:, :PLACES]
    hits = np.take_along_axis(relevant, ranked, axis=1)
    discounts = 1 / np.log2(np.arange(2, hits.shape[1] + 2))
    best = (discounts * (np.arange(hits.shape[1]) < relevant.sum(axis=1, keepdims=True))).sum(axis=1)
    return np.asarray((discounts * hits).sum(axis=1) / best)


def angles(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """``[doc]``: between ``rows[doc, dim]`` and ``others[doc, dim]``, in degrees."""
    cosines = (unit(rows.astype(np.float64)) * unit(others.astype(np.float64))).sum(axis=1)
    return np.degrees(np.arccos(np.clip(cosines, -1, 1)))


def changes_of(values: np.ndarray, plain: np.ndarray, seed: int = 0) -> Interval:
    """The mean change of ``values[doc, removal]`` against ``plain[doc]``, paired by document; 95 % interval."""
    paired = values - plain[:, None]
    return means(paired[np.isfinite(paired).all(axis=1)].astype(np.float32), seed)


@dataclass(frozen=True)
class NoiseFloor:
    """Where single removals lie among as large ones in random directions; all ``[removal]``."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    """Between these lies one more random removal, 95 times of 100."""
    p: np.ndarray
    """Two-sided."""
    adjusted: np.ndarray
    """After Benjamini–Hochberg over the removals."""
    beyond: np.ndarray
    """Adjusted p at most 5 %, and outside the range of the layer's random removals."""


def least_spread(measure: str, documents: int) -> float:
    """The smallest standard deviation of random removals that counts: one document's worth of a share."""
    return 0.0 if measure == ANGLE else 1 / max(documents, 1)


def against_noise(change: np.ndarray, layers: np.ndarray, noise: dict[int, np.ndarray], least: float) -> NoiseFloor:
    """``change[removal]`` at ``layers[removal]`` against ``noise[layer][draw]``.

    By Student's t with the layer's mean: a few draws alone give no small p, and a correction over all heads needs one.
    A layer's variance is moved towards what the layers have in common (``moderated``); ``least`` is the smallest
    standard deviation that counts.
    """
    from scipy.special import stdtr, stdtrit

    known = sorted(noise)
    counts = np.array([len(noise[layer]) for layer in known])
    own = np.array([noise[layer].var(ddof=1) for layer in known])
    found = moderated(np.maximum(own, max(least**2, np.finfo(float).tiny)), counts - 1)
    spread = np.sqrt(found.variance * (1 + 1 / counts))
    at = np.searchsorted(known, layers)
    mean, deviation, df = np.array([noise[layer].mean() for layer in known])[at], spread[at], found.freedom[at]
    low, high = (np.array([end(noise[layer]) for layer in known])[at] for end in (np.min, np.max))
    inside = (low <= change) & (change <= high)
    p = np.minimum(1.0, 2 * stdtr(df, -np.abs(change - mean) / deviation))
    wide = stdtrit(df, 0.975) * deviation
    adjusted = benjamini_hochberg(p)
    return NoiseFloor(mean, mean - wide, mean + wide, p, adjusted, (adjusted <= LEVEL) & ~inside)


def verdicts(change: Interval, floor: NoiseFloor) -> list[str]:
    """``[removal]``: above or below the noise, if the interval, too, is on that side of it; within it otherwise."""
    above = floor.beyond & (change.value > floor.mean) & (change.low > np.maximum(floor.mean, 0))
    below = floor.beyond & (change.value < floor.mean) & (change.high < np.minimum(floor.mean, 0))
    return [str(name) for name in np.where(above, ABOVE, np.where(below, BELOW, WITHIN))]


def false_alarms(noise: dict[int, np.ndarray], least: float) -> tuple[int, int]:
    """How many random removals would be flagged in place of a head, against the other ones at their layer; of all."""
    flagged = total = 0
    for number in range(min(map(len, noise.values()), default=0)):
        rest = {layer: np.delete(draws, number) for layer, draws in noise.items()}
        layers = np.array(sorted(noise))
        floor = against_noise(np.array([noise[int(layer)][number] for layer in layers]), layers, rest, least)
        flagged, total = flagged + int(floor.beyond.sum()), total + len(layers)
    return flagged, total
