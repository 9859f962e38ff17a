"""``ablate`` on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

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
    topic_model,
)
from precompute.steps.ablate.config import DOCUMENTS, FEWEST_RANDOM, FREEDOM, HOW, MOST_RANDOM, AblateConfig
from precompute.steps.ablate.step import run


def _own_options(command: argparse.ArgumentParser) -> None:
    add_again(command)
    add_seed(command)
    add_topics(command)
    group = command.add_argument_group("ablation")
    add_documents(group, DOCUMENTS)
    group.add_argument(
        "--how",
        choices=list(HOW),
        default="zero",
        help="replace a head's output by zeros or by its mean over the sample",
    )
    group.add_argument(
        "--queries",
        type=Path,
        metavar="FILE",
        help="JSON lines with 'query' and 'relevant' (default: those that 'retrieve' used; for the demo, its own)",
    )
    group.add_argument(
        "--layers",
        type=int,
        nargs="+",
        default=(),
        metavar="N",
        help="switch off heads of these layers only (default: all)",
    )
    group.add_argument(
        "--random",
        type=int,
        metavar="N",
        help=f"random removals per layer, of the same size as heads: the noise floor (default: {MOST_RANDOM}; fewer, "
        f"but at least {FEWEST_RANDOM}, if more than {FREEDOM // (MOST_RANDOM - 1)} layers are swept)",
    )
    group.add_argument(
        "--prune",
        type=int,
        default=0,
        metavar="N",
        help="then switch up to N heads off one after another: chosen on one half of the sample, measured on the other",
    )
    group.add_argument(
        "--tokens", type=int, metavar="N", help="truncate texts to N tokens (default: as they were embedded)"
    )
    add_centre(group)
    add_topic_model(command)


def _config(options: argparse.Namespace) -> AblateConfig:
    return AblateConfig(
        cache=options.cache,
        run=options.run,
        queries=options.queries,
        layers=tuple(getattr(options, "layers", ())),
        topics=options.topics,
        centre=options.centre,
        seed=options.analysis_seed,
        again=options.again,
        model=topic_model(options),
        **given(options, documents="documents", how="how", random="random", prune="prune", tokens="tokens"),
    )


def _summary(options: argparse.Namespace, result: StepResult) -> str:
    step = result.manifest.steps["ablate"]
    counts = step.counts
    queries = f" and {counts['queries']:,} queries" if counts["queries"] else ""
    line = (
        f"{options.run}: {counts['heads']} heads of {counts['layers']} layers switched off one by one over "
        f"{counts['documents']:,} documents{queries} in {clock(step.seconds)}. See 'python -m precompute report "
        f"{options.run}' and the page Ablation."
    )
    if not counts["labelled"]:
        line += "\n  Without labels, topic match is not available; how far documents move is."
    return line


COMMAND = StepCommand(
    own_options=_own_options,
    config=_config,
    run=run,
    summary=_summary,
)
