"""``search`` on the command line."""

from __future__ import annotations

import argparse

from precompute.job.progress import clock
from precompute.job.step import StepResult
from precompute.options import StepCommand, add_again
from precompute.steps.search.step import SearchConfig, run


def _config(options: argparse.Namespace) -> SearchConfig:
    return SearchConfig(options.cache, options.run, options.again)


def _summary(options: argparse.Namespace, result: StepResult) -> str:
    run, manifest = options.run, result.manifest
    step = manifest.steps["search"]
    return (
        f"{run}: {step.counts['documents']:,} documents can be searched, index of {step.counts['bytes'] / 1e6:,.1f} MB "
        f"in {clock(step.seconds)}."
    )


COMMAND = StepCommand(
    options=add_again,
    config=_config,
    run=run,
    summary=_summary,
)
