"""What commands share: the row of a step in the table of commands, and options that several of them have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.analysis.topics import AUTO, LABELS, TOPIC_LISTS
from core.errors import Mistake, listed
from core.remote.mirror import cache_at, default_cache
from core.runs.manifest import Manifest
from core.settings import setting
from precompute.job.progress import PROGRESS, Progress
from precompute.job.work import Work

if TYPE_CHECKING:
    from precompute.job.topic_vectors import TopicModel

AddOptions = Callable[[argparse.ArgumentParser], None]
SAMPLE = "sample"
"""Of --store-vectors."""
DEVICE_HELP = "cuda, mps, cpu (default: HEADSCOPE_DEVICE, or the fastest available)"


@dataclass(frozen=True)
class StepCommand:
    """A step on the command line; ``COMMAND`` of ``precompute/steps/<name>/command.py``, see core.runs.steps.STEPS."""

    config: Callable[[argparse.Namespace], Any]
    """From the options to the step's config. ``all`` has only ``options`` of every step: see ``given``."""
    run: Callable[[Any, Progress, Work | None], Any]
    """Given a Work, the step is one of several that ``all`` does on the run."""
    summary: Callable[[argparse.Namespace, Any], str]
    """What to say of the result; empty for nothing."""
    skipped: Callable[[argparse.Namespace, Any], str] | None = None
    """The same where nothing was done; None: it is up to date."""
    options: AddOptions = lambda command: None
    """That ``all`` has, too."""
    own_options: AddOptions = lambda command: None
    """That it has only when it is started by itself."""


def nothing_to_do(run: str, step: str) -> str:
    return f"{run}: {step} is up to date. Nothing to do."


def stages_counted(manifest: Manifest) -> str:
    """``3 stages``."""
    count = len(manifest.stages)
    return f"{count} stage{'s' if count > 1 else ''}"


def given(options: argparse.Namespace, **names: str) -> dict[str, Any]:
    """``field=option``: the fields of a config whose options this command has; the others keep their defaults."""
    return {field: getattr(options, name) for field, name in names.items() if hasattr(options, name)}


def topic_model(options: argparse.Namespace) -> TopicModel:
    """How the run's own model is loaded again."""
    from precompute.job.topic_vectors import TopicModel

    return TopicModel(options.model, options.device, options.trust_remote_code)


def add_common(command: argparse.ArgumentParser, run_optional: bool = False) -> None:
    command.add_argument(
        "run", metavar="RUN", nargs="?" if run_optional else None, help="name of the run, a folder in the cache"
    )
    add_cache(command)


def add_cache(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--cache",
        type=_cache,
        default=default_cache(),
        help="a folder, or s3://bucket/prefix, gs://… or file://… (default: HEADSCOPE_CACHE, or cache/)",
    )


def _cache(text: str) -> Path:
    try:
        return cache_at(text, setting("HEADSCOPE_MIRROR"))
    except Mistake as mistake:
        raise argparse.ArgumentTypeError(str(mistake)) from None


def add_progress(command: argparse.ArgumentParser) -> None:
    command.add_argument("--progress", choices=sorted(PROGRESS), default="auto")
    command.add_argument("--quiet", action="store_true", help="no progress, no summary")


def add_again(command: argparse.ArgumentParser) -> None:
    """Options that all later steps have; 'all' has them once."""
    if command.get_default("again") is None:
        command.add_argument("--again", action="store_true", help="redo the step even if it is up to date")


def add_seed(command: argparse.ArgumentParser) -> None:
    if command.get_default("analysis_seed") is None:
        command.add_argument(
            "--analysis-seed", type=int, default=0, metavar="N", help="seed of samples, intervals and maps (default: 0)"
        )


def add_topics(command: argparse.ArgumentParser) -> None:
    """Once for the steps that need a list of topics."""
    if command.get_default("topics") is None:
        command.add_argument(
            "--topics",
            default=AUTO,
            help=f"topics for labels and comparisons: {listed((AUTO, LABELS, *TOPIC_LISTS))}, or a file "
            f"with one topic per line (default: {AUTO}, the study's 25 if they include all labels, else the labels)",
        )


def add_centre(group: argparse._ArgumentGroup) -> None:
    if group.get_default("centre") is None:
        group.add_argument(
            "--centre",
            action="store_true",
            help="subtract the corpus mean before cosines are taken; for language models",
        )


def add_documents(group: argparse._ArgumentGroup, default: int) -> None:
    group.add_argument(
        "--documents",
        type=int,
        default=default,
        metavar="N",
        help=f"a sample of N documents, by topic (default: {default})",
    )


def add_topic_model(command: argparse.ArgumentParser) -> None:
    """How later steps find the model that made the run again."""
    group = command.add_argument_group("model")
    group.add_argument("--model", help="the run's model, if it is a folder (default: found by its name)")
    group.add_argument("--device", default=setting("HEADSCOPE_DEVICE"), help=DEVICE_HELP)
    group.add_argument("--trust-remote-code", metavar="MODEL", help="run the code that comes with this model")
