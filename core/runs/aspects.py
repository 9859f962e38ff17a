"""Aspects of a run's documents (DESIGN §8): the topic, labels of other lists, the corpus's columns, the length."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.runs.labels import CIRCULAR, COLUMN, LABEL_SOURCES, Labels
from core.runs.manifest import Manifest
from core.runs.parquet import read_columns
from core.runs.run import Run
from core.runs.schema import LABELS

TOPIC, LENGTH, LANGUAGE = "topic", "length", "language"
DERIVED, DETECTED = "derived", "detected"
"""The sources of aspects that are computed from the documents themselves; the second once, by the job."""
SOURCES = {
    **LABEL_SOURCES,
    COLUMN: "the corpus's own column",
    DERIVED: "computed from the documents",
    DETECTED: "a language detector",
}
"""Sources of aspects, and where each has its values from."""
MOST_VALUES = 50
"""Of a column: with more it is a name, a date or a number rather than an aspect."""
LEAST_DOCUMENTS = 10
"""Per value: rarer ones count as none, for a probe could not learn them."""
LEAST_SHARE = 0.5
"""Of the documents, that must have one of these values."""
LENGTH_BINS = 5
_KINDS = ("string", "boolean", "integer")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@dataclass(frozen=True)
class Aspect:
    """One label axis of a corpus: what every document is by it."""

    name: str
    source: str
    """A key of SOURCES."""
    values: tuple[str, ...]
    codes: np.ndarray
    """``[doc]``: indices into ``values``; -1 for none, and for values that fewer than LEAST_DOCUMENTS have."""

    @property
    def counts(self) -> np.ndarray:
        """``[value]``: documents."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    @property
    def circular(self) -> bool:
        """Whether the embedding itself made the labels."""
        return self.source in CIRCULAR


def is_aspect_name(name: str) -> bool:
    """Whether an aspect that is stored beside the topics may be called so: the name is part of a path."""
    return _NAME.fullmatch(name) is not None


def aspect_path(run: Run, aspect: str, source: str) -> Path:
    """Labels of an aspect other than the topic, in the columns of core.runs.schema.LABELS; ``topic`` is the value."""
    return run.folder / "aspects" / aspect / f"{source}.parquet"


def stored_aspects(run: Run) -> dict[str, tuple[str, ...]]:
    """The aspects that were labelled beside the topics, and the sources of each, in the order of SOURCES."""
    paths = run.backend.files_in(run.folder / "aspects")
    names = sorted({path.parent.name for path in paths if is_aspect_name(path.parent.name)})
    found = {name: tuple(source for source in SOURCES if run.has(aspect_path(run, name, source))) for name in names}
    return {name: sources for name, sources in found.items() if sources}


def active_source(manifest: Manifest, aspect: str, sources: tuple[str, ...]) -> str:
    """The source that was asked for last, noted by ``label`` among its options; else the first."""
    step = manifest.steps.get("label")
    asked = step.options.get("aspects", {}).get(aspect) if step is not None else None
    return asked if asked in sources else sources[0]


def aspects_digest(aspects: Sequence[Aspect]) -> list[list[object]]:
    """What decides a figure about aspects, for a step's fingerprint."""
    return [
        [each.name, each.source, list(each.values), hashlib.sha256(each.codes.tobytes()).hexdigest()]
        for each in aspects
    ]


def aspects_of(run: Run) -> tuple[Aspect, ...]:
    """Every aspect of an embedded run that has two values or more: the topic first, then by name."""
    manifest = run.manifest()
    columns = [name for name, kind in manifest.corpus["extra"].items() if kind in _KINDS]
    table = run.documents(["topic", "label_source", "tokens", *columns])
    found: dict[str, Aspect | None] = {name: _of_column(name, table[name]) for name in columns}
    for name, make in _DERIVED.items():
        found.setdefault(name, make(table))
    for name, sources in stored_aspects(run).items():
        source = active_source(manifest, name, sources)
        found[name] = _of_names(name, source, read_aspect_labels(run, name, source)["topic"])
    sources = table["label_source"].drop_null().unique().to_pylist()
    topic = _of_names(TOPIC, sources[0] if len(sources) == 1 else COLUMN, table["topic"])
    return tuple(each for each in (topic, *(found[name] for name in sorted(found))) if each is not None)


def aspect_named(aspects: tuple[Aspect, ...], name: str) -> Aspect | None:
    return next((each for each in aspects if each.name == name), None)


def read_aspect_labels(run: Run, aspect: str, source: str) -> pa.Table:
    """What a source says of an aspect other than the topic, in the columns of core.runs.schema.LABELS."""
    remedy = f"python -m precompute label {run.name} --aspect {aspect} --labels {source} --again"
    documents = int(run.manifest().corpus["documents"])
    return read_columns(run.inside(aspect_path(run, aspect, source)), LABELS, remedy, documents)


def aspect_labels(run: Run, aspect: str) -> list[Labels]:
    """All sources of such an aspect."""
    tables = {source: read_aspect_labels(run, aspect, source) for source in stored_aspects(run).get(aspect, ())}
    return [Labels(source, table["topic"], table["reason"]) for source, table in tables.items()]


def _of_names(name: str, source: str, values: pa.ChunkedArray) -> Aspect | None:
    """An aspect of labels: its values in alphabetical order; None where no two of them have documents enough."""
    counted = pc.value_counts(values.drop_null().combine_chunks())
    common = [row["values"] for row in counted.to_pylist() if row["counts"] >= LEAST_DOCUMENTS]
    if len(common) < 2:
        return None
    common.sort()
    codes = pc.fill_null(pc.index_in(values, value_set=pa.array(common, values.type), skip_nulls=True), -1)
    shown = tuple(_shown(value) for value in common)
    return Aspect(name, source, shown, codes.to_numpy().astype(np.int64))


def _of_column(name: str, values: pa.ChunkedArray) -> Aspect | None:
    """The same of a corpus's column, unless it has too many values, or too rare ones."""
    if not 2 <= pc.count_distinct(values).as_py() <= MOST_VALUES:
        return None
    found = _of_names(name, COLUMN, values)
    return found if found is not None and (found.codes >= 0).mean() >= LEAST_SHARE else None


def _shown(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _length(table: pa.Table) -> Aspect | None:
    """Length in tokens, in bins of about as many documents each."""
    tokens = table["tokens"].to_numpy()
    if len(tokens) < LENGTH_BINS * LEAST_DOCUMENTS:
        return None
    ends = np.unique(np.quantile(tokens, np.arange(1, LENGTH_BINS) / LENGTH_BINS, method="lower"))
    _, codes = np.unique(np.searchsorted(ends, tokens, side="left"), return_inverse=True)
    bins = [tokens[codes == code] for code in range(codes.max() + 1)]
    if len(bins) < 2 or min(map(len, bins)) < LEAST_DOCUMENTS:
        return None
    return Aspect(LENGTH, DERIVED, tuple(f"{bin.min():,}–{bin.max():,} tokens" for bin in bins), codes)


_DERIVED: dict[str, Callable[[pa.Table], Aspect | None]] = {LENGTH: _length}
"""Aspects that are computed from columns of documents.parquet; None where they are constant, or nearly."""
