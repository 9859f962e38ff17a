"""The step ``analyse``: from head vectors and labels to the study's tables, a stage at a time."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from core.analysis.probe import SAMPLES, can_probe, choose_samples
from core.analysis.topics import AUTO, choose_topics
from core.runs.labels import COLUMN, labels_of
from core.runs.manifest import Manifest
from core.runs.parts import digest_of, write_table
from core.runs.results import read_topics
from core.runs.run import Run, open_run
from core.runs.schema import ANALYSIS, MADE_BY
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import Meter, Progress, Quiet
from precompute.job.step import StepRecord, StepResult, all_vectors, as_table, embedded, up_to_date, write_joined
from precompute.job.topic_vectors import TopicModel, topic_tables
from precompute.job.work import working_on
from precompute.steps.analyse.stage import StageInputs, analyse_stage

ALGORITHM = 1
"""Raised whenever the same inputs give other figures."""
TABLES = MADE_BY["analyse"]


@dataclass(frozen=True)
class AnalyseConfig:
    cache: Path
    run: str
    topics: str = AUTO
    """See core.analysis.topics.choose_topics."""
    centre: bool = False
    """Subtract the corpus mean before cosines: language models have high ones for unrelated texts."""
    probe_samples: int = SAMPLES
    seed: int = 0
    again: bool = False
    model: TopicModel = field(default_factory=TopicModel)


def run(config: AnalyseConfig, progress: Progress | None = None) -> StepResult:
    """Analyses a run; after an interruption, only the stages that are missing."""
    progress = progress or Quiet()
    target = open_run(config.cache, config.run)
    with working_on(target, "analyse") as work:
        target = work.at
        manifest = embedded(target)
        documents = target.documents(["topic", "label_source"])
        names, source = documents["topic"].to_pylist(), source_of(documents["label_source"])
        topics = topics_of(config.topics, manifest, names)
        inputs = _inputs(config, manifest, topics, names, source)
        paths = [target.similarity_path(stage) for stage in manifest.stages]
        paths += [target.analysis_path(name) for name in TABLES]
        if up_to_date(target, manifest, "analyse", inputs, paths) and not config.again:
            return StepResult(manifest, skipped=True)
        if manifest.is_outdated("analyse", inputs) and not config.again and _all_made(paths, inputs):
            # Other labels came, and went again before they were analysed.
            manifest = manifest.with_step("analyse", replace(manifest.steps["analyse"], state="done"))
            target.write_manifest(manifest)
            return StepResult(manifest, skipped=True)
        all_vectors(target, manifest, "analyse")
        target = work.begin("analyse")
        manifest = target.manifest()
        try:
            return _analyse(target, config, manifest, inputs, topics, names, source, Meter("analyse", progress))
        finally:
            progress.close()


def _analyse(
    target: Run,
    config: AnalyseConfig,
    manifest: Manifest,
    inputs: str,
    topics: Sequence[str],
    names: Sequence[str | None],
    source: str | None,
    meter: Meter,
) -> StepResult:
    samples = None
    if can_probe(len(names), manifest.shape.heads):
        samples = choose_samples(len(names), manifest.shape.heads, config.probe_samples, config.seed)
    meter.at(0, "embedding the topics' names")
    tables_of_topics = topic_tables(target, manifest, topics, names, config.model)
    record = StepRecord(target, "analyse", manifest, inputs, _options(config, source), meter.seconds)
    for made in tables_of_topics:
        write_table(made.path, made.table, made.digest)
    meter.restart()
    labels = labels_of(names, topics)
    vectors = read_topics(target).vectors
    staging = target.folder / "analysis" / "staging"
    if config.again:
        shutil.rmtree(staging, ignore_errors=True)
    share = 1 / len(manifest.stages)
    for number, stage in enumerate(manifest.stages):
        if _is_there(target, staging, stage, inputs):
            continue
        tables = analyse_stage(
            target,
            StageInputs(
                stage=stage,
                shape=manifest.shape,
                topics=tuple(topics),
                topic_vectors=vectors[stage],
                labels=labels,
                centre=config.centre,
                samples=samples,
                seed=config.seed,
                digest=inputs,
            ),
            lambda fraction, message, number=number, stage=stage: meter.at(  # type: ignore[misc]
                share * (number + fraction), f"stage {stage}: {message}"
            ),
        )
        for name in TABLES:
            write_table(_fragment(staging, stage, name), as_table(tables.get(name, {}), ANALYSIS[name]), inputs)
    meter.at(1.0, "writing the tables")
    for name in TABLES:
        fragments = [_fragment(staging, stage, name) for stage in manifest.stages]
        write_joined(target.analysis_path(name), fragments, ANALYSIS[name], inputs)
    labelled = int((labels >= 0).sum())
    result = record.finish(
        {
            "topics": len(topics),
            "labelled": labelled,
            "unlabelled": sum(name is None for name in names),
            "label_not_a_topic": sum(name is not None for name in names) - labelled,
        }
    )
    shutil.rmtree(staging, ignore_errors=True)
    return result


def _is_there(target: Run, staging: Path, stage: int, inputs: str) -> bool:
    paths = [target.similarity_path(stage), *(_fragment(staging, stage, name) for name in TABLES)]
    return all(digest_of(path) == inputs for path in paths)


def _fragment(staging: Path, stage: int, name: str) -> Path:
    return staging / f"stage={stage}" / f"{name}.parquet"


def _all_made(paths: Sequence[Path], inputs: str) -> bool:
    return all(digest_of(path) == inputs for path in paths)


def source_of(column: pa.ChunkedArray) -> str | None:
    """The labels' source; None where no document has a label."""
    return next((name for name in column.unique().to_pylist() if name is not None), None)


def topics_of(asked: str, manifest: Manifest, names: Sequence[str | None]) -> tuple[str, ...]:
    """Unless asked for others, those that the labels were chosen from: a topic that nobody got is one, too."""
    label = manifest.steps.get("label")
    listed = tuple(label.options.get("topics", ())) if label is not None else ()
    if asked == AUTO and listed and {name for name in names if name is not None} <= set(listed):
        return listed
    return choose_topics(asked, names)


def labels_digest(names: Sequence[str | None]) -> str:
    """Of every document's label, or that it has none."""
    return hashlib.sha256("\0".join("" if name is None else f"={name}" for name in names).encode()).hexdigest()


def _inputs(
    config: AnalyseConfig, manifest: Manifest, topics: Sequence[str], names: Sequence[str | None], source: str | None
) -> str:
    settings = [config.centre, config.probe_samples, config.seed]
    return fingerprint({"algorithm": ALGORITHM, **made_from(manifest, topics, names, source), "settings": settings})


def made_from(
    manifest: Manifest, topics: Sequence[str], names: Sequence[str | None], source: str | None
) -> dict[str, object]:
    """What figures about topics are made from: the vectors, every label, whose labels they are, the topics."""
    return {
        "embed": manifest.steps["embed"].fingerprint,
        "labels": labels_digest(names),
        **({"label_source": source} if source not in (COLUMN, None) else {}),
        "topics": list(topics),
    }


def _options(config: AnalyseConfig, source: str | None) -> dict[str, object]:
    """What was asked for and whose labels there were, without the defaults."""
    asked: dict[str, object] = {
        "centre": config.centre,
        "probe_samples": config.probe_samples,
        "seed": config.seed,
        "label_source": source or COLUMN,
    }
    defaults = {"centre": False, "probe_samples": SAMPLES, "seed": 0, "label_source": COLUMN}
    return {key: value for key, value in asked.items() if value != defaults[key]}
