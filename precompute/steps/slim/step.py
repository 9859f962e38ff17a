"""The step ``slim``: the vectors of a sample of documents stay; figures, maps and texts of all documents do, too.

It comes last, for figures and maps are made from all vectors: they are as exact as those of a run that keeps all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.stratify import stratified
from core.errors import Mistake
from core.runs.files import remove_file
from core.runs.labels import own_codes
from core.runs.manifest import Manifest
from core.runs.parquet import row_groups
from core.runs.parts import digest_of, write_table
from core.runs.results import read_query_set
from core.runs.run import Run
from core.runs.schema import MAP
from precompute.job.fingerprint import fingerprint, part_digest
from precompute.job.progress import Progress
from precompute.job.step import Plan, StepResult, StepRun, run_step
from precompute.job.work import Work

ALGORITHM = 1
"""Raised whenever the same run keeps other documents' vectors."""
DOCUMENTS = 20_000
"""That keep their vectors: 0.5 GB of the study's model, all three stages."""


@dataclass(frozen=True)
class SlimConfig:
    cache: Path
    run: str
    documents: int = DOCUMENTS
    seed: int = 0

    def __post_init__(self) -> None:
        if self.documents < 2:
            raise Mistake(f"--vector-sample {self.documents} leaves nothing to compare. Give 2 or more.")


def run(config: SlimConfig, progress: Progress | None = None, work: Work | None = None) -> StepResult:
    """Slims a run beside the one that people read; after an interruption it goes on where it was."""

    def plan(run: Run, manifest: Manifest) -> Plan | None:
        if config.documents >= int(manifest.corpus["documents"]):
            return None
        settings = [config.documents, config.seed]
        inputs = {"algorithm": ALGORITHM, "embed": manifest.steps["embed"].fingerprint, "settings": settings}
        # Its files are those of 'embed', which readers see.
        return Plan(fingerprint(inputs), [], lambda step: _slim(step, config), changes=("embed",))

    return run_step("slim", config, plan, progress, work)


def _slim(step: StepRun, config: SlimConfig) -> StepResult:
    run, manifest = step.run, step.manifest
    step.meter.at(0, "choosing documents")
    kept = choose(run, manifest, config.documents, config.seed)
    step.begin({"documents": config.documents} if config.documents != DOCUMENTS else {})
    before = run.bytes("heads")
    size, embed = int(manifest.vectors["part_size"]), manifest.steps["embed"].fingerprint
    digests = [part_digest(embed, part) for part in _texts(run, kept, size)]
    for stage, on_progress in step.stages():
        for number, digest in enumerate(digests):
            path = run.part_path(stage, number)
            if digest_of(path) != digest:
                write_table(path, _rows(run, stage, kept[number * size : (number + 1) * size], size), digest, "none")
            on_progress((number + 1) / len(digests), "vectors")
        for path in run.parts(stage)[len(digests) :]:
            remove_file(path)
    counts = {"documents": len(kept), "bytes": run.bytes("heads"), "bytes_before": before}
    return step.finish(counts, vectors={**manifest.vectors, "documents": len(kept)})


def choose(target: Run, manifest: Manifest, count: int, seed: int) -> np.ndarray:
    """The documents that keep their vectors, in order: what queries look for, what maps were fitted on, any others.

    Of each kind a sample by topic, where not all have room. New documents are placed on a map by the vectors that it
    was fitted on.
    """
    labels = own_codes(target.documents(["topic"])["topic"])
    queries = read_query_set(target)
    wanted = np.zeros(len(labels), dtype=bool)
    wanted[[doc for docs in queries.relevant for doc in docs] if queries is not None else []] = True
    chosen, left = np.empty(0, dtype=np.int64), np.ones(len(labels), dtype=bool)
    for among in (wanted, _fitted(target, manifest), left):
        able = np.flatnonzero(among & left)
        if len(able) and len(chosen) < count:
            more = able[stratified(labels[able], count - len(chosen), seed)]
            chosen = np.concatenate([chosen, more])
            left[more] = False
    return np.sort(chosen)


def _fitted(target: Run, manifest: Manifest) -> np.ndarray:
    """``[doc]``: whether the maps were fitted on it."""
    path, remedy = target.inside(target.map_path(manifest.stages[0])), f"python -m precompute project {target.name}"
    points = int(manifest.corpus["documents"]) * manifest.shape.heads
    groups = row_groups(path, MAP, f"{remedy} --again", points, ["fitted"])
    found = np.concatenate([group["fitted"].to_numpy() for group in groups])
    fitted: np.ndarray = found[:: manifest.shape.heads]
    return fitted


def _texts(target: Run, kept: np.ndarray, size: int) -> Iterator[list[tuple[str, str]]]:
    """``(id, text)`` of the documents ``kept``, a part at a time."""
    lookup = target.document_lookup()
    for first in range(0, len(kept), size):
        rows = lookup.rows(kept[first : first + size], ["id", "text"])
        yield list(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))


def _rows(target: Run, stage: int, docs: np.ndarray, size: int) -> pa.Table:
    """Of the documents ``docs``, as they are stored.

    Rows only ever move to earlier parts, and parts are rewritten from the first on: those to be read are as they were.
    """
    found = []
    for number in np.unique(docs // size):
        path = target.inside(target.part_path(stage, int(number)))
        try:
            part = pq.read_table(path, page_checksum_verification=True)
        except (OSError, pa.ArrowException) as error:
            raise Mistake(f"heads/stage={stage}/{path.name} is damaged. Rebuild it with '{target.rebuild}'.") from error
        found.append(part.take(pa.array(docs[docs // size == number] - number * size)))
    return pa.concat_tables(found)
