"""The step ``retrieve``: which heads find what people look for, stage by stage and task by task."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from core.errors import Mistake
from core.model.stages import SHARE
from core.retrieval.queries import Query, read_queries
from core.retrieval.tasks import QUERIES, QUERY_SET, SAME_TOPIC, TOPIC_MATCH
from core.retrieval.ways import WAYS
from core.runs.labels import labels_of
from core.runs.manifest import Manifest
from core.runs.results import read_topics
from core.runs.run import Run
from core.runs.steps import STEPS, command
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import Progress
from precompute.job.step import Plan, StepResult, StepRun, run_step
from precompute.job.topic_vectors import TopicModel
from precompute.job.work import Work
from precompute.steps.retrieve.queries import query_table, write_queries
from precompute.steps.retrieve.stage import StageTasks, study_stage

ALGORITHM = 1
"""Raised whenever the same inputs give other figures."""
DEMO_QUERIES = Path(__file__).parent / "demo_queries.jsonl"


@dataclass(frozen=True)
class RetrieveConfig:
    cache: Path
    run: str
    queries: Path | None = None
    """None: the demo's own for the demo corpus, and none for others."""
    ways: tuple[str, ...] = ("full",)
    """Ways to rank by which heads are let go; all are compared."""
    limit: int = QUERIES
    """Documents that are taken as queries where there are no others."""
    seed: int = 0
    again: bool = False
    optional: bool = False
    """Without anything to judge by nothing is done, and that is no mistake."""
    model: TopicModel = field(default_factory=TopicModel)

    def __post_init__(self) -> None:
        if unknown := [way for way in self.ways if way not in WAYS]:
            raise Mistake(f"There is no way to rank called '{unknown[0]}'. Choose one of: {', '.join(WAYS)}.")
        if self.limit < 2:
            raise Mistake(f"--query-limit {self.limit} is too few to evaluate heads with. Give 2 or more.")


def run(config: RetrieveConfig, progress: Progress | None = None, work: Work | None = None) -> StepResult:
    """Evaluates a run's heads; after an interruption, only at the stages that are missing."""

    def plan(run: Run, manifest: Manifest) -> Plan | None:
        documents = run.documents(["id", "topic"])
        queries = queries_of(config.queries, manifest, documents["id"].to_pylist())
        names = documents["topic"].to_pylist()
        analysed = manifest.is_done("analyse")
        topics = read_topics(run).names if analysed else sorted({name for name in names if name is not None})
        labels = labels_of(names, topics)
        tasks = _tasks(queries, labels, analysed)
        if not tasks and config.optional:
            return None
        if not tasks:
            raise Mistake(
                f"The run '{config.run}' has no labels to evaluate heads with. Give a query set with --queries, or "
                f"label it with '{command('label', config.run)}'."
            )
        given = StageTasks(tasks, queries, labels, config.ways, config.limit, config.seed)
        files = [run.analysis_path(name) for name in STEPS["retrieve"].tables]
        return Plan(
            inputs=_inputs(config, manifest, queries, labels, tasks),
            files=[*files, *([run.queries_path] if queries else [])],
            make=lambda step: _retrieve(step, config, given),
        )

    return run_step("retrieve", config, plan, progress, work, config.again)


def _retrieve(step: StepRun, config: RetrieveConfig, given: StageTasks) -> StepResult:
    step.meter.at(0, "embedding the queries" if given.queries else "reading")
    asked = query_table(step.run, step.manifest, given.queries, config.model) if given.queries else None
    step.begin(_options(config))
    write_queries(step.run, asked, step.inputs)
    step.meter.restart()
    for stage, on_progress in step.stages():
        make = partial(study_stage, step.run, step.manifest, stage, given, asked, on_progress)
        step.stage_tables(f"stage={stage}", make)
    step.join_tables()
    counts = {"queries": len(given.queries), "tasks": len(given.tasks)}
    return step.finish({**counts, "labelled": int((given.labels >= 0).sum())})


def queries_of(path: Path | None, manifest: Manifest, ids: Sequence[str]) -> tuple[Query, ...]:
    """A file's; without one, the demo's own for the demo corpus, and none for others."""
    if path is not None:
        return read_queries(path, ids)
    if manifest.corpus["source"] != "demo":
        return ()
    try:
        return read_queries(DEMO_QUERIES, ids)
    except Mistake:  # a part of the demo has not all the documents that are asked for
        return ()


def _tasks(queries: tuple[Query, ...], labels: np.ndarray, analysed: bool) -> tuple[str, ...]:
    _, sizes = np.unique(labels[labels >= 0], return_counts=True)
    able = {
        QUERY_SET: bool(queries),
        SAME_TOPIC: bool((sizes > 1).any()),
        TOPIC_MATCH: analysed and bool(len(sizes)),
    }
    return tuple(task for task, is_able in able.items() if is_able)


def _inputs(
    config: RetrieveConfig, manifest: Manifest, queries: tuple[Query, ...], labels: np.ndarray, tasks: tuple[str, ...]
) -> str:
    known = manifest.steps["analyse"].fingerprint if TOPIC_MATCH in tasks else None
    summed = {"full": "summed"} if SHARE in manifest.stages else {}  # figures without stage 4 are as they were
    return fingerprint(
        {
            "algorithm": ALGORITHM,
            **summed,
            "embed": manifest.vectors_fingerprint,
            "analyse": known,
            "labels": hashlib.sha256(labels.astype("<i4").tobytes()).hexdigest(),
            "queries": [[query.text, list(query.relevant), query.aspects] for query in queries],
            "settings": [list(config.ways), config.limit, config.seed],
        }
    )


def _options(config: RetrieveConfig) -> dict[str, object]:
    """What was asked for, without the defaults; of a file of queries only its name."""
    asked: dict[str, object] = {"ways": list(config.ways), "limit": config.limit, "seed": config.seed}
    defaults = {"ways": ["full"], "limit": QUERIES, "seed": 0}
    found = {key: value for key, value in asked.items() if value != defaults[key]}
    return found if config.queries is None else {**found, "queries": config.queries.name}
