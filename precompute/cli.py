"""``python -m precompute COMMAND RUN``: parse, build one config, call the step."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from core.errors import Mistake
from core.model.embedder import EmbedderConfig
from core.runs import verify
from core.runs.backend import trouble_at
from core.runs.checksums import checksums
from core.runs.describe import sampled
from core.runs.labels import ZERO_SHOT
from core.runs.run import Run, open_run
from core.settings import read_settings, unknown_settings
from core.terminal import printable, printable_json
from precompute.job.progress import PROGRESS, Progress
from precompute.job.step import StepResult
from precompute.options import COLUMNS, DONE, FAILED, MISTAKE, MORE, SAMPLE, parser
from precompute.summary import label_summary, step_summary

ASK_ABOVE = 1.0
"""Dollars that are spent without a question."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 done, 2 the user's mistake in one sentence, 1 anything else."""
    try:
        read_settings()  # all of them, before the parser takes its defaults from some
    except Mistake as mistake:
        _say(mistake.sentences)
        return MISTAKE
    _say(unknown_settings())
    options = parser().parse_args(arguments)
    # Libraries talk on standard error in the middle of our progress bar; what matters comes back as an exception.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    try:
        done = COMMANDS[options.command](options)
        if trouble := trouble_at(options.cache):  # what was read is what this machine had kept
            _say([trouble])
        return done
    except Mistake as mistake:
        _say(mistake.sentences)
        return MISTAKE
    except BrokenPipeError:  # whoever read it has seen enough: 'status | head'
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt as stop:
        remedy = str(stop) or "Start the same command again to go on where it was."
        print(f"\nheadscope: stopped. {printable(remedy)}", file=sys.stderr)
        return FAILED


def _say(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        print(f"headscope: {printable(sentence)}", file=sys.stderr)


def _embed(options: argparse.Namespace) -> int:
    from transformers.utils import logging

    from precompute.engines import Hands
    from precompute.job.storage import Storage
    from precompute.steps.embed import step as embed
    from precompute.steps.embed.corpus import Filters
    from precompute.steps.embed.corpus_columns import Columns
    from precompute.summary import gone_summary, summary

    if options.store_vectors is not None:
        _check_kept(options)
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
            duplicate_ids=options.duplicate_ids,
        ),
        part_size=options.part_size,
        storage=Storage(tuple(options.stages) if options.stages else None, options.store_dtype),
        max_failures=options.max_failures,
        engine=options.engine,
        hands=Hands(options.workers, options.num_gpus, options.ray_address),
        replace=options.replace,
    )
    result = embed.run(config, _progress(options))
    if not options.quiet:
        print(printable(summary(options.run, result)), file=sys.stderr)
        if result.gone and options.command == "embed":
            print(printable(gone_summary(options.run, result)), file=sys.stderr)
    return DONE


def _check_kept(options: argparse.Namespace) -> None:
    """Whether vectors can be kept as asked."""
    if options.store_vectors == SAMPLE and options.command == "embed":
        raise Mistake(
            "Figures and maps are made from all vectors, so that a sample is kept only afterwards. Use 'all' with "
            "--store-vectors sample, or 'slim' once there are figures and maps."
        )
    run = Run(options.cache, options.run)
    if options.store_vectors != SAMPLE and run.exists() and run.manifest().is_sampled and not options.replace:
        raise Mistake(
            f"The run '{options.run}' keeps the vectors of {sampled(run.manifest())}. Add --replace to embed all anew."
        )


def _label(options: argparse.Namespace) -> int:
    from precompute.job.topic_vectors import TopicModel
    from precompute.steps.label import step as label
    from precompute.steps.label.config import Asking, Desk, LabelConfig

    if options.labels == ZERO_SHOT:  # the only source that loads a model
        from transformers.utils import logging

        logging.disable_progress_bar()
    names = ("base_url", "excerpt_tokens", "concurrency", "requests_per_minute", "tokens_per_minute", "max_cost")
    dry_run = options.command == "label" and options.dry_run
    config = LabelConfig(
        cache=options.cache,
        run=options.run,
        labels=options.labels,
        topics=options.topics,
        file=options.label_file,
        asking=Asking(model=options.label_model, **{name: getattr(options, name) for name in names}),
        batch=options.batch,
        dry_run=dry_run,
        again=options.again,
        model=TopicModel(options.model, options.device, options.trust_remote_code),
    )

    def tell(sentence: str) -> None:
        if dry_run or not options.quiet:
            print(printable(f"{options.run}: {sentence}"), file=sys.stdout if dry_run else sys.stderr)

    result = label.run(config, _progress(options), Desk(tell, lambda dollars: options.yes or _agreed(dollars)))
    if not options.quiet and not dry_run:
        print(printable(label_summary(options.run, result)), file=sys.stderr)
    return DONE


def _agreed(dollars: float) -> bool:
    """Whether the person at the terminal, if there is one, agrees to a larger sum."""
    if dollars <= ASK_ABOVE or not sys.stdin.isatty():
        return True
    print(f"Spend about ${dollars:,.2f}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _analyse(options: argparse.Namespace) -> int:
    from transformers.utils import logging

    from precompute.job.topic_vectors import TopicModel
    from precompute.steps.analyse import step as analyse

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
    return _told("analyse", analyse.run(config, _progress(options)), options)


def _project(options: argparse.Namespace) -> int:
    from precompute.steps.project import step as project
    from precompute.steps.project.config import ProjectConfig

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
    return _told("project", project.run(config, _progress(options)), options)


def _search(options: argparse.Namespace) -> int:
    from precompute.steps.search import step as search

    config = search.SearchConfig(options.cache, options.run, options.again)
    return _told("search", search.run(config, _progress(options)), options)


def _retrieve(options: argparse.Namespace) -> int:
    from transformers.utils import logging

    from precompute.job.topic_vectors import TopicModel
    from precompute.steps.retrieve import step as retrieve

    logging.disable_progress_bar()
    config = retrieve.RetrieveConfig(
        cache=options.cache,
        run=options.run,
        queries=options.queries,
        ways=tuple(options.ways),
        limit=options.query_limit,
        seed=options.analysis_seed,
        again=options.again,
        optional=options.command == "all",
        model=TopicModel(options.model, options.device, options.trust_remote_code),
    )
    result = retrieve.run(config, _progress(options))
    if "retrieve" in result.manifest.steps:
        return _told("retrieve", result, options)
    if not options.quiet:
        _say([f"{options.run}: heads are not judged, for there are neither labels nor queries to judge them by."])
    return DONE


def _layers(options: argparse.Namespace) -> int:
    from transformers.utils import logging

    from precompute.job.topic_vectors import TopicModel
    from precompute.steps.layers import step as layers

    logging.disable_progress_bar()
    config = layers.LayersConfig(
        cache=options.cache,
        run=options.run,
        documents=layers.LayersConfig.documents if options.documents is None else options.documents,
        topics=options.topics,
        centre=options.centre,
        seed=options.analysis_seed,
        again=options.again,
        model=TopicModel(options.model, options.device, options.trust_remote_code),
    )
    return _told("layers", layers.run(config, _progress(options)), options)


def _attention(options: argparse.Namespace) -> int:
    from transformers.utils import logging

    from precompute.job.topic_vectors import TopicModel
    from precompute.steps.attention import step as attention
    from precompute.steps.attention.config import AttentionConfig

    logging.disable_progress_bar()
    config = AttentionConfig(
        cache=options.cache,
        run=options.run,
        documents=AttentionConfig.documents if options.documents is None else options.documents,
        tokens=options.pattern_tokens,
        seed=options.analysis_seed,
        again=options.again,
        model=TopicModel(options.model, options.device, options.trust_remote_code),
    )
    return _told("attention", attention.run(config, _progress(options)), options)


def _slim(options: argparse.Namespace) -> int:
    from precompute.steps.slim import step as slim

    config = slim.SlimConfig(options.cache, options.run, options.vector_sample, options.analysis_seed)
    result = slim.run(config, _progress(options))
    if result.skipped and not result.manifest.is_sampled and not options.quiet:
        count = int(result.manifest.corpus["documents"])
        _say([f"{options.run}: has {count:,} documents, and the vectors of all of them are kept."])
        return DONE
    return _told("slim", result, options)


def _told(step: str, result: StepResult, options: argparse.Namespace) -> int:
    """Says how one of the later steps ended."""
    if not options.quiet:
        print(printable(step_summary(options.run, step, result.manifest, result.skipped)), file=sys.stderr)
    return DONE


def _report(options: argparse.Namespace) -> int:
    from precompute.report import report

    said = report(options.cache, options.run, options.json, options.merge_threshold)
    print(printable_json(said) if options.json else printable(said))
    return DONE


def _progress(options: argparse.Namespace) -> Progress:
    return PROGRESS["quiet" if options.quiet else options.progress]()


def _all(options: argparse.Namespace) -> int:
    from precompute.engines import ENGINES
    from precompute.job.work import working_on

    if ENGINES[options.engine].shared:
        raise Mistake(f"'all' is not for --engine {options.engine}. Start 'embed' with it, and then 'all' without.")
    with working_on(Run(options.cache, options.run), "all"):
        for step in STEPS:
            COMMANDS[step](options)
        left_out = [step for step in MORE if step not in options.without and not _made(step, options)]
        if options.store_vectors == SAMPLE and "retrieve" in left_out:
            _say([f"{options.run}: all vectors are kept, for 'retrieve' needs them. Start the same command again."])
        elif options.store_vectors == SAMPLE:
            _slim(options)
    return MISTAKE if left_out else DONE


def _made(step: str, options: argparse.Namespace) -> bool:
    """What one of these steps cannot do is told, and keeps no other from being done."""
    try:
        COMMANDS[step](options)
    except Mistake as mistake:
        _say([f"'{step}' is left out. {sentence}" for sentence in mistake.sentences])
        return False
    return True


def _status(options: argparse.Namespace) -> int:
    from precompute.status import as_text, status

    records = status(options.cache, options.run)
    said = json.dumps(records, indent=1, ensure_ascii=False) if options.json else as_text(records)
    print(printable_json(said) if options.json else printable(said))
    return DONE


def _verify(options: argparse.Namespace) -> int:
    from precompute.job.fingerprint import part_digest

    run = open_run(options.cache, options.run)
    verdict = verify.verify(run, part_digest)
    for problem in verdict.problems:
        print(printable(problem))
    if verdict.problems:
        print(f"{options.run}: {len(verdict.problems)} of {verdict.checked} files checked are not right.")
        return FAILED
    print(f"{options.run}: whole ({verdict.checked} files checked).")
    if not verdict.has_checksums and options.add_checksums:
        with run.lock():
            manifest = run.manifest()
            run.write_manifest(replace(manifest, files=checksums(run, manifest.files)))
        print(f"{options.run}: checksums added.")
    elif not verdict.has_checksums:
        remedy = f"python -m precompute verify {options.run} --add-checksums"
        _say([f"{options.run}: an older version wrote this run, without checksums. Add them with '{remedy}'."])
    return DONE


STEPS = ("embed", "search", "label", "analyse", "project")
"""What ``all`` does, in order, and then MORE; a step whose inputs have not changed says so and is skipped."""

COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "all": _all,
    "embed": _embed,
    "search": _search,
    "label": _label,
    "analyse": _analyse,
    "project": _project,
    "retrieve": _retrieve,
    "layers": _layers,
    "attention": _attention,
    "slim": _slim,
    "report": _report,
    "status": _status,
    "verify": _verify,
}
