"""The step ``label``: every document gets a topic, or a reason why it has none, from one of several sources.

What a source says is kept as ``labels/<source>.parquet``, so that sources can be compared; the one asked for last is
the active one, whose topics stand in documents.parquet.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from core.analysis.agreement import all_compared
from core.analysis.topics import AUTO, LABELS, choose_topics
from core.analysis.wording import plural
from core.errors import Mistake, listed
from core.runs.aspects import DETECTED, LANGUAGE, TOPIC
from core.runs.labels import COLUMN, LABEL_SOURCES, Labels
from core.runs.manifest import Manifest
from core.runs.parts import write_table
from core.runs.results import all_labels, kept_labels
from core.runs.run import Run, open_run
from core.runs.steps import made_from_labels
from precompute.job.documents import has_labels, relabel
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import Meter, Progress, Quiet
from precompute.job.step import StepRecord, embedded, outdated, refuse_missing, up_to_date
from precompute.job.work import Work, working_on
from precompute.steps.label.aspect import label_aspect, with_languages
from precompute.steps.label.config import LabelConfig, LabelJob, SourceLabels
from precompute.steps.label.config import LabelResult as LabelResult
from precompute.steps.label.sources import SOURCES, LabelSource, own_labels

ALGORITHM = 1
"""Raised whenever the same inputs give other labels."""


def run(config: LabelConfig, progress: Progress | None = None, work: Work | None = None) -> LabelResult:
    """Labels a run; documents.parquet is as it was until the source has answered for all documents, or was stopped."""
    progress = progress or Quiet()
    if config.aspect != TOPIC:
        if not config.dry_run and "label" not in embedded(open_run(config.cache, config.run)).steps:
            run(replace(config, aspect=TOPIC, labels=None), progress, work)  # the corpus's own, as everybody's first
        return label_aspect(config, progress, work)
    target = open_run(config.cache, config.run)
    with working_on(target, "label", work) as work:
        target = work.at
        manifest = embedded(target)
        name = config.labels or _default(manifest)
        if name is None:
            return LabelResult(manifest, skipped=True)
        if name == DETECTED:
            raise Mistake(f"'{DETECTED}' detects languages, not topics. Use --aspect {LANGUAGE}, or other --labels.")
        if name not in SOURCES:
            raise Mistake(f"There is no label source '{name}'. Choose one of {listed(SOURCES)}.")
        source = SOURCES[name]
        job = LabelJob(target, config, manifest, _topics(config, target, source), Meter("label", progress))
        inputs = fingerprint(
            {
                "algorithm": ALGORITHM,
                "embed": manifest.steps["embed"].fingerprint,
                "source": name,
                "topics": list(job.topics),
                **source.inputs(job),
            }
        )
        anew = config.again or config.dry_run
        if up_to_date(target, manifest, "label", inputs, [target.labels_path(name)]) and not anew:
            return LabelResult(manifest, skipped=True)
        if config.dry_run and not source.costs:
            config.spending.announce(f"{job.documents:,} documents; {LABEL_SOURCES[name]}: costs nothing.")
            return LabelResult(manifest, skipped=True)
        refuse_missing(target, manifest, "label")  # before anybody is paid: the figures could not be made again
        try:
            made = source.make(job)
            if made is None:
                return LabelResult(manifest, skipped=True)
            _refuse_no_topic(job, name, made)
            job = replace(job, run=work.begin("label", *made_from_labels()))
            result = _activate(job, name, inputs, made)
            return result if "label" in manifest.steps else with_languages(job, result)
        finally:
            progress.close()


def _default(manifest: Manifest) -> str | None:
    """Unasked, labels stay as they are and nobody is paid; a new run has its corpus's own."""
    step = manifest.steps.get("label")
    if step is None or (step.state != "done" and step.options.get("source") == COLUMN):
        return COLUMN
    return None


def _topics(config: LabelConfig, target: Run, source: LabelSource) -> tuple[str, ...]:
    if source.chooses:
        own = own_labels(target)["topic"].to_pylist() if config.topics in (AUTO, LABELS) else ()
        return choose_topics(config.topics, own)
    return choose_topics(config.topics, ()) if source.checks and config.topics not in (AUTO, LABELS) else ()


def _activate(job: LabelJob, name: str, inputs: str, made: SourceLabels) -> LabelResult:
    """Keeps the labels as the source's, and puts them into documents.parquet."""
    target, table, manifest = job.run, made.table, job.run.manifest()
    _check(job, name, table)
    if not target.has(target.labels_path(COLUMN)):
        write_table(target.labels_path(COLUMN), own_labels(target), manifest.steps["embed"].fingerprint)
    same = has_labels(target, table, name)
    # The figures first: killed in between, they count as made from other labels, never the other way round.
    for step in () if same else made_from_labels():
        manifest = outdated(manifest, step)
    options = {**made.options, "source": name, **({"topics": list(job.topics)} if job.topics else {})}
    before = manifest.steps.get("label")
    if before is not None and "aspects" in before.options:  # other aspects' labels stay
        options["aspects"] = before.options["aspects"]
    record = StepRecord(target, "label", manifest, inputs, options, job.meter.seconds)
    digest = f"unfinished {inputs}" if made.unfinished else inputs
    write_table(target.labels_path(name), table, digest)
    if not same:
        relabel(target, table, name)
    unlabelled = int(table["topic"].null_count)
    counts = {"labelled": len(table) - unlabelled, "unlabelled": unlabelled, **made.counts}
    result = record.finish(counts, whole=not made.unfinished)
    return LabelResult(
        result.manifest, skipped=False, notes=(*made.notes, *_unlabelled(target, name), *_beside(target, name))
    )


def _refuse_no_topic(job: LabelJob, name: str, made: SourceLabels) -> None:
    """Labels that no document has take no other labels' place; a corpus without topics may stay without."""
    labels = Labels(name, made.table["topic"], made.table["reason"])
    if labels.labelled or (name == COLUMN and not len(job.run.documents(["topic"])["topic"].drop_null())):
        return
    reason, count = next(iter(labels.why_not.items()))
    remedy = "Start the same command again to continue" if made.unfinished else "Check --topics, or use other --labels"
    raise Mistake(
        f"'{name}' gave no document a topic; the most frequent reason, for {count:,} of {job.documents:,} documents: "
        f"{reason.rstrip('.')}. The run keeps the labels it had. {remedy}."
    )


def _check(job: LabelJob, name: str, table: pa.Table) -> None:
    if len(table) != job.documents:
        raise Mistake(
            f"The labels of '{name}' cover {len(table):,} documents, but the run has {job.documents:,}. Rebuild them "
            f"with 'python -m precompute label {job.run.name} --labels {name} --again'."
        )


def _unlabelled(target: Run, name: str) -> list[str]:
    """How many have no topic, and the most frequent reasons; the file has each."""
    reasons = kept_labels(target, name).why_not
    if not reasons:
        return []
    shown = [f"{count:,} because {reason}" for reason, count in list(reasons.items())[:3]]
    more = f", and {plural(len(reasons) - 3, 'other reason')}" if len(reasons) > 3 else ""
    return [f"Unlabelled: {'; '.join(shown)}{more}. labels/{name}.parquet lists them."]


def _beside(target: Run, name: str) -> list[str]:
    """How the source agrees with each other one that is kept; the same sentences as in the report."""
    return [pair.sentence for pair in all_compared(all_labels(target)) if name in (pair.first, pair.second)]
