"""Pruning by ablation: the sample's halves, the sets of heads that are tried, and the rows of ``ablation_pruning``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from core.analysis.ablation_effects import SAME_TOPIC, AblationTask
from core.analysis.ablation_pruning import GREEDY, AblationPruning, Quality, prune_by_ablation
from core.errors import Mistake
from core.model.embedder import Embedder
from core.model.shape import ModelShape
from precompute.job.step import Rows, add
from precompute.steps.ablate.removals import MOST_NUMBERS


def prune_rows(
    model: Embedder,
    texts: Sequence[str],
    labels: np.ndarray,
    scores: Mapping[str, np.ndarray],
    most: int,
    progress: Callable[[float, str], None],
    seed: int,
) -> Rows:
    """Of the sample's ``texts`` and ``labels``; ``scores[order][layer * head]``: the angle, and the shares if known."""
    half = np.random.default_rng([seed, 7]).permutation(len(texts)) % 2 == 0
    sides = [np.flatnonzero(half), np.flatnonzero(~half)]
    if not all(SAME_TOPIC in AblationTask(labels[side], int(labels.max()) + 1).measures for side in sides):
        raise Mistake(
            "--prune needs two labelled documents of one topic in each half of the sample. Label the run first."
        )
    choosing, telling = (
        quality_of(model, [texts[int(at)] for at in side], labels[side], int(labels.max()) + 1) for side in sides
    )
    found = prune_by_ablation(scores, most, choosing, telling, progress, seed)
    return rows_of(found, model.info.shape)


def quality_of(model: Embedder, texts: Sequence[str], labels: np.ndarray, topics: int) -> Quality:
    """Same-topic nDCG@10 of every document among ``texts``, with heads off."""
    task, shape = AblationTask(labels, topics), model.info.shape
    some = max(1, MOST_NUMBERS // (len(texts) * shape.hidden))

    def quality(sets: Sequence[Sequence[int]]) -> np.ndarray:
        found = np.empty((len(sets), len(texts)))
        for start in range(0, len(sets), some):
            here = sets[start : start + some]
            rows = np.empty((len(here), len(texts), shape.hidden), dtype=np.float32)
            off = [at for at, heads in enumerate(here) if len(heads)]
            if len(off) < len(here):
                plain = model.embed(list(texts)).output
                rows[[at for at in range(len(here)) if at not in off]] = plain
            changes = [model.without([divide(head, shape) for head in here[at]]) for at in off]
            for batch, swept in model.sweep(list(texts), changes) if changes else ():
                rows[off[swept.change], batch] = swept.output.float().cpu().numpy()
            for at, each in enumerate(rows):
                found[start + at] = task.measure_same_topic(each)
        return found

    return quality


def divide(head: int, shape: ModelShape) -> tuple[int, int]:
    """Layer and head, from 1, of a number over all layers."""
    return head // shape.heads + 1, head % shape.heads + 1


def rows_of(found: AblationPruning, shape: ModelShape) -> Rows:
    rows: Rows = {}
    for order, curve in found.curves.items():
        for at, size in enumerate(curve.sizes):
            add(
                rows,
                order=order,
                removed=size,
                off_layers=[divide(head, shape)[0] for head in found.order[:size]] if order == GREEDY else None,
                off_heads=[divide(head, shape)[1] for head in found.order[:size]] if order == GREEDY else None,
                enough=bool(order == GREEDY and size == _nearest(curve.sizes, found.enough)),
                value=curve.value.value[at],
                low=curve.value.low[at],
                high=curve.value.high[at],
                lost=curve.lost.value[at],
                lost_low=curve.lost.low[at],
                lost_high=curve.lost.high[at],
            )
    return rows


def _nearest(sizes: Sequence[int], enough: int) -> int:
    """The largest size of the curve that is not above ``enough``."""
    return max(size for size in sizes if size <= enough)
