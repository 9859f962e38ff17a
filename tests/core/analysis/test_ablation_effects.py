"""What switching heads off changes: figures worked out by hand, and what random removals show by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats

from core.analysis import ablation_effects
from core.analysis.ablation_effects import (
    ANGLE,
    ASPECT,
    EXAMPLES,
    KINDS,
    MEASURES,
    MOVED,
    NAMES,
    QUERIES,
    SAME_TOPIC,
    AblationTask,
    against_noise,
    changes_of,
    false_alarms,
    measure_name,
    ndcg,
    same_value,
    verdicts,
)
from core.analysis.ablation_pruning import ORDERS
from core.analysis.bootstrap import Interval
from core.analysis.moderated_variance import moderated
from core.retrieval.metrics import METRICS, Relevance, measured
from core.runs import vocabulary

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
"""A quarter of a circle."""


def task(labels: list[int], topics: int, **more: object) -> AblationTask:
    return AblationTask(np.array(labels), topics, **more)  # type: ignore[arg-type]


def test_names_of_the_tables_are_those_of_the_measures() -> None:
    assert tuple(KINDS) == vocabulary.ABLATION_KINDS
    assert tuple(MEASURES) == vocabulary.ABLATION_MEASURES
    assert vocabulary.MOVED == MOVED
    assert tuple(ORDERS) == vocabulary.ABLATION_ORDERS


def test_topic_match_nearest_documents_and_angles_by_hand() -> None:
    """Documents at 0°, 10° and 90°, topics' names at 5° and 80°, a query at 85° that asks for the document at 0°."""
    at = np.radians([0, 10, 90, 5, 80, 85])
    rows = np.stack([np.cos(at), np.sin(at)], axis=1)
    asked = task([0, 1, 1], 2, relevant=((0,),))
    found = asked.measure(rows, rows @ TURN.T)
    assert found[NAMES].tolist() == [1, 0, 1]
    # Of the document at 10° the nearest is that at 0°, and its own topic's comes second; so it is for the one at 90°.
    assert np.isnan(found[SAME_TOPIC][0])
    assert found[SAME_TOPIC][1:] == pytest.approx([1 / np.log2(3), 1.0])
    assert found[QUERIES] == pytest.approx([1 / np.log2(4)])
    assert found[ANGLE] == pytest.approx([90, 90, 90])
    assert asked.neighbours(rows, [0]).tolist() == [[1, 2]]
    assert EXAMPLES not in found  # no topic has five


def test_same_values_among_the_nearest_by_hand() -> None:
    """Documents at 0°, 1°, 2°, 50°, 51° and one without a value between them; all others are among the nearest 10."""
    at = np.radians([0, 1, 2, 50, 51, 25])
    rows = np.stack([np.cos(at), np.sin(at)], axis=1)
    codes = np.array([0, 0, 1, 1, 2, -1])
    found = same_value(rows, codes)
    assert found[:4] == pytest.approx([1 / 4, 1 / 4, 1 / 4, 1 / 4])
    assert np.isnan(found[4:]).all()  # nobody else has its value; it has none
    crowd = np.radians([*range(11), 90, 91, 92])  # eleven of value 0, then three of value 1
    values = same_value(np.stack([np.cos(crowd), np.sin(crowd)], axis=1), np.array([0] * 11 + [1] * 3))
    assert values[:11] == pytest.approx([1.0] * 11)
    assert values[11:] == pytest.approx([0.2] * 3)


def test_aspects_are_measured_where_two_documents_share_a_value() -> None:
    codes = (("genre", np.array([0, 0, 1])), ("none", np.array([-1, 0, 1])))
    asked = task([-1, -1, -1], 0, aspects=codes)
    assert asked.measures == [ASPECT + "genre", ANGLE]
    assert ASPECT == vocabulary.ABLATION_ASPECT
    assert measure_name(ASPECT + "genre") == "same genre among the 10 nearest"


def test_ndcg_is_that_of_the_retrieval_study() -> None:
    chance = np.random.default_rng(0)
    scores, relevant = chance.normal(size=(30, 40)), chance.uniform(size=(30, 40)) < 0.3
    answers = Relevance.of([np.flatnonzero(row).tolist() for row in relevant], np.zeros(40, dtype=int))
    ranked = np.argsort(-scores, axis=1)[:, :10]
    assert ndcg(scores, relevant) == pytest.approx(measured(ranked, answers)[list(METRICS).index("ndcg"), :, 9])


def test_what_labels_and_queries_do_not_allow_is_not_measured() -> None:
    assert task([-1, -1], 0).measures == [ANGLE]
    assert task([0, 1], 2).measures == [NAMES, ANGLE]
    assert task([0] * 5 + [1] * 5, 2).measures == [NAMES, EXAMPLES, SAME_TOPIC, ANGLE]


def test_documents_without_a_label_have_no_match() -> None:
    rows = np.eye(4)[[0, 1, 0, 0, 1]]
    found = task([0, 1, -1], 2).measure(rows, rows)
    assert found[NAMES][:2].tolist() == [1, 1]
    assert np.isnan(found[NAMES][2])


def test_centring_takes_the_documents_mean_from_both_sides() -> None:
    rows = np.array([[1.0, 9.0], [-1.0, 9.0], [1.0, 8.0], [-1.0, 8.0]])
    assert task([0, 1], 2).measure(rows, rows)[NAMES].tolist() == [1, 1]
    shifted = rows + np.array([100.0, 0.0])
    assert task([0, 1], 2, centre=True).measure(shifted, shifted)[NAMES].tolist() == [1, 1]


def test_a_change_is_paired_by_document_and_leaves_out_those_without_a_figure() -> None:
    values = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [np.nan, np.nan]])
    found = changes_of(values, np.array([1.0, 1.0, 0.0, np.nan]))
    assert found.value.tolist() == pytest.approx([0, -1 / 3])
    assert (found.low[0], found.high[0]) == (0, 0)


def test_p_is_that_of_student_s_t_with_one_more_draw() -> None:
    """Two layers with the same variance, 0.0001: it is both layers', with the degrees of freedom of both."""
    draws = {1: np.array([-0.01, 0.0, 0.01]), 2: np.array([0.19, 0.2, 0.21])}
    found = against_noise(np.array([-0.2, 0.2]), np.array([1, 2]), draws, 0.0)
    assert found.p[0] == pytest.approx(2 * stats.t.cdf(-0.2 / (0.01 * np.sqrt(1 + 1 / 3)), 4))
    assert found.p[1] == pytest.approx(1)
    assert found.high[1] - 0.2 == pytest.approx(stats.t.ppf(0.975, 4) * 0.01 * np.sqrt(4 / 3))
    assert found.adjusted[0] == pytest.approx(2 * found.p[0])
    assert found.beyond.tolist() == [True, False]


def test_variances_that_differ_beyond_chance_are_moved_part_of_the_way() -> None:
    """Smyth's estimates; the prior's degrees of freedom solve trigamma(d / 2) = variance of the logarithms − 1."""
    own, freedom = np.array([1.0, 10.0, 1000.0]), np.full(3, 2)
    # With two degrees of freedom: digamma(1) = −γ, trigamma(1) = π² / 6.
    logs = np.log(own) + np.euler_gamma
    extra = logs.var(ddof=1) - np.pi**2 / 6
    prior = 2 * optimize.brentq(lambda half: special.polygamma(1, half) - extra, 1e-3, 1e3)
    common = np.exp(logs.mean() + special.digamma(prior / 2)) / (prior / 2)
    found = moderated(own, freedom)
    assert found.variance == pytest.approx((prior * common + 2 * own) / (prior + 2))
    assert found.freedom == pytest.approx([prior + 2] * 3)
    assert own[0] < found.variance[0] < found.variance[2] < own[2]


def test_draws_that_change_nothing_have_a_spread_of_one_document() -> None:
    found = against_noise(np.array([-0.01]), np.array([1]), {1: np.zeros(6)}, least=0.01)
    assert found.p[0] == pytest.approx(2 * stats.t.cdf(-1 / np.sqrt(1 + 1 / 6), 5))


def test_only_a_planted_head_is_beyond_the_noise_and_only_with_its_interval() -> None:
    chance = np.random.default_rng(1)
    noise = {layer: chance.normal(-0.01, 0.01, 12) for layer in range(1, 7)}
    layers = np.repeat(np.arange(1, 7), 12)
    change = chance.normal(-0.01, 0.01, 72)
    change[70], change[3] = -0.08, 0.09
    floor = against_noise(change, layers, noise, 1 / 325)
    narrow = Interval(change, change - 0.02, change + 0.02)
    assert {at: name for at, name in enumerate(verdicts(narrow, floor)) if name != "within"} == {
        70: "below",
        3: "above",
    }
    assert set(verdicts(Interval(change, change - 0.2, change + 0.2), floor)) == {"within"}


def test_random_removals_in_place_of_heads_are_hardly_ever_flagged() -> None:
    flagged = total = 0
    for seed in range(20):
        chance = np.random.default_rng(seed)
        noise = {layer: chance.normal(0, 0.01 * layer, 12) for layer in range(1, 7)}
        some = false_alarms(noise, 1 / 325)
        flagged, total = flagged + some[0], total + some[1]
    assert total == 20 * 72
    assert flagged / total < 0.02
    planted = {layer: np.array([0.0, 0.001, -0.001, 0.0005, 0.5]) for layer in range(1, 7)}
    assert false_alarms(planted, 0.0)[0] >= 6
    assert ablation_effects.LEVEL == 0.05
