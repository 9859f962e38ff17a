"""Heads against random slices and against an untrained twin: the rows of ``null``, ``null_summary``, ``untrained``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.analysis.bootstrap import Interval
from core.analysis.head_measures import LabelledSample
from core.analysis.null import (
    SAMPLE,
    Comparison,
    by_head,
    compare_with_slices,
    comparison,
)
from core.analysis.redundancy import Moments, group_comparison
from core.analysis.separability import over_splits, separability
from core.analysis.stratify import stratified
from core.model.share_space import ShareSpace
from core.model.stages import HEADS, RANDOM, permutation
from precompute.job.step import Rows, add

if TYPE_CHECKING:
    from precompute.steps.analyse.stage import StageInputs

PROBE, GROUPS = "probe", "groups"
UNTRAINED_SLICINGS = 50


def choose_documents(labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Up to SAMPLE documents in random order, those with a label (stratified by topic) first."""
    chance = np.random.default_rng([seed, 3])
    known, unknown = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    if len(known):
        known = known[stratified(labels[known], SAMPLE, seed)]
    return np.concatenate([chance.permutation(known), chance.permutation(unknown)])[:SAMPLE].astype(np.int64)


@dataclass(frozen=True)
class SliceVerdicts:
    rows: dict[str, Rows]
    verdicts: dict[str, list[dict[str, str]]]
    """By slicing and head: above, within or below random slices, by measure; empty where nothing was compared."""


def compare(
    inputs: StageInputs, vectors: np.ndarray, mean: np.ndarray, progress: Callable[[float], None]
) -> SliceVerdicts:
    """From ``vectors[doc, width]`` of ``inputs.compared`` and the corpus ``mean[width]``."""
    null: Rows = {}
    summary: Rows = {}
    verdicts: dict[str, list[dict[str, str]]] = {}
    heads, labels = inputs.shape.heads, inputs.labels[inputs.compared]
    if (sample := _sample(inputs, vectors, labels, inputs.topic_vectors, mean, inputs.space)) is not None:
        found = compare_with_slices(sample, seed=inputs.seed, progress=progress)
        random = sample.measure(permutation(sample.width, RANDOM))
        verdicts = {
            HEADS: by_head({measure: one.verdicts for measure, one in found.items()}),
            RANDOM: by_head({measure: one.verdicts_of(random.value(measure)) for measure, one in found.items()}),
        }
        for measure, compared in found.items():
            _add_heads(null, inputs.stage, measure, compared)
            add(summary, stage=inputs.stage, **summary_columns(measure, compared, len(sample.labels)))
    parted = separability(vectors, heads, inputs.seed, space=inputs.space)
    if parted is not None:
        compared = comparison(parted.recall, parted.null, parted.difference)
        _add_heads(null, inputs.stage, PROBE, compared)
        add(summary, stage=inputs.stage, **summary_columns(PROBE, compared, parted.documents))
    rows = {"null": null, "null_summary": summary, "untrained": _untrained(inputs, vectors)}
    return SliceVerdicts(rows, verdicts)


def _sample(
    inputs: StageInputs,
    vectors: np.ndarray,
    labels: np.ndarray,
    topics: np.ndarray,
    mean: np.ndarray,
    space: ShareSpace | None,
) -> LabelledSample | None:
    """The labelled documents; None where there are too few, or a single topic."""
    known = labels >= 0
    sample = LabelledSample(
        vectors[known],
        labels[known],
        topics.astype(np.float32),
        mean.astype(np.float32),
        inputs.centre,
        inputs.shape.heads,
        space,
    )
    return sample if sample.comparable else None


def _untrained(inputs: StageInputs, vectors: np.ndarray) -> Rows:
    """The same measures of a model with random weights, on the first documents of the sample."""
    rows: Rows = {}
    twin = inputs.untrained
    if twin is None:
        return rows
    untrained, topics = twin.documents[inputs.stage], twin.topics[inputs.stage]
    count, mean = len(untrained), untrained.mean(axis=0)
    space = twin.space if inputs.space is not None else None
    sample = _sample(inputs, untrained, inputs.labels[inputs.compared[:count]], topics, mean, space)
    if sample is not None:
        for measure, found in compare_with_slices(sample, UNTRAINED_SLICINGS, inputs.seed).items():
            _add_untrained(rows, inputs.stage, measure, count, found.values, found.adjusted, found.spread_p)
    ours, theirs = (
        separability(vectors[:count], inputs.shape.heads, inputs.seed, space=inputs.space),
        separability(untrained, inputs.shape.heads, inputs.seed, space=space),
    )
    if ours is not None and theirs is not None:
        adjusted = comparison(theirs.recall, theirs.null).adjusted
        learned = over_splits(ours.heads - theirs.heads)
        _add_untrained(rows, inputs.stage, PROBE, count, theirs.recall, adjusted, None, learned)
    moments = Moments(mean, inputs.shape.heads)
    moments.add(untrained, 0)
    if groups := group_comparison(moments.redundancy().cka, inputs.shape, inputs.seed):
        _add_untrained(rows, inputs.stage, GROUPS, count, np.array([groups.within - groups.between]), None, groups.p)
    return rows


def _add_heads(rows: Rows, stage: int, measure: str, found: Comparison) -> None:
    verdicts = found.verdicts
    for head, value in enumerate(found.values):
        add(
            rows,
            stage=stage,
            measure=measure,
            head=head + 1,
            value=value,
            percentile=found.percentile[head],
            p=found.p[head],
            p_adjusted=found.adjusted[head],
            verdict=verdicts[head],
        )


def summary_columns(measure: str, found: Comparison, documents: int) -> dict[str, Any]:
    """The columns of ``null_summary`` and of ``layer_null_summary``, but for the place."""
    null, spreads, largest = found.null, found.null_spreads, found.null.max(axis=1)
    best, difference = found.best, found.difference
    return {
        "measure": measure,
        "slicings": len(null),
        "documents": documents,
        "heads": found.values.mean(),
        "slices": null.mean(),
        "slices_sd": null.std(),
        "slices_low": np.percentile(null, 2.5),
        "slices_high": np.percentile(null, 97.5),
        "slices_least": null.min(),
        "slices_most": null.max(),
        "spread": found.spread,
        "slices_spread": np.median(spreads),
        "slices_spread_high": np.percentile(spreads, 95),
        "slices_spreads": spreads,
        "spread_p": found.spread_p,
        "flagged": found.flagged_slices,
        "largest_slice": np.median(largest),
        "largest_slice_high": np.percentile(largest, 95),
        "largest_p": found.largest_p,
        "best_head": best and best.head + 1,
        "best": best and best.value,
        "best_slice": best and np.median(best.null),
        "best_slice_high": best and np.percentile(best.null, 95),
        "best_p": best and best.p,
        "best_slices": best and best.null,
        "difference": difference and difference.value,
        "difference_low": difference and difference.low,
        "difference_high": difference and difference.high,
    }


def _add_untrained(
    rows: Rows,
    stage: int,
    measure: str,
    documents: int,
    values: np.ndarray,
    adjusted: np.ndarray | None,
    spread_p: float | None,
    learned: Interval | None = None,
) -> None:
    """Head 0 first: all heads together, and what the trained model is ahead of it."""
    for head in range(len(values) + 1 if adjusted is not None else 1):
        add(
            rows,
            stage=stage,
            measure=measure,
            head=head,
            value=values[head - 1] if head else values.mean(),
            p_adjusted=adjusted[head - 1] if head and adjusted is not None else None,
            spread=None if head or adjusted is None else values.std(),
            spread_p=None if head else spread_p,
            difference=None if head or learned is None else learned.value,
            difference_low=None if head or learned is None else learned.low,
            difference_high=None if head or learned is None else learned.high,
            documents=documents,
        )
