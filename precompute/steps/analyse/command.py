"""``analyse`` on the command line."""

from __future__ import annotations

import argparse

from core.analysis.probe import SAMPLES
from core.analysis.wording import plural
from precompute.job.progress import clock
from precompute.job.step import StepResult
from precompute.options import (
    StepCommand,
    add_again,
    add_centre,
    add_seed,
    add_topic_model,
    add_topics,
    stages_counted,
    topic_model,
)
from precompute.steps.analyse.step import AnalyseConfig, run


def _options(command: argparse.ArgumentParser) -> None:
    add_again(command)
    add_seed(command)
    add_topics(command)
    group = command.add_argument_group("figures")
    add_centre(group)
    group.add_argument(
        "--probe-samples", type=int, default=SAMPLES, metavar="N", help=f"at most (default: {SAMPLES}, the study's)"
    )


def _config(options: argparse.Namespace) -> AnalyseConfig:
    return AnalyseConfig(
        cache=options.cache,
        run=options.run,
        topics=options.topics,
        centre=options.centre,
        probe_samples=options.probe_samples,
        seed=options.analysis_seed,
        again=options.again,
        model=topic_model(options),
    )


def _summary(options: argparse.Namespace, result: StepResult) -> str:
    run, manifest = options.run, result.manifest
    step, documents = manifest.steps["analyse"], manifest.corpus["documents"]
    counts = step.counts
    lines = [
        f"{run}: {stages_counted(manifest)} analysed in {clock(step.seconds)}, {plural(counts['topics'], 'topic')}, "
        f"{counts['labelled']:,} of {documents:,} documents labelled. See 'python -m precompute report {run}'."
    ]
    if counts["label_not_a_topic"]:
        lines.append(
            f"  {plural(counts['label_not_a_topic'], 'label is', 'labels are')} not on the list of topics: treated as "
            "missing."
        )
    if not counts["labelled"]:
        lines.append(
            "  Without labels, topic match, head profiles and the heat map are missing; everything else is available."
        )
    return "\n".join(lines)


COMMAND = StepCommand(
    options=_options,
    own_options=add_topic_model,
    config=_config,
    run=run,
    summary=_summary,
)
