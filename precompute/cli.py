"""``python -m precompute COMMAND RUN``: parse, build one config, call the step."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from core.errors import Mistake, listed
from core.machine import wait_asleep
from core.runs.backend import trouble_at
from core.runs.run import Run, open_run
from core.runs.steps import STEPS
from core.settings import read_settings, unknown_settings
from core.terminal import printable, printable_json
from precompute.job.progress import PROGRESS
from precompute.job.work import Work, working_on
from precompute.options import SAMPLE, AddOptions, add_common, add_progress, add_topic_model, nothing_to_do, topic_model
from precompute.table import STEP_COMMANDS

if TYPE_CHECKING:
    from precompute.publish.command import HtmlWriter

DONE, FAILED, MISTAKE = 0, 1, 2
VECTOR_KINDS = ("faiss", "parquet", "jsonl")
"""Rows of precompute.vector_export.KINDS, which is imported late."""


@dataclass(frozen=True)
class CommandRow:
    """A command of ``python -m precompute``."""

    help: str
    run: Callable[[argparse.Namespace], int]
    """Returns the exit code."""
    options: AddOptions


def main(
    arguments: Sequence[str] | None = None,
    more: Mapping[str, CommandRow] | None = None,
    prog: str = "python -m precompute",
) -> int:
    """Runs one command; 0 done, 2 the user's mistake in one sentence, 1 anything else.

    ``more`` are commands of the program that calls this one, ``prog``.
    """
    commands = COMMANDS | dict(more or {})
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        read_settings()  # all of them, before the parser takes its defaults from some
    except Mistake as mistake:
        _say(mistake.sentences)
        return MISTAKE
    _say(unknown_settings())
    options = parser(commands, prog, given[0] if given else None).parse_args(given)
    wait_asleep()
    # Libraries talk on standard error in the middle of our progress bar; what matters comes back as an exception.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    try:
        if (getattr(options, "run", None) or "").startswith("hf:"):
            from precompute.publish.command import fetched

            options.run = fetched(options.run, options.cache)
        done = commands[options.command].run(options)
        # What was read is what this machine had kept.
        if options.cache is not None and (trouble := trouble_at(options.cache)):
            _say([trouble])
        return done
    except Mistake as mistake:
        _say(mistake.sentences)
        return MISTAKE
    except BrokenPipeError:  # whoever read it has seen enough: 'status | head'
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt as stop:
        remedy = str(stop) or "Start the same command again to continue where it stopped."
        print(f"\nheadscope: stopped. {printable(remedy)}", file=sys.stderr)
        return FAILED


def _say(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        print(f"headscope: {printable(sentence)}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(MISTAKE, f"headscope: {message.rstrip('.')}. See '{self.prog} --help'.\n")


def parser(
    commands: Mapping[str, CommandRow] | None = None, prog: str = "python -m precompute", named: str | None = None
) -> argparse.ArgumentParser:
    """Of all commands. One that is ``named`` alone gets its options: it does not wait for the imports of the others."""
    rows = commands or COMMANDS
    made = _Parser(
        prog=prog,
        description="Build and inspect runs: a corpus, embedded with every head's vector stored in the cache.",
    )
    added = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, row in rows.items():
        is_step = name == "all" or name in STEPS
        command = added.add_parser(name, help=row.help, description=row.help if is_step else None)
        if named not in rows or name == named:
            row.options(command)
    return made


def _step(name: str, options: argparse.Namespace, work: Work | None = None) -> int:
    """Runs one step, by itself or, given ``work``, as a part of ``all``."""
    step = STEP_COMMANDS[name]
    result = step.run(step.config(options), PROGRESS["quiet" if options.quiet else options.progress](), work)
    if not result.skipped:
        said = step.summary(options, result)
    else:
        said = step.skipped(options, result) if step.skipped else nothing_to_do(options.run, name)
    if said and not options.quiet:
        print(printable(said), file=sys.stderr)
    return DONE


def _step_options(name: str, command: argparse.ArgumentParser) -> None:
    add_common(command)
    add_progress(command)
    STEP_COMMANDS[name].options(command)
    STEP_COMMANDS[name].own_options(command)


def _in_all(kind: str) -> list[str]:
    return [name for name, facts in STEPS.items() if facts.in_all == kind]


def _all_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    add_progress(command)
    optional = _in_all("optional")
    for name in (*_in_all("always"), *optional):
        STEP_COMMANDS[name].options(command)
    command.add_argument(
        "--without",
        nargs="+",
        choices=optional,
        default=[],
        metavar="STEP",
        help=f"leave out steps that no other step needs: {listed(optional)}",
    )
    requested = _in_all("on request")
    command.add_argument(
        "--with",
        dest="also",
        nargs="+",
        choices=requested,
        default=[],
        metavar="STEP",
        help=f"also run the slow steps, with their defaults: {listed(requested)}",
    )
    for name in (*requested, *_in_all("last")):
        STEP_COMMANDS[name].options(command)


def _all(options: argparse.Namespace) -> int:
    from precompute.engines import ENGINES

    if ENGINES[options.engine].shared:
        raise Mistake(f"'all' cannot run with --engine {options.engine}. Run 'embed' with it, then 'all' without it.")
    with working_on(Run(options.cache, options.run), "all") as work:
        for name in _in_all("always"):
            _step(name, options, work)
        wanted = [name for name in _in_all("optional") if name not in options.without]
        wanted += [name for name in _in_all("on request") if name in options.also]
        failed = [name for name in wanted if not _is_done(name, options, work)]
        waiting = [name for name in failed if STEPS[name].all_vectors]
        if options.store_vectors == SAMPLE and waiting:
            _say(
                [
                    f"{options.run}: all vectors are kept, because '{waiting[0]}' needs them. Start the same command "
                    "again."
                ]
            )
        elif options.store_vectors == SAMPLE:
            _step("slim", options, work)
    return MISTAKE if failed else DONE


def _is_done(name: str, options: argparse.Namespace, work: Work) -> bool:
    """Runs an optional step; if it cannot be done, says why, and the others go on."""
    try:
        _step(name, options, work)
    except Mistake as mistake:
        _say([f"'{name}' is skipped. {sentence}" for sentence in mistake.sentences])
        return False
    return True


def _report_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    command.add_argument("--json", action="store_true", help="print JSON, for scripts")
    command.add_argument(
        "--merge-threshold",
        type=float,
        metavar="COSINE",
        help="merge topics down to this mean cosine (default: down to 25 groups, as in the study)",
    )


def _report(options: argparse.Namespace) -> int:
    from precompute.report import report

    text = report(options.cache, options.run, options.json, options.merge_threshold)
    print(printable_json(text) if options.json else printable(text))
    return DONE


def _export_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    command.add_argument(
        "--heads",
        type=Path,
        metavar="FILE",
        help='JSON: {"model": …, "off": [[layer, head], …], "how": "zero" or "mean"}, or a file from the Retrieval lab',
    )
    command.add_argument(
        "--to", type=Path, required=True, metavar="PATH", help="a new folder for the model, a new file for vectors"
    )
    command.add_argument(
        "--vectors",
        choices=VECTOR_KINDS,
        help="export the corpus's vectors instead of a model: an index for FAISS, or a named vector per head "
        "(default: all heads; with --heads, a file from the Retrieval lab)",
    )
    command.add_argument(
        "--stage", type=int, default=1, metavar="N", help="stage of --vectors without --heads (default: 1)"
    )
    command.add_argument(
        "--accept-licence", action="store_true", help="confirm that the model's licence allows your use"
    )
    add_topic_model(command)


def _export(options: argparse.Namespace) -> int:
    if options.vectors:
        from precompute.vector_export import VectorExportConfig, export_vectors

        wanted = VectorExportConfig(
            options.cache, options.run, options.vectors, options.to, options.heads, options.stage
        )
        print(printable(export_vectors(wanted)))
        return DONE
    if options.heads is None:
        raise Mistake("Give the heads to switch off with --heads FILE. For the corpus's vectors, give --vectors.")
    from precompute.export import ExportConfig, export

    config = ExportConfig(
        options.cache,
        options.run,
        options.heads,
        options.to,
        options.accept_licence,
        model=topic_model(options),
    )
    print(printable(export(config).sentence))
    return DONE


def _bench_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    command.add_argument(
        "--tasks",
        type=Path,
        nargs="+",
        required=True,
        metavar="TASK",
        help="a folder in BEIR's layout (corpus.jsonl, queries.jsonl and qrels/test.tsv), or the name of a retrieval "
        "task or benchmark of mteb, such as NanoBEIR (needs requirements-mteb.txt and network access)",
    )
    command.add_argument("--heads", type=Path, metavar="FILE", help="heads to switch off, as for export")
    command.add_argument("--json", action="store_true", help="print JSON, for scripts")
    add_topic_model(command)


def _bench(options: argparse.Namespace) -> int:
    from precompute.bench import BenchConfig, as_json, as_text, bench

    found = bench(
        BenchConfig(options.cache, options.run, tuple(options.tasks), options.heads, model=topic_model(options))
    )
    print(printable_json(as_json(found)) if options.json else printable(as_text(found)))
    return DONE


def _explain(options: argparse.Namespace) -> int:
    from precompute.explain import explanation_of

    text = explanation_of(options)
    print(printable_json(text) if options.json else printable(text))
    return DONE


def _status_options(command: argparse.ArgumentParser) -> None:
    add_common(command, run_optional=True)
    command.add_argument("--json", action="store_true", help="print JSON, for scripts")


def _status(options: argparse.Namespace) -> int:
    from precompute.status import as_text, status

    records = status(options.cache, options.run)
    text = json.dumps(records, indent=1, ensure_ascii=False) if options.json else as_text(records)
    print(printable_json(text) if options.json else printable(text))
    return DONE


def _verify_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    command.add_argument(
        "--add-checksums",
        action="store_true",
        help="add checksums to a run that an older version wrote, if it is intact",
    )


def _verify(options: argparse.Namespace) -> int:
    from core.runs.checksums import checksums
    from core.runs.verify import verify
    from precompute.job.fingerprint import part_digest

    run = open_run(options.cache, options.run)
    verdict = verify(run, part_digest)
    for problem in verdict.problems:
        print(printable(problem))
    if verdict.problems:
        print(f"{options.run}: {len(verdict.problems)} of {verdict.checked} checked files have problems.")
        return FAILED
    print(f"{options.run}: no problems found ({verdict.checked} files checked).")
    if not verdict.has_checksums and options.add_checksums:
        with run.lock():
            manifest = run.manifest()
            run.write_manifest(replace(manifest, files=checksums(run, manifest.files)))
        print(f"{options.run}: checksums added.")
    elif not verdict.has_checksums:
        remedy = f"python -m precompute verify {options.run} --add-checksums"
        _say([f"{options.run}: an older version wrote this run, without checksums. Add them with '{remedy}'."])
    return DONE


def _publish(options: argparse.Namespace) -> int:
    return published(options, None)


def published(options: argparse.Namespace, write_html: HtmlWriter | None) -> int:
    """The command ``publish``, with what writes HTML where the app's files are installed."""
    from precompute.publish.command import publish_from

    for sentence in publish_from(options, write_html):
        print(printable(sentence))
    return DONE


def _unpack(options: argparse.Namespace) -> int:
    from precompute.publish.command import arrived, unpack

    run = unpack(options.file, options.cache, options.name, options.most_gb)
    print("\n".join(arrived(run)))
    return DONE


def _fetch(options: argparse.Namespace) -> int:
    from precompute.publish.command import arrived, fetch

    run = fetch(options.address, options.cache, options.name, options.most_gb)
    print("\n".join(arrived(run)))
    return DONE


def _late(module: str, name: str) -> AddOptions:
    """A function of a module that is imported when it is called."""
    return lambda command: getattr(import_module(module), name)(command)


COMMANDS: dict[str, CommandRow] = {
    "all": CommandRow("run every step in order; steps that are up to date are skipped", _all, _all_options),
    **{
        name: CommandRow(facts.help, partial(_step, name), partial(_step_options, name))
        for name, facts in STEPS.items()
    },
    "report": CommandRow("print the study's tables next to this run's, and the findings", _report, _report_options),
    "export": CommandRow(
        "write the model without some heads, for sentence-transformers, or vectors of heads, for a vector store",
        _export,
        _export_options,
    ),
    "bench": CommandRow(
        "compare the model, a pruned one and equally small rivals on retrieval tasks", _bench, _bench_options
    ),
    "explain": CommandRow(
        "explain why two documents or texts are similar: their cosine as a sum over heads",
        _explain,
        _late("precompute.explain", "add_options"),
    ),
    "publish": CommandRow(
        "publish a run as one HTML file, an archive, a folder, or a dataset on the hub",
        _publish,
        _late("precompute.publish.command", "publish_options"),
    ),
    "unpack": CommandRow(
        "install an archive written by 'publish' into the cache",
        _unpack,
        _late("precompute.publish.command", "unpack_options"),
    ),
    "fetch": CommandRow(
        "download a run from the Hugging Face Hub into the cache",
        _fetch,
        _late("precompute.publish.command", "fetch_options"),
    ),
    "status": CommandRow("list runs and the state of each step", _status, _status_options),
    "verify": CommandRow("check every file against schema, counts and checksums", _verify, _verify_options),
}
"""All commands; those of steps are rows of core.runs.steps.STEPS and ``COMMAND`` of the step's folder."""
