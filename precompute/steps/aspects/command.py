"""``aspects`` on the command line."""

from __future__ import annotations

import argparse

from core.analysis.aspect_probe import SAMPLE
from precompute.job.progress import clock
from precompute.job.step import StepResult
from precompute.options import StepCommand, add_again, add_seed, given, stages_counted
from precompute.steps.aspects.step import AspectsConfig, run


def _own_options(command: argparse.ArgumentParser) -> None:
    add_again(command)
    add_seed(command)
    command.add_argument_group("aspects").add_argument(
        "--documents",
        type=int,
        default=SAMPLE,
        metavar="N",
        help=f"probe at most N documents, with each topic in its share (default: {SAMPLE:,})",
    )


def _config(options: argparse.Namespace) -> AspectsConfig:
    return AspectsConfig(
        cache=options.cache,
        run=options.run,
        seed=options.analysis_seed,
        again=options.again,
        **given(options, sample="documents"),
    )


def _summary(options: argparse.Namespace, result: StepResult) -> str:
    run, manifest = options.run, result.manifest
    step = manifest.steps["aspects"]
    counts = step.counts
    if not counts["aspects"]:
        return f"{run}: no aspect has two values with enough documents. Label the documents, or add a column."
    return (
        f"{run}: {counts['aspects']} aspect{'s' if counts['aspects'] > 1 else ''} × {stages_counted(manifest)} × "
        f"{manifest.shape.heads} heads, probed on {counts['documents']:,} of {manifest.corpus['documents']:,} "
        f"documents in {clock(step.seconds)}."
    )


COMMAND = StepCommand(
    own_options=_own_options,
    config=_config,
    run=run,
    summary=_summary,
)
