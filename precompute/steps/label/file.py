"""Labels from a file: an id and a topic a row, in any of the formats that a corpus can have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from core.analysis.wording import plural
from core.errors import Mistake, listed
from core.runs.aspects import TOPIC
from core.runs.schema import LABELS
from precompute.sources import READERS
from precompute.sources.files import find
from precompute.sources.local import LocalSource, refuse_empty
from precompute.sources.row import Row
from precompute.sources.values import string
from precompute.steps.embed.corpus_columns import find_columns, first_rows
from precompute.steps.label.config import LabelJob, SourceLabels

KINDS = {kind: read for kind, read in READERS.items() if kind not in (".txt", ".md", ".markdown")}
"""Text files have no columns."""


def inputs(job: LabelJob) -> dict[str, object]:
    return {"file": _open(job).fingerprint()}


def make(job: LabelJob) -> SourceLabels:
    """Each document's topic by its id; ids that the run does not have are counted."""
    source = _open(job)
    ids = job.run.documents(["id"])["id"].to_pylist()
    known, allowed = set(ids), frozenset(job.topics)
    found: dict[str, str | None] = {}
    unknown, example = 0, ""
    for key, topic, where in _pairs(source, job.config.aspect):
        if key not in known:
            unknown, example = unknown + 1, example or key
        elif key in found and found[key] != topic:
            raise Mistake(
                f"{where} gives '{key}' the topic '{topic or ''}', but an earlier row gives it '{found[key] or ''}'. "
                "Leave "
                "one topic per id."
            )
        else:
            found[key] = topic
    if not found:
        raise Mistake(
            f"No id in {source.label} is in this run: the file has '{example}', the run has ids such as '{ids[0]}'. "
            "Give a file with the run's own ids."
        )
    topics, reasons = [], []
    for key in ids:
        topic, reason = found.get(key), None
        if key not in found:
            reason = f"its id is not in {source.label}"
        elif topic is None:
            reason = f"no topic in {source.label}"
        elif allowed and topic not in allowed:
            topic, reason = None, "its topic in the file is not on the list of topics"
        topics.append(topic)
        reasons.append(reason)
    columns = {"doc": range(len(ids)), "topic": topics, "score": [None] * len(ids), "reason": reasons}
    notes = (
        (
            f"{plural(unknown, 'id')} in {source.label} {'is' if unknown == 1 else 'are'} not in this run, such as "
            f"'{example}'.",
        )
        if unknown
        else ()
    )
    return SourceLabels(
        pa.table({name: list(column) for name, column in columns.items()}, schema=LABELS),
        notes=notes,
        counts={"unknown_ids": unknown},
        options={"file": source.label},
    )


def _open(job: LabelJob) -> LocalSource:
    if job.config.file is None:
        raise Mistake("--labels file needs a file with one id and topic per row. Give it with --label-file.")
    if not job.config.file.is_file():
        raise Mistake(f"There is no file '{job.config.file}'. Check --label-file.")
    found = find(str(job.config.file), KINDS)
    if found.alone:
        refuse_empty(found.files[0])
    return LocalSource(found.label, found.files, KINDS)


def _pairs(source: LocalSource, aspect: str) -> Iterator[tuple[str, str | None, str]]:
    """``(id, topic, where)`` of every row; columns are found in the first rows, by their usual names.

    Labels of another aspect are in the column of its name, if there is one.
    """
    columns: dict[str, str] | None = None
    for row in source.rows(_refuse):
        columns = columns or _columns(source, row, aspect)
        key = string(row.columns.get(columns["id"]))
        if key is None:
            _refuse(f"{row.where} has no '{columns['id']}'.")
        else:
            yield key, string(row.columns.get(columns["topic"])), row.where


def _columns(source: LocalSource, first: Row, aspect: str) -> dict[str, str]:
    named = {"topic": aspect} if aspect != TOPIC and aspect in first.columns else {}
    found = find_columns(("id", "topic"), named, chain([first.columns], first_rows(source)))
    for name in ("id", "topic"):
        if name not in found.mapping:
            raise Mistake(
                f"{source.label} has no column '{name}': it has {listed(found.present) or 'none'}. Name the columns "
                "'id' and 'topic'."
            )
    return found.mapping


def _refuse(sentence: str) -> None:
    raise Mistake(f"{sentence} Fix the file and start again.")
