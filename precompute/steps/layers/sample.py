"""Which documents the layer sweep looks at: a sample in which every topic has its share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.probe import Samples, can_probe, choose_samples
from core.analysis.stratify import stratified
from core.runs.labels import labels_of
from core.runs.manifest import Manifest
from core.runs.parquet import row_groups
from core.runs.run import Run
from core.runs.schema import documents_schema
from precompute.job.documents import require_texts


@dataclass(frozen=True)
class Sample:
    """What the sweep is of."""

    docs: np.ndarray
    """Numbers of documents, in order."""
    labels: np.ndarray
    """``[doc]``: indices of topics, -1 for none."""
    topics: tuple[str, ...]
    probe: Samples | None


def choose_sample(
    manifest: Manifest, topics: tuple[str, ...], names: Sequence[str | None], count: int, seed: int
) -> Sample:
    """``count`` of the documents with the labels ``names[doc]``, or all where there are no more."""
    labels, heads = labels_of(names, topics), manifest.shape.heads
    docs = stratified(labels, count, seed)
    probe = choose_samples(len(docs), heads, seed=seed) if can_probe(len(docs), heads) else None
    return Sample(docs, labels[docs], topics, probe)


def texts_of(target: Run, manifest: Manifest, docs: np.ndarray) -> list[str]:
    """The sampled documents' texts, read some at a time: a corpus of millions has gigabytes of them."""
    require_texts(target)
    found: list[str] = []
    first, corpus = 0, manifest.corpus
    schema = documents_schema(corpus["extra"])
    path, count = target.inside(target.documents_path), int(corpus["documents"])
    for group in row_groups(path, schema, target.rebuild, count, ["text"]):
        here = docs[(docs >= first) & (docs < first + len(group))] - first
        found += group["text"].take(here).to_pylist()
        first += len(group)
    return found
