"""The demo corpus is what its readers were promised."""

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "precompute" / "demo"
GENRES = {
    "news report", "how-to", "forum post", "review", "product page", "encyclopaedia entry", "blog", "FAQ",
    "press release", "opinion",
}  # fmt: skip


@pytest.fixture(scope="module")
def documents() -> list[dict[str, str]]:
    return [json.loads(line) for path in sorted(DEMO.glob("*.jsonl")) for line in path.open(encoding="utf-8")]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def test_at_least_300_documents_and_12_for_each_of_25_topics(documents: list[dict[str, str]]) -> None:
    topics = Counter(document["topic"] for document in documents)
    assert len(documents) >= 300
    assert len(topics) == 25
    assert min(topics.values()) >= 12


def test_the_columns_and_their_lengths(documents: list[dict[str, str]]) -> None:
    for document in documents:
        assert set(document) == {"id", "title", "text", "topic", "genre"}
        assert all(value == value.strip() and value for value in document.values())
        assert 80 <= len(document["text"].split()) <= 250, document["id"]
    assert len({document["id"] for document in documents}) == len(documents)
    assert len({document["title"].lower() for document in documents}) == len(documents)


def test_every_genre_occurs_in_every_topic(documents: list[dict[str, str]]) -> None:
    """So that topic and genre are nearly independent, and a head that follows one is not taken for the other."""
    by_topic: dict[str, set[str]] = {}
    for document in documents:
        by_topic.setdefault(document["topic"], set()).add(document["genre"])
    assert all(genres == GENRES for genres in by_topic.values())


def test_openings_differ(documents: list[dict[str, str]]) -> None:
    openings = Counter(" ".join(words(document["text"])[:4]) for document in documents)
    assert max(openings.values()) == 1, openings.most_common(3)
    first = Counter(words(document["text"])[0] for document in documents)
    assert max(first.values()) <= 0.12 * len(documents), first.most_common(3)


def test_no_template_shows_through(documents: list[dict[str, str]]) -> None:
    """Two documents of a topic hardly ever share a run of six words."""
    runs = {}
    for document in documents:
        found = words(document["text"])
        runs[document["id"]] = {" ".join(found[start : start + 6]) for start in range(len(found) - 5)}
    shared = {
        (one, other): runs[one] & runs[other]
        for one, other in combinations(runs, 2)
        if len(runs[one] & runs[other]) > 2
    }
    assert shared == {}


def test_the_licence_is_stated() -> None:
    assert "CC0" in (DEMO / "LICENSE").read_text(encoding="utf-8")
