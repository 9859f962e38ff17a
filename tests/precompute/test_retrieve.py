"""The step ``retrieve`` on real vectors: what it measures, and what it does with bad input."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.retrieval.study import CHANCE, ways_at
from core.runs.results import read_analysis, read_query_set
from core.runs.run import Run
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from precompute.steps.retrieve import step as retrieve
from precompute.steps.retrieve.step import RetrieveConfig

STAGE = 3


@pytest.fixture(scope="module")
def run(retrieved_cache: Path) -> Run:
    return Run(retrieved_cache, "demo")


def rows(run: Run, table: str, **wanted: Any) -> list[dict[str, Any]]:
    found = read_analysis(run, table).to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def test_the_full_embedding_finds_what_plain_cosines_find(run: Run) -> None:
    """Success among the first ten, worked out from the stored vectors by one matrix product."""
    asked = read_query_set(run)
    assert asked is not None
    docs = np.concatenate(list(run.vectors(STAGE))).astype(np.float64)
    queries = asked.vectors[STAGE].reshape(len(asked.texts), -1).astype(np.float64)
    cosines = queries @ docs.T / np.linalg.norm(docs, axis=1)
    best = np.argsort(-cosines, axis=1)[:, :10]
    share = [len(set(row) & set(docs)) / len(docs) for row, docs in zip(best.tolist(), asked.relevant, strict=True)]
    (row,) = rows(run, "retrieval", stage=STAGE, task="queries", way="full", metric="success", k=10)
    assert row["value"] == pytest.approx(np.mean(share), abs=1e-6)
    assert row["low"] < row["value"] < row["high"]
    assert row["queries"] == len(share) == 20


def test_every_way_is_compared_at_every_stage_and_beats_chance(run: Run) -> None:
    for stage in (1, 2, 3):
        for task in ("queries", "same topic", "topic match"):
            found = rows(run, "retrieval", stage=stage, task=task, metric="mrr", k=5)
            values = {row["way"]: row["value"] for row in found}
            assert set(values) == {*ways_at(stage), CHANCE}
            assert values["full"] > 2 * values[CHANCE]


def test_topic_match_is_the_one_that_analyse_finds(run: Run) -> None:
    """The same question asked in two places: of all labelled documents there, of a sample by topic here."""
    (here,) = rows(run, "retrieval", stage=STAGE, task="topic match", way="full", metric="success", k=1)
    (there,) = rows(run, "topic_match", stage=STAGE, slicing="heads", method="full", within=1)
    assert here["low"] <= there["rate"] <= here["high"]


def test_what_may_go_is_chosen_on_one_half_and_told_of_the_other(run: Run) -> None:
    (pruned,) = rows(run, "pruned", stage=STAGE, task="queries")
    assert (pruned["chosen_by"], pruned["told_of"]) == (10, 10)
    importance = rows(run, "importance", stage=STAGE, task="queries")
    assert sum(row["kept"] for row in importance) == pruned["heads"]
    assert sorted(row["goes"] for row in importance) == list(range(1, 13))
    # Those that are kept are the last to go.
    assert {row["goes"] for row in importance if row["kept"]} == set(range(13 - pruned["heads"], 13))
    curve = {row["heads"]: row for row in rows(run, "pruning", stage=STAGE, task="queries", order="greedy")}
    assert curve[12]["value"] == pytest.approx(pruned["all"], abs=1e-6)
    assert curve[pruned["heads"]]["value"] == pytest.approx(pruned["value"], abs=1e-6)
    for order in ("activation", "random"):
        ends = rows(run, "pruning", stage=STAGE, task="queries", order=order, heads=12)
        assert ends[0]["value"] == pytest.approx(pruned["all"], abs=1e-6)


def test_weights_are_one_on_average(run: Run) -> None:
    for kind in ("uniform", "mrag", "learned"):
        weights = [row["weight"] for row in rows(run, "head_weights", stage=1, task="same topic", kind=kind)]
        assert len(weights) == 12
        assert np.mean(weights) == pytest.approx(1)


def test_a_second_start_does_nothing_and_the_run_is_whole(run: Run, retrieved_cache: Path) -> None:
    config = RetrieveConfig(retrieved_cache, "demo", retrieved_cache / "queries.jsonl", limit=24)
    assert retrieve.run(config).skipped
    verdict = verify(run, part_digest)
    assert verdict.problems == ()


def test_a_stage_that_is_there_is_not_judged_again(
    analysed_cache: Path, retrieved_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that ends after the first stage goes on with the second, and comes to the same figures."""
    shutil.copytree(analysed_cache / "demo", tmp_path / "demo")
    config = RetrieveConfig(tmp_path, "demo", retrieved_cache / "queries.jsonl", limit=24)
    whole, asked = retrieve.study_stage, []

    def stop_after_one(*args: Any) -> Any:
        asked.append(args[2])
        if len(asked) == 2:
            raise KeyboardInterrupt
        return whole(*args)

    monkeypatch.setattr(retrieve, "study_stage", stop_after_one)
    with pytest.raises(KeyboardInterrupt):
        retrieve.run(config)
    assert not Run(tmp_path, "demo").manifest().is_done("retrieve")
    retrieve.run(config)
    assert asked == [1, 2, 2, 3]
    for table in ("retrieval", "pruning", "weights"):
        assert rows(Run(tmp_path, "demo"), table) == rows(Run(retrieved_cache, "demo"), table)


def test_the_report_tells_what_was_found(run: Run, command: Callable[..., Any]) -> None:
    said = command("report", "demo", "--cache", str(run.cache))
    (pruned,) = rows(run, "pruned", stage=STAGE, task="queries")
    assert "Query set (20 queries; nDCG@10)" in said.out
    assert f"{pruned['heads']} of 12 heads: {pruned['value']:.3f} against {pruned['all']:.3f} with all" in said.out
    figures = json.loads(command("report", "demo", "--cache", str(run.cache), "--json").out)
    assert figures["retrieval"]["3"]["queries"]["pruned"][0]["heads"] == pruned["heads"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "has no queries"),
        ('{"query": "?", "relevant": ["nobody"]}', "Line 1 of queries.jsonl names the document 'nobody'"),
        ("\udcff", "is not valid UTF-8"),
    ],
)
def test_bad_queries_are_told_in_a_sentence(
    retrieved_cache: Path, tmp_path: Path, command: Callable[..., Any], line: str, sentence: str
) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_bytes(line.encode("utf-8", "surrogateescape"))
    said = command("retrieve", "demo", "--cache", str(retrieved_cache), "--queries", str(path))
    assert said.status == 2
    assert sentence in said.err
    assert len(said.err.strip().splitlines()) == 1


def test_a_run_without_labels_needs_queries(planted_cache: Path, command: Callable[..., Any]) -> None:
    said = command("retrieve", "planted", "--cache", str(planted_cache))
    assert said.status == 2
    assert "has no labels to evaluate heads with. Give a query set with --queries" in said.err
