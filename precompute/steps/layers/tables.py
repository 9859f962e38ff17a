"""From one layer's figures to the rows of ``analysis/layer*.parquet``."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.analysis.bootstrap import Interval
from core.analysis.by_topic import by_topic
from core.analysis.layer_figures import AgainstSlices, LayerFigures
from core.analysis.layer_measures import DIFFERENCE, LEAST, MEASURES, MOST, TO_READ
from core.runs.schema import ANALYSIS
from precompute.job.step import Rows, add
from precompute.steps.analyse.null_tables import summary_columns
from precompute.steps.analyse.tables import number, profile_columns, role_columns


def add_layer(
    tables: dict[str, Rows],
    layer: int,
    stage: int,
    found: LayerFigures,
    labels: np.ndarray,
    topics: tuple[str, ...],
    docs: np.ndarray,
) -> None:
    """All rows of one ``layer`` (from 1) and ``stage``; ``docs[doc]`` are the sampled documents' numbers in the run."""
    place = {"layer": layer, "stage": stage}
    _add_measures(tables, place, found)
    against = found.against_slices
    verdicts = against.verdicts if against else [{}] * (found.own.shape[1] - 1)
    if against is not None:
        _add_null(tables, place, against)
    for head in range(found.own.shape[1]):
        if found.profiles is not None:
            columns = profile_columns(
                found.profiles, head, topics, float(found.auc_by_name[head]), found.random_alignment
            )
            columns |= role_columns(columns, verdicts[head - 1]) if head else {"role": None, "because": None}
            add(tables["layer_profiles"], **place, head=head, **_columns_of("layer_profiles", columns))
        _add_topics(tables["layer_topics"], place, head, found.own, labels, topics)
        _add_documents(tables["layer_documents"], place, head, found.own[:, head], docs)


def _add_measures(tables: dict[str, Rows], place: dict[str, int], found: LayerFigures) -> None:
    """A row for every measure, head and curve, null where the run cannot have the figure."""
    for name, measure in MEASURES.items():
        figure = found.figures.get(name)
        for head in range(found.own.shape[1]):
            columns = _interval(figure.by_head if figure else None, head)
            add(tables["layers"], **place, head=head, measure=name, **columns)
        for series in measure.series:
            columns = _interval(figure.series[series] if figure else None, 0)
            known = figure if series != DIFFERENCE else None  # chance is no baseline of a difference
            columns |= {end: number(getattr(known, end)) if known else None for end in ("chance", "majority")}
            add(tables["layer_curves"], **place, measure=name, series=series, **columns)


def _add_null(tables: dict[str, Rows], place: dict[str, int], against: AgainstSlices) -> None:
    for measure, found in against.compared.items():
        columns = summary_columns(measure, found, against.documents) | {"full": against.full.get(measure)}
        add(tables["layer_null_summary"], **place, **_columns_of("layer_null_summary", columns))
        for head, (value, p, verdict) in enumerate(zip(found.values, found.adjusted, found.verdicts, strict=True), 1):
            add(
                tables["layer_null"],
                **place,
                measure=measure,
                head=head,
                value=value,
                p_adjusted=p,
                verdict=verdict,
            )


def _columns_of(table: str, columns: dict[str, Any]) -> dict[str, Any]:
    return {name: columns[name] for name in ANALYSIS[table].names if name in columns}


def _add_topics(
    rows: Rows, place: dict[str, int], head: int, own: np.ndarray, labels: np.ndarray, topics: tuple[str, ...]
) -> None:
    found = by_topic(own, labels, head)
    for at, topic in enumerate(found.topic.tolist()):
        add(
            rows,
            **place,
            head=head,
            topic=topics[topic],
            gap=found.gap[at],
            low=number(found.low[at]),
            high=number(found.high[at]),
            documents=found.documents[at],
        )


def _add_documents(rows: Rows, place: dict[str, int], head: int, own: np.ndarray, docs: np.ndarray) -> None:
    known = np.flatnonzero(np.isfinite(own))
    order = known[np.argsort(-own[known], kind="stable")]
    count = min(TO_READ, len(order) // 2) or len(order)
    for side, chosen in ((MOST, order[:count]), (LEAST, order[::-1][:count])):
        for at, doc in enumerate(chosen.tolist(), start=1):
            add(rows, **place, head=head, side=side, place=at, doc=docs[doc], similarity=float(own[doc]))


def _interval(found: Interval | None, at: int) -> dict[str, Any]:
    parts = ("value", "low", "high")
    return {part: number(getattr(found, part)[at]) if found is not None else None for part in parts}
