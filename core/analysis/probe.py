"""Can the head be told from its vector alone (Table 1)? A logistic probe, split by sample and by document."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, shares
from core.errors import Mistake
from core.machine import cores
from core.model.shape import ModelShape

SAMPLES = 32_000
"""At most, train and test together: the study's number."""
BY_SAMPLE, BY_DOCUMENT = "sample", "document"
SPLITS = (BY_SAMPLE, BY_DOCUMENT)
"""'sample' is the study's protocol: a document's other heads may be in the training set. 'document' keeps every
document wholly on one side."""
_TEST = 0.2
LEAST_DOCS = 10
MOST_ITERATIONS = 5_000


@dataclass(frozen=True)
class Samples:
    """Which (document, head) pairs the probe sees, in order of the document; the same for every stage and slicing."""

    docs: np.ndarray
    heads: np.ndarray

    def __len__(self) -> int:
        return len(self.docs)

    def within(self, first: int, count: int) -> slice:
        """The samples of documents ``first`` to ``first + count - 1``."""
        start, stop = np.searchsorted(self.docs, [first, first + count])
        return slice(int(start), int(stop))


@dataclass(frozen=True)
class Probe:
    """``accuracy.value[0]`` on the test samples, and by head; chance is 1 / heads."""

    accuracy: Interval
    recall: Interval
    """``value[head]``: how many of a head's vectors are told to be its own."""
    confusion: np.ndarray
    """``[head, predicted]``: test samples."""
    train: int
    test: int


@dataclass(frozen=True)
class ProbeMistakes:
    """``wrong`` of the probe's answers, the ``share`` of them that name a head of the same group, and chance's."""

    wrong: int
    share: float
    chance: float


def can_probe(docs: int, heads: int) -> bool:
    """Whether there is enough to train and test on."""
    return docs >= LEAST_DOCS and heads >= 2


def choose_samples(docs: int, heads: int, most: int = SAMPLES, seed: int = 0) -> Samples:
    """Up to ``most`` pairs, the same number of documents for each head."""
    if not can_probe(docs, heads):
        raise Mistake(f"The probe needs at least {LEAST_DOCS} documents and 2 heads; this run has {docs} and {heads}.")
    if most < LEAST_DOCS * heads:
        raise Mistake(f"--probe-samples {most} is too few: give at least {LEAST_DOCS * heads}.")
    each = min(docs, most // heads)
    chance = np.random.default_rng(seed)
    chosen = np.concatenate([np.sort(chance.choice(docs, each, replace=False)) for _ in range(heads)])
    head = np.repeat(np.arange(heads), each)
    order = np.lexsort((head, chosen))
    return Samples(chosen[order], head[order])


def held_out(samples: Samples, split: str, seed: int = 0) -> np.ndarray:
    """Which samples are tested on: a fifth of each head's, or those of a fifth of the documents."""
    if split not in SPLITS:
        raise ValueError(f"There is no split '{split}'; there are {', '.join(SPLITS)}.")
    chance = np.random.default_rng(seed)
    if split == BY_DOCUMENT:
        docs = np.unique(samples.docs)
        return np.isin(samples.docs, chance.choice(docs, max(1, round(_TEST * len(docs))), replace=False))
    mask = np.zeros(len(samples), dtype=bool)
    for head in np.unique(samples.heads):
        own = np.flatnonzero(samples.heads == head)
        mask[chance.choice(own, max(1, round(_TEST * len(own))), replace=False)] = True
    return mask


def probe(vectors: np.ndarray, samples: Samples, split: str, seed: int = 0) -> Probe:
    """Fits on ``vectors[sample, dim]`` that are trained on, and looks at the others."""
    with _refusing_what_has_not_converged():
        return _probe(vectors, samples, split, seed)


def probes(
    vectors: Mapping[str, np.ndarray], samples: Samples | None, splits: Collection[str] = SPLITS, seed: int = 0
) -> dict[tuple[str, str], Probe]:
    """By slicing and split, from ``vectors[slicing][sample, dim]``; none where there are no samples."""
    if samples is None:
        return {}
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    def fitted(slicing: str, split: str) -> Probe:
        return _probe(vectors[slicing], samples, split, seed)

    asked = [(slicing, split) for slicing in vectors for split in splits]
    # A thread for each fit: several threads on one are little faster than one.
    with _refusing_what_has_not_converged(), threadpool_limits(1), ThreadPoolExecutor(cores()) as pool:
        return dict(zip(asked, pool.map(fitted, *zip(*asked, strict=True)), strict=True))


@contextmanager
def _refusing_what_has_not_converged() -> Iterator[None]:
    """Around all fits, not each: what is done with a warning is decided for all threads at once."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            yield
        except ConvergenceWarning as warning:
            raise Mistake(
                f"The probe has not converged after {MOST_ITERATIONS:,} iterations, so its accuracy is not valid. Try "
                "another number with --probe-samples."
            ) from warning


def _probe(vectors: np.ndarray, samples: Samples, split: str, seed: int) -> Probe:
    test = held_out(samples, split, seed)
    heads = int(samples.heads.max()) + 1
    guessed = predict_heads(vectors[~test], samples.heads[~test], vectors[test])
    truth = samples.heads[test]
    confusion = np.bincount(truth * heads + guessed, minlength=heads * heads).reshape(heads, heads)
    # Samples of one document are alike, so that documents, not samples, are drawn for the interval.
    docs, row = np.unique(samples.docs[test], return_inverse=True)
    counts, hits = np.zeros((len(docs), heads), np.float32), np.zeros((len(docs), heads), np.float32)
    np.add.at(counts, (row, truth), 1)
    np.add.at(hits, (row, truth), guessed == truth)
    return Probe(
        accuracy=shares(hits.sum(axis=1, keepdims=True), counts.sum(axis=1, keepdims=True), seed),
        recall=shares(hits, counts, seed),
        confusion=confusion,
        train=int((~test).sum()),
        test=int(test.sum()),
    )


def mistakes_within_groups(confusion: np.ndarray, shape: ModelShape) -> ProbeMistakes | None:
    """How many of the mistakes in ``confusion[head, predicted]`` stay within a key/value group.

    None where no heads share a key/value head, all do, or nothing was mistaken.
    """
    group = np.array([shape.group_of(head) for head in range(shape.heads)])
    wrong = confusion * (1 - np.eye(shape.heads))
    if shape.kv_heads in (1, shape.heads) or not wrong.sum():
        return None
    same = group[:, None] == group[None, :]
    each = shape.heads // shape.kv_heads
    return ProbeMistakes(int(wrong.sum()), float(wrong[same].sum() / wrong.sum()), (each - 1) / (shape.heads - 1))


def predict_heads(train: np.ndarray, heads: np.ndarray, test: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train.astype(np.float64))
    model = LogisticRegression(max_iter=MOST_ITERATIONS).fit(scaler.transform(train.astype(np.float64)), heads)
    return np.asarray(model.predict(scaler.transform(test.astype(np.float64))), dtype=np.int64)
