"""Rows of a large Parquet file by their numbers: their row groups are read, and the last ones are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from core.runs.parquet import most_bytes, open_parquet, read_groups

GROUP_ROWS = 1_000
"""Rows of a row group of files that are looked up: one document's costs reading so many."""
_KEPT = 48 * 2**20
"""Bytes of row groups that a lookup keeps; the last one that was read stays, however large it is."""


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
