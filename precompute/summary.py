"""What a step says when it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.model.presets import PRESETS
from core.runs.describe import sampled, stored
from core.runs.labels import LABEL_SOURCES
from core.runs.manifest import Manifest
from precompute.job.progress import clock

if TYPE_CHECKING:
    from precompute.steps.embed.step import EmbedResult
    from precompute.steps.label.step import LabelResult

_LEFT_OUT = {
    "bad": "unreadable",
    "short": "too short",
    "duplicate": "duplicates",
    "sampled_out": "not in the sample",
    "failed": "could not be embedded (failed.parquet names them)",
}
_MISSING = {"no_id": "an id", "no_title": "a title", "no_url": "a URL", "no_topic": "a topic"}
"""Of columns that other documents have."""


def summary(run: str, result: EmbedResult) -> str:
    """A few lines: what is there now, what was left out and why."""
    manifest = result.manifest
    step, model = manifest.steps["embed"], manifest.model
    counts = step.counts
    if result.skipped:
        return f"{run}: up to date, {manifest.corpus['documents']:,} documents. Nothing to do."
    if result.led:
        return (
            f"{run}: this rank's parts are done; rank 0 finishes the run. Where it is not at work any more, start the "
            "same command again."
        )
    if result.left:
        return (
            f"{run}: this rank's parts are done; {result.left:,} are left to the others. The one that ends last "
            "finishes the run; where none is at work any more, start the same command again."
        )
    lines = [
        f"{run}: {manifest.corpus['documents']:,} documents × {model['heads']} heads × {_stages(manifest)} "
        f"by {model['name']}, layer {model['layer']}, {model['pooling']} pooling."
    ]
    pace = f"Texts of {counts['tokens']:,} tokens in {clock(step.seconds)}"
    if result.parts_kept:
        pace += f" ({result.parts_kept} of {counts['parts']} parts were there from before)"
    lines.append(f"  {pace}; {result.bytes / 1e6:,.1f} MB in the cache, vectors of {stored(manifest)}.")
    if left_out := [f"{counts[key]:,} {word}" for key, word in _LEFT_OUT.items() if counts.get(key)]:
        lines.append(f"  Left out of {counts['read']:,}: {', '.join(left_out)}.")
    if missing := [f"{counts[key]:,} without {word}" for key, word in _MISSING.items() if counts.get(key)]:
        lines.append(f"  Of {counts['kept']:,} documents: {', '.join(missing)}.")
    if counts.get("numbered"):
        lines.append(f"  Duplicate ids that were numbered: {counts['numbered']:,}.")
    if counts["truncated"]:
        lines.append(f"  {counts['truncated']:,} documents were cut to {model['max_tokens']} tokens (--max-tokens).")
    lines += [f"  {note}" for note in model["notes"]]
    if preset := PRESETS.get(model["name"]):
        lines.append(f"  Licence of the model: {preset.licence}.")
    return "\n".join(lines)


def gone_summary(run: str, result: EmbedResult) -> str:
    """What readers miss once a run was embedded anew and nothing more."""
    return (
        f"  What {' and '.join(result.gone)} had made went with the run before: 'python -m precompute all {run}' makes "
        "it anew. With 'all --replace' readers have the old run until everything is there."
    )


def step_summary(run: str, step: str, manifest: Manifest, skipped: bool) -> str:
    """A line or two about one of the later steps."""
    if skipped:
        return f"{run}: {step} is up to date. Nothing to do."
    return _SUMMARIES[step](run, manifest)


def label_summary(run: str, result: LabelResult) -> str:
    """Where the labels come from, how many there are, and what else is to be known."""
    step = result.manifest.steps.get("label")
    if step is None:
        return f"{run}: not labelled."
    counts, source = step.counts, step.options.get("source", "")
    total = counts["labelled"] + counts["unlabelled"]
    said = f"{counts['labelled']:,} of {total:,} documents labelled by {source} ({LABEL_SOURCES.get(source, '')})"
    if result.skipped:
        return f"{run}: {said}. Nothing to do."
    return "\n".join([f"{run}: {said} in {clock(step.seconds)}.", *(f"  {note}" for note in result.notes)])


def _analysed(run: str, manifest: Manifest) -> str:
    step, documents = manifest.steps["analyse"], manifest.corpus["documents"]
    counts = step.counts
    lines = [
        f"{run}: {_stages(manifest)} analysed in {clock(step.seconds)}, {counts['topics']} topics, "
        f"{counts['labelled']:,} of {documents:,} documents labelled. See 'python -m precompute report {run}'."
    ]
    if counts["label_not_a_topic"]:
        lines.append(f"  {counts['label_not_a_topic']:,} labels are not in the list of topics and count as none.")
    if not counts["labelled"]:
        lines.append("  Without labels there is no topic match, no head profile and no heat map; the rest is there.")
    return "\n".join(lines)


def _indexed(run: str, manifest: Manifest) -> str:
    step = manifest.steps["search"]
    return (
        f"{run}: {step.counts['documents']:,} documents can be searched, index of {step.counts['bytes'] / 1e6:,.1f} MB "
        f"in {clock(step.seconds)}."
    )


def _projected(run: str, manifest: Manifest) -> str:
    step = manifest.steps["project"]
    counts = step.counts
    line = f"{run}: maps of {counts['points']:,} points at {_stages(manifest)} in {clock(step.seconds)}"
    if counts["placed"]:
        line += f"; {counts['fitted']:,} were fitted, a sample by topic, and the others placed among them"
    return line + "."


def _retrieved(run: str, manifest: Manifest) -> str:
    step = manifest.steps["retrieve"]
    queries = step.counts["queries"]
    by = f"{queries:,} queries" + (" and its topics" if step.counts["tasks"] > 1 else "") if queries else "its topics"
    return (
        f"{run}: heads judged by {by} at {_stages(manifest)} in {clock(step.seconds)}. "
        f"See 'python -m precompute report {run}' and the page Retrieval lab."
    )


def _swept(run: str, manifest: Manifest) -> str:
    step = manifest.steps["layers"]
    counts = step.counts
    line = (
        f"{run}: {counts['layers']} layers × {_stages(manifest)} × {manifest.shape.heads} heads over "
        f"{counts['documents']:,} documents in {clock(step.seconds)}."
    )
    if not counts["labelled"]:
        line += "\n  Without labels there is no topic match and no topic selectivity; the rest is there."
    return line


def _stages(manifest: Manifest) -> str:
    return f"{len(manifest.stages)} stage{'s' if len(manifest.stages) > 1 else ''}"


def _looked(run: str, manifest: Manifest) -> str:
    step, shape = manifest.steps["attention"], manifest.shape
    return (
        f"{run}: attention of {shape.layers} layers × {shape.heads} heads in {step.counts['documents']:,} documents "
        f"({step.counts['tokens']:,} tokens) in {clock(step.seconds)}."
    )


def _slimmed(run: str, manifest: Manifest) -> str:
    step = manifest.steps["slim"]
    before, after = (step.counts[name] / 1e6 for name in ("bytes_before", "bytes"))
    line = f"{run}: vectors of {sampled(manifest)} kept, {after:,.1f} MB of {before:,.1f} MB. Figures and maps stay."
    if not manifest.is_done("retrieve"):
        line += "\n  Heads were not judged ('retrieve'), and cannot be any more."
    return line


_SUMMARIES = {
    "search": _indexed,
    "analyse": _analysed,
    "project": _projected,
    "retrieve": _retrieved,
    "layers": _swept,
    "attention": _looked,
    "slim": _slimmed,
}
