"""``slim`` on the command line."""

from __future__ import annotations

import argparse

from core.runs.describe import sampled
from precompute.job.step import StepResult
from precompute.options import StepCommand, add_seed, nothing_to_do
from precompute.steps.slim.step import DOCUMENTS, SlimConfig, run


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--vector-sample",
        type=int,
        default=DOCUMENTS,
        metavar="N",
        help=f"documents that keep their vectors, by topic, those of the maps first (default: {DOCUMENTS:,})",
    )


def _config(options: argparse.Namespace) -> SlimConfig:
    return SlimConfig(options.cache, options.run, options.vector_sample, options.analysis_seed)


def _summary(options: argparse.Namespace, result: StepResult) -> str:
    run, manifest = options.run, result.manifest
    step = manifest.steps["slim"]
    before, after = (step.counts[name] / 1e6 for name in ("bytes_before", "bytes"))
    line = (
        f"{run}: vectors of {sampled(manifest)} stored, {after:,.1f} MB of {before:,.1f} MB. Figures and maps remain."
    )
    if not manifest.is_done("retrieve"):
        line += "\n  Heads were not evaluated ('retrieve'), and no longer can be."
    return line


def _skipped(options: argparse.Namespace, result: StepResult) -> str:
    if result.manifest.is_sampled:
        return nothing_to_do(options.run, "slim")
    count = int(result.manifest.corpus["documents"])
    return f"{options.run}: {count:,} documents; the vectors of all of them are kept."


COMMAND = StepCommand(
    options=_options,
    own_options=add_seed,
    config=_config,
    run=run,
    summary=_summary,
    skipped=_skipped,
)
