"""The sources of labels, one table; here the two that ask nobody: the corpus itself, and the embedding."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.analysis.similarity import refuse_not_finite, unit
from core.errors import Mistake
from core.runs.labels import COLUMN, FILE, OPENAI, ZERO_SHOT
from core.runs.results import read_labels
from core.runs.run import Run
from core.runs.schema import LABELS
from precompute.steps.label import file as label_file
from precompute.steps.label import openai as label_openai
from precompute.steps.label.config import LabelJob, SourceLabels

_CHUNK = 1_000
"""Documents that are worked on at a time, however large a part is."""
NO_TOPIC = "the corpus has no topic for it"


@dataclass(frozen=True)
class LabelSource:
    """A way to come by labels."""

    make: Callable[[LabelJob], SourceLabels | None]
    """None where only the price was wanted."""
    inputs: Callable[[LabelJob], dict[str, Any]] = lambda job: {}
    """What decides the labels, beside the documents and the topics."""
    chooses: bool = False
    """Among topics, so that there must be a list of them."""
    costs: bool = False
    """Money, so that it says how much before it begins."""
    checks: bool = False
    """Topics against a list, if one is given."""


def own_labels(run: Run) -> pa.Table:
    """The corpus's own labels, also where others have taken their place in documents.parquet."""
    with contextlib.suppress(Mistake):  # missing or damaged: documents.parquet may have them still
        return read_labels(run, COLUMN)
    documents = run.documents(["doc", "topic", "label_source"])
    step = run.manifest().steps.get("label")
    active = COLUMN if step is None else step.options.get("source")
    # Both are asked: a source that was stopped before its first answer leaves no name in documents.parquet.
    if active != COLUMN or set(documents["label_source"].unique().to_pylist()) - {COLUMN, None}:
        raise Mistake(
            f"labels/column.parquet is missing or damaged, and other labels have taken the place of the corpus's own. "
            f"Rebuild the run with '{run.rebuild}'."
        )
    none = pc.is_null(documents["topic"])
    reasons = pc.if_else(none, pa.scalar(NO_TOPIC), pa.scalar(None, pa.string()))
    scores = pa.nulls(len(documents), pa.float32())
    columns = [documents["doc"], documents["topic"], pa.chunked_array([scores]), reasons]
    return pa.Table.from_arrays(columns, schema=LABELS)


def _column(job: LabelJob) -> SourceLabels:
    return SourceLabels(own_labels(job.run))


def _zero_shot(job: LabelJob) -> SourceLabels:
    """The topic whose name's full embedding is nearest at the study's last stage; the score is the cosine."""
    stage = job.manifest.study_stages[-1]
    job.meter.at(0.0, "embedding the topics' names")
    embedder = job.config.model.load(job.manifest)
    names = unit(embedder.embed(list(job.topics)).stage(stage).astype(np.float32))
    job.meter.restart()
    nearest, scores, first = [], [], 0
    for part in job.run.vectors(stage):
        for start in range(0, len(part), _CHUNK):
            rows = part[start : start + _CHUNK].astype(np.float32)
            refuse_not_finite(rows, job.manifest.shape.heads, stage, first, job.run.rebuild)
            cosines = np.clip(unit(rows) @ names.T, -1, 1)
            nearest.append(np.where(rows.any(axis=1), cosines.argmax(axis=1), -1))
            scores.append(cosines.max(axis=1))
            first += len(rows)
            job.meter.at(first / job.documents, f"{first:,} of {job.documents:,} documents")
    chosen, none = np.concatenate(nearest), np.concatenate(nearest) < 0
    topics = pa.array(job.topics, pa.string()).take(pa.array(chosen, mask=none))
    reasons = pc.if_else(pa.array(none), pa.scalar("its embedding has no length"), pa.scalar(None, pa.string()))
    score = pa.array(np.concatenate(scores).astype(np.float32), mask=none)
    docs = pa.array(np.arange(len(chosen), dtype=np.int32))
    return SourceLabels(pa.Table.from_arrays([docs, topics, score, reasons], schema=LABELS), options={"stage": stage})


SOURCES: dict[str, LabelSource] = {
    COLUMN: LabelSource(_column),
    OPENAI: LabelSource(label_openai.make, label_openai.inputs, chooses=True, costs=True),
    ZERO_SHOT: LabelSource(_zero_shot, chooses=True),
    FILE: LabelSource(label_file.make, label_file.inputs, checks=True),
}
"""By the names of core.runs.labels.LABEL_SOURCES; the command line offers them."""
