"""Are the documents that were left out told of as they should be? The part of ``verify`` for ``failed.parquet``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import Mistake
from core.runs.manifest import Manifest
from core.runs.run import Run, digest_of
from core.runs.schema import FAILED, check_schema, read_schema


def check_failed(run: Run, manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """The file, with what is wrong with it, if anything is; a run that left nothing out has none."""
    left_out = manifest.steps["embed"].counts.get("failed", 0)
    if left_out or run.has(run.failed_path):
        try:
            problem = _problem(run, manifest, int(left_out))
        except Mistake as mistake:
            yield run.failed_path, str(mistake)
            return
        yield run.failed_path, f"failed.parquet {problem}. Rebuild it with '{run.rebuild}'." if problem else ""


def _problem(run: Run, manifest: Manifest, left_out: int) -> str:
    path = run.inside(run.failed_path)
    check_schema(path, read_schema(path, run.rebuild), FAILED, run.rebuild)
    try:
        table = pq.read_table(path, columns=FAILED.names, page_checksum_verification=True)
    except (OSError, pa.ArrowException):
        return "is damaged"
    if len(table) != left_out:
        return f"names {len(table):,} documents, the manifest says that {left_out:,} were left out"
    if not left_out:
        return ""
    if digest_of(path) != manifest.steps["embed"].fingerprint:
        return "was made from other inputs than the manifest says"
    if any(table[name].null_count for name in FAILED.names):
        return "lacks a document's place, id or reason"
    documents = int(manifest.corpus["documents"])
    read = manifest.steps["embed"].counts.get("kept", documents + left_out)
    if documents + left_out != read:
        return f"names {left_out:,} documents, and {documents:,} are there, but {read:,} were read"
    places = table["place"].to_numpy()
    if (np.diff(places) <= 0).any() or places[0] < 0 or places[-1] >= read:
        return f"has places that do not rise from 0 to {read - 1} at most"
    return _there_all_the_same(run, table["id"])


def _there_all_the_same(run: Run, left_out: pa.ChunkedArray) -> str:
    """Ids tell documents apart only where each has its own; not every corpus is so."""
    try:
        ids = run.documents(["id"])["id"]
    except Mistake:
        return ""  # told of already
    found = ids.filter(pc.is_in(ids, value_set=left_out.combine_chunks()))
    if not len(found) or pc.count_distinct(ids).as_py() < len(ids):
        return ""
    return f"names the document '{found[0].as_py()[:80]}', which documents.parquet has all the same"
