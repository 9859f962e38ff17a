"""documents.parquet: the corpus's own columns, each in the narrowest type that holds all its values."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.runs.parts import write_table
from core.runs.run import Run
from core.runs.schema import DIGEST, DOCUMENTS, FINISHED_DOCUMENTS, STAGED_DOCUMENTS
from precompute.job.documents import finish_documents
from precompute.steps.embed.staging import documents_path, write_done


def finish(tmp_path: Path, *parts: list[dict[str, Any]]) -> tuple[dict[str, str], pa.Table]:
    """Stages documents with these extra columns, and returns the kinds and the table."""
    run = Run(tmp_path, "run")
    doc = 0
    for number, extras in enumerate(parts):
        docs = range(doc, doc + len(extras))
        doc += len(extras)
        rows = [
            {
                "doc": each,
                "id": f"d{each}",
                "title": f"Title {each}",
                "text": f"Text {each}",
                "url": None if each % 2 else f"https://example.org/{each}",
                "tokens": each + 3,
                "truncated": each == 1,
                "topic": "birds",
                "label_source": "column",
                "label_score": None,
                "extra": json.dumps(extra),
            }
            for each, extra in zip(docs, extras, strict=True)
        ]
        write_table(documents_path(run, number), pa.Table.from_pylist(rows, schema=STAGED_DOCUMENTS), "")
        write_done(run, number, pa.Table.from_pylist(rows, schema=FINISHED_DOCUMENTS), "")
    kinds = finish_documents(run, len(parts), "digest")
    return kinds, pq.read_table(run.documents_path)


BIG = 2**63

COLUMNS: dict[str, tuple[list[Any], str, pa.DataType, list[Any]]] = {
    "booleans": ([True, False, None], "boolean", pa.bool_(), [True, False, None]),
    "integers": ([1, None, -5], "integer", pa.int64(), [1, None, -5]),
    "zero and one are no booleans": ([0, 1, 0], "integer", pa.int64(), [0, 1, 0]),
    "widest integers": ([BIG - 1, -BIG, 0], "integer", pa.int64(), [BIG - 1, -BIG, 0]),
    "numbers": ([0.5, None, 1e300], "number", pa.float64(), [0.5, None, 1e300]),
    "integers and numbers": ([1, 0.5, 2], "number", pa.float64(), [1.0, 0.5, 2.0]),
    "numbers and integers": ([0.5, 1, None], "number", pa.float64(), [0.5, 1.0, None]),
    "strings": (["a", "", None], "string", pa.string(), ["a", "", None]),
    "strings of digits": (["1", "2", "3"], "string", pa.string(), ["1", "2", "3"]),
    "integers and strings": ([1, "b", None], "string", pa.string(), ["1", "b", None]),
    "strings and numbers": (["b", 0.5, 1], "string", pa.string(), ["b", "0.5", "1"]),
    "booleans and integers": ([True, 2, False], "string", pa.string(), ["true", "2", "false"]),
    "booleans and numbers": ([0.5, True, None], "string", pa.string(), ["0.5", "true", None]),
    "all null": ([None, None, None], "string", pa.string(), [None, None, None]),
    "null, then a kind": ([None, None, 3], "integer", pa.int64(), [None, None, 3]),
    "beyond 64 bits": ([BIG, 10**30, None], "string", pa.string(), [str(BIG), str(10**30), None]),
    "below 64 bits": ([-BIG - 1, 1, 1], "string", pa.string(), [str(-BIG - 1), "1", "1"]),
    "integers, then one beyond": ([1, 2, BIG], "string", pa.string(), ["1", "2", str(BIG)]),
    "numbers and one beyond": ([0.5, BIG, 1], "string", pa.string(), ["0.5", str(BIG), "1"]),
    "unicode": (["ä", "日本", "🦉"], "string", pa.string(), ["ä", "日本", "🦉"]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_kinds(tmp_path: Path, name: str) -> None:
    values, kind, arrow, expected = COLUMNS[name]
    # in two parts: the kind is that of all of them
    kinds, table = finish(tmp_path, [{"x": values[0]}, {"x": values[1]}], [{"x": values[2]}])
    assert kinds == {"x": kind}
    assert table.schema.field("x").type == arrow
    assert table["x"].to_pylist() == expected


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    kinds, table = finish(tmp_path, [{"x": math.inf}, {"x": math.nan}])
    assert kinds == {"x": "number"}
    first, second = table["x"].to_pylist()
    assert first == math.inf
    assert math.isnan(second)


def test_a_column_that_only_some_documents_have(tmp_path: Path) -> None:
    kinds, table = finish(tmp_path, [{"a": 1}, {}], [{"b": "x"}])
    assert kinds == {"a": "integer", "b": "string"}
    assert table["a"].to_pylist() == [1, None, None]
    assert table["b"].to_pylist() == [None, None, "x"]


def test_without_extra_columns_the_schema_is_ours_alone(tmp_path: Path) -> None:
    kinds, table = finish(tmp_path, [{}, {}])
    assert kinds == {}
    assert table.schema.remove_metadata() == DOCUMENTS


def test_a_column_of_the_corpus_named_like_the_staged_one(tmp_path: Path) -> None:
    kinds, table = finish(tmp_path, [{"extra": 5}, {"extra": 6}])
    assert kinds == {"extra": "integer"}
    assert table["extra"].to_pylist() == [5, 6]


def test_our_own_columns_are_kept_in_order_of_the_parts(tmp_path: Path) -> None:
    _, table = finish(tmp_path, [{}, {}], [{}, {}], [{}])
    assert table["doc"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["text"].to_pylist() == [f"Text {doc}" for doc in range(5)]
    assert table["url"].to_pylist()[:2] == ["https://example.org/0", None]
    assert table["tokens"].to_pylist() == [3, 4, 5, 6, 7]
    assert table["truncated"].to_pylist() == [False, True, False, False, False]
    assert table["topic"].to_pylist() == ["birds"] * 5


def test_the_file_says_what_it_was_made_from_and_no_temporary_is_left(tmp_path: Path) -> None:
    finish(tmp_path, [{"x": 1}])
    run = Run(tmp_path, "run")
    assert pq.read_metadata(run.documents_path).metadata[DIGEST] == b"digest"
    assert sorted(path.name for path in run.folder.iterdir()) == ["documents.parquet", "staging"]


def test_an_older_file_is_replaced(tmp_path: Path) -> None:
    finish(tmp_path, [{"x": 1}, {"x": 2}])
    kinds, table = finish(tmp_path, [{"y": "z"}])
    assert kinds == {"y": "string"}
    assert table.num_rows == 1
