"""One stage of ``retrieve``: its tasks posed to every head, and the rows of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from core.model.share_space import ShareSpace
from core.model.stages import SHARE, split_heads
from core.retrieval.head_index import HeadIndex
from core.retrieval.judge import Asked
from core.retrieval.queries import Query
from core.retrieval.rivals import rivals
from core.retrieval.study import FEWEST, Scales, compare_ways, prune, ways_at, weigh
from core.retrieval.tasks import (
    QUERY_SET,
    SAME_TOPIC,
    TASKS,
    Posed,
    ask,
    pose_query_set,
    pose_same_topic,
    pose_topic_match,
    queries_that_fit,
    same_topic_queries,
    searched,
    topic_match_queries,
)
from core.retrieval.turned import ShareRows, TurnedHeads
from core.retrieval.votes import Say
from core.retrieval.ways import DEPTH, SIDE_BY_SIDE
from core.runs.manifest import Manifest
from core.runs.results import read_topics
from core.runs.run import Run
from core.runs.shares import space_of
from precompute.job.progress import OnProgress
from precompute.job.step import Rows
from precompute.job.vectors import StageVectors
from precompute.steps.retrieve.queries import query_vectors
from precompute.steps.retrieve.tables import add_pruned, add_rivals, add_way_differences, add_ways, add_weights

OUTPUT = 3
_SHARES = (0.25, 0.35, 0.9, 1.0)
"""Of a task's time: until the heads have looked, the ways are compared, heads are let go, weights are learned."""


@dataclass(frozen=True)
class StageTasks:
    """What is asked at every stage."""

    tasks: tuple[str, ...]
    queries: tuple[Query, ...]
    labels: np.ndarray
    """``[doc]``, -1 without."""
    ways: tuple[str, ...]
    limit: int
    seed: int


@dataclass(frozen=True)
class _Searched:
    """What the queries of a task are held against."""

    index: HeadIndex
    posed: Posed
    topics: np.ndarray


def study_stage(
    run: Run, manifest: Manifest, stage: int, given: StageTasks, queries: pa.Table | None, on_stage: OnProgress
) -> dict[str, Rows]:
    """The rows of all tables at one stage."""
    tables: dict[str, Rows] = {}
    heads = manifest.shape.heads
    vectors = StageVectors(run, stage)
    say = Say.of(vectors, heads)
    scales = Scales(say.weight, say.activation)
    posed_tasks = _posed(run, vectors, manifest, stage, given, queries)
    outputs = _outputs(run, manifest, stage, given, queries)
    for number, ((task, found), output) in enumerate(zip(posed_tasks, outputs, strict=True)):

        def on_progress(fraction: float, message: str, number: int = number, task: str = task) -> None:
            on_stage((number + fraction) / len(given.tasks), f"{TASKS[task].title}: {message}")

        fitting = queries_that_fit(len(found.posed.own), found.index.docs, heads)
        chosen = np.sort(np.random.default_rng(given.seed).permutation(len(found.posed.own))[:fitting])
        posed = found.posed.some(chosen)
        asked = ask(
            found.index, posed, found.topics, lambda share: on_progress(_SHARES[0] * share, "every head searches")
        )
        summed = _summed(found.index, posed, output, chosen) if stage == SHARE else None
        study_task(tables, stage, task, posed, found.index, asked, scales, given, on_progress, summed)
    return tables


def _outputs(
    run: Run, manifest: Manifest, stage: int, given: StageTasks, queries: pa.Table | None
) -> Iterator[_Searched | None]:
    """At stage 4, the same tasks in the model's own embedding; None for each where the run does not store it."""
    if stage != SHARE or OUTPUT not in manifest.stages:
        return iter([None] * len(given.tasks))
    posed = _posed(run, StageVectors(run, OUTPUT), manifest, OUTPUT, given, queries)
    return (found for _, found in posed)


def _summed(index: HeadIndex, posed: Posed, output: _Searched | None, chosen: np.ndarray) -> np.ndarray:
    """``[query, rank]``: documents by the full embedding of stage 4, as the Retrieval lab ranks them."""
    assert index.space is not None
    asked = docs = None
    if output is not None:
        asked, docs = output.posed.vectors[chosen].reshape(len(chosen), -1), output.index.vectors
        docs = docs.reshape(len(docs), -1)
    everyone = TurnedHeads(index.space, np.ones(index.space.heads), output is not None)
    return everyone.ranked(ShareRows(posed.vectors, asked), ShareRows(index.vectors, docs), posed.own, DEPTH)


def study_task(
    tables: dict[str, Rows],
    stage: int,
    task: str,
    posed: Posed,
    index: HeadIndex,
    asked: Asked,
    scales: Scales,
    given: StageTasks,
    on_progress: OnProgress,
    summed: np.ndarray | None = None,
) -> None:
    """Adds the rows of one task; ``summed`` is stage 4's, see ``compare_ways``."""
    looked, compared, pruned, _ = _SHARES
    found = compare_ways(
        asked,
        scales,
        stage,
        lambda share, message: on_progress(looked + (compared - looked) * share, message),
        given.seed,
        summed,
    )
    add_ways(tables, stage, task, found)
    add_way_differences(tables, stage, task, found, posed.aspects, TASKS[task].places)
    if len(asked.seen) < FEWEST:
        return
    metric, places = TASKS[task].metric, TASKS[task].places
    ways = list(dict.fromkeys(_here(way, stage) for way in given.ways))
    for number, way in enumerate(ways):
        made = prune(
            way,
            asked,
            scales,
            metric,
            places,
            lambda share, message, number=number: on_progress(  # type: ignore[misc]
                compared + (pruned - compared) * (number + share) / len(ways), message
            ),
            given.seed,
        )
        add_pruned(tables, stage, task, way, metric, places, made, scales, len(asked.seen))
        if way in ("full", SIDE_BY_SIDE) and len(made.enough.heads) < len(scales.scores):
            on_progress(pruned, "as many numbers, chosen without heads")
            found_rivals = rivals(index, posed, asked.topics, made.enough.heads, metric, places, given.seed)
            add_rivals(tables, stage, task, len(made.enough.heads), found_rivals)
    on_progress(pruned, "learning weights")
    add_weights(tables, stage, task, weigh(asked, scales, metric, places, given.seed))


def _here(way: str, stage: int) -> str:
    """Voting on slices of the final vector goes by its own name, and only there. At stage 4, the heads' shares side by
    side take less space with fewer heads; their sum does not."""
    if (way, stage) == ("full", SHARE):
        return SIDE_BY_SIDE
    return way if way in ways_at(stage) else {"voting": "split", "split": "voting", SIDE_BY_SIDE: "full"}[way]


def _posed(
    run: Run, vectors: StageVectors, manifest: Manifest, stage: int, given: StageTasks, queries: pa.Table | None
) -> Iterator[tuple[str, _Searched]]:
    heads = manifest.shape.heads
    asking = same_topic_queries(given.labels, given.limit, given.seed)
    wanted = [doc for query in given.queries for doc in query.relevant]
    among = searched(given.labels, np.union1d(wanted, asking).astype(int), seed=given.seed)
    index = _index(vectors, manifest, stage, among, space_of(run, manifest, stage))
    topics = given.labels[among]
    for task in given.tasks:
        if task == QUERY_SET and queries is not None:
            relevant = [query.relevant for query in given.queries]
            aspects = np.array([query.aspects for query in given.queries])
            posed = pose_query_set(query_vectors(queries, stage, heads), relevant, aspects, among)
            yield task, _Searched(index, posed, topics)
        elif task == SAME_TOPIC:
            own = _of(index, among, asking)
            yield task, _Searched(index, pose_same_topic(asking, own, given.labels, among), topics)
        else:
            docs = topic_match_queries(given.labels[among], given.limit, given.seed)
            names = read_topics(run).vectors[stage]
            posed = pose_topic_match(docs, index.vectors[docs].astype(np.float32), topics)
            yield task, _Searched(HeadIndex.of([names], heads, space=index.space), posed, np.arange(len(names)))


def _index(
    vectors: StageVectors, manifest: Manifest, stage: int, among: np.ndarray, space: ShareSpace | None
) -> HeadIndex:
    def parts() -> Iterator[np.ndarray]:
        first = 0
        for part in vectors:
            here = among[(among >= first) & (among < first + len(part))] - first
            yield split_heads(part[here], stage, manifest.shape).reshape(len(here), -1)
            first += len(part)

    return HeadIndex.of(parts(), manifest.shape.heads, space=space)


def _of(index: HeadIndex, among: np.ndarray, docs: np.ndarray) -> np.ndarray:
    """``[query, head, dim]`` of documents of the corpus."""
    found: np.ndarray = index.vectors[np.searchsorted(among, docs)].astype(np.float32)
    return found
