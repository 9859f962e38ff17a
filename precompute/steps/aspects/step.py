"""The step ``aspects``: how well each aspect can be read from each head alone, against random slices (DESIGN §8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from core.analysis.aspect_probe import SAMPLE, Probed, probe_aspects
from core.analysis.head_measures import LEAST_LABELLED
from core.analysis.stage_rows import StageRows
from core.errors import Mistake
from core.machine import cores
from core.runs.aspects import Aspect, aspects_digest, aspects_of
from core.runs.manifest import Manifest
from core.runs.run import Run
from core.runs.shares import space_of
from core.runs.steps import STEPS
from core.runs.vocabulary import MOST_ASPECTS
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import OnProgress, Progress
from precompute.job.step import Plan, Rows, StepResult, StepRun, run_step
from precompute.job.work import Work
from precompute.steps.aspects.sample import AspectSample, choose_sample
from precompute.steps.aspects.tables import aspect_tables

ALGORITHM = 1
"""Raised whenever the same inputs give other figures."""


@dataclass(frozen=True)
class AspectsConfig:
    cache: Path
    run: str
    sample: int = SAMPLE
    """Documents that are probed, at most."""
    seed: int = 0
    again: bool = False

    def __post_init__(self) -> None:
        if self.sample < LEAST_LABELLED:
            raise Mistake(f"--documents {self.sample} is too few to measure anything: give at least {LEAST_LABELLED}.")


def run(config: AspectsConfig, progress: Progress | None = None, work: Work | None = None) -> StepResult:
    """Probes every aspect of a run; after an interruption, without the stages that are done."""

    def plan(run: Run, manifest: Manifest) -> Plan:
        aspects = aspects_of(run)[:MOST_ASPECTS] if manifest.shape.heads > 1 else ()
        return Plan(
            inputs=_inputs(config, manifest, aspects),
            files=[run.analysis_path(name) for name in STEPS["aspects"].tables],
            make=lambda step: _measure(step, config, aspects),
        )

    return run_step("aspects", config, plan, progress, work, config.again)


def _measure(step: StepRun, config: AspectsConfig, aspects: Sequence[Aspect]) -> StepResult:
    step.begin({key: value for key, value, usual in _settings(config) if value != usual})
    step.meter.say("choosing the documents")
    sample = choose_sample(step.run, step.manifest, aspects, config.sample, config.seed)
    for stage, on_progress in step.stages():
        step.stage_tables(f"stage={stage}", partial(_stage, step.run, stage, sample, config.seed, on_progress))
    step.join_tables()
    return step.finish({"aspects": len(sample.aspects), "documents": len(sample.docs)})


def _stage(run: Run, stage: int, sample: AspectSample, seed: int, on_progress: OnProgress) -> dict[str, Rows]:
    if not sample.aspects:
        return {}
    vectors, heads = _vectors(run, stage, sample.docs), run.manifest().shape.heads
    space = space_of(run, run.manifest(), stage)
    probed: dict[int, Probed] = {}
    alike = sample.alike()
    for number, group in enumerate(alike):
        names = ", ".join(sample.aspects[at].aspect.name for at in group)

        def progress(share: float, number: int = number, names: str = names) -> None:
            on_progress(0.9 * (number + share) / len(alike), f"random slices: {names}")

        found = probe_aspects(
            vectors[sample.aspects[group[0]].rows],
            [sample.aspects[at].codes for at in group],
            heads,
            seed=seed,
            progress=progress,
            threads=cores(),
            space=space,
        )
        probed |= dict(zip(group, found, strict=True))
    on_progress(0.9, "one aspect within another")
    rows = StageRows(vectors, space)
    return aspect_tables(stage, sample, [probed[at] for at in range(len(sample.aspects))], rows, heads, seed, cores())


def _vectors(run: Run, stage: int, docs: np.ndarray) -> np.ndarray:
    """``[row, width]`` of these documents: only theirs are held."""
    of_row = run.vector_docs()
    wanted = np.searchsorted(of_row, docs)
    found: np.ndarray | None = None
    first = 0
    for part in run.vectors(stage):
        if found is None:
            found = np.empty((len(docs), part.shape[1]), dtype=np.float32)
        here = np.flatnonzero((wanted >= first) & (wanted < first + len(part)))
        found[here] = part[wanted[here] - first]
        first += len(part)
    if found is None or not np.isfinite(found).all():
        raise Mistake(f"heads/stage={stage} holds a number that is not finite. Rebuild it with '{run.rebuild}'.")
    return found


def _settings(config: AspectsConfig) -> list[tuple[str, int, int]]:
    return [("sample", config.sample, SAMPLE), ("seed", config.seed, 0)]


def _inputs(config: AspectsConfig, manifest: Manifest, aspects: Sequence[Aspect]) -> str:
    return fingerprint(
        {
            "algorithm": ALGORITHM,
            "embed": manifest.vectors_fingerprint,
            "aspects": aspects_digest(aspects),
            "settings": [value for _, value, _ in _settings(config)],
        }
    )
