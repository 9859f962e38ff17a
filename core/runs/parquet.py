"""Parquet files that a stranger may have made: counted and measured before they are read, and while they are."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import Mistake
from core.runs.schema import check_schema, short_name

MOST_BYTES = 8 * 2**30
"""What one reading may take in memory: sixteen times what a hundred thousand documents of 5 kB need."""
_SMALL, _RATIO = 256 * 2**20, 1_000
"""A file may take so many bytes whatever its own size is, and beyond them so many times its size."""
_MOST_GROUPS, _MOST_FOOTER = 100_000, 64 * 2**20
_FOLDERS = ("analysis", "labels", "map", "similarity")
_LEAST = 4
"""Bytes of a value in memory: a list can say one number a million times in a few bytes."""
_PIECE = 16_384
"""Rows whose texts become one array, which holds 2 GB."""
_AT_ONCE = 32 * 2**20
"""Bytes of small row groups that are read together: one by one a thousand of them take a second."""
GROUP_ROWS = 1_000
"""Rows of a row group of files that are looked up: one document's costs reading so many."""
_KEPT = 48 * 2**20
"""Bytes of row groups that a lookup keeps; the last one that was read stays, however large it is."""


def open_parquet(
    path: Path,
    schema: pa.Schema,
    rebuild: str,
    rows: int | None = None,
    columns: Sequence[str] | None = None,
    by_group: bool = False,
) -> pq.ParquetFile:
    """A file that has ``schema`` and, if that is known, so many ``rows``; only its metadata has been read.

    ``by_group``: never more than one row group of it is going to be held, however large the whole is. Texts come out of
    it as dictionaries: a file of 300 bytes can hold one text of a megabyte and say it 20,000 times.
    """
    wanted = _wanted(schema, columns)
    try:
        if not path.is_file():  # a pipe would be waited for
            raise FileNotFoundError(path)
        source = pa.OSFile(str(path))
        plain = pq.ParquetFile(source, thrift_string_size_limit=_MOST_FOOTER, thrift_container_size_limit=10**6)
        check_schema(path, plain.schema_arrow, schema, rebuild)
        _check_counts(path, plain.metadata, wanted, rebuild, rows, by_group)
        texts = [plain.schema.column(at).path for at in range(len(plain.schema)) if _is_text(plain.schema.column(at))]
        return pq.ParquetFile(
            source, metadata=plain.metadata, read_dictionary=texts, page_checksum_verification=True, buffer_size=2**20
        )
    except FileNotFoundError as error:
        raise Mistake(f"{path.name} is missing. Rebuild it with '{rebuild}'.") from error
    except (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise Mistake(f"{path.name} cannot be read: it is damaged. Rebuild it with '{rebuild}'.") from error


def read_columns(
    path: Path, schema: pa.Schema, rebuild: str, rows: int | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """The columns asked for, or all of ``schema``, whole and checked; others that the file may have are not read."""
    wanted = _wanted(schema, columns)
    return pa.concat_tables([wanted.empty_table(), *row_groups(path, schema, rebuild, rows, columns)])


def row_groups(
    path: Path, schema: pa.Schema, rebuild: str, rows: int | None = None, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The same, some row groups at a time."""
    file, most = open_parquet(path, schema, rebuild, rows, columns), most_bytes(path)
    texts = 0
    for groups in _together(file.metadata):
        found = read_groups(file, path, most, groups, schema, rebuild, columns, texts)
        texts = found.texts
        yield found.table


@dataclass(frozen=True)
class RowGroups:
    """Row groups of a file, and how many bytes their texts and those before them have."""

    table: pa.Table
    texts: int


def read_groups(
    file: pq.ParquetFile,
    path: Path,
    most: int,
    groups: Sequence[int],
    schema: pa.Schema,
    rebuild: str,
    columns: Sequence[str] | None = None,
    before: int = 0,
) -> RowGroups:
    """Some row groups of a file that ``open_parquet`` has opened, checked; ``before``: bytes of texts read already.

    ``most`` bytes they may take (``most_bytes``, asked when the file was opened). The path is only named: another run's
    file may be there by now, or none.
    """
    wanted = _wanted(schema, columns)
    try:
        found = file.read_row_groups(list(groups), columns=wanted.names)
        texts = before + sum(_text_bytes(chunk) for column in found.columns for chunk in column.chunks)
        if texts > most:
            raise _too_large(path, rebuild, texts)
        if len(found) != sum(file.metadata.row_group(group).num_rows for group in groups):
            raise damaged(path, rebuild)
        return RowGroups(_dense(path, found, wanted, rebuild), texts)
    except (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError, MemoryError) as error:
        raise damaged(path, rebuild) from error


def _together(metadata: pq.FileMetaData) -> Iterator[list[int]]:
    """Row groups in order, small ones in one list."""
    groups: list[int] = []
    rows = size = 0
    for group in range(metadata.num_row_groups):
        own = metadata.row_group(group)
        if groups and (rows + own.num_rows > _PIECE or size + own.total_byte_size > _AT_ONCE):
            yield groups
            groups, rows, size = [], 0, 0
        groups.append(group)
        rows, size = rows + own.num_rows, size + own.total_byte_size
    if groups:
        yield groups


def damaged(path: Path, rebuild: str) -> Mistake:
    name = f"{path.parent.name}/{path.name}" if path.parent.name in _FOLDERS else short_name(path)
    return Mistake(f"{name} is damaged. Rebuild it with '{rebuild}'.")


def _wanted(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


def _check_counts(
    path: Path, found: pq.FileMetaData, wanted: pa.Schema, rebuild: str, rows: int | None, by_group: bool
) -> None:
    if rows is not None and found.num_rows != rows:
        raise Mistake(f"{short_name(path)} has {found.num_rows:,} rows, not {rows:,}. Rebuild it with '{rebuild}'.")
    groups = [found.row_group(at) for at in range(min(found.num_row_groups, _MOST_GROUPS))]
    if sum(group.num_rows for group in groups) != found.num_rows or any(group.num_rows < 0 for group in groups):
        raise damaged(path, rebuild)
    lists = {field.name for field in wanted if pa.types.is_list(field.type)}
    places = [at for at in range(found.num_columns) if found.schema.column(at).path.split(".")[0] in wanted.names]
    width = sum(_width(field.type) for field in wanted)
    needs = [
        max(
            sum(
                max(0, column.total_uncompressed_size, _LEAST * _values_of_list(column, lists))
                for column in (group.column(at) for at in places)
            ),
            group.num_rows * width,
        )
        for group in groups
    ]
    needed = max(needs, default=0) if by_group else sum(needs)
    if needed > most_bytes(path):
        raise _too_large(path, rebuild, needed)


def _values_of_list(column: pq.ColumnChunkMetaData, lists: Collection[str]) -> int:
    """How many values its rows have together, where a row may have any number of them."""
    return int(column.num_values) if column.path_in_schema.split(".")[0] in lists else 0


def most_bytes(path: Path) -> int:
    """What a file may take in memory, by its own size."""
    return min(MOST_BYTES, _SMALL + _RATIO * path.stat().st_size)


def _too_large(path: Path, rebuild: str, needed: int) -> Mistake:
    return Mistake(
        f"{short_name(path)} would take {needed / 2**30:,.1f} GB in memory, far more than such a file should, and is "
        f"not read. Rebuild it with '{rebuild}'."
    )


def _width(found: pa.DataType) -> int:
    """Bytes of a row in memory, as far as the type alone says."""
    if pa.types.is_fixed_size_list(found):
        return int(found.list_size) * _width(found.value_type)
    return 4 if pa.types.is_string(found) or pa.types.is_list(found) else max(1, found.bit_width // 8)


def _is_text(column: pq.ColumnSchema) -> bool:
    return bool(column.physical_type == "BYTE_ARRAY")


def _text_bytes(column: pa.Array) -> int:
    """How long the texts of a column are, all in all, once each row has its own."""
    if pa.types.is_list(column.type):
        return _text_bytes(column.flatten())
    if not pa.types.is_dictionary(column.type):
        return 0
    import pyarrow.compute as pc  # takes a while, and 'status' does without

    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def _dense(path: Path, found: pa.Table, wanted: pa.Schema, rebuild: str) -> pa.Table:
    """Every row with its own text, as ``wanted`` says; texts are UTF-8, and nothing is missing that must be there."""
    pieces = [found.slice(first, _PIECE) for first in range(0, len(found), _PIECE)]
    table = pa.concat_tables(
        [
            wanted.empty_table(),
            *(pa.table([piece[field.name].cast(field.type) for field in wanted], schema=wanted) for piece in pieces),
        ]
    )
    table.validate(full=True)
    for field, column in zip(wanted, table.columns, strict=True):
        if not field.nullable and column.null_count:
            raise Mistake(f"{short_name(path)} is missing values in '{field.name}'. Rebuild it with '{rebuild}'.")
    return table


class RowLookup:
    """A file of ``rows`` rows that has ``schema``; any number of threads may ask it.

    The file stays open: where a new version of the run takes its place, this goes on with the one that it has begun
    with.
    """

    def __init__(self, path: Path, schema: pa.Schema, rebuild: str, rows: int, kept: int = _KEPT) -> None:
        self._path, self._schema, self._rebuild, self._kept_bytes = path, schema, rebuild, kept
        self._file, self._most = open_parquet(path, schema, rebuild, rows, by_group=True), most_bytes(path)
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._starts = np.cumsum([0, *sizes])
        self._kept: OrderedDict[tuple[int, str], pa.Array] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def rows(self, numbers: Sequence[int] | np.ndarray, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of these numbers, in their order; only the columns asked for are read."""
        asked = np.asarray(numbers, dtype=np.int64)
        if len(asked) and not (asked.min() >= 0 and asked.max() < len(self)):
            raise IndexError(f"{self._path.name} has {len(self)} rows")
        wanted = self._schema if columns is None else pa.schema([self._schema.field(name) for name in columns])
        groups = np.searchsorted(self._starts, asked, side="right") - 1
        order = np.argsort(groups, kind="stable")
        pieces = []
        for group in np.unique(groups).tolist():
            own = order[slice(*np.searchsorted(groups[order], [group, group + 1]))]
            at = pa.array(asked[own] - self._starts[group])
            pieces.append(pa.table([column.take(at) for column in self._group(group, wanted.names)], schema=wanted))
        found = pa.concat_tables([wanted.empty_table(), *pieces])
        return found.take(pa.array(np.argsort(order, kind="stable"))) if len(pieces) > 1 or len(asked) > 1 else found

    def row(self, number: int, columns: Sequence[str] | None = None) -> dict[str, Any]:
        """One row, by column."""
        found: dict[str, Any] = self.rows([number], columns).to_pylist()[0]
        return found

    def _group(self, group: int, names: Sequence[str]) -> list[pa.Array]:
        with self._lock:
            missing = [name for name in names if (group, name) not in self._kept]
            found: dict[str, pa.Array] = {}
            if missing:
                table = read_groups(
                    self._file, self._path, self._most, [group], self._schema, self._rebuild, missing
                ).table
                found = {name: table[name].combine_chunks() for name in missing}
            for name in names:
                column = self._kept.get((group, name))
                found[name] = found[name] if column is None else column
                if column is None:
                    self._kept[group, name] = found[name]
                    self._bytes += found[name].nbytes
                self._kept.move_to_end((group, name))
            while self._bytes > self._kept_bytes and len(self._kept) > len(names):
                self._bytes -= self._kept.popitem(last=False)[1].nbytes
            return [found[name] for name in names]
