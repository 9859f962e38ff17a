"""What the step ``embed`` says when it has ended."""

from __future__ import annotations

from core.presets import PRESETS
from core.store import Run
from precompute.embed import EmbedResult
from precompute.progress import clock

_LEFT_OUT = {
    "bad": "unreadable",
    "short": "too short",
    "duplicate": "duplicates",
    "sampled_out": "not in the sample",
}


def summary(run: Run, result: EmbedResult) -> str:
    """A few lines: what is there now, what was left out and why."""
    manifest = result.manifest
    step, model = manifest.steps["embed"], manifest.model
    counts = step.counts
    if result.skipped:
        return f"{run.name}: up to date, {manifest.corpus['documents']:,} documents. Nothing to do."
    lines = [
        f"{run.name}: {manifest.corpus['documents']:,} documents × {model['heads']} heads × {len(manifest.stages)} "
        f"stages by {model['name']}, layer {model['layer']}, {model['pooling']} pooling."
    ]
    pace = f"Texts of {counts['tokens']:,} tokens in {clock(step.seconds)}"
    if result.parts_kept:
        pace += f" ({result.parts_kept} of {counts['parts']} parts were there from before)"
    lines.append(f"  {pace}; {run.bytes() / 1e6:,.1f} MB in the cache, vectors as {manifest.vectors['dtype']}.")
    if left_out := [f"{counts[key]:,} {word}" for key, word in _LEFT_OUT.items() if counts.get(key)]:
        lines.append(f"  Left out of {counts['read']:,}: {', '.join(left_out)}.")
    if counts["truncated"]:
        lines.append(f"  {counts['truncated']:,} documents were cut to {model['max_tokens']} tokens (--max-tokens).")
    lines += [f"  {note}" for note in model["notes"]]
    if preset := PRESETS.get(model["name"]):
        lines.append(f"  Licence of the model: {preset.licence}.")
    return "\n".join(lines)
