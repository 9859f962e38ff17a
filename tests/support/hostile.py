"""A run whose every text is out to do harm: titles, topics, columns, names of model and corpus, label answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from core.model.shape import ModelShape
from core.runs.manifest import Step
from core.runs.parts import write_table
from core.runs.run import Run
from core.runs.schema import LABELS, documents_schema

ELSEWHERE = "elsewhere.invalid"
"""A host that nothing may ask."""
HACK = "window.__hacked=1"
TEXTS = (
    f"<img src=x onerror={HACK}>",
    f"</script><script>{HACK}</script>",
    f"![]({'http://' + ELSEWHERE}/a.png) [link](javascript:{HACK})",
    f"http://{ELSEWHERE}/b www.{ELSEWHERE} someone@{ELSEWHERE} <http://{ELSEWHERE}/c>",
    ":material/home: :red[red] :orange-badge[badge] :smile: :streamlit:",
    "$\\frac{1}{2}$ $$x$$ `code` **bold** # heading",
    "right \u202eot left\u2066 isolate \u200f mark",
    "nul\x00 escape\x1b[31m bell\x07 c1\x9b2J",
    "=cmd|' /C calc'!A0",
    "+1+1", "-1-1", "@SUM(A1)", "\t=1", "\r=1",
    "folder/../../etc/passwd",
    "line\nbreak\r\nand\ttab",
    "%{x} %{customdata[0]} {{7*7}} ${7*7}",
    f"<a href='javascript:{HACK}'>a</a> <svg onload={HACK}> <iframe src='http://{ELSEWHERE}/d'></iframe>",
    "'\"><b>quote</b> &lt;img src=x&gt; &amp; &#60;",
    "x" * 100_000,
)  # fmt: skip
MODEL = f"m <img src=x onerror={HACK}> :material/home: [l](javascript:{HACK})"
EXTRA = f"k <img src=x onerror={HACK}> **b**"
SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)


def write_hostile(cache: Path, name: str = "hostile") -> Run:
    """Forty-two documents in six topics, with figures, maps, layers, judged heads, and two sources of labels."""
    from precompute.steps.analyse import step as analyse
    from precompute.steps.layers import step as layers
    from precompute.steps.project import step as project
    from precompute.steps.project.config import ProjectConfig
    from precompute.steps.retrieve import step as retrieve
    from tests.support.synthetic import PlantedLayers, PlantedTopics, write_run

    count, names = 42, [TEXTS[at] for at in (0, 2, 4, 8, 14, 17)]
    labels = [names[doc % len(names)] for doc in range(count)]
    chance = np.random.default_rng(0)
    centres = {topic: chance.normal(size=32) for topic in names}
    vectors = np.stack([centres[label] for label in labels]) + 2.5 * chance.normal(size=(count, 32))
    run = write_run(cache, name, SHAPE, lambda stage, first, size: vectors[first : first + size] * stage, labels)
    texts = [TEXTS[doc % len(TEXTS)] for doc in range(count)]
    columns = {
        "doc": range(count),
        "id": texts,
        "title": texts,
        "text": [f"{text}\n{text}" for text in texts],
        "url": [f"javascript:{HACK}"] * count,
        "tokens": [3] * count,
        "truncated": [False] * count,
        "topic": labels,
        "label_source": ["column"] * count,
        "label_score": [None] * count,
        EXTRA: [TEXTS[doc % 3] for doc in range(count)],
    }
    schema = documents_schema({EXTRA: "string"})
    write_table(run.documents_path, pa.table({key: list(value) for key, value in columns.items()}, schema=schema), "d")
    path = run.folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["model"] |= {"name": MODEL, "notes": [*TEXTS[:6]]}
    manifest["corpus"] |= {"source": TEXTS[17], "extra": {EXTRA: "string"}}
    path.write_text(json.dumps(manifest))
    planted = {stage: {topic: centres[topic] * stage for topic in names} for stage in (1, 2, 3)}
    analyse.run(analyse.AnalyseConfig(cache, name, model=PlantedTopics(SHAPE, planted)))
    project.run(ProjectConfig(cache, name, iterations=30))
    layers.run(layers.LayersConfig(cache, name, model=PlantedLayers(_layers)))
    retrieve.run(retrieve.RetrieveConfig(cache, name, limit=12))
    _attention(run)
    _ablation(run)
    _answers(run, labels, names)
    return run


def _layers(texts: Sequence[str]) -> dict[int, np.ndarray]:
    """Noise at every layer: ``[layer, text, width]`` by stage."""
    chance = np.random.default_rng(3)
    return {stage: chance.normal(size=(SHAPE.layers, len(texts), 32)).astype(np.float32) for stage in (1, 2, 3)}


def _answers(run: Run, labels: list[str], names: list[str]) -> None:
    """A language model's labels beside the corpus's own, and its reasons where it has none."""
    given = [names[(doc + doc % 2) % len(names)] if doc % 5 else None for doc in range(len(labels))]
    reasons = [None if topic else TEXTS[doc % len(TEXTS)] for doc, topic in enumerate(given)]
    for source, topics, why in (("column", labels, [None] * len(labels)), ("openai", given, reasons)):
        rows = {"doc": range(len(labels)), "topic": topics, "score": [None] * len(labels), "reason": why}
        write_table(run.labels_path(source), pa.table({k: list(v) for k, v in rows.items()}, schema=LABELS), "labels")
    manifest = run.manifest()
    step = Step("labels", "done", "2026-01-01", "2026-01-01", options={"source": "column", "model": TEXTS[0]})
    run.write_manifest(manifest.with_step("label", step))


def _experiments(run: Run, heads: dict[str, Any]) -> None:
    """What experiments would have shown: every word of a stranger's treebank is hostile."""
    from core.runs.schema import ANALYSIS

    claims, scores, relations, examples = [], [], [], []
    for layer, head in zip(heads["layer"], heads["head"], strict=True):
        at = {"layer": layer, "head": head}
        claims.append({**at, "nth": 1, "type": "modifier", "strength": 0.2, "because": TEXTS[3]})
        scores.append({**dict.fromkeys(ANALYSIS["attention_scores"].names, 0.1), **at})
        figures = dict.fromkeys(("chosen", "score", "low", "high", "offset_score", "shuffled", "p", "p_adjusted"), 0.3)
        name = {"relation": "determiner → noun"}
        relations.append({**at, **name, **figures, "pairs": 20, "fixed_offset": 1, "beyond": True})
        words = [text[:200] for text in TEXTS]
        arrows = {"starts": [0, 1, 99, -5], "right": [1, 0, 0, 0], "attended": [1, 2, 0, 10**6]}
        examples.append({**at, **name, **arrows, "type": "modifier", "example": 1, "words": words})
    made = {"attention_claims": claims, "attention_scores": scores, "relations": relations}
    for table, rows in {**made, "relation_examples": examples}.items():
        write_table(run.analysis_path(table), pa.Table.from_pylist(rows, schema=ANALYSIS[table]), "attention")


def _attention(run: Run) -> None:
    """What heads look at, of noise: the run's model is none that could be asked."""
    from core.analysis.attention_measures import measured
    from core.runs.schema import ANALYSIS
    from precompute.job.step import as_table
    from precompute.steps.attention.tables import Collected, attention_rows, pattern_rows

    collected, chance = Collected(SHAPE), np.random.default_rng(0)
    for _ in range(4):
        weights = chance.dirichlet(np.ones(12), size=(SHAPE.layers, SHAPE.heads, 12))
        collected.add([measured(layer, np.arange(12) % 5 == 1, np.arange(12) % 4 == 2) for layer in weights])
    rows = attention_rows(collected, seed=0)
    rows["because"], rows["types"] = (
        [TEXTS[0]] * len(rows["head"]),
        [["modifier", TEXTS[1], TEXTS[2]]] * len(rows["head"]),
    )
    for name, made in (("attention", rows), ("attention_patterns", pattern_rows(collected))):
        write_table(run.analysis_path(name), as_table(made, ANALYSIS[name]), "attention")
    _experiments(run, rows)
    step = Step("attention", "done", "2026-01-01", "2026-01-01", counts={"documents": 4, "tokens": 48, "sentences": 9})
    run.write_manifest(run.manifest().with_step("attention", step))


def _ablation(run: Run) -> None:
    """What switching heads off does, planted; nearest topics are hostile names."""
    from tests.support.planted_ablation import planted_ablation

    planted_ablation(run, loses=(1, 1), gains=(1, 2))
