"""The step ``layers``: where in depth the structure is. All layers × stages of a sample, from one forward pass.

Stage 3 of a layer but the last is what the layer's block leaves to the next: the residual stream, and in encoders with
a norm at a block's end (BERT) what comes out of it. The final norm is not put on it: its gains were trained for the
last layer alone, and what came out would be nothing that the model computes. At the last layer stage 3 is the model's
own output, final norm included, as everywhere.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from core.analysis.layer_figures import layer_figures
from core.analysis.layer_measures import DOCUMENTS
from core.analysis.probe import LEAST_DOCS
from core.analysis.topics import AUTO
from core.errors import Mistake
from core.runs.labels import COLUMN
from core.runs.manifest import Manifest
from core.runs.parts import digest_of, write_table
from core.runs.run import Run, open_run
from core.runs.schema import ANALYSIS, MADE_BY
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import Meter, Progress, Quiet
from precompute.job.step import Rows, StepRecord, StepResult, as_table, embedded, up_to_date, write_joined
from precompute.job.topic_vectors import TopicModel
from precompute.job.work import working_on
from precompute.steps.analyse.step import made_from, source_of, topics_of
from precompute.steps.layers.rows import LayerRows, embed_layers
from precompute.steps.layers.sample import Sample, choose_sample, texts_of
from precompute.steps.layers.tables import add_layer

ALGORITHM = 1
"""Raised whenever the same inputs give other figures."""
TABLES = MADE_BY["layers"]


@dataclass(frozen=True)
class LayersConfig:
    cache: Path
    run: str
    documents: int = DOCUMENTS
    """At most, a sample by topic."""
    topics: str = AUTO
    """See core.analysis.topics.choose_topics."""
    centre: bool = False
    """Subtract the sample's mean before cosines, as ``analyse`` does with the corpus's."""
    seed: int = 0
    again: bool = False
    model: TopicModel = field(default_factory=TopicModel)

    def __post_init__(self) -> None:
        if self.documents < LEAST_DOCS:
            raise Mistake(f"--documents {self.documents} is too few to measure anything: give at least {LEAST_DOCS}.")


def run(config: LayersConfig, progress: Progress | None = None) -> StepResult:
    """Sweeps a run's layers; after an interruption, without the pass and the layers that are done."""
    progress = progress or Quiet()
    target = open_run(config.cache, config.run)
    with working_on(target, "layers") as work:
        target = work.at
        manifest = embedded(target)
        documents = target.documents(["topic", "label_source"])
        names, source = documents["topic"].to_pylist(), source_of(documents["label_source"])
        topics = topics_of(config.topics, manifest, names)
        inputs = _inputs(config, manifest, topics, names, source)
        paths = [target.analysis_path(name) for name in TABLES]
        if up_to_date(target, manifest, "layers", inputs, paths) and not config.again:
            return StepResult(manifest, skipped=True)
        if manifest.is_outdated("layers", inputs) and not config.again and all(digest_of(p) == inputs for p in paths):
            # Other labels came, and went again before they were swept.
            manifest = manifest.with_step("layers", replace(manifest.steps["layers"], state="done"))
            target.write_manifest(manifest)
            return StepResult(manifest, skipped=True)
        target = work.begin("layers")
        manifest = target.manifest()
        try:
            sample = choose_sample(manifest, topics, names, config.documents, config.seed)
            return _sweep(target, config, manifest, inputs, sample, source, Meter("layers", progress))
        finally:
            progress.close()


def _sweep(
    target: Run,
    config: LayersConfig,
    manifest: Manifest,
    inputs: str,
    sample: Sample,
    source: str | None,
    meter: Meter,
) -> StepResult:
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    staging = target.folder / "analysis" / "staging layers"
    if config.again:
        shutil.rmtree(staging, ignore_errors=True)
    # The pass first: a model that is not to be had, or another one, leaves the figures of before as they are.
    rows = _embed(target, config, manifest, inputs, sample, staging, meter)
    record = StepRecord(target, "layers", manifest, inputs, _options(config, source), meter.seconds)
    # Some hundred documents are small matrices, on which several threads lose more than they win.
    with threadpool_limits(1):
        for layer in range(manifest.shape.layers):
            meter.at(0.5 + 0.5 * layer / manifest.shape.layers, f"figures of layer {layer + 1}")
            if any(digest_of(_fragment(staging, layer, name)) != inputs for name in TABLES):
                _measure(config, manifest, inputs, sample, rows, layer, staging)
    meter.at(1.0, "writing the tables")
    for name in TABLES:
        fragments = [_fragment(staging, layer, name) for layer in range(manifest.shape.layers)]
        write_joined(target.analysis_path(name), fragments, ANALYSIS[name], inputs)
    labelled = int((sample.labels >= 0).sum())
    result = record.finish(
        {
            "documents": len(sample.docs),
            "layers": manifest.shape.layers,
            "topics": len(sample.topics),
            "labelled": labelled,
            "unlabelled": len(sample.docs) - labelled,
        }
    )
    del rows  # their files are open until then
    shutil.rmtree(staging, ignore_errors=True)
    return result


def _embed(
    target: Run, config: LayersConfig, manifest: Manifest, inputs: str, sample: Sample, staging: Path, meter: Meter
) -> LayerRows:
    """Documents and topics' names in one go."""
    texts = [*texts_of(target, manifest, sample.docs), *sample.topics]
    done = 0

    def on_batch(documents: int, tokens: int) -> None:
        nonlocal done
        done += documents
        meter.work(documents, tokens, 0.5 * done / len(texts))

    meter.say("loading the model")
    return embed_layers(staging, texts, manifest.shape, inputs, lambda: config.model.load(manifest), on_batch)


def _measure(
    config: LayersConfig, manifest: Manifest, inputs: str, sample: Sample, rows: LayerRows, layer: int, staging: Path
) -> None:
    tables: dict[str, Rows] = {name: {} for name in TABLES}
    count = len(sample.docs)
    for stage in manifest.stages:
        both = rows.at(layer, stage)
        found = layer_figures(
            both[:count], both[count:], sample.labels, manifest.shape, sample.probe, config.centre, config.seed
        )
        add_layer(tables, layer + 1, stage, found, sample.labels, sample.topics, sample.docs)
    for name in TABLES:
        write_table(_fragment(staging, layer, name), as_table(tables[name], ANALYSIS[name]), inputs)


def _fragment(staging: Path, layer: int, name: str) -> Path:
    return staging / f"layer={layer + 1}" / f"{name}.parquet"


def _inputs(
    config: LayersConfig, manifest: Manifest, topics: Sequence[str], names: Sequence[str | None], source: str | None
) -> str:
    settings = [config.documents, config.centre, config.seed]
    return fingerprint({"algorithm": ALGORITHM, **made_from(manifest, topics, names, source), "settings": settings})


def _options(config: LayersConfig, source: str | None) -> dict[str, object]:
    """What was asked for and whose labels there were, without the defaults."""
    asked: dict[str, object] = {
        "documents": config.documents,
        "centre": config.centre,
        "seed": config.seed,
        "label_source": source or COLUMN,
    }
    defaults = {"documents": DOCUMENTS, "centre": False, "seed": 0, "label_source": COLUMN}
    return {key: value for key, value in asked.items() if value != defaults[key]}
