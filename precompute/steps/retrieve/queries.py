"""The query set as the run's model sees it: retrieval/queries.parquet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from core.retrieval.queries import Query
from core.runs.files import remove_file
from core.runs.manifest import Manifest
from core.runs.parts import write_table
from core.runs.run import Run
from core.runs.schema import queries_schema
from precompute.job.topic_vectors import TopicModel


def query_table(run: Run, manifest: Manifest, queries: tuple[Query, ...], how: TopicModel) -> pa.Table:
    """The queries, embedded with the model's prompt for queries, if it has one."""
    embedded = how.load(manifest).embed([query.text for query in queries], query=True)
    schema = queries_schema({stage: manifest.shape.width(stage) for stage in manifest.stages})
    columns = [
        pa.array(range(len(queries)), pa.int32()),
        pa.array([query.text for query in queries], pa.string()),
        pa.array([query.aspects for query in queries], pa.int16()),
        pa.array([list(query.relevant) for query in queries], pa.list_(pa.int32())),
    ]
    for stage in manifest.stages:
        values = pa.array(np.ascontiguousarray(embedded.stage(stage), dtype=np.float32).reshape(-1))
        columns.append(pa.FixedSizeListArray.from_arrays(values, type=schema.field(f"stage_{stage}").type))
    return pa.Table.from_arrays(columns, schema=schema)


def write_queries(run: Run, table: pa.Table | None, digest: str) -> None:
    """Keeps them for the app; where there are none, the last ones go."""
    if table is None:
        remove_file(run.queries_path)
    else:
        write_table(run.queries_path, table, digest)


def query_vectors(table: pa.Table, stage: int, heads: int) -> np.ndarray:
    """``[query, head, dim]``."""
    column = table[f"stage_{stage}"].combine_chunks()
    values: np.ndarray = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), heads, -1)
