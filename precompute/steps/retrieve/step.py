"""The step ``retrieve``: which heads find what people look for, stage by stage and task by task."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from core.errors import Mistake
from core.retrieval.queries import Query, read_queries
from core.retrieval.tasks import QUERIES, QUERY_SET, SAME_TOPIC, TOPIC_MATCH
from core.retrieval.ways import WAYS
from core.runs.labels import labels_of
from core.runs.manifest import Manifest
from core.runs.parts import digest_of, write_table
from core.runs.results import read_topics
from core.runs.run import Run, open_run
from core.runs.schema import ANALYSIS, MADE_BY
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import Meter, Progress, Quiet
from precompute.job.step import StepRecord, StepResult, all_vectors, as_table, embedded, up_to_date, write_joined
from precompute.job.topic_vectors import TopicModel
from precompute.job.work import working_on
from precompute.steps.retrieve.queries import query_table, write_queries
from precompute.steps.retrieve.stage import StageTasks, study_stage

ALGORITHM = 1
"""Raised whenever the same inputs give other figures."""
TABLES = MADE_BY["retrieve"]
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
            raise Mistake(f"--query-limit {self.limit} is too few to judge by. Give 2 or more.")


def run(config: RetrieveConfig, progress: Progress | None = None) -> StepResult:
    """Judges a run's heads; after an interruption, only at the stages that are missing."""
    progress = progress or Quiet()
    target = open_run(config.cache, config.run)
    with working_on(target, "retrieve") as work:
        target = work.at
        manifest = embedded(target)
        documents = target.documents(["id", "topic"])
        queries = _queries(config, manifest, documents["id"].to_pylist())
        names = documents["topic"].to_pylist()
        analysed = manifest.is_done("analyse")
        topics = read_topics(target).names if analysed else sorted({name for name in names if name is not None})
        labels = labels_of(names, topics)
        tasks = _tasks(queries, labels, analysed)
        if not tasks and config.optional:
            return StepResult(manifest, skipped=True)
        if not tasks:
            raise Mistake(
                f"The run '{config.run}' has no labels that heads could be judged by. Give a query set with --queries, "
                f"or label it with 'python -m precompute label {config.run}'."
            )
        inputs = _inputs(config, manifest, queries, labels, tasks)
        paths = [target.analysis_path(name) for name in TABLES] + ([target.queries_path] if queries else [])
        if up_to_date(target, manifest, "retrieve", inputs, paths) and not config.again:
            return StepResult(manifest, skipped=True)
        all_vectors(target, manifest, "retrieve")
        target = work.begin("retrieve")
        manifest = target.manifest()
        try:
            given = StageTasks(tasks, queries, labels, config.ways, config.limit, config.seed)
            return _retrieve(target, config, manifest, inputs, given, Meter("retrieve", progress))
        finally:
            progress.close()


def _retrieve(
    target: Run, config: RetrieveConfig, manifest: Manifest, inputs: str, given: StageTasks, meter: Meter
) -> StepResult:
    meter.at(0, "embedding the queries" if given.queries else "reading")
    asked = query_table(target, manifest, given.queries, config.model) if given.queries else None
    record = StepRecord(target, "retrieve", manifest, inputs, _options(config), meter.seconds)
    write_queries(target, asked, inputs)
    meter.restart()
    staging = target.folder / "analysis" / "retrieve-staging"
    if config.again:
        shutil.rmtree(staging, ignore_errors=True)
    share = 1 / len(manifest.stages)
    for number, stage in enumerate(manifest.stages):
        fragments = {name: staging / f"stage={stage}" / f"{name}.parquet" for name in TABLES}
        if all(digest_of(path) == inputs for path in fragments.values()):
            continue
        tables = study_stage(
            target,
            manifest,
            stage,
            given,
            asked,
            lambda fraction, message, number=number, stage=stage: meter.at(  # type: ignore[misc]
                share * (number + fraction), f"stage {stage}: {message}"
            ),
        )
        for name, path in fragments.items():
            write_table(path, as_table(tables.get(name, {}), ANALYSIS[name]), inputs)
    meter.at(1.0, "writing the tables")
    for name in TABLES:
        paths = [staging / f"stage={stage}" / f"{name}.parquet" for stage in manifest.stages]
        write_joined(target.analysis_path(name), paths, ANALYSIS[name], inputs)
    counts = {"queries": len(given.queries), "tasks": len(given.tasks)}
    result = record.finish({**counts, "labelled": int((given.labels >= 0).sum())})
    shutil.rmtree(staging, ignore_errors=True)
    return result


def _queries(config: RetrieveConfig, manifest: Manifest, ids: Sequence[str]) -> tuple[Query, ...]:
    if config.queries is not None:
        return read_queries(config.queries, ids)
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
    return fingerprint(
        {
            "algorithm": ALGORITHM,
            "embed": manifest.steps["embed"].fingerprint,
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
