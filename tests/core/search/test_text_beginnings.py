"""Beginnings that very many documents have: how they are taken apart, and that nothing else is found so."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from core.search import beginnings as text_beginnings
from core.search.beginnings import Branch, branches, pieces
from core.search.index import build, find

WORDS = [("at", 90), ("the", 50), ("theatre", 1), ("their", 30), ("them", 4), ("then", 3), ("thin", 2), ("zoo", 9)]


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_beginnings, "LIGHT", 10)


@pytest.mark.usefixtures("light")
def test_what_is_much_is_taken_apart_and_what_comes_just_behind_it() -> None:
    known = dict(branches(WORDS))
    assert known == {
        "the": Branch(True, "aimn"),
        "thea": Branch(False, "t"),  # 'theatre' is little, but comes just behind 'the'
        "theat": Branch(False, "r"),
        "theatr": Branch(False, "e"),
        "theatre": Branch(True, ""),
        "thei": Branch(False, "r"),
        "their": Branch(True, ""),
        "them": Branch(True, ""),  # just behind 'their'
    }
    assert pieces("the", known.get) == [
        *(("the", False), ("theatre", False), ("their", False), ("them", False), ("then", True))
    ]
    assert pieces("their", known.get) == [("their", False)]
    assert pieces("then", known.get) == [("then", True)]
    assert pieces("zoo", known.get) == [("zoo", True)], "little"
    assert pieces("theb", known.get) == [], "no word begins so"
    assert pieces("thexy", known.get) == []


@pytest.mark.usefixtures("light")
def test_it_is_not_taken_apart_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(branches(WORDS))
    monkeypatch.setattr(text_beginnings, "MOST_PIECES", 5)
    assert pieces("the", known.get) == [
        *(("the", False), ("thea", True), ("thei", True), ("them", False), ("then", True))
    ]
    monkeypatch.setattr(text_beginnings, "MOST_PIECES", 4)
    assert pieces("the", known.get) == [("the", True)]
    long = "a" * 30
    assert max(len(beginning) for beginning, _ in branches([(long, 99), (long + "b", 99)])) == 23
    endless = Branch(True, "x" * 100)
    assert len(pieces("abc", lambda beginning: endless)) <= 4, "a stranger's index"


def write(path: Path) -> list[set[str]]:
    """500 documents of words of an alphabet so small that most begin as others do."""
    known = ["".join(letters) for length in (2, 3, 4, 5) for letters in itertools.product("aéß", repeat=length)]
    chance = np.random.default_rng(0)
    ranks = np.minimum(chance.zipf(1.3, size=(500, 6)) - 1, len(known) - 1)
    texts = [[known[rank] for rank in row] for row in ranks]
    build(path, ((doc, text[0], " ".join(text[1:])) for doc, text in enumerate(texts)), "digest")
    return [{word.replace("é", "e") for word in text} for text in texts]


@pytest.mark.usefixtures("light")
def test_the_same_documents_are_found_as_by_looking(tmp_path: Path) -> None:
    texts = write(tmp_path / "s")
    with sqlite3.connect(tmp_path / "s") as connection:
        assert connection.execute("SELECT count(*) FROM branches").fetchone()[0] > 20
    connection.close()
    asked = ["".join(letters) for length in (3, 4, 5) for letters in itertools.product("aeß", repeat=length)]
    for word in asked:
        expected = [doc for doc, text in enumerate(texts) if any(other.startswith(word) for other in text)]
        assert find(tmp_path / "s", word, 500, "rebuild").docs.tolist() == expected, word
    for one, other in itertools.pairwise(asked[:20]):
        both = [doc for doc, text in enumerate(texts) if all(any(t.startswith(w) for t in text) for w in (one, other))]
        assert find(tmp_path / "s", f"{one} {other}", 500, "rebuild").docs.tolist() == both


@pytest.mark.usefixtures("light")
def test_an_older_index_finds_the_same(tmp_path: Path) -> None:
    write(tmp_path / "s")
    now = [find(tmp_path / "s", word, 500, "rebuild").docs.tolist() for word in ("aaa", "ßaé aaé", "aé-aaa")]
    assert all(now)
    with sqlite3.connect(tmp_path / "s") as connection:
        connection.execute("DROP TABLE branches")
    connection.close()
    assert [find(tmp_path / "s", word, 500, "rebuild").docs.tolist() for word in ("aaa", "ßaé aaé", "aé-aaa")] == now
