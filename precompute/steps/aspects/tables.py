"""From one stage's probes to the rows of ``analysis/aspect*.parquet``."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import numpy as np

from core.analysis.aspect_probe import ACCURACY, LEAST_PER_VALUE, MEASURES, Probed
from core.analysis.entangled import WithinFigures, cramers_v, within
from core.analysis.stage_rows import StageRows
from core.runs.schema import ANALYSIS
from precompute.job.step import Rows, add
from precompute.steps.analyse.null_tables import summary_columns
from precompute.steps.analyse.tables import number
from precompute.steps.aspects.sample import AspectSample, SampledAspect

MOST_WITHIN = 6
"""Ordered pairs of aspects that one is probed within the values of the other for, the most entangled first."""


def aspect_tables(
    stage: int,
    sample: AspectSample,
    probed: Sequence[Probed],
    of_stage: StageRows,
    heads: int,
    seed: int,
    threads: int = 1,
) -> dict[str, Rows]:
    """All rows of a stage; ``of_stage`` are those of the sample."""
    tables: dict[str, Rows] = {}
    for each, found in zip(sample.aspects, probed, strict=True):
        place: dict[str, object] = {"stage": stage, "aspect": each.aspect.name}
        _add_measures(tables, place, each, found)
        _add_values(tables, place, each)
        rows = tables.setdefault("aspect_documents", {})
        for row, code, predicted in zip(each.rows.tolist(), found.codes.tolist(), found.predicted, strict=True):
            add(rows, **place, doc=sample.docs[row], code=each.values[code], predicted=each.values[predicted])
    _add_pairs(tables, stage, sample, probed, of_stage, heads, seed, threads)
    return tables


def _add_measures(tables: dict[str, Rows], place: dict[str, object], each: SampledAspect, found: Probed) -> None:
    for measure in MEASURES:
        compared, values = found.compared[measure], found.values[measure]
        summary = summary_columns(measure, compared, len(found.codes)) | {
            "source": each.aspect.source,
            "classes": len(each.values),
            "chance": found.chance(measure),
            "majority": found.majority,
            "penalty": found.penalties[0],
            "full_penalty": found.penalties[1],
        }
        wanted = {name: summary[name] for name in ANALYSIS["aspect_summary"].names if name in summary}
        add(tables.setdefault("aspect_summary", {}), **place, **wanted)
        verdicts = compared.verdicts
        for head in range(len(values.value)):
            add(
                tables.setdefault("aspects", {}),
                **place,
                measure=measure,
                head=head,
                value=values.value[head],
                low=number(values.low[head]),
                high=number(values.high[head]),
                percentile=compared.percentile[head - 1] if head else None,
                p=compared.p[head - 1] if head else None,
                p_adjusted=compared.adjusted[head - 1] if head else None,
                verdict=verdicts[head - 1] if head else None,
            )


def _add_values(tables: dict[str, Rows], place: dict[str, object], each: SampledAspect) -> None:
    counts, used = each.aspect.counts, np.bincount(each.codes)
    sampled = dict(zip(each.values.tolist(), used.tolist(), strict=True))
    for code, value in enumerate(each.aspect.values):
        add(
            tables.setdefault("aspect_values", {}),
            **place,
            code=code,
            value=value,
            documents=counts[code],
            sampled=sampled.get(code, 0),
        )


def _add_pairs(
    tables: dict[str, Rows],
    stage: int,
    sample: AspectSample,
    probed: Sequence[Probed],
    of_stage: StageRows,
    heads: int,
    seed: int,
    threads: int,
) -> None:
    """How much aspects go together, and those that do most within each other; the topic before others that tie."""
    tables.setdefault("aspect_pairs", {})
    pairs = []
    for one, other in permutations(range(len(sample.aspects)), 2):
        first, second = sample.aspects[one], sample.aspects[other]
        rows, mine, theirs = np.intersect1d(first.rows, second.rows, assume_unique=True, return_indices=True)
        if len(rows) < 2:
            continue
        codes, groups = first.codes[mine], second.codes[theirs]
        association = cramers_v(codes, groups)
        slices = [probed[at].compared[ACCURACY].null.ravel() for at in (one, other)]
        together = np.corrcoef(slices)[0, 1] if all(each.std() > 0 for each in slices) else 0.0
        add(
            tables["aspect_pairs"],
            stage=stage,
            aspect=first.aspect.name,
            other=second.aspect.name,
            documents=len(rows),
            cramers_v=association,
            correlation=together,
        )
        pairs.append((-association, min(one, other), one, other, rows, codes, groups))
    wanted = []
    for *_, one, other, rows, codes, groups in sorted(pairs, key=lambda pair: pair[:4])[:MOST_WITHIN]:
        enough = np.bincount(groups)[groups] >= LEAST_PER_VALUE
        if enough.any():
            wanted.append((one, other, rows[enough], *(_without_gaps(each[enough]) for each in (codes, groups))))

    def measured(each: tuple[int, int, np.ndarray, np.ndarray, np.ndarray]) -> WithinFigures:
        one, _, rows, codes, groups = each
        return within(of_stage.vectors[rows], codes, groups, heads, probed[one].penalties, seed, of_stage.space)

    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        for (one, other, rows, *_), found in zip(wanted, pool.map(measured, wanted), strict=True):
            names = {"aspect": sample.aspects[one].aspect.name, "other": sample.aspects[other].aspect.name}
            _add_within(tables, {"stage": stage, **names}, found, len(rows))


def _without_gaps(codes: np.ndarray) -> np.ndarray:
    return np.unique(codes, return_inverse=True)[1]


def _add_within(tables: dict[str, Rows], place: dict[str, object], found: WithinFigures, documents: int) -> None:
    for head in range(len(found.accuracy.value)):
        add(
            tables.setdefault("aspect_within", {}),
            **place,
            head=head,
            value=found.accuracy.value[head],
            low=number(found.accuracy.low[head]),
            high=number(found.accuracy.high[head]),
            chance=found.chance,
            slices=found.slices.mean(),
            slices_low=np.percentile(found.slices, 2.5),
            slices_high=np.percentile(found.slices, 97.5),
            documents=documents,
        )
