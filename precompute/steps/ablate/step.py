"""The step ``ablate``: every head of every layer switched off in the forward pass, over a sample of documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.ablation_effects import ANGLE, HEAD, AblationTask
from core.analysis.ablation_pruning import BY_ANGLE, BY_SHARE
from core.errors import Mistake
from core.model.embedder import Embedder
from core.retrieval.queries import Query
from core.runs.aspects import Aspect, aspects_digest, aspects_of
from core.runs.manifest import Manifest
from core.runs.results import read_analysis, read_query_set
from core.runs.run import Run
from core.runs.steps import STEPS
from core.runs.vocabulary import MOST_ASPECTS
from precompute.job.progress import Progress
from precompute.job.step import Plan, Rows, StepResult, StepRun, run_step
from precompute.job.work import Work
from precompute.steps.ablate.config import AblateConfig
from precompute.steps.ablate.pruning import prune_rows
from precompute.steps.ablate.removals import Removal, SweptTexts, removals
from precompute.steps.ablate.tables import layer_rows, with_noise
from precompute.steps.analyse.step import made_from, source_of, topics_of
from precompute.steps.layers.sample import Sample, choose_sample, texts_of
from precompute.steps.retrieve.step import queries_of

if TYPE_CHECKING:
    from torch import Tensor


SWEPT = 0.6
"""The share of the work that is the sweep, where heads are pruned after it."""


def run(config: AblateConfig, progress: Progress | None = None, work: Work | None = None) -> StepResult:
    """Sweeps a run's heads; after an interruption, those of the layers that are missing."""

    def plan(run: Run, manifest: Manifest) -> Plan:
        documents = run.documents(["id", "topic", "label_source"])
        names, source = documents["topic"].to_pylist(), source_of(documents["label_source"])
        topics = topics_of(config.topics, manifest, names)
        queries = _queries(config, run, manifest, documents["id"].to_pylist())
        layers = _layers(config, manifest)
        aspects = aspects_of(run)[:MOST_ASPECTS]
        asked = [[query.text, list(query.relevant)] for query in queries]
        made = made_from(manifest, topics, names, source)
        if aspects:
            made["aspects"] = aspects_digest(aspects)
        shares = _shares(run, manifest) if config.prune else None
        sample = partial(choose_sample, manifest, topics, names, config.documents, config.seed)
        return Plan(
            inputs=config.inputs({**made, **({} if shares is None else {"shares": shares.tolist()})}, asked),
            files=[run.analysis_path(name) for name in STEPS["ablate"].tables],
            make=lambda step: _sweep(step, config, _Asked(sample(), queries, aspects, shares), layers, source),
        )

    return run_step("ablate", config, plan, progress, work, config.again)


def _sweep(
    step: StepRun,
    config: AblateConfig,
    asked: _Asked,
    layers: Sequence[int],
    source: str | None,
) -> StepResult:
    step.meter.at(0, "loading the model")
    ablation, sample = _Ablation(step, config, asked, layers), asked.sample
    step.begin(config.options(source))
    # What comes after the head is computed for every removal, what comes before it once.
    depth = step.manifest.shape.layers
    costs = np.array([len(ablation.removals(layer)) * (depth - layer + 0.7) + layer for layer in layers])
    costs = costs / costs.sum() * (SWEPT if config.prune else 1.0)
    ends = np.cumsum(costs)
    step.meter.restart()
    for layer, end, cost in zip(layers, ends, costs, strict=True):
        first = float(end - cost)

        def on_done(share: float, first: float = first, cost: float = float(cost), layer: int = layer) -> None:
            step.meter.at(first + cost * share, f"layer {layer} of {depth}")

        on_done(0.0)
        step.stage_tables(f"layer={layer}", partial(ablation.measure, layer, on_done))
    if config.prune:
        step.stage_tables("pruning", partial(ablation.prune, layers))
    step.join_tables(_joined)
    labelled = int((sample.labels >= 0).sum())
    return step.finish(
        {
            "documents": len(sample.docs),
            "layers": len(layers),
            "heads": len(layers) * step.manifest.shape.heads,
            "topics": len(sample.topics),
            "labelled": labelled,
            "unlabelled": len(sample.docs) - labelled,
            "queries": len(ablation.task.relevant),
        }
    )


@dataclass(frozen=True)
class _Asked:
    """What embeddings are measured by."""

    sample: Sample
    queries: Sequence[Query]
    aspects: Sequence[Aspect]
    shares: np.ndarray | None
    """``[layer * head]``: each head's mean share of the embedding; None where ``layers`` has not measured them."""


class _Ablation:
    """The sample, ready to be swept; the model and the plain embeddings once a layer asks for them."""

    def __init__(self, step: StepRun, config: AblateConfig, given: _Asked, layers: Sequence[int]) -> None:
        self._step, self._config, self._sample, self._shares = step, config, given.sample, given.shares
        self._draws = config.draws(len(layers))
        sample = given.sample
        place = {int(doc): at for at, doc in enumerate(sample.docs)}
        asked = [(one.text, tuple(place[doc] for doc in one.relevant if doc in place)) for one in given.queries]
        asked = [(text, relevant) for text, relevant in asked if relevant]
        topics = sample.topics if (sample.labels >= 0).any() else ()
        self.task = AblationTask(
            sample.labels,
            len(topics),
            tuple(relevant for _, relevant in asked),
            centre=config.centre,
            aspects=tuple((each.name, each.codes[sample.docs]) for each in given.aspects),
        )
        self._topics = topics
        self._docs = texts_of(step.run, step.manifest, sample.docs)
        self._texts = SweptTexts([*self._docs, *topics], [text for text, _ in asked])

    def removals(self, layer: int) -> list[Removal]:
        return removals(layer, self._step.manifest.shape, self._draws, self._config.seed)

    def measure(self, layer: int, on_done: Callable[[float], None]) -> dict[str, Rows]:
        """The rows of one layer (from 1)."""
        seed = self._config.seed
        swept = self._texts.without(self._model, self.removals(layer), self._instead, seed, on_done)
        return layer_rows(self.task, self._plain, swept, self._sample.docs, self._topics, seed)

    def prune(self, layers: Sequence[int]) -> dict[str, Rows]:
        """Heads off one after another; only those of the layers that were swept can go."""
        shape, folder = self._step.manifest.shape, self._step.staging
        angle = np.full(shape.layers * shape.heads, np.inf)
        for layer in layers:
            for row in pq.read_table(folder / f"layer={layer}" / "ablation.parquet").to_pylist():
                if (row["kind"], row["measure"]) == (HEAD, ANGLE):
                    angle[(layer - 1) * shape.heads + row["head"] - 1] = row["change"]
        most = min(self._config.prune, len(layers) * shape.heads - 1)

        def progress(share: float, message: str) -> None:
            self._step.meter.at(SWEPT + (1 - SWEPT) * share, message)

        scores = {BY_ANGLE: angle}
        if self._shares is not None:
            swept = np.isfinite(angle)  # heads of layers that were not swept stay
            scores[BY_SHARE] = np.where(swept, self._shares, np.inf)
        rows = prune_rows(self._model, self._docs, self._sample.labels, scores, most, progress, self._config.seed)
        return {"ablation_pruning": rows}

    @cached_property
    def _model(self) -> Embedder:
        manifest, tokens = self._step.manifest, self._config.tokens
        if tokens is not None:
            cut = min(tokens, int(manifest.model["max_tokens"]))
            manifest = replace(manifest, model={**manifest.model, "max_tokens": cut})
        return self._config.model.load(manifest)

    @cached_property
    def _plain(self) -> np.ndarray:
        return self._texts.plain(self._model)

    @cached_property
    def _instead(self) -> dict[int, Tensor] | None:
        return self._model.mean_outputs(self._docs) if self._config.how == "mean" else None


def _shares(run: Run, manifest: Manifest) -> np.ndarray | None:
    if not (manifest.is_done("layers") and run.has(run.analysis_path("parts"))):
        return None
    shape = manifest.shape
    found = np.full((shape.layers, shape.heads), np.nan)
    for row in read_analysis(run, "parts").to_pylist():
        if row["kind"] == HEAD:
            found[row["layer"] - 1, row["head"] - 1] = row["mean"]
    return None if np.isnan(found).any() else found.ravel()


def _joined(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """With the verdicts, which take the heads of all layers together."""
    return {**tables, "ablation": with_noise(tables["ablation"], tables["ablation_noise"])}


def _layers(config: AblateConfig, manifest: Manifest) -> tuple[int, ...]:
    depth = manifest.shape.layers
    if wrong := [layer for layer in config.layers if not 1 <= layer <= depth]:
        raise Mistake(f"Layer {wrong[0]} does not exist (this model has layers 1–{depth}). Check --layers.")
    return tuple(sorted(set(config.layers))) or tuple(range(1, depth + 1))


def _queries(config: AblateConfig, run: Run, manifest: Manifest, ids: Sequence[str]) -> tuple[Query, ...]:
    """A file's, else those that ``retrieve`` stored, else the demo's own."""
    if config.queries is None and (found := read_query_set(run)) is not None:
        return tuple(Query(text, tuple(docs), 1) for text, docs in zip(found.texts, found.relevant, strict=True))
    return queries_of(config.queries, manifest, ids)
