"""What is said of runs that cannot show anything, and that nothing is recommended then."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from core.analysis.agreement import Compared, agreement, compare
from core.analysis.cautions import SAME_TOPIC, TOPIC_MATCH, Caution, cautions, ruled_out
from core.analysis.findings import findings
from core.retrieval import tasks
from core.runs.labels import Labels
from core.runs.tables import Row, Tables
from tests.core.analysis.test_findings import (
    LESS,
    SAME,
    against,
    match_rows,
    pooled,
    profile,
    summary,
    tables_of,
)

RATE = (0.5, 0.4, 0.6)
BY_LABELS = {"specialisation", "heads", "stage", "selectivity", "pooling", "roles"}


def topics(*documents: int) -> list[Row]:
    return [{"topic": f"topic {number}", "documents": count} for number, count in enumerate(documents, 1)]


def run_of(
    *documents: int, full: dict[int, tuple[float, float, float]] | None = None, chances: dict[int, float] | None = None
) -> Tables:
    """A run of two stages whose heads specialise, with a best head, roles and a worse pooling at both."""
    rows: dict[str, list[Row]] = {"topics": topics(*documents)}
    for stage in (1, 2):
        for within in (1, 5, 10):
            made = match_rows((full or {}).get(stage, RATE), [RATE] * 3, stage, within)
            chance = (chances or {}).get(within, 0.04)
            rows.setdefault("topic_match", []).extend({**row, "chance": chance} for row in made)
        rows.setdefault("null_summary", []).extend(
            summary(measure, stage, spread_p=0.001, best_p=0.001) for measure in ("names", "selectivity", "probe")
        )
        rows.setdefault("null", []).extend(
            against(1, 0.6, "above", measure, stage) for measure in ("names", "selectivity")
        )
        rows.setdefault("topic_match_differences", []).extend(pooled(LESS, SAME, SAME, stage=stage))
        rows.setdefault("profiles", []).extend([profile(0, stage=stage), profile(1, "general", stage=stage)])
    return tables_of(stages=(1, 2), **rows)


def the_one(found: list[Caution]) -> Caution:
    assert len(found) == 1
    return found[0]


def subjects(tables: Tables) -> list[str]:
    return [finding.about for finding in findings(tables)]


def test_a_run_that_can_show_something_has_no_caution() -> None:
    tables = run_of(30, 30, 30)
    assert cautions(tables) == []
    assert set(subjects(tables)) >= BY_LABELS
    assert cautions(tables_of(labelled=0)) == []


def test_the_tasks_have_the_names_of_retrieval() -> None:
    assert (TOPIC_MATCH, SAME_TOPIC) == (tasks.TOPIC_MATCH, tasks.SAME_TOPIC)


# The labels.


def test_with_a_single_label_nothing_is_recommended() -> None:
    tables = run_of(0, 90, 0)
    found = the_one(cautions(tables))
    assert found.sentence == (
        "All labelled documents have the same topic, so nothing can be concluded about topics, and neither a stage nor "
        "a head is recommended. Use documents of several topics; --sample draws them from the whole corpus."
    )
    assert found.evidence == "90 of 90 labelled documents: topic 2"
    assert subjects(tables)[0] == "caution"
    assert not BY_LABELS & set(subjects(tables))
    assert "separation" in subjects(tables)  # needs no labels
    assert ruled_out([found], SAME_TOPIC, 2) == found
    assert ruled_out([found], "queries", 2) is None


def test_with_few_documents_per_topic_nothing_is_recommended() -> None:
    """2, 4, 4, 80: the median is 4; a topic without documents does not count."""
    tables = run_of(2, 4, 4, 80, 0)
    found = the_one(cautions(tables))
    assert found.sentence == (
        "The median topic has 4 documents, too few to conclude anything about topics: neither a stage nor a head is "
        "recommended. Use at least 5 documents per topic, or fewer topics."
    )
    assert found.evidence == "3 of 4 topics have fewer than 5 documents; 90 documents labelled"
    assert not BY_LABELS & set(subjects(tables))
    assert cautions(run_of(5, 5, 80)) == []
    assert "The median topic has 4.5 documents" in the_one(cautions(run_of(4, 4, 5, 77))).sentence
    assert "The median topic has 1 document," in the_one(cautions(run_of(1, 1, 88))).sentence


# Fewer topics than are looked at.


@pytest.mark.parametrize(
    ("count", "nearest"), [(4, "5 and 10"), (5, "5 and 10"), (6, "10"), (10, "10"), (11, None), (25, None)]
)
def test_shares_that_are_100_percent_by_construction_are_named(count: int, nearest: str | None) -> None:
    chances = {within: min(within, count) / count for within in (1, 5, 10)}
    tables = run_of(30, 30, 30, chances=chances)
    found = cautions(tables)
    if nearest is None:
        assert found == []
        return
    assert the_one(found).sentence == (
        f"The run has {count} topics, so the labelled topic is always among the nearest {nearest}: these shares cannot "
        "be compared with the study's, which chose among 25. Compare the nearest topic alone."
    )
    assert set(subjects(tables)) >= BY_LABELS  # the nearest topic still says something


# The full embedding.


def test_at_chance_nothing_is_claimed_at_that_stage() -> None:
    tables = run_of(30, 30, 30, full={1: (0.06, 0.04, 0.09)})
    found = the_one(cautions(tables))
    assert found.sentence == (
        "At stage 1 the full embedding is not shown to find the labelled topic more often than chance, so topic match "
        "says nothing about its heads. Check that the names of the topics describe the labels (--topics)."
    )
    assert found.evidence == "stage 1: 6.0\u00a0% (4.0–9.0\u00a0%), chance 4.0\u00a0%"
    assert ruled_out([found], SAME_TOPIC, 1) is None
    by_labels = [finding for finding in findings(tables) if finding.about in BY_LABELS]
    assert {finding.about for finding in by_labels} == BY_LABELS
    assert not any("stage 1" in finding.sentence + finding.evidence for finding in by_labels)
    assert cautions(run_of(30, 30, 30, full={1: (0.06, 0.041, 0.09)})) == []


def test_at_the_ceiling_nothing_is_claimed() -> None:
    tables = run_of(30, 30, 30, full={1: (0.995, 0.98, 1.0), 2: (1.0, 0.99, 1.0)})
    found = the_one(cautions(tables))
    assert found.sentence == (
        "At stages 1 and 2 the full embedding finds the labelled topic of nearly every document, so topic match cannot "
        "show what a head adds. Use more topics, or topics that are closer to each other."
    )
    assert not BY_LABELS & set(subjects(tables))
    assert cautions(run_of(30, 30, 30, full={1: (0.994, 0.98, 1.0)})) == []


# Sources of labels.


def source(name: str, *topics_of: str | None) -> Labels:
    return Labels(name, pa.chunked_array([topics_of], pa.string()), pa.chunked_array([[None] * len(topics_of)]))


def test_a_source_with_one_label_for_everything_has_no_kappa() -> None:
    pair = compare(source("column", "a", "b", "a", "c"), source("openai", "a", "a", "a", None))
    assert pair.constant == ("openai",)
    assert pair.sentence == (
        "column and openai agree on 66.7\u00a0% of 3 documents that both have labelled; Cohen's kappa is undefined, "
        "because "
        "openai gave all of them one topic."
    )
    found = the_one(cautions(run_of(30, 30, 30), [pair]))
    assert found.sentence == (
        "The labels of 'openai' are one topic for all documents, so Cohen's kappa says nothing about how far other "
        "labels agree with them. Label the documents by another source, or with other topics (--topics)."
    )
    assert found.evidence == "column and openai: 3 documents labelled by both, 66.7\u00a0% alike"
    assert compare(source("column", "a", "b"), source("openai", "b", "a")).constant == ()


def test_sources_that_share_no_document_are_not_constant() -> None:
    nobody = Compared("one", "two", ("a",), agreement(np.array([0, -1]), np.array([-1, 0]), 1))
    assert nobody.constant == ()
    assert nobody.sentence == "one and two have labelled no document in common."
