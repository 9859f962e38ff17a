"""Query sets: read as written, and one sentence for what is wrong with them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from core.errors import Mistake
from core.retrieval.queries import Query, read_queries

IDS = ["a", "b", "7"]


def written(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "queries.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    return path


def test_queries_are_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"query": " Wo? ", "relevant": ["b", "a", "b"]},
        "",
        {"query": "x", "relevant": [7], "aspects": 3},
    )
    assert read_queries(path, IDS) == (Query("Wo?", (1, 0), 2), Query("x", (2,), 3))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "Line 1 of queries.jsonl is not JSON"),
        ("[1]", "not a JSON object"),
        ({"relevant": ["a"]}, "has no query"),
        ({"query": "  ", "relevant": ["a"]}, "has no query"),
        ({"query": 4, "relevant": ["a"]}, "has no query"),
        ({"query": "x" * 20_001, "relevant": ["a"]}, "has no query of 1 to 20,000 characters"),
        ({"query": "x"}, "no relevant documents"),
        ({"query": "x", "relevant": []}, "no relevant documents"),
        ({"query": "x", "relevant": "a"}, "no relevant documents"),
        ({"query": "x", "relevant": ["a", "zzz"]}, "the document 'zzz', which this run does not have"),
        ({"query": "x", "relevant": ["a"], "aspects": 0}, "has 0 as aspects"),
        ({"query": "x", "relevant": ["a"], "aspects": True}, "has True as aspects"),
        ("[" * 100_000, "is not JSON"),
        (" " * 3 + "1" * 300_000, "longer than 200,000 characters"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, line: object, sentence: str) -> None:
    with pytest.raises(Mistake, match=sentence):
        read_queries(written(tmp_path, line), IDS)


def test_an_id_that_several_documents_have_is_refused_where_a_query_names_it(tmp_path: Path) -> None:
    """Runs that are there from before may have such ids; which document is meant cannot be known."""
    ids = ["a", "b", "a"]
    assert read_queries(written(tmp_path, {"query": "x", "relevant": ["b"]}), ids) == (Query("x", (1,), 1),)
    with pytest.raises(Mistake, match=r"Line 1 .* the document 'a', an id that 2 documents of this run have"):
        read_queries(written(tmp_path, {"query": "x", "relevant": ["b", "a"]}), ids)


def test_files_without_queries(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="There is no file"):
        read_queries(tmp_path / "none.jsonl", IDS)
    with pytest.raises(Mistake, match="has no queries"):
        read_queries(written(tmp_path), IDS)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(Mistake, match="not valid UTF-8"):
        read_queries(tmp_path / "binary", IDS)


@given(some.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "queries.jsonl"
    path.write_bytes(content)
    with pytest.raises(Mistake):
        read_queries(path, IDS)


def test_the_demo_s_queries_fit_its_corpus() -> None:
    """134 questions over 1 to 10 documents; those of one question are of different topics, and every topic is asked."""
    folder = Path(__file__).resolve().parents[3] / "precompute"
    rows = [json.loads(line) for path in sorted((folder / "demo").glob("*.jsonl")) for line in path.open("rb")]
    queries = read_queries(folder / "steps/retrieve/demo_queries.jsonl", [row["id"] for row in rows])
    assert Counter(query.aspects for query in queries) == {1: 30, 2: 24, 3: 20, 4: 18, 5: 16, 6: 14, 10: 12}
    for query in queries:
        assert len(query.relevant) == query.aspects
        assert len({rows[doc]["topic"] for doc in query.relevant}) == query.aspects
    asked = Counter(rows[doc]["topic"] for query in queries for doc in query.relevant)
    assert len(asked) == 25
    assert min(asked.values()) >= 12
