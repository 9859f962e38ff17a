"""One layer's figures at one stage: every measure of the layer sweep, for all heads and for each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from core.analysis.auc import auc
from core.analysis.bootstrap import Interval, means
from core.analysis.group_gaps import group_gaps
from core.analysis.head_measures import LAYER_MEASURES, PER_DOCUMENT, LabelledSample
from core.analysis.layer_measures import BETWEEN_GROUPS, DIFFERENCE, FULL, WITHIN_GROUP
from core.analysis.null import SAMPLE, Comparison, by_head, compare_with_slices
from core.analysis.null import SLICINGS as RANDOM_SLICINGS
from core.analysis.probe import BY_DOCUMENT, Samples, probes
from core.analysis.profiles import Profiles, profiles
from core.analysis.redundancy import Moments
from core.analysis.separability import separability
from core.analysis.similarity import head_norms, similarity
from core.analysis.stratify import stratified
from core.analysis.topic_match import ranks, topic_match
from core.errors import Mistake
from core.model.shape import ModelShape
from core.model.share_space import ShareSpace
from core.model.stages import HEADS, RANDOM, SLICINGS, cut
from core.runs.labels import own


@dataclass(frozen=True)
class Figure:
    """One measure at one layer and stage; NaN where it cannot be had."""

    by_head: Interval
    """``[1 + head]``: the full embedding or all heads together, then the heads."""
    series: dict[str, Interval]
    """``[1]`` each, by the names of ``Measure.series``."""
    chance: float = float("nan")
    majority: float = float("nan")
    """What always naming the most frequent topic reaches, of topic match alone."""


@dataclass(frozen=True)
class LayerFigures:
    """All of one layer and stage."""

    figures: dict[str, Figure]
    """By the names of MEASURES; those that cannot be had are not there."""
    own: np.ndarray
    """``[doc, 1 + head]``: similarity to the own topic, NaN for documents without one."""
    profiles: Profiles | None = None
    """Of the labelled documents."""
    auc_by_name: np.ndarray = field(default_factory=lambda: np.empty(0))
    """``[1 + head]``: the documents of the head's best topic against the rest, by their similarity to its name."""
    random_alignment: float = float("nan")
    """The largest of the random slices'."""
    against_slices: AgainstSlices | None = None
    """None where there are too few labelled documents, a single topic or a single head."""


@dataclass(frozen=True)
class AgainstSlices:
    """A layer's heads against random slices, by the names of LAYER_MEASURES."""

    compared: dict[str, Comparison]
    full: dict[str, float]
    """The same of the full embedding, where it has the measure."""
    documents: int

    @property
    def verdicts(self) -> list[dict[str, str]]:
        """``[head]``: above, within or below random slices, by measure."""
        return by_head({measure: found.verdicts for measure, found in self.compared.items()})


def layer_figures(
    rows: np.ndarray,
    topics: np.ndarray,
    labels: np.ndarray,
    shape: ModelShape,
    samples: Samples | None,
    centre: bool = False,
    seed: int = 0,
    slicings: int = RANDOM_SLICINGS,
    space: ShareSpace | None = None,
) -> LayerFigures:
    """From ``rows[doc, width]``, ``topics[topic, width]`` and ``labels[doc]`` (-1 for none).

    ``samples`` are the probe's; None where there are too few documents or heads for one. ``space`` is that of stage 4.
    """
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    shift = mean if centre else np.float32(0)
    docs, names = rows - shift, topics - shift
    full = (docs, names) if space is None else (space.full(docs), space.full(names))
    values = {
        slicing: similarity(cut(docs, shape.heads, slicing, space), cut(names, shape.heads, slicing, space), full)
        for slicing in SLICINGS
    }
    figures = {"activation": _activation(rows, shape.heads, seed, space)}
    found = _probes(rows, shape.heads, samples, seed, space)
    if found is not None:
        figures["probe"] = found
    if 1 < shape.kv_heads < shape.heads:
        found = _groups(rows, mean, shape)
        if found is not None:
            figures["groups"] = found
    known = labels >= 0
    similarities = own(values[HEADS], labels)
    if not known.any():
        return LayerFigures(figures, similarities)
    mine = labels[known]
    figures["topic_match"] = _topic_matches({key: one[known] for key, one in values.items()}, mine, seed)
    both = {
        slicing: profiles(own(one[known], mine), mine, len(topics), seed, one.mean(axis=0))
        for slicing, one in values.items()
    }
    selectivity = _selectivity(both)
    if selectivity is not None:
        figures["selectivity"] = selectivity
    return LayerFigures(
        figures,
        similarities,
        both[HEADS],
        _auc_by_name(values[HEADS][known], mine, both[HEADS].topic),
        float(both[RANDOM].alignment.value[1:].max()),
        against_slices(LabelledSample(rows[known], mine, topics, mean, centre, shape.heads, space), seed, slicings),
    )


def against_slices(sample: LabelledSample, seed: int, slicings: int) -> AgainstSlices | None:
    """Of up to SAMPLE documents, stratified by topic."""
    if not sample.comparable:
        return None
    chosen = stratified(sample.labels, SAMPLE, seed)
    sample = replace(sample, vectors=sample.vectors[chosen], labels=sample.labels[chosen])
    found = compare_with_slices(sample, slicings, seed, measures=LAYER_MEASURES)
    shared = [name for name in found if name in PER_DOCUMENT or name == "selectivity"]
    whole = sample.whole.measure(measures=shared)
    return AgainstSlices(found, {name: float(whole.value(name)[0]) for name in shared}, len(chosen))


def _activation(rows: np.ndarray, heads: int, seed: int, space: ShareSpace | None) -> Figure:
    norms = head_norms(rows.reshape(len(rows), heads, -1), space)
    by_head = means(norms, seed)
    return Figure(by_head, {HEADS: means(norms[:, 1:].mean(axis=1, keepdims=True), seed)})


def _probes(
    rows: np.ndarray, heads: int, samples: Samples | None, seed: int, space: ShareSpace | None
) -> Figure | None:
    if samples is None:
        return None
    vectors = {slicing: cut(rows, heads, slicing, space)[samples.docs, samples.heads] for slicing in SLICINGS}
    try:
        found = probes(vectors, samples, [BY_DOCUMENT], seed)
    except Mistake:  # not converged: no figure here, and no reason to lose all other layers
        return None
    series = {slicing: one.accuracy for (slicing, _), one in found.items()}
    own_heads = found[HEADS, BY_DOCUMENT]
    by_head = _joined(own_heads.accuracy, own_heads.recall)
    series[DIFFERENCE] = _paired(rows, heads, seed, space)
    return Figure(by_head, series, 1 / heads)


def _paired(rows: np.ndarray, heads: int, seed: int, space: ShareSpace | None) -> Interval:
    """Heads less random slices, by linear discriminants on the same splits; NaN where documents are too few."""
    found = separability(rows[np.random.default_rng(seed).permutation(len(rows))], heads, seed, space=space)
    if found is None:
        return Interval(*(np.full(1, np.nan) for _ in range(3)))
    difference = found.difference
    return Interval(*(np.atleast_1d(part) for part in (difference.value, difference.low, difference.high)))


def _groups(rows: np.ndarray, mean: np.ndarray, shape: ModelShape) -> Figure | None:
    moments = Moments(mean, shape.heads)
    moments.add(rows, 0)
    found = group_gaps(moments.redundancy(), shape)
    if found is None:
        return None
    return Figure(found.gap, {WITHIN_GROUP: found.within, BETWEEN_GROUPS: found.between}, 0.0)


def _topic_matches(values: dict[str, np.ndarray], labels: np.ndarray, seed: int) -> Figure:
    """Within the nearest one; ``values[slicing]`` are ``[doc, 1 + head, topic]`` of labelled documents."""
    found = {slicing: ranks(one, labels) for slicing, one in values.items()}
    match = topic_match(found[HEADS], labels, values[HEADS].shape[2], seed)
    by_head = Interval(match.rate.value[:, 0], match.rate.low[:, 0], match.rate.high[:, 0])
    series = {FULL: _first(by_head)}
    series |= {slicing: means((found[slicing][:, 1:] <= 1).mean(axis=1, keepdims=True), seed) for slicing in SLICINGS}
    return Figure(by_head, series, float(match.chance[0]), float(match.majority[0]))


def _selectivity(found: dict[str, Profiles]) -> Figure | None:
    by_head = found[HEADS].selectivity
    if not np.isfinite(by_head.value).all():  # too few documents to say anything
        return None
    series = {FULL: _first(by_head)}
    for slicing, one in found.items():
        value = one.selectivity.value[1:]
        series[slicing] = Interval(np.array([np.median(value)]), value.min(keepdims=True), value.max(keepdims=True))
    return Figure(by_head, series, 0.0)


def _auc_by_name(values: np.ndarray, labels: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Of ``best[row]``, each row's best topic (-1 for none), from ``values[doc, row, topic]``."""
    return np.array(
        [
            auc(values[:, row, topic], labels == topic).value if topic >= 0 else np.nan
            for row, topic in enumerate(best.tolist())
        ],
        dtype=np.float64,
    )


def _first(interval: Interval) -> Interval:
    return Interval(interval.value[:1], interval.low[:1], interval.high[:1])


def _joined(first: Interval, rest: Interval) -> Interval:
    return Interval(*(np.concatenate([getattr(first, part), getattr(rest, part)]) for part in ("value", "low", "high")))
