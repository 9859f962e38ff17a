"""The step ``search``: a full-text index of the documents' titles and texts, for the app's search boxes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import Mistake
from core.runs.files import replacing
from core.runs.run import Run, open_run
from core.search import index as text_index
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import Meter, Progress, Quiet
from precompute.job.step import StepRecord, StepResult, embedded
from precompute.job.work import working_on

ALGORITHM = 2
"""Raised whenever the same documents give another index."""
_AT_ONCE = 256
"""Documents that are read at a time; of a megabyte each they still fit."""


@dataclass(frozen=True)
class SearchConfig:
    cache: Path
    run: str
    again: bool = False


def run(config: SearchConfig, progress: Progress | None = None) -> StepResult:
    """Builds a run's index; what was begun and stopped is begun anew, for it takes but a minute a million documents."""
    progress = progress or Quiet()
    target = open_run(config.cache, config.run)
    with working_on(target, "search") as work:
        target = work.at
        manifest = embedded(target)
        # Labels change no title and no text: the index is as good as the vectors are.
        inputs = fingerprint({"algorithm": ALGORITHM, "embed": manifest.steps["embed"].fingerprint})
        there = manifest.is_done("search", inputs) and text_index.index_digest(target.search_path) == inputs
        if there and not config.again:
            return StepResult(manifest, skipped=True)
        target = work.begin("search")
        record = StepRecord(target, "search", target.manifest(), inputs, {})
        meter = Meter("search", progress)
        try:
            with replacing(target.search_path) as temporary:
                count = text_index.build(temporary, _documents(target, meter), inputs)
        finally:
            progress.close()
        return record.finish({"documents": count, "bytes": target.search_path.stat().st_size})


def _documents(target: Run, meter: Meter) -> Iterator[tuple[int, str, str]]:
    """``(doc, title, text)`` in order, never all of them in memory."""
    columns = ["doc", "title", "text"]
    done, count = 0, int(target.manifest().corpus["documents"])
    try:
        path = target.inside(target.documents_path)
        with pq.ParquetFile(path, buffer_size=2**20, page_checksum_verification=True) as file:
            for batch in file.iter_batches(_AT_ONCE, columns=columns):
                yield from zip(*(batch[name].to_pylist() for name in columns), strict=True)
                done += len(batch)
                meter.at(done / max(1, count), f"{done:,} of {count:,} documents")
    except (OSError, pa.ArrowException) as error:
        raise Mistake(f"documents.parquet is damaged. Rebuild it with '{target.rebuild}'.") from error
