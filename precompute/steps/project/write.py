"""Writing maps: all points of a stage, and a few of all stages for the small maps of the first page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.stratify import stratified
from core.runs.files import replacing
from core.runs.parts import write_table
from core.runs.schema import DIGEST, MAP, PREVIEW

PREVIEWED = 2_500
"""Points of a small map."""
_GROUP = 65_536
"""Points of a row group: a document's are looked up by it."""


def write_map(path: Path, places: np.ndarray, activation: np.ndarray, fitted: np.ndarray, digest: str) -> None:
    """``places[doc, head, 2]`` and ``activation[doc, head]``; ``fitted`` are the documents that were not placed.

    Some documents at a time: a row takes three times what it takes in the arrays.
    """
    docs, heads, _ = places.shape
    is_fitted = np.zeros(docs, dtype=bool)
    is_fitted[fitted] = True
    each = max(1, _GROUP // heads)
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(
            temporary, MAP.with_metadata({DIGEST: digest}), compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        for first in range(0, max(docs, 1), each):
            own = slice(first, min(first + each, docs))
            count = own.stop - own.start
            columns = [
                np.repeat(np.arange(own.start, own.stop, dtype=np.int32), heads),
                np.tile(np.arange(1, heads + 1, dtype=np.int16), count),
                *(np.ascontiguousarray(places[own, :, axis], np.float32).reshape(-1) for axis in (0, 1)),
                activation[own].astype(np.float32).reshape(-1),
                np.repeat(is_fitted[own], heads),
            ]
            writer.write_table(pa.Table.from_arrays([pa.array(column) for column in columns], schema=MAP))


def write_preview(path: Path, places: Mapping[int, np.ndarray], labels: np.ndarray, digest: str) -> None:
    """Of each stage's ``places[doc, head, 2]`` those of a few documents, in which every topic has its share."""
    heads = next(iter(places.values())).shape[1]
    chosen = stratified(labels, max(1, PREVIEWED // heads))
    tables = [
        pa.table(
            {
                "stage": np.full(len(chosen) * heads, stage, dtype=np.int8),
                "doc": np.repeat(chosen, heads).astype(np.int32),
                "head": np.tile(np.arange(1, heads + 1, dtype=np.int16), len(chosen)),
                "x": found[chosen, :, 0].reshape(-1).astype(np.float32),
                "y": found[chosen, :, 1].reshape(-1).astype(np.float32),
            },
            schema=PREVIEW,
        )
        for stage, found in places.items()
    ]
    write_table(path, pa.concat_tables(tables), digest)
