"""The step ``analyse``: from head vectors and labels to the study's tables, a stage at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa

from core.analysis.probe import SAMPLES, can_probe, choose_samples
from core.analysis.topics import AUTO, choose_topics
from core.runs.labels import COLUMN, labels_of
from core.runs.manifest import Manifest
from core.runs.parts import write_table
from core.runs.results import read_topics
from core.runs.run import Run
from core.runs.shares import space_of
from core.runs.steps import STEPS
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import Progress
from precompute.job.step import Plan, StepResult, StepRun, run_step
from precompute.job.topic_vectors import TopicModel, topic_tables
from precompute.job.work import Work
from precompute.steps.analyse.null_tables import choose_documents
from precompute.steps.analyse.stage import StageInputs, analyse_stage
from precompute.steps.analyse.untrained import untrained_twin

ALGORITHM = 2
"""Raised whenever the same inputs give other figures."""


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


def run(config: AnalyseConfig, progress: Progress | None = None, work: Work | None = None) -> StepResult:
    """Analyses a run; after an interruption, only the stages that are missing."""

    def plan(run: Run, manifest: Manifest) -> Plan:
        documents = run.documents(["topic", "label_source"])
        names, source = documents["topic"].to_pylist(), source_of(documents["label_source"])
        topics = topics_of(config.topics, manifest, names)
        paths = [run.similarity_path(stage) for stage in manifest.stages]
        return Plan(
            inputs=_inputs(config, manifest, topics, names, source),
            files=[*paths, *(run.analysis_path(name) for name in STEPS["analyse"].tables)],
            make=lambda step: _analyse(step, config, topics, names, source),
            staging="analysis/staging",
        )

    return run_step("analyse", config, plan, progress, work, config.again)


def _analyse(
    step: StepRun, config: AnalyseConfig, topics: Sequence[str], names: Sequence[str | None], source: str | None
) -> StepResult:
    run, shape = step.run, step.manifest.shape
    samples = None
    if can_probe(len(names), shape.heads):
        samples = choose_samples(len(names), shape.heads, config.probe_samples, config.seed)
    step.meter.at(0, "embedding the topics' names")
    tables_of_topics = topic_tables(run, step.manifest, topics, names, config.model)
    labels = labels_of(names, topics)
    compared = choose_documents(labels, config.seed)
    step.meter.at(0, "embedding a sample with random weights")
    twin = untrained_twin(run, step.manifest, compared, topics, config.model, config.seed)
    step.begin(_options(config, source) | ({"no_untrained_twin": twin} if isinstance(twin, str) else {}))
    for made in tables_of_topics:
        write_table(made.path, made.table, made.digest)
    step.meter.restart()
    vectors = read_topics(run).vectors
    for stage, on_progress in step.stages():
        inputs = StageInputs(
            stage=stage,
            shape=shape,
            topics=tuple(topics),
            topic_vectors=vectors[stage],
            labels=labels,
            centre=config.centre,
            samples=samples,
            compared=compared,
            untrained=None if isinstance(twin, str) else twin,
            seed=config.seed,
            digest=step.inputs,
            space=space_of(run, step.manifest, stage),
        )
        step.stage_tables(
            f"stage={stage}", partial(analyse_stage, run, inputs, on_progress), run.similarity_path(stage)
        )
    step.join_tables()
    labelled = int((labels >= 0).sum())
    return step.finish(
        {
            "topics": len(topics),
            "labelled": labelled,
            "unlabelled": sum(name is None for name in names),
            "label_not_a_topic": sum(name is not None for name in names) - labelled,
        }
    )


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
    made = {**made_from(manifest, topics, names, source), "embed": manifest.vectors_fingerprint}
    return fingerprint({"algorithm": ALGORITHM, **made, "settings": settings})


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
