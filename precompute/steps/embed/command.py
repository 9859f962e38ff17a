"""``embed`` on the command line."""

from __future__ import annotations

import argparse
import sys

from core.analysis.wording import plural
from core.errors import Mistake, listed
from core.model.batches import PADDING_SIDES
from core.model.device import PRECISIONS
from core.model.embedder import EmbedderConfig
from core.model.presets import DEFAULT_MODEL, PRESETS
from core.model.shape import POOLINGS
from core.model.stages import STAGES
from core.runs.describe import adds_shares, lacks_shares, sampled, stored
from core.runs.run import Run
from core.runs.schema import STORED_AS
from core.settings import setting
from core.terminal import printable
from precompute.engines import ENGINES, Resources
from precompute.job.progress import clock
from precompute.job.storage import Storage
from precompute.options import DEVICE_HELP, SAMPLE, StepCommand, stages_counted
from precompute.steps.embed.corpus import DUPLICATE_IDS, NUMBER, REFUSE, Filters
from precompute.steps.embed.corpus_columns import Columns
from precompute.steps.embed.step import EmbedConfig, EmbedResult, run

_COLUMNS = ("text", "id", "title", "url", "topic")
_LEFT_OUT = {
    "bad": "unreadable",
    "short": "too short",
    "duplicate": "duplicates",
    "sampled_out": "not in the sample",
    "failed": "could not be embedded (listed in failed.parquet)",
}
_MISSING = {"no_id": "an id", "no_title": "a title", "no_url": "a URL", "no_topic": "a topic"}
"""Of columns that other documents have."""


def _options(command: argparse.ArgumentParser) -> None:
    for add_options in (_source_options, _model_options, _storage_options, _engine_options):
        add_options(command)


def _source_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("corpus")
    group.add_argument(
        "--source",
        help="'demo', a file (JSONL, CSV, TSV, Parquet, text, Markdown; .gz and .zst too), a folder, a glob, or "
        "hf:DATASET[/CONFIG][:SPLIT] (default: demo)",
    )
    for name in _COLUMNS:
        group.add_argument(f"--{name}-column", metavar="NAME", help=f"the column with the document's {name}")
    group.add_argument("--limit", type=int, metavar="N", help="use the first N documents only")
    group.add_argument("--sample", type=int, metavar="N", help="use N documents at random")
    group.add_argument("--seed", type=int, default=0, help="seed of --sample (default: 0)")
    group.add_argument("--min-chars", type=int, default=1, metavar="N", help="leave out shorter texts (default: 1)")
    group.add_argument("--keep-duplicates", action="store_true", help="keep documents whose text occurred before")
    group.add_argument("--skip-bad", action="store_true", help="leave out broken records, and count them")
    group.add_argument(
        "--duplicate-ids",
        choices=DUPLICATE_IDS,
        default=REFUSE,
        help=f"if several documents have the same id: {REFUSE} the corpus (default), or {NUMBER} the copies (id, id#2)",
    )
    group.add_argument("--part-size", type=int, default=1_000, metavar="N", help="documents per part (default: 1000)")
    group.add_argument("--replace", action="store_true", help="rebuild a run that is finished or has different inputs")


def _model_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("model")
    group.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        help=f"a preset ({listed(PRESETS)}), any hub name, or a folder (default: {DEFAULT_MODEL})",
    )
    group.add_argument(
        "--layer", type=int, metavar="N", help="read stages 1 and 2 at layer N, counted from 1 (default: last)"
    )
    group.add_argument("--pooling", choices=POOLINGS, help="how tokens become one vector (default: the model's own)")
    group.add_argument("--prompt", help="text put before every document (default: the model's own)")
    group.add_argument("--query-prompt", help="text put before every query (default: the model's own)")
    group.add_argument(
        "--max-tokens", type=int, metavar="N", help="truncate documents to N tokens (default: the model's own)"
    )
    group.add_argument("--device", default=setting("HEADSCOPE_DEVICE"), help=DEVICE_HELP)
    group.add_argument("--dtype", choices=PRECISIONS, help="default: bfloat16 on CUDA, float32 elsewhere")
    group.add_argument("--token-budget", type=int, metavar="N", help="tokens per batch, padding included")
    group.add_argument(
        "--padding", choices=PADDING_SIDES, default="right", help="side of the padding; the result is the same"
    )
    group.add_argument(
        "--packed",
        action="store_true",
        help="batches without padding: usually faster, with the same vectors except for rounding",
    )
    group.add_argument(
        "--compile", action="store_true", help="compile the model with torch.compile, for GPUs and long jobs"
    )
    group.add_argument("--trust-remote-code", metavar="MODEL", help="run the code that comes with this model")


def _storage_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("storage")
    group.add_argument(
        "--stages",
        type=int,
        nargs="+",
        choices=list(STAGES),
        metavar="N",
        help=f"store only these stages of {listed(STAGES)} (default: all that the model has; 4 is added to a "
        "finished run without embedding the others again)",
    )
    group.add_argument(
        "--store-dtype",
        choices=STORED_AS,
        default=STORED_AS[0],
        help="how vectors are stored: int8, with a scale per document and head, takes half of float16 (the default)",
    )
    group.add_argument(
        "--store-vectors",
        choices=("all", SAMPLE),
        help="store the vectors of all documents (the default) or, once figures and maps exist, those of a sample",
    )


def _engine_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("engine")
    words = "; ".join(f"{name}: {engine.help}" for name, engine in ENGINES.items())
    group.add_argument("--engine", choices=list(ENGINES), default="local", help=f"{words} (default: local)")
    group.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes (local) or replicas (ray), each with the model (default: one per GPU or node, else one)",
    )
    group.add_argument(
        "--num-gpus", type=float, metavar="N", help="GPUs per replica (ray; default: 1 where there are any)"
    )
    group.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help="address of the cluster, or auto (default: RAY_ADDRESS, else a new one)",
    )
    group.add_argument(
        "--max-failures",
        type=int,
        default=0,
        metavar="N",
        help="leave out up to N documents that cannot be embedded (default: 0: the run is not finished without them)",
    )


def _config(options: argparse.Namespace) -> EmbedConfig:
    if options.store_vectors is not None:
        _check_stored(options)
    names = (
        *("model", "pooling", "prompt", "query_prompt", "max_tokens", "device", "dtype", "token_budget", "padding"),
        *("packed", "compile"),
    )
    return EmbedConfig(
        cache=options.cache,
        run=options.run,
        source="demo" if options.source is None else options.source,
        source_given=options.source is not None,
        embedder=EmbedderConfig(
            layers=(options.layer,),
            trust_remote_code=options.trust_remote_code,
            **{name: getattr(options, name) for name in names},
        ),
        columns=Columns(**{name: getattr(options, f"{name}_column") for name in _COLUMNS}),
        filters=Filters(
            limit=options.limit,
            sample=options.sample,
            seed=options.seed,
            min_chars=options.min_chars,
            keep_duplicates=options.keep_duplicates,
            skip_bad=options.skip_bad,
            duplicate_ids=options.duplicate_ids,
        ),
        part_size=options.part_size,
        storage=Storage(tuple(options.stages) if options.stages else None, options.store_dtype, shares=True),
        max_failures=options.max_failures,
        engine=options.engine,
        resources=Resources(options.workers, options.num_gpus, options.ray_address),
        replace=options.replace,
        warn=lambda sentence: None if options.quiet else print(printable(f"headscope: {sentence}"), file=sys.stderr),
    )


def _check_stored(options: argparse.Namespace) -> None:
    """Refuses --store-vectors where it cannot be done."""
    if options.store_vectors == SAMPLE and options.command == "embed":
        raise Mistake(
            "Figures and maps need all vectors, so a sample can be stored only afterwards. Use 'all' with "
            "--store-vectors sample, or 'slim' once figures and maps exist."
        )
    run = Run(options.cache, options.run)
    if options.store_vectors != SAMPLE and run.exists() and run.manifest().is_sampled and not options.replace:
        raise Mistake(
            f"The run '{options.run}' stores the vectors of {sampled(run.manifest())}. Add --replace to embed all "
            "again."
        )


def summary(run: str, result: EmbedResult) -> str:
    """A few lines: what is there now, what was left out and why."""
    manifest = result.manifest
    step, model = manifest.steps["embed"], manifest.model
    counts = step.counts
    if result.skipped:
        text = f"{run}: up to date, {manifest.corpus['documents']:,} documents. Nothing to do."
        if lacks_shares(manifest):
            text += f"\n  Stage 4 (each head's share) is not stored: '{adds_shares(run, manifest)}' adds it."
        return text
    if result.awaits_rank_0:
        return (
            f"{run}: this rank's parts are done; rank 0 finishes the run. If it is no longer running, start the "
            "same command again."
        )
    if result.left:
        return (
            f"{run}: this rank's parts are done; {result.left:,} are left to the others. The last rank "
            "finishes the run; if none is running any more, start the same command again."
        )
    if result.added is not None:
        return (
            f"{run}: stage {result.added} ({STAGES[result.added].name}) was added to {manifest.corpus['documents']:,} "
            "documents; the other stages are unchanged."
        )
    lines = [
        f"{run}: {manifest.corpus['documents']:,} documents × {model['heads']} heads × {stages_counted(manifest)} "
        f"by {model['name']}, layer {model['layer']}, {model['pooling']} pooling."
    ]
    pace = f"{counts['tokens']:,} tokens in {clock(step.seconds)}"
    if result.parts_kept:
        pace += f" ({result.parts_kept} of {counts['parts']} parts were finished before)"
    lines.append(f"  {pace}; {result.bytes / 1e6:,.1f} MB in the cache, vectors of {stored(manifest)}.")
    if left_out := [f"{counts[key]:,} {word}" for key, word in _LEFT_OUT.items() if counts.get(key)]:
        lines.append(f"  Left out of {counts['read']:,}: {', '.join(left_out)}.")
    if missing := [f"{counts[key]:,} without {word}" for key, word in _MISSING.items() if counts.get(key)]:
        lines.append(f"  Of {counts['kept']:,} documents: {', '.join(missing)}.")
    if counts.get("numbered"):
        lines.append(f"  Duplicate ids numbered: {counts['numbered']:,}.")
    if counts["truncated"]:
        lines.append(
            f"  {plural(counts['truncated'], 'document was', 'documents were')} truncated to {model['max_tokens']} "
            "tokens (--max-tokens)."
        )
    lines += [f"  {note}" for note in model["notes"]]
    if preset := PRESETS.get(model["name"]):
        lines.append(f"  Licence of the model: {preset.licence}.")
    return "\n".join(lines)


def _summary(options: argparse.Namespace, result: EmbedResult) -> str:
    text = summary(options.run, result)
    if result.added is not None and result.gone and options.command == "embed":
        return text + (f"\n  Figures and maps must be rebuilt: run '{adds_shares(options.run, result.manifest)}'.")
    if result.gone and options.command == "embed":  # 'all' goes on to make it anew
        text += (
            f"\n  The results of {' and '.join(result.gone)} were deleted with the previous run: 'python -m precompute "
            "all "
            f"{options.run}' rebuilds them. With 'all --replace', readers see the old run until everything is ready."
        )
    return text


COMMAND = StepCommand(
    options=_options,
    config=_config,
    run=run,
    summary=_summary,
    skipped=_summary,
)
