"""Is a run whole? Every file against schema, counts and manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import Mistake
from core.model.stages import SHARE
from core.runs.checksums import check_checksums, expected
from core.runs.files import MANIFEST
from core.runs.manifest import Manifest
from core.runs.parts import digest_of, read_part
from core.runs.run import Run
from core.runs.schema import FAILED, check_schema, documents_schema, heads_schema, read_schema
from core.runs.shares import basis_problem
from core.runs.verify_results import check_aspects, check_labels, check_results


@dataclass(frozen=True)
class Verification:
    """``problems`` are sentences; none means that the run is whole."""

    checked: int
    """Files that were read."""
    problems: tuple[str, ...]
    has_checksums: bool = True
    """Whether every bit was compared; of a run of an older version only what its formats show was."""


def verify(run: Run, digest_of_part: Callable[[str, list[tuple[str, str]]], str]) -> Verification:
    """Reads everything; ``digest_of_part(fingerprint, [(id, text), …])`` says what a part must be made from."""
    try:
        manifest = run.manifest()
    except Mistake as mistake:
        return Verification(1, (str(mistake),))
    problems, checked, wrong = [], 1, set()
    seen: set[Path | None] = {run.folder / MANIFEST}
    for path, problem in _checks(run, manifest, digest_of_part):
        checked += path is not None and path not in seen
        seen.add(path)
        if problem and (path is None or path not in wrong):  # what is wrong with a file is said once
            problems.append(problem)
            wrong.add(path)
    return Verification(checked, tuple(problems), bool(expected(run, manifest)))


def _checks(
    run: Run, manifest: Manifest, digest_of_part: Callable[[str, list[tuple[str, str]]], str]
) -> Iterator[tuple[Path | None, str]]:
    step = manifest.steps.get("embed")
    if step is None or step.state != "done":
        yield None, f"The run '{run.name}' is not finished. Start the same 'embed' command again to continue."
        return
    digests: list[str] = []
    docs = np.empty(0, dtype=np.int64)
    try:
        docs = run.vector_docs()
    except Mistake as mistake:  # of a part, which is named again below
        yield None, str(mistake)
    try:
        for part in _documents(run, manifest, docs):
            if manifest.has_texts:  # without, what the parts were made from cannot be worked out
                digests.append(digest_of_part(step.fingerprint, part))
        yield run.documents_path, ""
    except Mistake as mistake:
        yield run.documents_path, str(mistake)
    expected = manifest.parts
    for stage in manifest.stages:
        paths = run.parts(stage)
        if [path.name for path in paths] != [run.part_path(stage, number).name for number in range(expected)]:
            yield (
                None,
                (f"heads/stage={stage} has {len(paths)} parts, not {expected}. Rebuild it with '{run.rebuild}'."),
            )
        for number in range(expected):
            path = run.part_path(stage, number)
            if path in paths:
                digest = digests[number] if number < len(digests) else None
                yield path, _part_problem(run, manifest, stage, number, docs, digest)
    if SHARE in manifest.stages:
        yield run.share_basis_path, basis_problem(run, manifest)
    yield from _failed(run, manifest)
    yield from check_labels(run, manifest)
    yield from check_aspects(run, manifest)
    yield from check_results(run, manifest)
    yield from ((None, f"{problem}. Rebuild it with '{run.rebuild}'.") for problem in run.backend.problems(run.folder))
    yield from check_checksums(run, manifest)


def _documents(run: Run, manifest: Manifest, docs: np.ndarray) -> Iterator[list[tuple[str, str]]]:
    """The (id, text) pairs of each part of the documents ``docs``, read a part at a time."""
    path, size, count = run.inside(run.documents_path), manifest.vectors["part_size"], 0
    check_schema(path, read_schema(path, run.rebuild), documents_schema(manifest.corpus["extra"]), run.rebuild)
    pending: list[tuple[str, str]] = []
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        for batch in file.iter_batches(batch_size=min(size, 10_000)):
            if not np.array_equal(batch["doc"].to_numpy(), np.arange(count, count + len(batch))):
                raise Mistake(f"documents.parquet is not in order of 'doc'. Rebuild it with '{run.rebuild}'.")
            own = docs[slice(*np.searchsorted(docs, [count, count + len(batch)]))] - count
            count += len(batch)
            pending += zip(*(batch[name].take(pa.array(own)).to_pylist() for name in ("id", "text")), strict=True)
            while len(pending) >= size:
                yield pending[:size]
                pending = pending[size:]
    except (OSError, pa.ArrowException) as error:
        raise Mistake(f"documents.parquet is damaged. Rebuild it with '{run.rebuild}'.") from error
    if pending:
        yield pending
    if count != manifest.corpus["documents"]:
        raise Mistake(
            f"documents.parquet has {count} documents, the manifest says {manifest.corpus['documents']}. "
            f"Rebuild it with '{run.rebuild}'."
        )


def _part_problem(
    run: Run, manifest: Manifest, stage: int, number: int, expected: np.ndarray, digest: str | None
) -> str:
    path = run.part_path(stage, number)
    name = f"heads/stage={stage}/{path.name}"
    schema = heads_schema(manifest.shape.width(stage), manifest.vectors["dtype"], manifest.shape.heads)
    try:
        vectors = read_part(run.inside(path), schema, run.rebuild)
        docs = pq.read_table(path, columns=["doc"], page_checksum_verification=True)["doc"].to_numpy()
    except Mistake as mistake:
        return str(mistake)
    except (OSError, pa.ArrowException):
        return f"{name} is damaged. Rebuild it with '{run.rebuild}'."
    size = int(manifest.vectors["part_size"])
    own = expected[number * size : (number + 1) * size]
    if len(expected) and not np.array_equal(docs, own):
        held = f"its {len(own)} documents from" if manifest.is_sampled else "documents"
        return f"{name} does not hold {held} {own[0]} to {own[-1]}. Rebuild it with '{run.rebuild}'."
    if not np.isfinite(vectors).all():
        doc = docs[np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0]]
        return f"{name} holds a number that is not finite, in document {doc}. Rebuild it with '{run.rebuild}'."
    if digest is not None and digest_of(path) != digest:
        return f"{name} was made from different texts or settings. Rebuild it with '{run.rebuild}'."
    return ""


def _failed(run: Run, manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """The file, with what is wrong with it, if anything is; a run that left nothing out has none."""
    left_out = manifest.steps["embed"].counts.get("failed", 0)
    if left_out or run.has(run.failed_path):
        try:
            problem = _failed_problem(run, manifest, int(left_out))
        except Mistake as mistake:
            yield run.failed_path, str(mistake)
            return
        yield run.failed_path, f"failed.parquet {problem}. Rebuild it with '{run.rebuild}'." if problem else ""


def _failed_problem(run: Run, manifest: Manifest, left_out: int) -> str:
    path = run.inside(run.failed_path)
    check_schema(path, read_schema(path, run.rebuild), FAILED, run.rebuild)
    try:
        table = pq.read_table(path, columns=FAILED.names, page_checksum_verification=True)
    except (OSError, pa.ArrowException):
        return "is damaged"
    if len(table) != left_out:
        return f"lists {len(table):,} documents, but the manifest says that {left_out:,} were left out"
    if not left_out:
        return ""
    if digest_of(path) != manifest.steps["embed"].fingerprint:
        return "was made from inputs other than the manifest says"
    if any(table[name].null_count for name in FAILED.names):
        return "has a document without a place, id or reason"
    documents = int(manifest.corpus["documents"])
    read = manifest.steps["embed"].counts.get("kept", documents + left_out)
    if documents + left_out != read:
        return f"lists {left_out:,} documents, and {documents:,} are stored, but {read:,} were read"
    places = table["place"].to_numpy()
    if (np.diff(places) <= 0).any() or places[0] < 0 or places[-1] >= read:
        return f"has places that are not ascending numbers from 0 to {read - 1}"
    return _there_all_the_same(run, table["id"])


def _there_all_the_same(run: Run, left_out: pa.ChunkedArray) -> str:
    """Ids tell documents apart only where each has its own; not every corpus is so."""
    try:
        ids = run.documents(["id"])["id"]
    except Mistake:
        return ""  # reported already
    found = ids.filter(pc.is_in(ids, value_set=left_out.combine_chunks()))
    if not len(found) or pc.count_distinct(ids).as_py() < len(ids):
        return ""
    return f"lists the document '{found[0].as_py()[:80]}', which documents.parquet also contains"
