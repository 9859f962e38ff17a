"""Rows of a large file by their numbers, a row group at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import Mistake
from core.runs import parquet
from core.runs import parquet as row_lookup
from core.runs.parquet import RowLookup

SCHEMA = pa.schema([pa.field("doc", pa.int32(), nullable=False), pa.field("text", pa.string(), nullable=False)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Ten rows in groups of three, three, three and one."""
    table = pa.table(
        {"doc": np.arange(10, dtype=np.int32), "text": [f"text {doc}" for doc in range(10)]}, schema=SCHEMA
    )
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=3, write_page_checksum=True)
    return tmp_path / "rows.parquet"


def lookup(path: Path, kept: int = 2**20) -> RowLookup:
    return RowLookup(path, SCHEMA, "rebuild", 10, kept)


def test_rows_come_in_the_order_they_are_asked_for(path: Path) -> None:
    found = lookup(path).rows([9, 0, 4, 4, 5])
    assert found.to_pydict() == {"doc": [9, 0, 4, 4, 5], "text": ["text 9", "text 0", "text 4", "text 4", "text 5"]}
    assert lookup(path).rows(np.array([7, 2]), ["text"]).to_pydict() == {"text": ["text 7", "text 2"]}
    assert lookup(path).row(3) == {"doc": 3, "text": "text 3"}
    assert lookup(path).rows([]).schema == SCHEMA
    assert len(lookup(path)) == 10


@pytest.mark.parametrize("number", [-1, 10])
def test_a_row_that_is_not_there(path: Path, number: int) -> None:
    with pytest.raises(IndexError):
        lookup(path).rows([3, number])


def test_only_the_groups_that_are_needed_are_read_and_the_last_are_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    plain = parquet.read_groups

    def counted(file: pq.ParquetFile, at: Path, most: int, groups: list[int], *rest: object) -> parquet.Groups:
        read.extend(groups)
        return plain(file, at, most, groups, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(row_lookup, "read_groups", counted)
    found = lookup(path)
    found.rows([0, 8])
    assert read == [0, 2]
    found.rows([1, 7])
    assert read == [0, 2], "both are kept"
    found = lookup(path, kept=0)
    for number in (0, 9, 9, 0):
        found.row(number)
    assert read == [0, 2, 0, 3, 0], "the last one stays, however little may be kept"


def test_a_file_with_another_number_of_rows_is_refused(path: Path) -> None:
    with pytest.raises(Mistake, match=r"has 10 rows, not 11\. Rebuild it with 'rebuild'"):
        RowLookup(path, SCHEMA, "rebuild", 11)


def test_a_damaged_group_is_told_when_it_is_read(path: Path) -> None:
    column = pq.read_metadata(path).row_group(2).column(1)
    data = bytearray(path.read_bytes())
    data[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 0xFF
    path.write_bytes(data)
    found = lookup(path)
    assert found.row(0)["text"] == "text 0"
    with pytest.raises(Mistake, match="is damaged"):
        found.row(7)


def test_a_file_larger_than_memory_is_looked_up_but_not_read_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "most_bytes", lambda _: 400)  # bytes: a group takes about 200
    assert lookup(path).row(9)["text"] == "text 9"
    with pytest.raises(Mistake, match="in memory"):
        parquet.read_columns(path, SCHEMA, "rebuild")


def test_a_file_that_is_open_is_read_though_its_run_is_being_replaced(path: Path) -> None:
    """Between two renames there is nothing at the path: that file is not damaged."""
    found = lookup(path)
    path.unlink()
    assert found.row(7)["text"] == "text 7"
