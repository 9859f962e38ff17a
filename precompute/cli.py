"""``python -m precompute COMMAND RUN``: parse, build one config, call the step."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from core import verify
from core.batches import PADDING_SIDES
from core.device import PRECISIONS
from core.embedder import EmbedderConfig
from core.errors import Mistake, listed
from core.pooling import POOLINGS
from core.presets import DEFAULT_MODEL, PRESETS
from core.probe import SAMPLES
from core.store import Run, default_cache, open_run
from core.topics import AUTO, LABELS, TOPIC_LISTS
from core.tsne import LIMIT, METHODS, METRICS, MapConfig
from precompute.progress import PROGRESS, Progress
from precompute.summary import step_summary

DONE, FAILED, MISTAKE = 0, 1, 2
COLUMNS = ("text", "id", "title", "url", "topic")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 done, 2 the user's mistake in one sentence, 1 anything else."""
    options = _parser().parse_args(arguments)
    # Libraries talk on standard error in the middle of our progress bar; what matters comes back as an exception.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    try:
        return COMMANDS[options.command](options)
    except Mistake as mistake:
        print(f"headscope: {mistake}", file=sys.stderr)
        return MISTAKE
    except KeyboardInterrupt:
        print("\nheadscope: stopped. Start the same command again to go on where it was.", file=sys.stderr)
        return FAILED


def _embed(options: argparse.Namespace) -> int:
    from transformers.utils import logging

    from precompute import embed
    from precompute.corpus import Columns, Filters
    from precompute.summary import summary

    logging.disable_progress_bar()
    names = ("model", "pooling", "prompt", "query_prompt", "max_tokens", "device", "dtype", "token_budget", "padding")
    config = embed.EmbedConfig(
        cache=options.cache,
        run=options.run,
        source=options.source,
        embedder=EmbedderConfig(
            layers=(options.layer,),
            trust_remote_code=options.trust_remote_code,
            **{name: getattr(options, name) for name in names},
        ),
        columns=Columns(**{name: getattr(options, f"{name}_column") for name in COLUMNS}),
        filters=Filters(
            limit=options.limit,
            sample=options.sample,
            seed=options.seed,
            min_chars=options.min_chars,
            keep_duplicates=options.keep_duplicates,
            skip_bad=options.skip_bad,
        ),
        part_size=options.part_size,
        replace=options.replace,
    )
    result = embed.run(config, _progress(options))
    if not options.quiet:
        print(summary(Run(options.cache, options.run), result), file=sys.stderr)
    return DONE


def _analyse(options: argparse.Namespace) -> int:
    from transformers.utils import logging

    from precompute import analyse
    from precompute.topic_vectors import TopicModel

    logging.disable_progress_bar()
    config = analyse.AnalyseConfig(
        cache=options.cache,
        run=options.run,
        topics=options.topics,
        centre=options.centre,
        probe_samples=options.probe_samples,
        seed=options.analysis_seed,
        again=options.again,
        model=TopicModel(options.model, options.device, options.trust_remote_code),
    )
    result = analyse.run(config, _progress(options))
    if not options.quiet:
        print(step_summary(options.run, "analyse", result.manifest, result.skipped), file=sys.stderr)
    return DONE


def _project(options: argparse.Namespace) -> int:
    from precompute import project
    from precompute.project_config import ProjectConfig

    config = ProjectConfig(
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
    result = project.run(config, _progress(options))
    if not options.quiet:
        print(step_summary(options.run, "project", result.manifest, result.skipped), file=sys.stderr)
    return DONE


def _report(options: argparse.Namespace) -> int:
    from precompute.report import report

    print(report(options.cache, options.run, options.json, options.merge_threshold))
    return DONE


def _progress(options: argparse.Namespace) -> Progress:
    return PROGRESS["quiet" if options.quiet else options.progress]()


def _all(options: argparse.Namespace) -> int:
    for step in STEPS:
        COMMANDS[step](options)
    return DONE


def _status(options: argparse.Namespace) -> int:
    from precompute.status import as_text, status

    records = status(options.cache, options.run)
    print(json.dumps(records, indent=1, ensure_ascii=False) if options.json else as_text(records))
    return DONE


def _verify(options: argparse.Namespace) -> int:
    from precompute.fingerprint import part_digest

    verdict = verify.verify(open_run(options.cache, options.run), part_digest)
    for problem in verdict.problems:
        print(problem)
    if verdict.problems:
        print(f"{options.run}: {len(verdict.problems)} of {verdict.checked} files checked are not right.")
        return FAILED
    print(f"{options.run}: whole ({verdict.checked} files checked).")
    return DONE


STEPS = ("embed", "analyse", "project")
"""What ``all`` does, in order; a step whose inputs have not changed says so and is skipped."""

COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "all": _all,
    "embed": _embed,
    "analyse": _analyse,
    "project": _project,
    "report": _report,
    "status": _status,
    "verify": _verify,
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(MISTAKE, f"headscope: {message}. See '{self.prog} --help'.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m precompute", description="From a corpus to a run in the cache.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help_text, options in (
        (
            "all",
            "every step, in order; what is up to date is skipped",
            (_source_options, _model_options, _analyse_options, _project_options),
        ),
        ("embed", "documents to head vectors at three stages", (_source_options, _model_options)),
        ("analyse", "head vectors to similarities, probes, profiles and all tables", (_analyse_options, _found_again)),
        ("project", "head vectors to maps", (_project_options,)),
    ):
        command = commands.add_parser(name, help=help_text, description=help_text)
        _common(command)
        _step_options(command)
        for add_options in options:
            add_options(command)
    command = commands.add_parser("report", help="the study's tables beside this run's, and what the figures say")
    _common(command)
    command.add_argument("--json", action="store_true", help="for machines")
    command.add_argument(
        "--merge-threshold",
        type=float,
        metavar="COSINE",
        help="merge topics down to this mean cosine (default: down to 25 groups, as the study)",
    )
    command = commands.add_parser("status", help="what is there")
    _common(command, run_optional=True)
    command.add_argument("--json", action="store_true", help="for machines")
    _common(commands.add_parser("verify", help="is it whole: every file against schema, counts and manifest"))
    return parser


def _common(command: argparse.ArgumentParser, run_optional: bool = False) -> None:
    command.add_argument("run", metavar="RUN", nargs="?" if run_optional else None, help="a folder of the cache")
    command.add_argument("--cache", type=Path, default=default_cache(), help="default: HEADSCOPE_CACHE, or cache/")


def _source_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("corpus")
    group.add_argument(
        "--source",
        default="demo",
        help="'demo', a file (JSONL, CSV, TSV, Parquet, text, Markdown; .gz and .zst too), a folder, a glob, or "
        "hf:DATASET[/CONFIG][:SPLIT] (default: demo)",
    )
    for name in COLUMNS:
        group.add_argument(f"--{name}-column", metavar="NAME", help=f"the column with the document's {name}")
    group.add_argument("--limit", type=int, metavar="N", help="the first N documents only")
    group.add_argument("--sample", type=int, metavar="N", help="N documents at random")
    group.add_argument("--seed", type=int, default=0, help="of --sample (default: 0)")
    group.add_argument("--min-chars", type=int, default=1, metavar="N", help="leave out shorter texts (default: 1)")
    group.add_argument("--keep-duplicates", action="store_true", help="keep documents whose text came before")
    group.add_argument("--skip-bad", action="store_true", help="leave out broken records, and count them")
    group.add_argument("--part-size", type=int, default=1_000, metavar="N", help="documents in a part (default: 1000)")
    group.add_argument("--replace", action="store_true", help="make a run anew that is finished or holds other inputs")


def _step_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--progress", choices=sorted(PROGRESS), default="auto")
    command.add_argument("--quiet", action="store_true", help="no progress, no summary")


def _again(command: argparse.ArgumentParser) -> None:
    """Options that both later steps have; 'all' has them once."""
    if command.get_default("again") is None:
        command.add_argument("--again", action="store_true", help="compute figures and maps anew, up to date or not")
        command.add_argument("--analysis-seed", type=int, default=0, metavar="N", help="of samples, intervals and maps")


def _analyse_options(command: argparse.ArgumentParser) -> None:
    _again(command)
    group = command.add_argument_group("figures")
    group.add_argument(
        "--topics",
        default=AUTO,
        help=f"what documents are compared with: {listed((AUTO, LABELS, *TOPIC_LISTS))}, or a file with a topic a line "
        f"(default: {AUTO}, the study's 25 if no label is beyond them, else the labels)",
    )
    group.add_argument(
        "--centre", action="store_true", help="subtract the corpus mean before cosines; for language models"
    )
    group.add_argument(
        "--probe-samples", type=int, default=SAMPLES, metavar="N", help=f"at most (default: {SAMPLES}, the study's)"
    )


def _found_again(command: argparse.ArgumentParser) -> None:
    """How ``analyse`` finds the model that made the run, to embed the topics' names."""
    group = command.add_argument_group("model")
    group.add_argument("--model", help="the run's own model, if it is a folder (default: by its name)")
    group.add_argument("--device", help="cuda, mps, cpu (default: the best there is)")
    group.add_argument("--trust-remote-code", metavar="MODEL", help="run the code that this model brings with it")


def _project_options(command: argparse.ArgumentParser) -> None:
    _again(command)
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
    group.add_argument("--by-head", action="store_true", help="also a map for each head by itself")
    group.add_argument("--threads", type=int, metavar="N", help="default: all; with 1 the map is the same every time")


def _model_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("model")
    group.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        help=f"a preset ({listed(PRESETS)}), any hub name, or a folder (default: {DEFAULT_MODEL})",
    )
    group.add_argument("--layer", type=int, metavar="N", help="read stages 1 and 2 at layer N, from 1 (default: last)")
    group.add_argument("--pooling", choices=POOLINGS, help="default: the model's own")
    group.add_argument("--prompt", help="put before every document (default: the model's own)")
    group.add_argument("--query-prompt", help="put before every query (default: the model's own)")
    group.add_argument(
        "--max-tokens", type=int, metavar="N", help="cut documents to N tokens (default: the model's own)"
    )
    group.add_argument("--device", help="cuda, mps, cpu (default: the best there is)")
    group.add_argument("--dtype", choices=PRECISIONS, help="default: bfloat16 on CUDA, float32 elsewhere")
    group.add_argument("--token-budget", type=int, metavar="N", help="tokens in a batch, padding included")
    group.add_argument("--padding", choices=PADDING_SIDES, default="right", help="makes no difference to the result")
    group.add_argument("--trust-remote-code", metavar="MODEL", help="run the code that this model brings with it")
