"""A run whose vectors outgrow float16 goes over to float32, the parts written so far with it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from core.model.shape import ModelShape
from core.runs.run import Run, digest_of, read_part, write_part
from core.runs.schema import heads_schema


def widen_parts(run: Run, shape: ModelShape) -> None:
    """Rewrites every float16 part as float32, one at a time; may be interrupted and repeated."""
    for stage in shape.stages:
        narrow = heads_schema(shape.width(stage), "float16")
        for path in run.parts(stage):
            digest = digest_of(run.inside(path))
            if digest is None or pq.read_schema(path).field("vector").type.value_type != pa.float16():
                continue
            docs = pq.read_table(path, columns=["doc"])["doc"].to_numpy()
            write_part(path, docs, read_part(path, narrow, run.rebuild), "float32", digest)
