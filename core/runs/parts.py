"""Parquet files as the steps write them: parts of head vectors, and tables, each with a digest of its inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.runs.backend import backend_of
from core.runs.files import replacing
from core.runs.number_formats import Quantised, dequantised, quantise
from core.runs.parquet import read_columns
from core.runs.schema import DIGEST, INT8, heads_schema


def write_part(path: Path, docs: np.ndarray, vectors: np.ndarray, dtype: str, digest: str, heads: int = 1) -> None:
    """One part of head vectors: ``docs[doc]`` and ``vectors[doc, width]``; as int8 each of ``heads`` has a scale."""
    schema = heads_schema(vectors.shape[1], dtype, heads)
    small = quantise(vectors, heads) if dtype == INT8 else None
    lists = [np.ascontiguousarray(vectors, dtype=dtype)] if small is None else [small.values, small.scale]
    columns = [pa.array(docs, pa.int32())]
    for field, values in zip(list(schema)[1:], lists, strict=True):
        columns.append(pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), type=field.type))
    table = pa.Table.from_arrays(columns, schema=schema)
    write_table(path, table, digest, compression="none")


def write_table(path: Path, table: pa.Table, digest: str, compression: str = "zstd") -> None:
    """A Parquet file with page checksums and the digest of what it was made from."""
    # Parquet has no integers below four bytes, but an int8's number in a dictionary of 255 takes one.
    lists = [field for field in table.schema if pa.types.is_fixed_size_list(field.type)]
    small = [f"{field.name}.list.element" for field in lists if field.type.value_type == pa.int8()]
    with replacing(path) as temporary:
        pq.write_table(
            table.replace_schema_metadata({DIGEST: digest}),
            temporary,
            compression=compression,
            use_dictionary=compression != "none" or small,
            write_page_checksum=True,
        )


def read_part(path: Path, schema: pa.Schema, rebuild: str, rows: int | None = None) -> np.ndarray:
    """The vectors of one part, ``[doc, width]``; ``rows`` is how many it must have, if that is known.

    As stored, but int8 is float16 again, or float32 where that does not hold it.
    """
    table = read_columns(path, schema, rebuild, rows, schema.names[1:])
    lists = [column.combine_chunks() for column in table.columns]
    arrays = [one.flatten().to_numpy(zero_copy_only=False).reshape(len(one), one.type.list_size) for one in lists]
    return arrays[0] if len(arrays) == 1 else dequantised(Quantised(*arrays))


def digest_of(path: Path) -> str | None:
    """What a Parquet file says it was made from; None where there is no whole file."""
    found = backend_of(path).footer(path)
    metadata = found.metadata or {} if found is not None else {}
    return metadata[DIGEST].decode("utf-8", "replace") if DIGEST in metadata else None


def is_finite(vectors: np.ndarray) -> bool:
    """Whether all numbers are; a float16's by its exponent, many times faster than NumPy looks at it."""
    if vectors.dtype == np.float16:
        return not ((np.ascontiguousarray(vectors).view(np.uint16) & 0x7C00) == 0x7C00).any()
    return bool(np.isfinite(vectors).all())
