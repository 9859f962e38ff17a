"""How much of the embedding is whose: each term's signed part of its length, and of the cosine of random pairs.

Terms are those of core.model.ledger: heads, feed-forward blocks, embeddings and biases. The parts of one document add
up to 1, and so do their means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means
from core.model.ledger import Ledger, Term

DOCUMENTS = 300
"""Of the sample that parts are measured on, at most."""
PAIRS = 1_000
SHUFFLES = 100
GROUP_KINDS = ("heads", "mlps", "biases", "total")
"""Sums over terms: of ``heads`` one per layer, and of each one over all layers."""


@dataclass(frozen=True)
class Part:
    """A term, or a sum of terms: ``kind`` is one of core.model.ledger.KINDS or of GROUP_KINDS."""

    kind: str
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class SampleParts:
    """What the ledgers of a sample leave."""

    terms: tuple[Term, ...]
    parts: np.ndarray
    """``[doc, term]``: of the embedding's length."""
    pairs: np.ndarray
    """``[pair, term]``: of the cosine."""
    residual: float
    """The largest of a document, relative to its embedding's length."""


def random_pairs(docs: int, count: int = PAIRS, seed: int = 0) -> np.ndarray:
    """``[pair, 2]``: different pairs of different documents, all of them where there are no more than ``count``."""
    first, second = np.triu_indices(docs, 1)
    chosen = np.random.default_rng(seed).permutation(len(first))[:count]
    return np.stack([first[chosen], second[chosen]], axis=1)


def measure(found: Iterable[tuple[int, Ledger]], outputs: np.ndarray, pairs: np.ndarray) -> SampleParts:
    """From ledgers as they come, with their documents' indices; ``outputs[doc, hidden]`` are the same embeddings.

    A ledger is used up at once: those of a large model would not fit into memory together.
    """
    lengths = np.linalg.norm(outputs.astype(np.float64), axis=1)
    unit = outputs / np.maximum(lengths, np.finfo(np.float64).tiny)[:, None]
    terms: tuple[Term, ...] = ()
    parts, values, residual = np.empty((len(outputs), 0)), np.empty((len(pairs), 0)), 0.0
    for doc, ledger in found:
        if not terms:
            terms = ledger.terms
            parts, values = np.zeros((len(outputs), len(terms))), np.zeros((len(pairs), len(terms)))
        parts[doc] = ledger.parts
        residual = max(residual, ledger.residual)
        mine = np.flatnonzero((pairs == doc).any(axis=1))
        others = pairs[mine].sum(axis=1) - doc
        length = np.linalg.norm(ledger.output.astype(np.float64))
        values[mine] += (ledger.vectors @ unit[others].T).T / (2 * length)
    return SampleParts(terms, parts, values, residual)


def with_sums(terms: Sequence[Term], values: np.ndarray) -> tuple[list[Part], np.ndarray]:
    """Terms and sums of them: ``values[doc, term] -> [doc, part]``."""
    layers = sorted({term.layer for term in terms if term.layer is not None})
    kinds = {"heads": "head", "mlps": "mlp", "biases": "bias"}
    members = [(Part(term.kind, term.layer, term.head), [at]) for at, term in enumerate(terms)]
    for layer in layers:
        own = [at for at, term in enumerate(terms) if term.kind == "head" and term.layer == layer]
        members.append((Part("heads", layer), own))
    for name, kind in kinds.items():
        members.append((Part(name), [at for at, term in enumerate(terms) if term.kind == kind]))
    members.append((Part("total"), list(range(len(terms)))))
    return [part for part, _ in members], np.stack([values[:, own].sum(axis=1) for _, own in members], axis=1)


@dataclass(frozen=True)
class PartFigures:
    """``[part]`` each."""

    mean: Interval
    spread: np.ndarray
    """Standard deviation over documents."""
    explained: np.ndarray
    """How much of the variance over documents their topics explain; NaN without labels."""
    explained_by_chance: np.ndarray
    """The same with labels shuffled: the 95th percentile."""


def part_figures(values: np.ndarray, labels: np.ndarray, seed: int = 0) -> PartFigures:
    """Of ``values[doc, part]`` and ``labels[doc]``, -1 for none."""
    labelled = labels >= 0
    nothing = np.full(values.shape[1], np.nan)
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else nothing
    own, names = values[labelled], labels[labelled]
    topics = len(np.unique(names))
    if topics < 2 or topics == len(names):
        return PartFigures(means(values, seed), spread, nothing, nothing)
    chance = np.random.default_rng(seed)
    shuffled = np.stack([_explained(own, chance.permutation(names)) for _ in range(SHUFFLES)])
    return PartFigures(means(values, seed), spread, _explained(own, names), np.percentile(shuffled, 95, axis=0))


def _explained(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """``[part]``: the variance between topics over all variance."""
    of_topic = np.zeros((labels.max() + 1, len(labels)))
    of_topic[labels, np.arange(len(labels))] = 1
    counts = of_topic.sum(axis=1)
    centred = values - values.mean(axis=0)
    sums = of_topic @ centred
    between = (sums**2 / np.maximum(counts, 1)[:, None]).sum(axis=0)
    whole = (centred**2).sum(axis=0)
    return np.divide(between, whole, out=np.full(values.shape[1], np.nan), where=whole > 0)
