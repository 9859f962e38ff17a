"""The step ``layers``: where in depth the structure is. All layers × stages of a sample, from one forward pass.

Stage 3 of a layer but the last is what the layer's block leaves to the next: the residual stream, and in encoders with
a norm at a block's end (BERT) what comes out of it. The final norm is not put on it: its gains were trained for the
last layer alone, and what came out would be nothing that the model computes. At the last layer stage 3 is the model's
own output, final norm included, as everywhere.

Stage 4 of any layer is what its heads add to that final output directly, through the norms of all later layers with
the statistics they had (DESIGN §9); the layer's full embedding is the sum of these shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from core.analysis.layer_figures import layer_figures
from core.analysis.layer_measures import DOCUMENTS
from core.analysis.probe import LEAST_DOCS
from core.analysis.topics import AUTO
from core.errors import Mistake
from core.model.embedder import Embedder
from core.model.stages import SHARE
from core.runs.aspects import Aspect, aspects_digest, aspects_of
from core.runs.labels import COLUMN
from core.runs.manifest import Manifest
from core.runs.run import Run
from core.runs.steps import STEPS
from core.runs.vocabulary import MOST_ASPECTS
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import Progress
from precompute.job.step import Plan, Rows, StepResult, StepRun, run_step
from precompute.job.topic_vectors import TopicModel
from precompute.job.work import Work
from precompute.steps.analyse.step import made_from, source_of, topics_of
from precompute.steps.aspects.sample import AspectSample
from precompute.steps.layers.aspects import add_layer_aspects, layer_aspects
from precompute.steps.layers.parts import part_rows
from precompute.steps.layers.rows import LayerRows, embed_layers
from precompute.steps.layers.sample import Sample, choose_sample, texts_of
from precompute.steps.layers.tables import add_layer

ALGORITHM = 3
"""Raised whenever the same inputs give other figures."""


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


def run(config: LayersConfig, progress: Progress | None = None, work: Work | None = None) -> StepResult:
    """Sweeps a run's layers; after an interruption, without the pass and the layers that are done."""

    def plan(run: Run, manifest: Manifest) -> Plan:
        documents = run.documents(["topic", "label_source"])
        names, source = documents["topic"].to_pylist(), source_of(documents["label_source"])
        topics = topics_of(config.topics, manifest, names)
        aspects = aspects_of(run)[:MOST_ASPECTS]
        sample = partial(choose_sample, manifest, topics, names, config.documents, config.seed)
        return Plan(
            inputs=_inputs(config, manifest, topics, names, source, aspects),
            files=[run.analysis_path(name) for name in STEPS["layers"].tables],
            make=lambda step: _sweep(step, config, sample(), source, aspects),
            staging="analysis/staging layers",
        )

    return run_step("layers", config, plan, progress, work, config.again)


def _sweep(
    step: StepRun, config: LayersConfig, sample: Sample, source: str | None, aspects: Sequence[Aspect]
) -> StepResult:
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    layers, meter = step.manifest.shape.layers, step.meter
    # The pass first: a model that is not to be had, or another one, leaves the figures of before as they are.
    load = cache(lambda: config.model.load(step.manifest))
    rows = _embed(step, config, sample, load)
    step.begin(_options(config, source))
    meter.at(0.5, "shares of the embedding")
    step.stage_tables("parts", partial(part_rows, step.run, step.manifest, load, sample, rows, config.seed))
    load.cache_clear()  # the model's memory is needed no more
    probed = layer_aspects(aspects, sample.docs, texts_of(step.run, step.manifest, sample.docs))
    # Some hundred documents are small matrices, on which several threads lose more than they win.
    with threadpool_limits(1):
        for layer in range(layers):
            meter.at(0.5 + 0.5 * layer / layers, f"figures of layer {layer + 1}")
            step.stage_tables(
                f"layer={layer + 1}", partial(measure_layer, config, step.manifest, sample, probed, rows, layer)
            )
    step.join_tables()
    labelled = int((sample.labels >= 0).sum())
    del rows  # their files are open until then
    return step.finish(
        {
            "documents": len(sample.docs),
            "layers": layers,
            "stages": len(step.manifest.stages),
            "topics": len(sample.topics),
            "labelled": labelled,
            "unlabelled": len(sample.docs) - labelled,
        }
    )


def _embed(step: StepRun, config: LayersConfig, sample: Sample, load: Callable[[], Embedder]) -> LayerRows:
    """Documents and topics' names in one go."""
    manifest = step.manifest
    texts = [*texts_of(step.run, manifest, sample.docs), *sample.topics]
    done = 0

    def on_batch(documents: int, tokens: int) -> None:
        nonlocal done
        done += documents
        step.meter.work(documents, tokens, 0.5 * done / len(texts))

    step.meter.say("loading the model")
    shares = SHARE in manifest.stages
    return embed_layers(step.staging, texts, manifest.shape, step.inputs, load, on_batch, shares)


def measure_layer(
    config: LayersConfig, manifest: Manifest, sample: Sample, probed: AspectSample, rows: LayerRows, layer: int
) -> dict[str, Rows]:
    tables: dict[str, Rows] = {name: {} for name in STEPS["layers"].tables}
    count, heads = len(sample.docs), manifest.shape.heads
    for stage in manifest.stages:
        both, space = rows.at(layer, stage), rows.space(layer, stage)
        figures = layer_figures(
            both[:count],
            both[count:],
            sample.labels,
            manifest.shape,
            sample.probe,
            config.centre,
            config.seed,
            space=space,
        )
        add_layer(tables, layer + 1, stage, figures, sample.labels, sample.topics, sample.docs)
        add_layer_aspects(tables["layer_aspects"], layer + 1, stage, both[:count], probed, heads, config.seed, space)
    return tables


def _inputs(
    config: LayersConfig,
    manifest: Manifest,
    topics: Sequence[str],
    names: Sequence[str | None],
    source: str | None,
    aspects: Sequence[Aspect],
) -> str:
    settings = [config.documents, config.centre, config.seed]
    made = {**made_from(manifest, topics, names, source), "aspects": aspects_digest(aspects)}
    if SHARE in manifest.stages:  # not of runs without it, whose sweeps need not be made again
        made["stages"] = list(manifest.stages)
    return fingerprint({"algorithm": ALGORITHM, **made, "settings": settings})


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
