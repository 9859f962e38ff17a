"""Which aspects a run has: topics, columns with few and frequent values, length, labels of other lists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from core.model.shape import ModelShape
from core.runs.aspects import aspect_path, aspects_of, is_aspect_name, stored_aspects
from core.runs.manifest import Step
from core.runs.parts import write_table
from core.runs.run import Run
from core.runs.schema import LABELS
from tests.support.synthetic import write_run

SHAPE = ModelShape(layers=2, heads=2, kv_heads=2, hidden=8, head_dim=4)
COUNT = 60
TOPICS = [("cooking", "football", None)[doc % 3] for doc in range(COUNT)]


def run_with(cache: Path, tokens: list[int] | None = None, **extra: tuple[str, list[object]]) -> Run:
    vectors = np.random.default_rng(0).normal(size=(COUNT, 8))
    return write_run(
        cache,
        "r",
        SHAPE,
        lambda stage, first, count: vectors[first : first + count],
        TOPICS,
        tokens=tokens,
        extra=extra,
    )


def test_the_topic_comes_first_and_documents_without_one_have_no_code(tmp_path: Path) -> None:
    genre = [("review", "blog")[doc % 2] for doc in range(COUNT)]
    topic, column = aspects_of(run_with(tmp_path, genre=("string", genre)))
    assert (topic.name, topic.source, topic.values) == ("topic", "column", ("cooking", "football"))
    assert topic.codes[:3].tolist() == [0, 1, -1]
    assert topic.counts.tolist() == [20, 20]
    assert (column.name, column.values, column.codes[:2].tolist()) == ("genre", ("blog", "review"), [1, 0])


def test_booleans_and_integers_with_few_values_are_aspects_and_others_are_not(tmp_path: Path) -> None:
    run = run_with(
        tmp_path,
        paid=("boolean", [doc % 2 == 0 for doc in range(COUNT)]),
        stars=("integer", [10 - doc % 2 * 8 for doc in range(COUNT)]),
        number=("integer", list(range(COUNT))),
        score=("number", [float(doc % 2) for doc in range(COUNT)]),
        constant=("string", ["web"] * COUNT),
        missing=("string", [("a", "b")[doc % 2] if doc < 24 else None for doc in range(COUNT)]),
    )
    found = {aspect.name: aspect.values for aspect in aspects_of(run)}
    assert found == {"topic": ("cooking", "football"), "paid": ("no", "yes"), "stars": ("2", "10")}


def test_a_value_of_fewer_than_ten_documents_counts_as_none(tmp_path: Path) -> None:
    genre = ["rare"] * 9 + [("blog", "review")[doc % 2] for doc in range(9, COUNT)]
    aspect = aspects_of(run_with(tmp_path, genre=("string", genre)))[1]
    assert aspect.values == ("blog", "review")
    assert (aspect.codes[:9] == -1).all()
    assert aspect.counts.sum() == 51


def test_length_is_cut_into_five_bins_of_equal_size_and_is_left_out_where_it_is_constant(tmp_path: Path) -> None:
    tokens = [1000 + doc for doc in range(COUNT)]
    length = aspects_of(run_with(tmp_path, tokens))[1]
    assert (length.name, length.source) == ("length", "derived")
    assert length.values[0] == "1,000–1,011 tokens"
    assert length.values[4] == "1,048–1,059 tokens"
    assert length.counts.tolist() == [12] * 5
    assert length.codes[[0, 11, 12, 59]].tolist() == [0, 0, 1, 4]
    assert [aspect.name for aspect in aspects_of(run_with(tmp_path / "constant"))] == ["topic"]


def test_stored_labels_take_a_columns_place_and_the_source_asked_for_last_counts(tmp_path: Path) -> None:
    run = run_with(tmp_path, genre=("string", [("review", "blog")[doc % 2] for doc in range(COUNT)]))
    for source, pair in {"openai": ("news", "spam"), "file": ("letter", "poem")}.items():
        names = [pair[doc % 2] for doc in range(COUNT)]
        nothing = [None] * COUNT
        columns = {"doc": list(range(COUNT)), "topic": names, "score": nothing, "reason": nothing}
        write_table(aspect_path(run, "genre", source), pa.table(columns, schema=LABELS), "planted")
    assert stored_aspects(run) == {"genre": ("openai", "file")}
    assert [(aspect.name, aspect.source, aspect.values) for aspect in aspects_of(run)][1:] == [
        ("genre", "openai", ("news", "spam"))
    ]
    label = Step("x", "done", "2026-01-01T00:00:00+00:00", options={"source": "column", "aspects": {"genre": "file"}})
    run.write_manifest(replace(run.manifest(), steps={**run.manifest().steps, "label": label}))
    assert aspects_of(run)[1].values == ("letter", "poem")


@pytest.mark.parametrize("name", ["", "..", "a/b", "Genre", "-x", "a" * 41])
def test_a_name_that_cannot_be_a_folders_is_refused(name: str) -> None:
    assert not is_aspect_name(name)
    assert is_aspect_name("web-genre")
