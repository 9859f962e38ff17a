"""Are a run's labels whole? The part of ``verify`` for the step ``label``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.analysis.labels import kept_sources
from core.errors import Mistake
from core.runs.manifest import Manifest
from core.runs.results import read_labels
from core.runs.run import Run, digest_of
from core.runs.steps import command


def check_labels(run: Run, manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """Each source's file, with what is wrong with it, if anything is; the active one is that of documents.parquet."""
    step = manifest.steps.get("label")
    active = str(step.options.get("source")) if step is not None and step.state == "done" else None
    sources = kept_sources(run)
    for source in sources if active is None or active in sources else [*sources, active]:
        problem = ""
        try:
            table = read_labels(run, source)
            problem = _problem(table, int(manifest.corpus["documents"]))
            if not problem and source == active and step is not None:
                if digest_of(run.labels_path(source)) != step.fingerprint:
                    problem = "was made from other inputs than the manifest says"
                elif not run.documents(["topic"])["topic"].equals(table["topic"]):
                    problem = "has other topics than documents.parquet, which should have the same"
        except Mistake as mistake:
            yield run.labels_path(source), str(mistake)
            continue
        remedy = f"Rebuild it with '{command('label', run.name, '--labels', source, '--again')}'."
        yield run.labels_path(source), f"labels/{source}.parquet {problem}. {remedy}" if problem else ""


def _problem(table: pa.Table, documents: int) -> str:
    if not np.array_equal(table["doc"].to_numpy(), np.arange(documents)):
        return f"does not hold documents 0 to {documents - 1} in order"
    both = pc.equal(pc.is_null(table["topic"]), pc.is_null(table["reason"]))
    if pc.any(both).as_py():
        doc = pc.index(both, True).as_py()
        return f"has neither a topic nor a reason for document {doc}, or both"
    return ""
