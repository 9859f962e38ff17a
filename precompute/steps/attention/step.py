"""The step ``attention``: what every head of every layer looks at, over a sample of documents and in experiments."""

from __future__ import annotations

import numpy as np

from core.analysis.conllu import OWN, Sentence
from core.analysis.stratify import stratified
from core.errors import Mistake
from core.model.embedder import Embedder
from core.runs.manifest import Manifest
from core.runs.run import Run
from core.runs.steps import STEPS
from precompute.job.documents import require_texts
from precompute.job.progress import Progress
from precompute.job.step import Plan, StepResult, StepRun, run_step
from precompute.job.work import Work
from precompute.steps.attention.config import AttentionConfig
from precompute.steps.attention.experiments import (
    Experiments,
    claims_of,
    example_rows,
    relation_rows,
    score_rows,
)
from precompute.steps.attention.parts import PART, AttentionWork, make_part, read_part, read_texts
from precompute.steps.attention.repeated import repeated_examples, repeated_scores
from precompute.steps.attention.tables import Collected, attention_rows, claim_rows, pattern_rows
from precompute.steps.attention.treebank import chosen, read_parts, refuse_unknown


def run(config: AttentionConfig, progress: Progress | None = None, work: Work | None = None) -> StepResult:
    """Measures a run's attention; after an interruption, that of the documents that are missing."""

    def plan(run: Run, manifest: Manifest) -> Plan:
        return Plan(
            inputs=config.inputs(manifest),
            files=[run.analysis_path(name) for name in _expected(manifest)],
            make=lambda step: _measure(step, config),
        )

    return run_step("attention", config, plan, progress, work, config.again)


def _measure(step: StepRun, config: AttentionConfig) -> StepResult:
    meter, shape = step.meter, step.manifest.shape
    require_texts(step.run)
    table = step.run.documents(["text", "topic"])
    docs = stratified(_strata(table["topic"].to_pylist()), config.documents, config.seed)
    meter.at(0, "loading the model")
    model = config.model.load(step.manifest)
    sentences = _sentences(model, config)
    step.begin(config.options)
    texts = read_texts(model, [table["text"][int(doc)].as_py() for doc in docs], config.tokens)
    parts = AttentionWork(model, shape, step.staging, step.inputs)
    meter.restart()
    collected = Collected(shape)
    for start in range(0, len(texts), PART):
        meter.at(0.6 * start / len(texts), f"{start:,} of {len(texts):,} documents")
        path = make_part(parts, start, texts[start : start + PART])
        for sums in read_part(path, parts):
            collected.add(sums)
    meter.at(0.6, "repeated random tokens")
    experiments = _experiments(parts, sentences, config, step)
    meter.at(0.95, "intervals and types")
    scores, relations = score_rows(experiments, collected.rests), relation_rows(experiments, config.seed)
    claims = claims_of(scores, relations)
    heads = attention_rows(collected, config.seed, claims)
    step.write_tables(
        {
            "attention": heads,
            "attention_patterns": pattern_rows(collected),
            "attention_scores": scores,
            "attention_claims": claim_rows(heads, collected.rests, claims),
            "relations": relations,
            "relation_examples": example_rows(experiments, relations, claims, config.seed),
        }
    )
    meter.at(1.0, "done")
    tokens = sum(len(text.ids) for text in texts)
    return step.finish({"documents": len(texts), "tokens": tokens, "sentences": len(sentences)})


def _expected(manifest: Manifest) -> list[str]:
    """The tables that an up-to-date step has: an older version's does not have the newer ones."""
    facts = STEPS["attention"]
    return [name for name in facts.tables if name not in facts.newer or f"analysis/{name}.parquet" in manifest.files]


def _sentences(model: Embedder, config: AttentionConfig) -> list[Sentence]:
    """The treebank's; none of Headscope's own where the tokenizer does not know its words."""
    sentences = chosen(config.sentences(), config.seed)
    try:
        refuse_unknown(model, sentences, (config.treebank or OWN).name)
    except Mistake:
        if config.treebank is not None:
            raise
        return []
    return sentences


def _experiments(work: AttentionWork, sentences: list[Sentence], config: AttentionConfig, step: StepRun) -> Experiments:
    def on_progress(fraction: float, message: str) -> None:
        step.meter.at(0.65 + 0.3 * fraction, message)

    repeated = repeated_scores(work, config.seed)
    reading = read_parts(work, sentences, config.seed, on_progress) if sentences else None
    without_first = reading is not None and reading.attended.without_first
    return Experiments(work.shape, repeated, reading, repeated_examples(work.model, config.seed, without_first))


def _strata(names: list[str | None]) -> np.ndarray:
    """``[doc]``: each one's topic as a number, -1 for none."""
    known = {name: number for number, name in enumerate(sorted({name for name in names if name is not None}))}
    return np.array([-1 if name is None else known[name] for name in names], dtype=np.int64)
