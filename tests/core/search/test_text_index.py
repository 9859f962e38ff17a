"""The full-text index: what it finds, in any script, and what it makes of hostile words and files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from core.errors import Mistake
from core.runs.files import replacing
from core.search import index as text_index
from core.search.index import build, find, index_digest, problem, query_of

TEXTS = [
    ("The Harbour", "Ships unload cement at dawn. state-of-the-art cranes"),  # 0
    ("Über die Brücke", "Der Donaudampfschiffkapitän grüßt; naïve façade"),  # 1
    ("東京都の天気", "今日は京都も晴れています。"),  # 2
    ("Погода", "Сегодня в Москве идёт снег"),  # 3
    ("날씨", "서울의 하늘은 맑습니다"),  # 4
    ("Harbours", 'He said "quoted words" AND left; C++ and 3.14'),  # 5
    ("", ""),  # 6
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "search.sqlite"
    assert build(path, ((doc, *pair) for doc, pair in enumerate(TEXTS)), "digest") == len(TEXTS)
    return path


def found(index: Path, words: str) -> list[int]:
    docs: list[int] = find(index, words, len(TEXTS), "rebuild").docs.tolist()
    return docs


@pytest.mark.parametrize(
    ("words", "docs"),
    [
        ("harbour", [0, 5]),  # and what begins so
        ("HARBOUR cement", [0]),  # one in the title, one in the text
        ("harb", [0, 5]),
        ("arbour", []),  # no word begins so
        ("at", [0]),  # two letters are a whole word: not "art"
        ("brucke", [1]),  # accents do not count
        ("Brücke FACADE", [1]),
        ("donau", [1]),
        ("東京", [2]),
        ("京都", [2]),  # inside 東京都, and in the text
        ("天気 晴れ", [2]),
        ("都天", []),  # both letters are there, but not together
        ("москв", [3]),
        ("하늘", [4]),
        ("울의", [4]),  # inside a word
        ("state-of-the-art", [0]),
        ("state-of-art", []),
        ("the-art", [0]),
        ("the-ar", []),  # two letters, though of a longer word
        ("3.14", [5]),
        ("??", []),
        ("?? harbours", [5]),  # what has neither letters nor digits is left out
        ("nowhere", []),
        ("", []),
    ],
)
def test_words_are_found_in_any_script(index: Path, words: str, docs: list[int]) -> None:
    assert found(index, words) == docs


@pytest.mark.parametrize(
    "words",
    ['"', '"quoted', "a OR b", "NOT harbour", "title:harbour", "harbour*", "(", "{title}", "^harbour", "NEAR(a b)",
     "\0a", "\ud800x", "'; DROP TABLE words; --", "a" * 5_000, "* * *", "-", '"" ""', "harbour AND"],
)  # fmt: skip
def test_what_is_typed_is_never_a_query(index: Path, words: str) -> None:
    assert isinstance(found(index, words), list)
    assert index_digest(index) == "digest"


def test_operators_are_words_like_others(index: Path) -> None:
    assert found(index, "quoted OR nowhere") == []
    assert found(index, "quoted AND words") == [5], "'and' is a word of that text"
    assert found(index, "NOT harbour") == []
    assert query_of('a "b OR', lambda beginning: None) == '"a" AND "b" AND "or"'


def test_no_more_are_given_than_may_be_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_index, "MOST_FOUND", 3)
    build(tmp_path / "s", ((doc, "same", "text") for doc in range(5)), "digest")
    many = find(tmp_path / "s", "same", 5, "rebuild")
    assert (many.docs.tolist(), many.more) == ([0, 1, 2], True)
    few = find(tmp_path / "s", "same", 3, "rebuild")  # the index of another run: documents that are not there
    assert (few.docs.tolist(), few.more) == ([0, 1, 2], False)


def test_a_file_that_is_no_index_of_ours_is_refused(index: Path, tmp_path: Path) -> None:
    torn, other = tmp_path / "torn.sqlite", tmp_path / "other.sqlite"
    data = index.read_bytes()
    torn.write_bytes(data[:100] + b"\xff" * (len(data) - 100))
    other.write_bytes(data)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE VIEW more AS SELECT 1")
    connection.close()
    for path in (torn, other, tmp_path / "missing.sqlite", tmp_path):
        with pytest.raises(Mistake, match="Rebuild it with 'rebuild'"):
            find(path, "harbour", 7, "rebuild")
        assert index_digest(path) is None
        assert problem(path, 7, "digest")
    assert problem(index, len(TEXTS), "digest") == ""
    assert problem(index, 8, "digest") == "was made from other documents"
    assert problem(index, len(TEXTS), "other") == "was made from other documents"


def test_an_index_that_is_not_finished_is_not_there(tmp_path: Path) -> None:
    def documents() -> object:
        yield 0, "one", "two"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "search.sqlite") as temporary:
        build(temporary, documents(), "digest")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_documents_are_numbers_that_numpy_knows(index: Path) -> None:
    assert find(index, "harbour", 7, "rebuild").docs.dtype == np.int64
