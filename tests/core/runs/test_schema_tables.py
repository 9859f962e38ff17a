"""Every table of an analysis has its maker, its layout and its columns."""

from __future__ import annotations

import hashlib

from core.analysis import attention_measures, attention_types, layer_measures, probe, similarity, topic_match, topics
from core.retrieval import metrics, pruning, queries, study, tasks, ways
from core.runs import vocabulary
from core.runs.schema import ANALYSIS, MADE_BY
from core.runs.table_checks import LAYOUTS


def test_every_table_is_made_by_one_step_and_has_its_rows_checked() -> None:
    made = [name for names in MADE_BY.values() for name in names]
    assert sorted(made) == sorted(ANALYSIS) == sorted(LAYOUTS)


def test_tables_may_hold_what_the_steps_write() -> None:
    assert hashlib.sha256("\n".join(topics.original()).encode()).hexdigest() == vocabulary.TOPICS_SHA256
    assert vocabulary.WITHIN == topic_match.WITHIN
    assert vocabulary.HEAD_POOLINGS == similarity.POOLINGS
    assert vocabulary.SPLITS == probe.SPLITS
    assert tuple(attention_measures.MEASURES) == vocabulary.ATTENTION_MEASURES
    assert vocabulary.ATTENTION_ENDS == attention_measures.ENDS
    assert vocabulary.ATTENTION_TYPES == attention_types.TYPES
    assert vocabulary.FARTHEST == attention_measures.FARTHEST
    assert {name: tuple(each.series) for name, each in layer_measures.MEASURES.items()} == vocabulary.LAYER_CURVES
    assert (vocabulary.SIDES, vocabulary.TO_READ) == (layer_measures.SIDES, layer_measures.TO_READ)
    assert tuple(tasks.TASKS) == vocabulary.TASKS
    assert tuple(ways.WAYS) == vocabulary.WAYS
    assert tuple(metrics.METRICS) == vocabulary.METRICS
    assert (vocabulary.CHANCE, vocabulary.ORDERS, vocabulary.WEIGHT_KINDS) == (study.CHANCE, study.ORDERS, study.KINDS)
    assert vocabulary.CLAIMS == pruning.CLAIMS
    assert (vocabulary.DEPTH, vocabulary.MOST_QUERIES) == (ways.DEPTH, queries.MOST)
