"""What the commands of ``python -m precompute`` can be told."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import NoReturn

from core.analysis.layer_measures import DOCUMENTS as SWEPT
from core.analysis.probe import SAMPLES
from core.analysis.topics import AUTO, LABELS, TOPIC_LISTS
from core.errors import Mistake, listed
from core.maps.tsne import LIMIT, METHODS, METRICS, MapConfig
from core.model.batches import PADDING_SIDES
from core.model.device import PRECISIONS
from core.model.presets import DEFAULT_MODEL, PRESETS
from core.model.shape import POOLINGS
from core.model.stages import STAGES
from core.remote.mirror import cache_at, default_cache
from core.retrieval.tasks import QUERIES
from core.retrieval.ways import WAYS
from core.runs.labels import LABEL_SOURCES
from core.runs.schema import STORED_AS
from core.settings import setting
from precompute.engines import ENGINES
from precompute.job.progress import PROGRESS
from precompute.steps.attention.config import DOCUMENTS as LOOKED_AT
from precompute.steps.attention.config import TOKENS
from precompute.steps.embed.corpus_ids import DUPLICATE_IDS, NUMBER, REFUSE
from precompute.steps.label.config import Asking
from precompute.steps.label.sources import SOURCES
from precompute.steps.slim.step import DOCUMENTS

DONE, FAILED, MISTAKE = 0, 1, 2
MORE = ("retrieve", "layers", "attention")
"""Steps that no other step needs."""
SAMPLE = "sample"
"""Of --store-vectors."""
COLUMNS = ("text", "id", "title", "url", "topic")
_DEVICE = "cuda, mps, cpu (default: HEADSCOPE_DEVICE, or the best there is)"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(MISTAKE, f"headscope: {message.rstrip('.')}. See '{self.prog} --help'.\n")


def parser() -> argparse.ArgumentParser:
    found = _Parser(prog="python -m precompute", description="From a corpus to a run in the cache.")
    commands = found.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help_text, options in (
        (
            "all",
            "every step, in order; what is up to date is skipped",
            (
                _source_options,
                _model_options,
                _storage_options,
                _engine_options,
                _label_options,
                _analyse_options,
                _project_options,
                _retrieve_options,
                _without,
                _sample_options,
            ),
        ),
        (
            "embed",
            "documents to head vectors at three stages",
            (_source_options, _model_options, _storage_options, _engine_options),
        ),
        ("search", "a full-text index of titles and texts, for the app's search", (_again,)),
        (
            "label",
            "a topic for every document: the corpus's own, a language model's, the nearest one, a file's",
            (_label_options, _dry_run, _found_again),
        ),
        ("analyse", "head vectors to similarities, probes, profiles and all tables", (_analyse_options, _found_again)),
        ("project", "head vectors to maps", (_project_options,)),
        (
            "retrieve",
            "which heads find what people look for: ways to rank, pruning and weights, measured",
            (_retrieve_options, _found_again),
        ),
        ("layers", "every layer of a sample: where in depth the structure is", (_layers_options, _found_again)),
        (
            "attention",
            "what every head of every layer looks at, over a sample of documents",
            (_attention_options, _found_again),
        ),
        ("slim", "keep the vectors of a sample only, once there are figures and maps", (_sample_options, _seed)),
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
    command = commands.add_parser("verify", help="is it whole: every file against schema, counts and checksums")
    _common(command)
    command.add_argument(
        "--add-checksums", action="store_true", help="record those of a run that an older version wrote, if it is whole"
    )
    return found


def _common(command: argparse.ArgumentParser, run_optional: bool = False) -> None:
    command.add_argument("run", metavar="RUN", nargs="?" if run_optional else None, help="a folder of the cache")
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
    group.add_argument(
        "--duplicate-ids",
        choices=DUPLICATE_IDS,
        default=REFUSE,
        help=f"an id that several documents have: {REFUSE} the corpus (default), or {NUMBER} the copies (id, id#2)",
    )
    group.add_argument("--part-size", type=int, default=1_000, metavar="N", help="documents in a part (default: 1000)")
    group.add_argument("--replace", action="store_true", help="make a run anew that is finished or holds other inputs")


def _engine_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("engine")
    words = "; ".join(f"{name}: {engine.help}" for name, engine in ENGINES.items())
    group.add_argument("--engine", choices=list(ENGINES), default="local", help=f"{words} (default: local)")
    group.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes (local) or replicas (ray), each with the model (default: one a GPU, else one; ray: one a node)",
    )
    group.add_argument("--num-gpus", type=float, metavar="N", help="of a replica (ray; default: 1 where there are any)")
    group.add_argument(
        "--ray-address", metavar="ADDRESS", help="of the cluster, or auto (default: RAY_ADDRESS, else a new one)"
    )
    group.add_argument(
        "--max-failures",
        type=int,
        default=0,
        metavar="N",
        help="leave out up to N documents that cannot be embedded (default: 0, the run is not finished without them)",
    )


def _step_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--progress", choices=sorted(PROGRESS), default="auto")
    command.add_argument("--quiet", action="store_true", help="no progress, no summary")


def _again(command: argparse.ArgumentParser) -> None:
    """Options that all later steps have; 'all' has them once."""
    if command.get_default("again") is None:
        command.add_argument(
            "--again", action="store_true", help="make labels, figures and maps anew, up to date or not"
        )


def _seed(command: argparse.ArgumentParser) -> None:
    if command.get_default("analysis_seed") is None:
        command.add_argument("--analysis-seed", type=int, default=0, metavar="N", help="of samples, intervals and maps")


def _topics(command: argparse.ArgumentParser) -> None:
    """Once for the steps that need a list of topics."""
    if command.get_default("topics") is None:
        command.add_argument(
            "--topics",
            default=AUTO,
            help=f"what documents are labelled and compared with: {listed((AUTO, LABELS, *TOPIC_LISTS))}, or a file "
            f"with a topic a line (default: {AUTO}, the study's 25 if no label is beyond them, else the labels)",
        )


def _label_options(command: argparse.ArgumentParser) -> None:
    _again(command)
    _topics(command)
    group = command.add_argument_group("labels")
    words = "; ".join(f"{name}: {word}" for name, word in LABEL_SOURCES.items())
    group.add_argument(
        "--labels", choices=list(SOURCES), help=f"{words} (default: those the run has, at first its corpus's own)"
    )
    group.add_argument("--label-file", type=Path, metavar="FILE", help="of --labels file: columns 'id' and 'topic'")
    group.add_argument("--label-model", default=Asking.model, metavar="NAME", help=f"default: {Asking.model}")
    group.add_argument(
        "--base-url",
        default=os.environ.get("OPENAI_BASE_URL") or None,
        metavar="URL",
        help="a server that speaks OpenAI's protocol (default: OPENAI_BASE_URL, else OpenAI's own)",
    )
    group.add_argument(
        "--excerpt-tokens",
        type=int,
        default=Asking.excerpt_tokens,
        metavar="N",
        help=f"of a document's beginning and end that are sent (default: {Asking.excerpt_tokens})",
    )
    group.add_argument(
        "--concurrency", type=int, default=Asking.concurrency, metavar="N", help=f"default: {Asking.concurrency}"
    )
    group.add_argument("--requests-per-minute", type=int, metavar="N", help="at most (default: no limit)")
    group.add_argument("--tokens-per-minute", type=int, metavar="N", help="at most (default: no limit)")
    group.add_argument("--max-cost", type=float, metavar="DOLLARS", help="stop before more than that is spent")
    group.add_argument("--batch", action="store_true", help="OpenAI's Batch API: half the price, within a day")
    group.add_argument("--yes", action="store_true", help="spend without a question")


def _dry_run(command: argparse.ArgumentParser) -> None:
    """Not of ``all``, whose other steps have nothing to rehearse."""
    command.add_argument("--dry-run", action="store_true", help="say what it would cost, and stop")


def _analyse_options(command: argparse.ArgumentParser) -> None:
    _again(command)
    _seed(command)
    _topics(command)
    group = command.add_argument_group("figures")
    _centre(group)
    group.add_argument(
        "--probe-samples", type=int, default=SAMPLES, metavar="N", help=f"at most (default: {SAMPLES}, the study's)"
    )


def _centre(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--centre", action="store_true", help="subtract the corpus mean before cosines; for language models"
    )


def _layers_options(command: argparse.ArgumentParser) -> None:
    _again(command)
    _seed(command)
    _topics(command)
    group = command.add_argument_group("layers")
    group.add_argument(
        "--documents",
        type=int,
        default=SWEPT,
        metavar="N",
        help=f"a sample of N documents, by topic (default: {SWEPT})",
    )
    if command.get_default("centre") is None:
        _centre(group)


def _found_again(command: argparse.ArgumentParser) -> None:
    """How later steps find the model that made the run again."""
    group = command.add_argument_group("model")
    group.add_argument("--model", help="the run's own model, if it is a folder (default: by its name)")
    group.add_argument("--device", default=setting("HEADSCOPE_DEVICE"), help=_DEVICE)
    group.add_argument("--trust-remote-code", metavar="MODEL", help="run the code that this model brings with it")


def _project_options(command: argparse.ArgumentParser) -> None:
    _again(command)
    _seed(command)
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
    group.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="default: all, or 1 for up to 5,000 points; with 1 the map is the same every time",
    )


def _retrieve_options(command: argparse.ArgumentParser) -> None:
    _again(command)
    _seed(command)
    group = command.add_argument_group("retrieval")
    group.add_argument(
        "--queries",
        type=Path,
        metavar="FILE",
        help="JSON lines with 'query', 'relevant' (document ids) and, if known, 'aspects' (default: the demo's own for "
        "the demo; other runs are judged by their topics)",
    )
    group.add_argument(
        "--ways",
        nargs="+",
        choices=list(WAYS),
        default=["full"],
        metavar="WAY",
        help=f"let heads go by these ways to rank: {listed(WAYS)} (default: full; all of them are compared)",
    )
    group.add_argument(
        "--query-limit",
        type=int,
        default=QUERIES,
        metavar="N",
        help=f"documents that are taken as queries to judge by topics (default: {QUERIES})",
    )


def _without(command: argparse.ArgumentParser) -> None:
    """Of ``all``: steps that are started alone otherwise, with options of their own."""
    command.add_argument(
        "--without",
        nargs="+",
        choices=MORE,
        default=[],
        metavar="STEP",
        help=f"leave out one of the steps that no other needs: {listed(MORE)}",
    )
    command.set_defaults(documents=None, pattern_tokens=TOKENS)


def _attention_options(command: argparse.ArgumentParser) -> None:
    _again(command)
    _seed(command)
    group = command.add_argument_group("attention")
    group.add_argument(
        "--documents",
        type=int,
        default=LOOKED_AT,
        metavar="N",
        help=f"a sample of N documents, by topic (default: {LOOKED_AT})",
    )
    group.add_argument(
        "--pattern-tokens", type=int, default=TOKENS, metavar="N", help=f"cut texts to N tokens (default: {TOKENS})"
    )


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
    group.add_argument("--device", default=setting("HEADSCOPE_DEVICE"), help=_DEVICE)
    group.add_argument("--dtype", choices=PRECISIONS, help="default: bfloat16 on CUDA, float32 elsewhere")
    group.add_argument("--token-budget", type=int, metavar="N", help="tokens in a batch, padding included")
    group.add_argument("--padding", choices=PADDING_SIDES, default="right", help="makes no difference to the result")
    group.add_argument("--trust-remote-code", metavar="MODEL", help="run the code that this model brings with it")


def _storage_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("storage")
    group.add_argument(
        "--stages",
        type=int,
        nargs="+",
        choices=list(STAGES),
        metavar="N",
        help=f"keep these stages only, some of {listed(STAGES)} (default: all that the model has)",
    )
    group.add_argument(
        "--store-dtype",
        choices=STORED_AS,
        default=STORED_AS[0],
        help="what vectors are kept as: int8, with a scale a document and head, takes half of float16 (the default)",
    )
    group.add_argument(
        "--store-vectors",
        choices=("all", SAMPLE),
        help="the vectors of all documents (the default), or in the end, when figures and maps are made, of a sample",
    )


def _sample_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--vector-sample",
        type=int,
        default=DOCUMENTS,
        metavar="N",
        help=f"documents that keep their vectors, by topic, those of the maps first (default: {DOCUMENTS:,})",
    )
