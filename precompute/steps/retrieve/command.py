"""``retrieve`` on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.errors import listed
from core.retrieval.tasks import QUERIES
from core.retrieval.ways import WAYS
from precompute.job.progress import clock
from precompute.job.step import StepResult
from precompute.options import (
    StepCommand,
    add_again,
    add_seed,
    add_topic_model,
    nothing_to_do,
    stages_counted,
    topic_model,
)
from precompute.steps.retrieve.step import RetrieveConfig, run


def _options(command: argparse.ArgumentParser) -> None:
    add_again(command)
    add_seed(command)
    group = command.add_argument_group("retrieval")
    group.add_argument(
        "--queries",
        type=Path,
        metavar="FILE",
        help="JSON lines with 'query', 'relevant' (document ids) and, if known, 'aspects' (default: the demo's own for "
        "the demo; other runs are measured by their topics)",
    )
    group.add_argument(
        "--ways",
        nargs="+",
        choices=list(WAYS),
        default=["full"],
        metavar="WAY",
        help=f"prune heads by these ways to rank: {listed(WAYS)} (default: full; all of them are compared)",
    )
    group.add_argument(
        "--query-limit",
        type=int,
        default=QUERIES,
        metavar="N",
        help=f"documents used as queries where topics are the measure (default: {QUERIES})",
    )


def _config(options: argparse.Namespace) -> RetrieveConfig:
    return RetrieveConfig(
        cache=options.cache,
        run=options.run,
        queries=options.queries,
        ways=tuple(options.ways),
        limit=options.query_limit,
        seed=options.analysis_seed,
        again=options.again,
        optional=options.command == "all",
        model=topic_model(options),
    )


def _summary(options: argparse.Namespace, result: StepResult) -> str:
    run, manifest = options.run, result.manifest
    step = manifest.steps["retrieve"]
    queries = step.counts["queries"]
    by = f"{queries:,} queries" + (" and its topics" if step.counts["tasks"] > 1 else "") if queries else "its topics"
    return (
        f"{run}: heads evaluated on {by} at {stages_counted(manifest)} in {clock(step.seconds)}. "
        f"See 'python -m precompute report {run}' and the page Retrieval lab."
    )


def _skipped(options: argparse.Namespace, result: StepResult) -> str:
    if "retrieve" in result.manifest.steps:
        return nothing_to_do(options.run, "retrieve")
    return f"{options.run}: 'retrieve' is skipped: the run has neither labels nor queries to evaluate heads with."


COMMAND = StepCommand(
    options=_options,
    own_options=add_topic_model,
    config=_config,
    run=run,
    summary=_summary,
    skipped=_skipped,
)
