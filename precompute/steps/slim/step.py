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
from core.runs.describe import sampled
from core.runs.files import remove_file
from core.runs.labels import own_codes
from core.runs.manifest import Manifest
from core.runs.parquet import row_groups
from core.runs.parts import digest_of, write_table
from core.runs.results import read_query_set
from core.runs.run import Run, open_run
from core.runs.schema import MAP
from precompute.job.fingerprint import fingerprint, part_digest
from precompute.job.progress import Meter, Progress, Quiet
from precompute.job.step import StepRecord, StepResult, embedded
from precompute.job.work import working_on

ALGORITHM = 1
"""Raised whenever the same run keeps other documents' vectors."""
DOCUMENTS = 20_000
"""That keep their vectors: 0.5 GB of the study's model, all three stages."""
_FIRST = ("analyse", "project")
"""Steps that need all vectors, and that every page relies on."""


@dataclass(frozen=True)
class SlimConfig:
    cache: Path
    run: str
    documents: int = DOCUMENTS
    seed: int = 0

    def __post_init__(self) -> None:
        if self.documents < 2:
            raise Mistake(f"--vector-sample {self.documents} leaves nothing to compare. Give 2 or more.")


def run(config: SlimConfig, progress: Progress | None = None) -> StepResult:
    """Slims a run beside the one that people read; after an interruption it goes on where it was."""
    progress = progress or Quiet()
    target = open_run(config.cache, config.run)
    with working_on(target, "slim") as work:
        target = work.at
        manifest = embedded(target)
        inputs = fingerprint(
            {
                "algorithm": ALGORITHM,
                "embed": manifest.steps["embed"].fingerprint,
                "settings": [config.documents, config.seed],
            }
        )
        if manifest.is_done("slim", inputs) or config.documents >= int(manifest.corpus["documents"]):
            return StepResult(manifest, skipped=True)
        _check(target, manifest)
        target = work.begin("embed")
        meter = Meter("slim", progress)
        try:
            return _slim(target, config, target.manifest(), inputs, meter)
        finally:
            progress.close()


def _check(target: Run, manifest: Manifest) -> None:
    if manifest.is_sampled:
        raise Mistake(
            f"The run '{target.name}' keeps the vectors of {sampled(manifest)} already. To keep others embed it anew, "
            f"with 'python -m precompute all {target.name} --source … --replace'."
        )
    for step in _FIRST:
        if not manifest.is_done(step):
            raise Mistake(
                f"The run '{target.name}' needs all its vectors for '{step}', which is not done. Run 'python -m "
                f"precompute {step} {target.name}' first."
            )


def _slim(target: Run, config: SlimConfig, manifest: Manifest, inputs: str, meter: Meter) -> StepResult:
    meter.at(0, "choosing documents")
    kept = choose(target, manifest, config.documents, config.seed)
    options = {"documents": config.documents} if config.documents != DOCUMENTS else {}
    record = StepRecord(target, "slim", manifest, inputs, options, meter.seconds)
    before = target.bytes("heads")
    size, embed = int(manifest.vectors["part_size"]), manifest.steps["embed"].fingerprint
    digests = [part_digest(embed, part) for part in _texts(target, kept, size)]
    for done, stage in enumerate(manifest.stages):
        for number, digest in enumerate(digests):
            path = target.part_path(stage, number)
            if digest_of(path) != digest:
                write_table(path, _rows(target, stage, kept[number * size : (number + 1) * size], size), digest, "none")
            meter.at((done + (number + 1) / len(digests)) / len(manifest.stages), f"stage {stage}")
        for path in target.parts(stage)[len(digests) :]:
            remove_file(path)
    counts = {"documents": len(kept), "bytes": target.bytes("heads"), "bytes_before": before}
    return record.finish(counts, vectors={**manifest.vectors, "documents": len(kept)})


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
