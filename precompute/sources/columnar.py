"""Parquet files, a small batch at a time."""

from collections.abc import Iterator
from typing import Any

from core.errors import Mistake
from precompute.sources.files import SourceFile
from precompute.sources.row import OnBad, Row

BATCH = 128  # rows; documents of a megabyte still fit


def read(file: SourceFile, on_bad: OnBad) -> Iterator[Row]:
    """A row for each row; nested values come as dicts and lists. Progress is by rows."""
    number = 0
    for total, batch in _batches(file):
        for row in _values(batch):
            number += 1
            where = f"{file.name} row {number}"
            if isinstance(row, Exception):
                on_bad(f"{where} holds a value that cannot be read ({row}).")
            else:
                yield Row(row, where, f"{file.name}:{number}", number / total)


def _batches(file: SourceFile) -> Iterator[tuple[int, Any]]:
    """Each batch, with the number of rows of the whole file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # With a buffer size pages are read as they are needed, not whole column chunks.
        with pq.ParquetFile(file.path, buffer_size=2**20) as parquet:
            names = parquet.schema_arrow.names
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise Mistake(f"{file.name} has two columns named {twice[0]!r}. Rename one.")
            for batch in parquet.iter_batches(BATCH):
                yield parquet.metadata.num_rows, batch
    except (pa.ArrowException, OSError) as error:
        problem = str(error).splitlines()[0]
        raise Mistake(f"{file.name} is not a whole Parquet file ({problem}). Fetch or write it again.") from error


def _values(batch: Any) -> list[Any]:
    """The rows as dicts; an exception in place of one that Python cannot hold (broken UTF-8, the year 20,000)."""
    try:
        return batch.to_pylist()
    except (ValueError, OverflowError):
        rows: list[Any] = []
        for index in range(batch.num_rows):
            try:
                rows += batch.slice(index, 1).to_pylist()
            except (ValueError, OverflowError) as error:
                rows.append(error)
        return rows
