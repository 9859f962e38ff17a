"""The step ``attention``: what every head of every layer looks at, over a sample of documents."""

from __future__ import annotations

import numpy as np

from core.analysis.stratify import stratified
from core.runs.manifest import Manifest
from core.runs.run import Run
from core.runs.steps import STEPS
from precompute.job.progress import Progress
from precompute.job.step import Plan, StepResult, StepRun, run_step
from precompute.job.work import Work
from precompute.steps.attention.config import AttentionConfig
from precompute.steps.attention.parts import PART, AttentionWork, make_part, read_part, read_texts
from precompute.steps.attention.tables import Collected, attention_rows, pattern_rows


def run(config: AttentionConfig, progress: Progress | None = None, work: Work | None = None) -> StepResult:
    """Measures a run's attention; after an interruption, that of the documents that are missing."""

    def plan(run: Run, manifest: Manifest) -> Plan:
        return Plan(
            inputs=config.inputs(manifest),
            files=[run.analysis_path(name) for name in STEPS["attention"].tables],
            make=lambda step: _measure(step, config),
        )

    return run_step("attention", config, plan, progress, work, config.again)


def _measure(step: StepRun, config: AttentionConfig) -> StepResult:
    meter, shape = step.meter, step.manifest.shape
    table = step.run.documents(["text", "topic"])
    docs = stratified(_strata(table["topic"].to_pylist()), config.documents, config.seed)
    meter.at(0, "loading the model")
    model = config.model.load(step.manifest)
    step.begin(config.options)
    texts = read_texts(model, [table["text"][int(doc)].as_py() for doc in docs], config.tokens)
    parts = AttentionWork(model, shape, step.staging, step.inputs)
    meter.restart()
    collected = Collected(shape)
    for start in range(0, len(texts), PART):
        meter.at(0.95 * start / len(texts), f"{start:,} of {len(texts):,} documents")
        path = make_part(parts, start, texts[start : start + PART])
        for sums in read_part(path, parts):
            collected.add(sums)
    meter.at(0.95, "intervals and types")
    step.write_tables(
        {"attention": attention_rows(collected, config.seed), "attention_patterns": pattern_rows(collected)}
    )
    meter.at(1.0, "done")
    return step.finish({"documents": len(texts), "tokens": sum(len(text.ids) for text in texts)})


def _strata(names: list[str | None]) -> np.ndarray:
    """``[doc]``: each one's topic as a number, -1 for none."""
    known = {name: number for number, name in enumerate(sorted({name for name in names if name is not None}))}
    return np.array([-1 if name is None else known[name] for name in names], dtype=np.int64)
