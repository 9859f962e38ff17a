"""``layers`` on the command line."""

from __future__ import annotations

import argparse

from core.analysis.layer_measures import DOCUMENTS
from precompute.job.progress import clock
from precompute.job.step import StepResult
from precompute.options import (
    StepCommand,
    add_again,
    add_centre,
    add_documents,
    add_seed,
    add_topic_model,
    add_topics,
    given,
    stages_counted,
    topic_model,
)
from precompute.steps.layers.step import LayersConfig, run


def _own_options(command: argparse.ArgumentParser) -> None:
    add_again(command)
    add_seed(command)
    add_topics(command)
    group = command.add_argument_group("layers")
    add_documents(group, DOCUMENTS)
    add_centre(group)
    add_topic_model(command)


def _config(options: argparse.Namespace) -> LayersConfig:
    return LayersConfig(
        cache=options.cache,
        run=options.run,
        topics=options.topics,
        centre=options.centre,
        seed=options.analysis_seed,
        again=options.again,
        model=topic_model(options),
        **given(options, documents="documents"),
    )


def _summary(options: argparse.Namespace, result: StepResult) -> str:
    run, manifest = options.run, result.manifest
    step = manifest.steps["layers"]
    counts = step.counts
    line = (
        f"{run}: {counts['layers']} layers × {stages_counted(manifest)} × {manifest.shape.heads} heads "
        f"over {counts['documents']:,} documents in {clock(step.seconds)}."
    )
    if not counts["labelled"]:
        line += "\n  Without labels, topic match and topic selectivity are missing; everything else is available."
    return line


COMMAND = StepCommand(
    own_options=_own_options,
    config=_config,
    run=run,
    summary=_summary,
)
