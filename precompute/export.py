"""``export``: a run's model without some of its heads, as a folder for plain sentence-transformers."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.analysis.ablation_effects import ANGLE, MEASURES, AblationTask, changes_of
from core.analysis.ablation_findings import amount
from core.analysis.similarity import unit
from core.analysis.topics import AUTO
from core.errors import Mistake
from core.model.embedder import Embedder, EmbedderConfig
from core.model.export import Cut, check_licence, cut_evenly, licence_of, switch_off, write_model
from core.model.heads_off import HeadsOff, read_heads_off
from core.model.same_model import run_files
from core.runs.manifest import Manifest
from core.runs.results import read_query_set
from core.runs.run import Run, open_run
from precompute.job.step import embedded
from precompute.job.topic_vectors import TopicModel
from precompute.steps.ablate.config import DOCUMENTS
from precompute.steps.analyse.step import topics_of
from precompute.steps.layers.sample import Sample, choose_sample, texts_of

if TYPE_CHECKING:
    from torch import Tensor

TOLERANCE = 1e-5
CHECKED = 16
"""Documents that the written model embeds again."""


@dataclass(frozen=True)
class ExportConfig:
    cache: Path
    run: str
    heads: Path
    to: Path
    accept_licence: bool = False
    documents: int = DOCUMENTS
    """That the model is measured on, at most."""
    model: TopicModel = field(default_factory=TopicModel)


@dataclass(frozen=True)
class Exported:
    """What was written."""

    folder: Path
    off: HeadsOff
    heads: int
    """Of the whole model."""
    cut: Cut | None
    bytes_before: int
    bytes_after: int
    difference: float
    """The largest between the folder's normalised embeddings and those of heads switched off by hooks."""
    lines: tuple[str, ...]
    """What was measured, a measure a line."""

    @property
    def sentence(self) -> str:
        size = (
            f"Heads are cut out of the weights: {self.bytes_after / 1e6:,.1f} MB of {self.bytes_before / 1e6:,.1f} MB."
            if self.cut
            else f"Their projection columns are zero; the file keeps its size ({self.bytes_after / 1e6:,.1f} MB)."
        )
        count = len(self.off.off)
        return "\n".join(
            [
                f"{self.folder.name}: {count} of {self.heads} heads off. {size}",
                f"  Checked: the folder's embeddings differ from the ablated ones by at most {self.difference:.1e}.",
                *(f"  {line}" for line in self.lines),
            ]
        )


def export(config: ExportConfig) -> Exported:
    """Writes the folder whole, or not at all."""
    run = open_run(config.cache, config.run)
    manifest = embedded(run)
    record = manifest.model
    if config.to.exists() and (not config.to.is_dir() or any(config.to.iterdir())):
        raise Mistake(f"The folder '{config.to}' is not empty. Give a new one with --to.")
    if config.model.trust_remote_code is not None:
        raise Mistake(
            "A model that brings its own code cannot be exported: plain sentence-transformers would not run it."
        )
    off = read_heads_off(config.heads, str(record["name"]), manifest.shape, int(record["layer"]))
    files = run_files(record, config.model)
    licence = licence_of(files.folder, files.preset.licence if files.preset else None)
    check_licence(licence, config.accept_licence)
    model = config.model.load(manifest)
    sample = _sample(run, manifest, config.documents)
    texts = texts_of(run, manifest, sample.docs)
    means = model.mean_outputs(texts) if off.how == "mean" else None
    lines, expected = _measure(run, model, off, means, sample, texts)
    extractor = model.extractor
    before = _numbers(extractor.model)
    cut = cut_evenly(extractor, off.off) if means is None else None
    if cut is None:
        switch_off(extractor, off.off, means)
    written = cut.model if cut else extractor.model
    staging = config.to.parent / f".{config.to.name}.part"
    shutil.rmtree(staging, ignore_errors=True)
    try:
        write_model(written, files.folder, model.info, model.tokens.pad_token, staging)
        difference = _difference(staging, texts, expected)
        size = sum(path.stat().st_size for path in staging.glob("*.safetensors"))
        whole = round(size * before / _numbers(written))
        done = Exported(
            config.to, off, manifest.shape.layers * manifest.shape.heads, cut, whole, size, difference, lines
        )
        card = _card(done, manifest, config.run, licence, len(sample.docs))
        (staging / "README.md").write_text(card, encoding="utf-8")
        (staging / "heads.json").write_text(off.to_json() + "\n", encoding="utf-8")
        if config.to.is_dir():
            config.to.rmdir()
        staging.rename(config.to)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return done


def _sample(run: Run, manifest: Manifest, count: int) -> Sample:
    names = run.documents(["topic"])["topic"].to_pylist()
    return choose_sample(manifest, topics_of(AUTO, manifest, names), names, count, seed=0)


def _measure(
    run: Run,
    model: Embedder,
    off: HeadsOff,
    means: dict[int, Tensor] | None,
    sample: Sample,
    texts: list[str],
) -> tuple[tuple[str, ...], np.ndarray]:
    """A line per measure, and the first documents' embeddings without the heads, normalised."""
    place = {int(doc): at for at, doc in enumerate(sample.docs)}
    found = read_query_set(run)
    asked = [] if found is None else list(zip(found.texts, found.relevant, strict=True))
    asked = [(text, docs) for text, docs in asked if any(doc in place for doc in docs)]
    relevant = tuple(tuple(place[doc] for doc in docs if doc in place) for _, docs in asked)
    topics = list(sample.topics) if (sample.labels >= 0).any() else []
    task = AblationTask(sample.labels, len(topics), relevant)
    rows = []
    for change in (None, model.without(off.off, means)):
        parts = [model.embed([*texts, *topics], change=change).output]
        if asked:
            parts.append(model.embed([text for text, _ in asked], query=True, change=change).output)
        rows.append(np.concatenate(parts))
    plain, changed = (task.measure(one, rows[0]) for one in rows)
    lines = []
    for name in task.measures:
        change_ = changes_of(changed[name][:, None], plain[name])
        low, high = (amount(name, float(end[0]), signed=True) for end in (change_.low, change_.high))
        known = int(np.isfinite(plain[name]).sum())
        counted = f"{known:,} {'queries' if name == 'queries' else 'documents'}"
        if name == ANGLE:
            lines.append(f"Documents move by {amount(name, float(np.mean(changed[name])))} on average ({counted}).")
            continue
        before, after = (amount(name, float(np.nanmean(values[name]))) for values in (plain, changed))
        said = MEASURES[name][0].upper() + MEASURES[name][1:]
        lines.append(
            f"{said}: {before} with all heads, {after} without (95 % CI of the change {low} to {high}; {counted})."
        )
    return tuple(lines), unit(rows[1][: min(CHECKED, len(texts))])


def _difference(folder: Path, texts: list[str], expected: np.ndarray) -> float:
    written = Embedder.load(EmbedderConfig(model=str(folder), device="cpu"))
    found = unit(written.embed(texts[: len(expected)]).output)
    difference = float(np.abs(found - expected).max())
    if difference > TOLERANCE:
        raise Mistake(
            f"The written model's embeddings differ from the ablated ones by {difference:.1e}, more than "
            f"{TOLERANCE:.0e}. Nothing was exported. Try again with --device cpu."
        )
    return difference


def _numbers(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _card(done: Exported, manifest: Manifest, run: str, licence: str, documents: int) -> str:
    model, off = manifest.model, done.off
    by_layer: dict[int, list[int]] = {}
    for layer, head in off.off:
        by_layer.setdefault(layer, []).append(head)
    listing = "\n".join(f"| {layer} | {', '.join(map(str, heads))} |" for layer, heads in sorted(by_layer.items()))
    how = "zeros" if off.how == "zero" else "their mean output over the sample"
    size = (
        f"Every layer keeps {done.cut.heads} heads, {done.cut.kv_heads} key/value heads; the weights take "
        f"{done.bytes_after / 1e6:,.1f} MB instead of {done.bytes_before / 1e6:,.1f} MB."
        if done.cut
        else "The heads' columns in the output projections are zero. The file is as large as before, and as fast."
    )
    chosen = off.verdict or "The file that named the heads says nothing about how they were chosen."
    measured = "\n".join(f"- {line}" for line in done.lines)
    return f"""---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
license: {licence.split(":")[0].lower() or "unknown"}
base_model: {model["name"]}
tags: [sentence-transformers, pruned-heads]
---

# {model["name"]} without {len(off.off)} of its {done.heads} attention heads

Made by Headscope from {model["name"]} (revision {model["revision"]}). The output of these heads is replaced by {how}:

| layer | heads off |
|---|---|
{listing}

{size}

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{done.folder.name}")
```

## How the heads were chosen

{chosen}

## Measured

On {documents:,} documents of the run "{run}" ({manifest.corpus.get("source", "a corpus")}), sampled by topic. Where the
heads were chosen on the same documents, these figures are not held out:

{measured}

Embeddings of this folder equal those of the original model with the heads switched off in its forward pass to
{done.difference:.1e} (largest difference of normalised embeddings).

## Licence

The original model's licence: {licence or "not stated in its files"}. It applies to this changed copy.
"""
