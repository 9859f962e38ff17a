"""Retrieval tasks by name, through the library ``mteb`` (requirements-mteb.txt): it knows where their data are."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from core.errors import Mistake
from core.retrieval.beir import BeirTask

_BY_FOLDER = "Or give a folder in BEIR's layout (corpus.jsonl, queries.jsonl, qrels/test.tsv)."


def tasks_named(name: str) -> list[BeirTask]:
    """The retrieval task of this name, or all those of a benchmark such as NanoBEIR."""
    try:
        mteb = import_module("mteb")
    except ImportError as error:
        raise Mistake(
            f"'{name}' is not a folder, and tasks by name need the package mteb. Install it with 'pip install -r "
            f"requirements-mteb.txt'. {_BY_FOLDER}"
        ) from error
    found = _known(mteb, name)
    if other := [task for task in found if task.metadata.type != "Retrieval"]:
        one = other[0].metadata
        raise Mistake(f"The task '{one.name}' is not a retrieval task (mteb calls it {one.type}). Choose another one.")
    return [_read(task) for task in found]


def _known(mteb: Any, name: str) -> list[Any]:
    try:
        return [mteb.get_task(name)]
    except KeyError:
        pass
    try:
        return list(mteb.get_benchmark(name).tasks)
    except KeyError as error:
        raise Mistake(
            f"'{name}' is neither a folder nor a task or benchmark of mteb. Names are like NanoSciFactRetrieval or "
            "NanoBEIR."
        ) from error


def _read(task: Any) -> BeirTask:
    """The task's first subset and split: those of NanoBEIR have one each."""
    name = str(task.metadata.name)
    try:
        task.load_data()
        task.convert_v1_dataset_format_to_v2(num_proc=None)
    except Exception as error:  # the hub, the network, the disk: mteb passes on whatever they raise
        raise Mistake(
            f"The data of '{name}' could not be loaded: {error or type(error).__name__}. Check the network connection "
            f"and HF_HUB_OFFLINE. {_BY_FOLDER}"
        ) from error
    data = next(iter(next(iter(task.dataset.values())).values()))
    documents = {str(row["id"]): f"{row.get('title') or ''} {row['text']}".strip() for row in data["corpus"]}
    return _task(name, documents, {str(row["id"]): str(row["text"]) for row in data["queries"]}, data["relevant_docs"])


def _task(
    name: str, documents: Mapping[str, str], queries: Mapping[str, str], scores: Mapping[str, Mapping[str, int]]
) -> BeirTask:
    place = {key: at for at, key in enumerate(documents)}
    relevant = {
        query: tuple(place[doc] for doc, score in scores.get(query, {}).items() if score > 0 and doc in place)
        for query in queries
    }
    asked = [query for query, docs in relevant.items() if docs]
    if not asked:
        raise Mistake(f"The task '{name}' has no query with a relevant document. Choose another one.")
    return BeirTask(
        name,
        tuple(documents.values()),
        tuple(queries[query] for query in asked),
        tuple(relevant[query] for query in asked),
    )
