"""The step ``attention``: what every head of every layer looks at, over a sample of documents."""

from __future__ import annotations

import shutil

import numpy as np

from core.analysis.stratify import stratified
from core.runs.manifest import Manifest
from core.runs.parts import write_table
from core.runs.run import Run, open_run
from core.runs.schema import ANALYSIS, MADE_BY
from precompute.job.progress import Meter, Progress, Quiet
from precompute.job.step import StepRecord, StepResult, as_table, embedded, up_to_date
from precompute.job.work import working_on
from precompute.steps.attention.config import AttentionConfig
from precompute.steps.attention.parts import PART, Work, make_part, read_part, read_texts
from precompute.steps.attention.tables import Collected, attention_rows, pattern_rows

TABLES = MADE_BY["attention"]


def run(config: AttentionConfig, progress: Progress | None = None) -> StepResult:
    """Looks at a run's attention; after an interruption, at the documents that are missing."""
    progress = progress or Quiet()
    target = open_run(config.cache, config.run)
    with working_on(target, "attention") as work:
        target = work.at
        manifest = embedded(target)
        inputs = config.inputs(manifest)
        paths = [target.analysis_path(name) for name in TABLES]
        if up_to_date(target, manifest, "attention", inputs, paths) and not config.again:
            return StepResult(manifest, skipped=True)
        target = work.begin("attention")
        manifest = target.manifest()
        try:
            return _look(target, config, manifest, inputs, Meter("attention", progress))
        finally:
            progress.close()


def _look(target: Run, config: AttentionConfig, manifest: Manifest, inputs: str, meter: Meter) -> StepResult:
    table = target.documents(["text", "topic"])
    docs = stratified(_strata(table["topic"].to_pylist()), config.documents, config.seed)
    meter.at(0, "loading the model")
    model = config.model.load(manifest)
    record = StepRecord(target, "attention", manifest, inputs, config.options, meter.seconds)
    staging = target.folder / "analysis" / "attention-staging"
    if config.again:
        shutil.rmtree(staging, ignore_errors=True)
    texts = read_texts(model, [table["text"][int(doc)].as_py() for doc in docs], config.tokens)
    work = Work(model, manifest.shape, staging, inputs)
    meter.restart()
    collected = Collected(manifest.shape)
    for start in range(0, len(texts), PART):
        done = f"{start:,} of {len(texts):,} documents"
        meter.at(0.95 * start / len(texts), done)
        path = make_part(work, start, texts[start : start + PART])
        for sums in read_part(path, work):
            collected.add(sums)
    meter.at(0.95, "intervals and types")
    for name, rows in (
        ("attention", attention_rows(collected, config.seed)),
        ("attention_patterns", pattern_rows(collected)),
    ):
        write_table(target.analysis_path(name), as_table(rows, ANALYSIS[name]), inputs)
    meter.at(1.0, "done")
    result = record.finish({"documents": len(texts), "tokens": sum(len(text.ids) for text in texts)})
    shutil.rmtree(staging, ignore_errors=True)
    return result


def _strata(names: list[str | None]) -> np.ndarray:
    """``[doc]``: each one's topic as a number, -1 for none."""
    known = {name: number for number, name in enumerate(sorted({name for name in names if name is not None}))}
    return np.array([-1 if name is None else known[name] for name in names], dtype=np.int64)
