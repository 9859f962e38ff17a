"""``label`` on the command line."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from core.analysis.aspect_values import value_lists
from core.errors import listed
from core.runs.aspects import DETECTED, LANGUAGE, TOPIC
from core.runs.aspects import SOURCES as WORDS
from core.runs.labels import LABEL_SOURCES
from core.terminal import printable
from precompute.job.progress import clock
from precompute.options import StepCommand, add_again, add_topic_model, add_topics, topic_model
from precompute.steps.label.aspect import ASPECT_SOURCES
from precompute.steps.label.config import Asking, LabelConfig, LabelResult, Spending
from precompute.steps.label.step import run

ASK_ABOVE = 1.0
"""Dollars that are spent without a question."""


def _options(command: argparse.ArgumentParser) -> None:
    add_again(command)
    add_topics(command)
    group = command.add_argument_group("labels")
    words = "; ".join(f"{name}: {word}" for name, word in LABEL_SOURCES.items())
    group.add_argument(
        "--labels",
        choices=list(ASPECT_SOURCES),
        help=f"{words}; {DETECTED}: {WORDS[DETECTED]}, of --aspect {LANGUAGE} (default: those the run has, at first "
        "its corpus's own)",
    )
    group.add_argument("--label-file", type=Path, metavar="FILE", help="for --labels file: columns 'id' and 'topic'")
    group.add_argument("--label-model", default=Asking.model, metavar="NAME", help=f"default: {Asking.model}")
    group.add_argument(
        "--base-url",
        default=os.environ.get("OPENAI_BASE_URL") or None,
        metavar="URL",
        help="address of a server with OpenAI's protocol (default: OPENAI_BASE_URL, else OpenAI's own)",
    )
    group.add_argument(
        "--excerpt-tokens",
        type=int,
        default=Asking.excerpt_tokens,
        metavar="N",
        help=f"tokens of a document's beginning and end to send (default: {Asking.excerpt_tokens})",
    )
    group.add_argument(
        "--concurrency", type=int, default=Asking.concurrency, metavar="N", help=f"default: {Asking.concurrency}"
    )
    group.add_argument("--requests-per-minute", type=int, metavar="N", help="limit (default: none)")
    group.add_argument("--tokens-per-minute", type=int, metavar="N", help="limit (default: none)")
    group.add_argument("--max-cost", type=float, metavar="DOLLARS", help="stop before more than this is spent")
    group.add_argument("--batch", action="store_true", help="use OpenAI's Batch API: half the price, within a day")
    group.add_argument("--yes", action="store_true", help="spend without asking")


def _own_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--aspect",
        default=TOPIC,
        metavar="NAME",
        help=f"what is labelled: {TOPIC} (the default), {LANGUAGE}, {listed(value_lists())}, whose values come with "
        "the project, or your own with --topics FILE: one value per line, a definition after a tab",
    )
    command.add_argument(
        "--column", metavar="NAME", help="for --aspect and --labels column: the corpus's column (default: the aspect's)"
    )
    command.add_argument("--dry-run", action="store_true", help="estimate the cost, then stop")
    add_topic_model(command)


def _config(options: argparse.Namespace) -> LabelConfig:
    names = ("base_url", "excerpt_tokens", "concurrency", "requests_per_minute", "tokens_per_minute", "max_cost")
    dry_run = getattr(options, "dry_run", False)

    def announce(sentence: str) -> None:
        if dry_run or not options.quiet:
            print(printable(f"{options.run}: {sentence}"), file=sys.stdout if dry_run else sys.stderr)

    return LabelConfig(
        cache=options.cache,
        run=options.run,
        labels=options.labels,
        topics=options.topics,
        file=options.label_file,
        asking=Asking(model=options.label_model, **{name: getattr(options, name) for name in names}),
        spending=Spending(announce, lambda dollars: options.yes or _agreed(dollars)),
        batch=options.batch,
        dry_run=dry_run,
        again=options.again,
        model=topic_model(options),
        aspect=getattr(options, "aspect", TOPIC),
        column=getattr(options, "column", None),
    )


def _agreed(dollars: float) -> bool:
    """Whether the person at the terminal, if there is one, agrees to a larger sum."""
    if dollars <= ASK_ABOVE or not sys.stdin.isatty():
        return True
    print(f"Spend about ${dollars:,.2f}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _summary(options: argparse.Namespace, result: LabelResult) -> str:
    """Where the labels come from, how many there are, and what else is to be known."""
    step = result.manifest.steps.get("label")
    if getattr(options, "dry_run", False):
        return ""
    if getattr(options, "aspect", TOPIC) != TOPIC:
        notes = result.notes or (f"{options.aspect} is labelled. Nothing to do." if result.skipped else "Activated.",)
        return "\n".join([f"{options.run}: {notes[0]}", *(f"  {note}" for note in notes[1:])])
    if step is None:
        return f"{options.run}: not labelled."
    counts, source = step.counts, step.options.get("source", "")
    total = counts["labelled"] + counts["unlabelled"]
    labelled = f"{counts['labelled']:,} of {total:,} documents labelled by {source} ({LABEL_SOURCES.get(source, '')})"
    if result.skipped:
        return f"{options.run}: {labelled}. Nothing to do."
    return "\n".join([f"{options.run}: {labelled} in {clock(step.seconds)}.", *(f"  {note}" for note in result.notes)])


COMMAND = StepCommand(
    options=_options,
    own_options=_own_options,
    config=_config,
    run=run,
    summary=_summary,
    skipped=_summary,
)
