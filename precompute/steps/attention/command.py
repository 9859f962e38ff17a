"""``attention`` on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from precompute.job.progress import clock
from precompute.job.step import StepResult
from precompute.options import StepCommand, add_again, add_documents, add_seed, add_topic_model, given, topic_model
from precompute.steps.attention.config import DOCUMENTS, TOKENS, AttentionConfig
from precompute.steps.attention.step import run


def _own_options(command: argparse.ArgumentParser) -> None:
    add_again(command)
    add_seed(command)
    group = command.add_argument_group("attention")
    add_documents(group, DOCUMENTS)
    group.add_argument(
        "--pattern-tokens",
        type=int,
        default=TOKENS,
        metavar="N",
        help=f"truncate texts to N tokens (default: {TOKENS})",
    )
    group.add_argument(
        "--treebank",
        type=Path,
        metavar="FILE.conllu",
        help="sentences with gold relations between words, as CoNLL-U, in the model's language (default: Headscope's "
        "own English ones); of more than 1,000, a sample",
    )
    add_topic_model(command)


def _config(options: argparse.Namespace) -> AttentionConfig:
    return AttentionConfig(
        cache=options.cache,
        run=options.run,
        seed=options.analysis_seed,
        again=options.again,
        model=topic_model(options),
        **given(options, documents="documents", tokens="pattern_tokens", treebank="treebank"),
    )


def _summary(options: argparse.Namespace, result: StepResult) -> str:
    step, shape = result.manifest.steps["attention"], result.manifest.shape
    return (
        f"{options.run}: attention of {shape.layers} layers × {shape.heads} heads in {step.counts['documents']:,} "
        f"documents ({step.counts['tokens']:,} tokens){_shown(step.counts)} in {clock(step.seconds)}."
    )


def _shown(counts: Mapping[str, int]) -> str:
    if "sentences" not in counts:  # an older version's step that is up to date
        return ""
    if not counts["sentences"]:
        return "; no relations between words, because the tokenizer does not know Headscope's English sentences"
    return f" and {counts['sentences']:,} sentences"


COMMAND = StepCommand(
    own_options=_own_options,
    config=_config,
    run=run,
    summary=_summary,
)
