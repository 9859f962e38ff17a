"""``bench``: the whole model, the pruned one and equally small rivals on retrieval tasks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from core.analysis.bootstrap import Interval
from core.analysis.wording import plural
from core.errors import Mistake
from core.model.heads_off import read_heads_off
from core.retrieval.beir import BeirTask, read_beir
from core.retrieval.small_rivals import BenchRow, Contender, bench_rows, ndcg_of, smaller
from core.runs.run import open_run
from precompute.job.step import embedded
from precompute.job.topic_vectors import TopicModel
from precompute.mteb_tasks import tasks_named

RANDOM_SETS = 3
"""Sets of as many random heads that are switched off."""


@dataclass(frozen=True)
class BenchConfig:
    cache: Path
    run: str
    tasks: tuple[Path, ...]
    """Folders in BEIR's layout, or names of tasks or benchmarks of mteb."""
    heads: Path | None = None
    seed: int = 0
    model: TopicModel = field(default_factory=TopicModel)


def bench(config: BenchConfig) -> dict[str, list[BenchRow]]:
    """By task: a row per contender, all heads first."""
    run = open_run(config.cache, config.run)
    manifest = embedded(run)
    shape, record = manifest.shape, manifest.model
    off = (
        None if config.heads is None else read_heads_off(config.heads, str(record["name"]), shape, int(record["layer"]))
    )
    if off is not None and off.how == "mean":
        raise Mistake('bench replaces the outputs of heads by zeros. Give a file with "how": "zero".')
    tasks = [task for asked in config.tasks for task in _tasks(asked)]
    model = config.model.load(manifest)

    def contender(task: BeirTask, name: str, places: list[tuple[int, int]]) -> Contender:
        change = model.without(places) if places else None
        docs = model.embed(list(task.documents), change=change).output
        queries = model.embed(list(task.queries), query=True, change=change).output
        return Contender(name, 4 * shape.hidden, docs, queries)

    found: dict[str, list[BenchRow]] = {}
    every = [(layer, head) for layer in range(1, shape.layers + 1) for head in range(1, shape.heads + 1)]
    for task in tasks:
        whole = contender(task, "all heads", [])
        names, values = [("all heads", whole.bytes)], [ndcg_of(whole, task.relevant)]
        if off is not None:
            count = len(off.off)
            pruned = contender(task, "pruned", list(off.off))
            names.append((f"without {plural(count, 'head')}", pruned.bytes))
            values.append(ndcg_of(pruned, task.relevant))
            chance = np.random.default_rng(config.seed)
            sets = [[every[at] for at in chance.permutation(len(every))[:count]] for _ in range(RANDOM_SETS)]
            drawn = [ndcg_of(contender(task, "random", one), task.relevant) for one in sets]
            names.append((f"without {plural(count, 'random head')}", whole.bytes))
            values.append(np.mean(drawn, axis=0))
        for one in smaller(whole.docs, whole.queries, config.seed):
            names.append((one.name, one.bytes))
            values.append(ndcg_of(one, task.relevant))
        found[task.name] = bench_rows(names, np.stack(values), config.seed)
    return found


def _tasks(asked: Path) -> list[BeirTask]:
    """Of a folder one; of a name those that mteb has."""
    if asked.is_dir():
        return [read_beir(asked)]
    if len(asked.parts) > 1 or asked.exists():
        raise Mistake(
            f"There is no folder '{asked}'. Give folders in BEIR's layout (corpus.jsonl, queries.jsonl, "
            "qrels/test.tsv), or names of mteb's tasks."
        )
    return tasks_named(asked.name)


def as_text(found: dict[str, list[BenchRow]]) -> str:
    lines = []
    for task, rows in found.items():
        lines.append(f"{task}: nDCG@10, 95 % CI over queries; difference to all heads, paired by query")
        for row in rows:
            difference = "" if row is rows[0] else f"{_interval(row.difference, signed=True)}"
            lines.append(f"  {row.name:<26}{row.bytes:>7,} bytes  {_interval(row.ndcg)}  {difference}".rstrip())
    return "\n".join(lines)


def as_json(found: dict[str, list[BenchRow]]) -> str:
    def three(interval: Interval) -> dict[str, float]:
        return {name: float(getattr(interval, name)) for name in ("value", "low", "high")}

    rows = {
        task: [
            {"name": row.name, "bytes": row.bytes, "ndcg": three(row.ndcg), "difference": three(row.difference)}
            for row in rows
        ]
        for task, rows in found.items()
    }
    return json.dumps({"metric": "ndcg@10", "tasks": rows}, indent=1, ensure_ascii=False)


def _interval(found: Interval, signed: bool = False) -> str:
    sign = "+" if signed else ""
    value, low, high = (f"{float(part):{sign}.3f}".replace("-", "−") for part in (found.value, found.low, found.high))
    return f"{value} ({low} to {high})"
