"""The step ``aspects``: the demo's figures, planted runs, resuming, tables that are checked, and the report."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from core.analysis.aspect_findings import aspect_findings, carried
from core.analysis.aspect_probe import ACCURACY, probe_aspects
from core.errors import Mistake
from core.model.shape import ModelShape
from core.runs.aspects import aspects_of
from core.runs.parts import write_table
from core.runs.results import read_analysis, read_aspects
from core.runs.run import Run
from core.runs.schema import ANALYSIS
from core.runs.steps import STEPS
from precompute.steps.analyse import step as analyse
from precompute.steps.aspects import step as aspects
from precompute.steps.aspects.sample import choose_documents
from precompute.steps.aspects.step import AspectsConfig
from tests.support.synthetic import PlantedTopics, write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
COUNT = 120


def planted_run(cache: Path, name: str = "planted") -> Run:
    """Head 1 carries the topic, head 2 the genre; a column of dates is no aspect."""
    chance = np.random.default_rng(0)
    topic, genre = np.arange(COUNT) % 3, np.arange(COUNT) // 3 % 4
    vectors = chance.normal(size=(COUNT, 4, 8))
    vectors[:, 0] += 0.9 * chance.normal(size=(3, 8))[topic]
    vectors[:, 1] += 0.9 * chance.normal(size=(4, 8))[genre]
    stored = vectors.reshape(COUNT, 32).astype(np.float16)
    return write_run(
        cache,
        name,
        SHAPE,
        lambda stage, first, count: stored[first : first + count],
        [("football", "politics", "cooking")[code] for code in topic],
        50,
        texts=[f"Text number {doc} about its own thing and nothing else of the others {doc}" for doc in range(COUNT)],
        extra={
            "genre": ("string", [("blog", "news", "review", "FAQ")[code] for code in genre]),
            "date": ("string", [f"day {doc}" for doc in range(COUNT)]),
        },
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    cache = tmp_path_factory.mktemp("aspects")
    run = planted_run(cache)
    analyse.run(analyse.AnalyseConfig(cache, "planted", model=PlantedTopics(SHAPE, {})))
    aspects.run(AspectsConfig(cache, "planted"))
    return run


def test_every_stage_aspect_and_head_has_its_figures(made: Run) -> None:
    rows = read_aspects(made)
    step = made.manifest().steps["aspects"]
    assert (step.counts, step.options) == ({"aspects": 2, "documents": COUNT}, {})
    assert len(rows["aspects"]) == 3 * 2 * 3 * 5
    assert {(row["aspect"], row["classes"]) for row in rows["aspect_summary"]} == {("topic", 3), ("genre", 4)}
    heads = carried(rows, 1)
    assert {head: found.sentence for head, found in heads.items()} == {
        1: "topic, not genre",
        2: "genre, not topic",
        3: "",
        4: "",
    }
    full = [row for row in rows["aspects"] if row["head"] == 0]
    assert all(row["verdict"] is None and row["p"] is None for row in full)
    (pair,) = [row for row in rows["aspect_pairs"] if (row["stage"], row["aspect"]) == (1, "topic")]
    assert (pair["other"], pair["cramers_v"]) == ("genre", 0)
    inside = {row["head"]: row for row in rows["aspect_within"] if (row["stage"], row["aspect"]) == (1, "topic")}
    assert inside[1]["low"] > inside[1]["slices_high"] > inside[1]["chance"]


def test_predictions_and_accuracy_are_of_the_same_documents(made: Run) -> None:
    table = read_analysis(made, "aspect_documents")
    rows = [row for row in table.to_pylist() if (row["stage"], row["aspect"]) == (2, "genre")]
    assert sorted(row["doc"] for row in rows) == list(range(COUNT))
    right = np.mean([row["predicted"][2] == row["code"] for row in rows])
    (found,) = [
        row
        for row in read_aspects(made)["aspects"]
        if (row["stage"], row["aspect"], row["measure"], row["head"]) == (2, "genre", ACCURACY, 2)
    ]
    assert found["value"] == pytest.approx(right)
    names = {row["code"]: row["value"] for row in read_aspects(made)["aspect_values"] if row["aspect"] == "genre"}
    documents = made.documents(["genre"])["genre"].to_pylist()
    assert all(names[row["code"]] == documents[row["doc"]] for row in rows)


def test_it_is_done_once_and_again_after_other_labels(made: Run, tmp_path: Path) -> None:
    shutil.copytree(made.folder, tmp_path / "planted")
    run = Run(tmp_path, "planted")
    assert aspects.run(AspectsConfig(tmp_path, "planted")).skipped
    table = run.documents()
    topics = ["tea", "coffee"] * (COUNT // 2)
    changed = table.set_column(table.schema.get_field_index("topic"), "topic", pa.array(topics))
    write_table(run.documents_path, changed.cast(table.schema), "planted")
    result = aspects.run(AspectsConfig(tmp_path, "planted"))
    assert not result.skipped
    assert {row["value"] for row in read_aspects(run)["aspect_values"] if row["aspect"] == "topic"} == {"tea", "coffee"}


def test_a_run_without_labels_and_columns_has_no_aspects(bare_cache: Path, tmp_path: Path) -> None:
    shutil.copytree(bare_cache / "bare", tmp_path / "bare")
    result = aspects.run(AspectsConfig(tmp_path, "bare"))
    assert result.manifest.steps["aspects"].counts == {"aspects": 0, "documents": 0}
    assert all(not rows for rows in read_aspects(Run(tmp_path, "bare")).values())


def test_a_sample_takes_documents_that_most_aspects_are_known_of() -> None:
    from core.runs.aspects import Aspect

    topic = Aspect("topic", "file", ("a", "b"), np.where(np.arange(100) < 40, np.arange(100) % 2, -1))
    genre = Aspect("genre", "column", ("x", "y"), np.arange(100) % 2)
    docs = choose_documents([topic, genre], np.arange(100), 20, 0)
    assert len(docs) == len(set(docs)) == 20
    assert (docs < 40).all()
    assert (topic.codes[docs] == 0).sum() == 10
    assert sorted(choose_documents([topic, genre], np.arange(100), 60, 0))[:40] == list(range(40))


def test_too_small_a_sample_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="--documents 5 is too few"):
        AspectsConfig(tmp_path, "r", sample=5)


@pytest.mark.parametrize(
    ("table", "column", "value", "problem"),
    [
        ("aspects", "verdict", "perhaps", "'verdict' values that are not known"),
        ("aspects", "head", 5, "'head' values outside 0 to 4"),
        ("aspects", "value", None, "has missing values in 'value'"),
        ("aspect_summary", "measure", "names", "'measure' values that are not known"),
        ("aspect_documents", "doc", COUNT, "'doc' values outside 0 to 119"),
        ("aspect_values", "code", -1, "'code' values outside "),
    ],
)
def test_a_strangers_table_is_checked(
    made: Run, tmp_path: Path, table: str, column: str, value: object, problem: str
) -> None:
    shutil.copytree(made.folder, tmp_path / "planted")
    run = Run(tmp_path, "planted")
    rows = read_analysis(run, table).to_pylist()
    rows[0] = {**rows[0], column: value}
    write_table(run.analysis_path(table), pa.Table.from_pylist(rows, schema=ANALYSIS[table]), "planted")
    with pytest.raises(Mistake, match=problem):
        read_analysis(run, table)


def test_the_report_says_what_heads_carry(made: Run) -> None:
    from precompute.report import report

    text = report(made.cache, "planted")
    assert "What does each head carry?" in text
    assert "stage 1, topic (3 values, chance 33.3\u00a0%)" in text
    assert "head 1 carries topic and not genre; head 2 carries genre and not topic" in " ".join(text.split())
    found = json.loads(report(made.cache, "planted", for_machines=True))["aspects"]
    assert [row["head"] for row in found["1"]["genre"]["accuracy"]["by_head"]] == [0, 1, 2, 3, 4]
    assert found["3"]["topic"]["cramers_v"] == {"genre": 0}


def test_without_the_step_nothing_is_said(made: Run) -> None:
    manifest = made.manifest()
    without = replace(manifest, steps={name: step for name, step in manifest.steps.items() if name != "aspects"})
    assert "aspects" not in without.steps
    assert aspect_findings({}) == []
    assert STEPS["aspects"].in_all == "optional"


def test_the_demos_heads_carry_topic_genre_both_or_neither(demo_cache: Path) -> None:
    """DESIGN §8, by the default model's own vectors: 200 random slicings, Benjamini–Hochberg over the 12 heads."""
    run = Run(demo_cache, "demo")
    found = {aspect.name: aspect.codes for aspect in aspects_of(run)}
    codes = [found["topic"], found["genre"]]
    chance = np.random.default_rng(0)
    shuffled = [chance.permutation(each) for each in codes for _ in range(5)]
    flagged: list[bool] = []
    for stage, topic_above, topic_below, genre_above, genre_below in (
        (1, [1, 11], [2, 4, 10], [1, 7, 9, 10], [4, 5, 6, 8, 12]),
        (3, [], [], [], []),
    ):
        probed = probe_aspects(run.head_vectors(stage, 0), [*codes, *shuffled], 12)
        verdicts = [one.compared[ACCURACY].verdicts for one in probed]
        sides = [
            [head for head, verdict in enumerate(mine, 1) if verdict == side]
            for mine in verdicts[:2]
            for side in ("above", "below")
        ]
        assert sides == [topic_above, topic_below, genre_above, genre_below]
        flagged += [verdict != "within" for mine in verdicts[2:] for verdict in mine]
    assert np.mean(flagged) <= 0.05
