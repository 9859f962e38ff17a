"""``project`` on the command line."""

from __future__ import annotations

import argparse

from core.maps.tsne import LIMIT, METHODS, METRICS, MapConfig
from precompute.job.progress import clock
from precompute.job.step import StepResult
from precompute.options import StepCommand, add_again, add_seed, stages_counted
from precompute.steps.project.config import ProjectConfig
from precompute.steps.project.step import run


def _options(command: argparse.ArgumentParser) -> None:
    add_again(command)
    add_seed(command)
    group = command.add_argument_group("maps")
    group.add_argument("--method", choices=sorted(METHODS), default="opentsne", help="cuml needs an NVIDIA GPU")
    group.add_argument("--perplexity", type=float, metavar="P", help="default: 30, or less where points are few")
    group.add_argument("--iterations", type=int, default=MapConfig.iterations, metavar="N", help="default: 750")
    group.add_argument("--metric", choices=METRICS, default=METRICS[0], help="cosine: vectors are normalised first")
    group.add_argument(
        "--point-limit",
        type=int,
        default=LIMIT,
        metavar="N",
        help=f"fit at most N points, by topic, and place the rest among them (default: {LIMIT})",
    )
    group.add_argument("--by-head", action="store_true", help="also one map per head")
    group.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="default: all, or 1 for up to 5,000 points; with 1 the map is the same every time",
    )


def _config(options: argparse.Namespace) -> ProjectConfig:
    return ProjectConfig(
        cache=options.cache,
        run=options.run,
        method=options.method,
        perplexity=options.perplexity,
        iterations=options.iterations,
        metric=options.metric,
        limit=options.point_limit,
        by_head=options.by_head,
        seed=options.analysis_seed,
        threads=options.threads,
        again=options.again,
    )


def _summary(options: argparse.Namespace, result: StepResult) -> str:
    run, manifest = options.run, result.manifest
    step = manifest.steps["project"]
    counts = step.counts
    line = f"{run}: maps of {counts['points']:,} points at {stages_counted(manifest)} in {clock(step.seconds)}"
    if counts["placed"]:
        line += f"; {counts['fitted']:,} were fitted, a sample by topic, and the others placed among them"
    return line + "."


COMMAND = StepCommand(
    options=_options,
    config=_config,
    run=run,
    summary=_summary,
)
