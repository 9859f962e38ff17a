"""Labels of an aspect other than the topic: stored as ``aspects/<aspect>/<source>.parquet``, beside the topics.

Nothing else of the run changes but what the manifest says of the active source; only the step ``aspects`` and the pages
that show aspects read it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.analysis.agreement import all_compared
from core.analysis.aspect_values import choose_values
from core.analysis.topics import AUTO
from core.errors import Mistake, listed
from core.runs.aspects import DETECTED, LANGUAGE, LEAST_DOCUMENTS, aspect_labels, aspect_path, is_aspect_name
from core.runs.aspects import SOURCES as WORDS
from core.runs.checksums import checksums
from core.runs.labels import COLUMN, ZERO_SHOT
from core.runs.manifest import Manifest
from core.runs.parts import digest_of, write_table
from core.runs.run import Run, open_run
from core.runs.schema import LABELS
from precompute.job.documents import texts
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import Meter, Progress
from precompute.job.step import embedded, now, outdated, refuse_missing
from precompute.job.work import Work, working_on
from precompute.steps.label.config import LabelConfig, LabelJob, LabelResult, SourceLabels
from precompute.steps.label.sources import SOURCES, LabelSource

ALGORITHM = 1
"""Raised whenever the same inputs give other labels."""
_LETTERS = 2_000
"""Of a document's text: more of it changes no language."""
_FEWEST_LETTERS = 20
_TRIED, _RARE = 200, 0.05
"""Documents in which languages are looked for first, and the share that a second one must have of them."""


def label_aspect(config: LabelConfig, progress: Progress, work: Work | None = None) -> LabelResult:
    """Labels one aspect of a run whose topics have been labelled."""
    if not is_aspect_name(config.aspect):
        raise Mistake(
            f"'{config.aspect}' is not a valid aspect name. Use up to 40 lowercase letters, digits, hyphens and "
            "underscores."
        )
    target = open_run(config.cache, config.run)
    with working_on(target, "label", work) as work:
        target = work.at
        manifest = embedded(target)
        if "label" not in manifest.steps:
            raise Mistake(f"Label the topics first, with 'python -m precompute label {target.name}'.")
        name = config.labels or _default(config, manifest)
        source = ASPECT_SOURCES[name]
        if name == DETECTED and config.aspect != LANGUAGE:
            raise Mistake(f"'{DETECTED}' detects languages only. Use --aspect {LANGUAGE}, or other --labels.")
        values = choose_values(config.aspect, config.topics) if _has_list(config, source) else {}
        job = LabelJob(target, config, manifest, tuple(values), Meter("label", progress), tuple(values.values()))
        inputs = _inputs(job, name)
        path, active = aspect_path(target, config.aspect, name), manifest.steps["label"].options.get("aspects", {})
        anew = config.again or config.dry_run
        if target.has(path) and digest_of(target.inside(path)) == inputs and not anew:
            if active.get(config.aspect) == name:
                return LabelResult(manifest, skipped=True)
            return LabelResult(_activated(work.begin("label"), config.aspect, name), skipped=False)
        if config.dry_run and not source.costs:
            config.spending.announce(f"{job.documents:,} documents; {WORDS[name]}: costs nothing.")
            return LabelResult(manifest, skipped=True)
        if name == ZERO_SHOT:
            refuse_missing(target, manifest, "label")
        try:
            made = source.make(job)
        finally:
            progress.close()
        if made is None:
            return LabelResult(manifest, skipped=True)
        return _stored(replace(job, run=work.begin("label")), name, inputs, made)


def _inputs(job: LabelJob, name: str) -> str:
    return fingerprint(
        {
            "algorithm": ALGORITHM,
            "embed": job.manifest.steps["embed"].fingerprint,
            "aspect": job.config.aspect,
            "source": name,
            "topics": list(job.topics),
            **ASPECT_SOURCES[name].inputs(job),
        }
    )


def _default(config: LabelConfig, manifest: Manifest) -> str:
    if config.aspect == LANGUAGE:
        return DETECTED
    if (config.column or config.aspect) in manifest.corpus["extra"]:
        return COLUMN
    raise Mistake(f"Choose where the labels of '{config.aspect}' come from: --labels {listed(SOURCES)}.")


def _has_list(config: LabelConfig, source: LabelSource) -> bool:
    return source.chooses or (source.checks and config.topics != AUTO)


def _stored(job: LabelJob, name: str, inputs: str, made: SourceLabels) -> LabelResult:
    labelled = len(made.table) - int(made.table["topic"].null_count)
    if not labelled:
        reason = next(iter(made.table["reason"].drop_null().to_pylist()), "no reason was given")
        remedy = "Start the same command again to continue" if made.unfinished else "Check --topics and --labels"
        raise Mistake(f"'{name}' gave no document a value: {reason.rstrip('.')}. {remedy}.")
    run, aspect = job.run, job.config.aspect
    path = aspect_path(run, aspect, name)
    manifest = run.manifest()
    # The old checksum goes first: killed in between, the new file has none yet, rather than a wrong one.
    relative = path.relative_to(run.folder).as_posix()
    run.write_manifest(
        replace(manifest, files={each: digest for each, digest in manifest.files.items() if each != relative})
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(path, made.table, f"unfinished {inputs}" if made.unfinished else inputs)
    manifest = _activated(run, aspect, name)
    notes = [f"{labelled:,} of {job.documents:,} documents have a value for {aspect} by {name} ({WORDS[name]})."]
    notes += [*made.notes, *_beside(run, aspect, name)]
    return LabelResult(manifest, skipped=False, notes=tuple(notes))


def _activated(run: Run, aspect: str, name: str) -> Manifest:
    """The manifest, in which ``name`` is the source that the aspect has its values from."""
    manifest = outdated(run.manifest(), "aspects")
    step = manifest.steps["label"]
    options = {**step.options, "aspects": {**step.options.get("aspects", {}), aspect: name}}
    # The time tells readers that keep labels that there are others now.
    changed = replace(step, options=options, finished=now() if step.finished else step.finished)
    manifest = replace(manifest, files=checksums(run, manifest.files)).with_step("label", changed)
    run.write_manifest(manifest)
    return manifest


def _beside(run: Run, aspect: str, name: str) -> list[str]:
    return [pair.sentence for pair in all_compared(aspect_labels(run, aspect)) if name in (pair.first, pair.second)]


def _column(job: LabelJob) -> SourceLabels:
    """A column of the corpus, as text."""
    column, extra = job.config.column or job.config.aspect, job.manifest.corpus["extra"]
    if column not in extra:
        raise Mistake(
            f"The corpus has no column '{column}'; it has {listed(extra) or 'no columns of its own'}. Give another one "
            "with --column, or other --labels."
        )
    values = pc.cast(job.run.documents([column])[column], pa.string())
    reasons = pc.if_else(
        pc.is_null(values), pa.scalar(f"the corpus has no {column} for it"), pa.scalar(None, pa.string())
    )
    docs = pa.array(range(len(values)), pa.int32())
    scores = pa.nulls(len(values), pa.float32())
    table = pa.table({"doc": docs, "topic": values, "score": scores, "reason": reasons}, schema=LABELS)
    return SourceLabels(table)


def with_languages(job: LabelJob, result: LabelResult) -> LabelResult:
    """A run that is labelled for the first time gets its languages too, if a sample of it has several."""
    if job.documents < 2 * LEAST_DOCUMENTS:
        return result
    docs = np.unique(np.linspace(0, job.documents - 1, _TRIED).astype(int))
    found = [_language(text)[0] for text in job.run.document_lookup().rows(docs, ["text"])["text"].to_pylist()]
    counts = Counter(found)
    del counts[None]
    if len(counts) < 2 or counts.most_common(2)[1][1] < _RARE * len(docs):
        return result
    job = replace(job, config=replace(job.config, aspect=LANGUAGE, labels=DETECTED), topics=())
    stored = _stored(job, DETECTED, _inputs(job, DETECTED), _detected(job))
    return replace(stored, notes=(*result.notes, *stored.notes))


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_pickled_model(MODEL_FILE, norm_probs=True)


def _language(text: str) -> tuple[str | None, float | None]:
    if sum(map(str.isalpha, text[:_LETTERS])) < _FEWEST_LETTERS:
        return None, None
    language, score = _identifier().classify(text[:_LETTERS])
    return str(language), float(score)


def _detected(job: LabelJob) -> SourceLabels:
    """The language of each text by py3langid, whose model comes with it; the score is its probability."""
    languages: list[str | None] = []
    scores: list[float | None] = []
    for doc, text in enumerate(texts(job.run)):
        language, score = _language(text)
        languages.append(language)
        scores.append(score)
        if doc % 100 == 0:
            job.meter.at(doc / job.documents, f"{doc:,} of {job.documents:,} documents")
    reasons = [None if language else "too little text to detect a language" for language in languages]
    columns = {"doc": list(range(len(languages))), "topic": languages, "score": scores, "reason": reasons}
    return SourceLabels(pa.table(columns, schema=LABELS))


ASPECT_SOURCES: dict[str, LabelSource] = {
    **SOURCES,
    COLUMN: LabelSource(_column, lambda job: {"column": job.config.column or job.config.aspect}),
    DETECTED: LabelSource(_detected, lambda job: {"detector": "py3langid 0.3", "letters": _LETTERS}),
}
"""By the names of core.runs.aspects.SOURCES; the command line offers them."""
