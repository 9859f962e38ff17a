"""The query set of a run, as its heads see it: read from retrieval/queries.parquet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import Mistake
from core.retrieval.queries import MOST
from core.runs.parquet import read_columns
from core.runs.run import Run
from core.runs.schema import queries_schema


@dataclass(frozen=True)
class QuerySet:
    """What was asked, ``[query]`` each."""

    texts: tuple[str, ...]
    relevant: tuple[tuple[int, ...], ...]
    """Documents that should be found, at least one each."""
    aspects: np.ndarray
    vectors: dict[int, np.ndarray]
    """By stage ``[query, head, dim]``."""


def read_query_set(run: Run) -> QuerySet | None:
    """None where the run was judged by its topics alone."""
    manifest = run.manifest()
    step = manifest.steps.get("retrieve")
    count = int(step.counts.get("queries", 0)) if step is not None else 0
    if not count:
        return None
    remedy = f"python -m precompute retrieve {run.name} --again"
    shape = manifest.shape
    schema = queries_schema({stage: shape.width(stage) for stage in manifest.stages})
    if count > MOST:
        raise Mistake(f"queries.parquet has more than {MOST:,} queries. Rebuild it with '{remedy}'.")
    table = read_columns(run.inside(run.queries_path), schema, remedy, count)
    relevant = tuple(tuple(docs) for docs in table["relevant"].to_pylist())
    documents = int(manifest.corpus["documents"])
    if not all(docs and all(doc is not None and 0 <= doc < documents for doc in docs) for docs in relevant):
        raise Mistake(f"queries.parquet names documents that the run does not have. Rebuild it with '{remedy}'.")
    vectors = {}
    for stage in manifest.stages:
        values = table[f"stage_{stage}"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        if not np.isfinite(values).all():
            raise Mistake(f"queries.parquet holds a number that is not finite. Rebuild it with '{remedy}'.")
        vectors[stage] = values.reshape(count, shape.heads, -1)
    return QuerySet(tuple(table["text"].to_pylist()), relevant, table["aspects"].to_numpy(), vectors)
