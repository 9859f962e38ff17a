"""Heads against random slices: values worked out by hand, planted heads, and false alarms counted."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis import null
from core.analysis.bootstrap import means
from core.analysis.examples import LEAST_EXAMPLES, examples_of
from core.analysis.head_measures import MEASURES, LabelledSample
from core.analysis.null import (
    ABOVE,
    BELOW,
    WITHIN,
    benjamini_hochberg,
    compare_with_slices,
    random_orders,
    two_sided,
)
from core.analysis.separability import over_splits, separability
from core.runs.vocabulary import NULL_MEASURES, NULL_VERDICTS

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

TOPICS, EACH, HEADS, DIM = 6, 15, 6, 12
LABELS = np.repeat(np.arange(TOPICS), EACH)
SLICINGS = 100
OF_LABELS = ("names", "examples", "neighbour", "selectivity")
"""Measures that say nothing where labels are random; the others are about the vectors as well."""


def planted(seed: int, *carriers: int) -> LabelledSample:
    """Noise, and heads that follow the document's topic; ``carriers`` count from 0."""
    chance = np.random.default_rng(seed)
    topics = chance.normal(size=(TOPICS, HEADS, DIM))
    docs = chance.normal(size=(len(LABELS), HEADS, DIM))
    for head in carriers:
        docs[:, head] += 1.2 * topics[LABELS, head]
    order = chance.permutation(len(LABELS))
    return sample(docs.reshape(len(docs), -1)[order], LABELS[order], topics.reshape(TOPICS, -1))


def sample(vectors: np.ndarray, labels: np.ndarray, topics: np.ndarray) -> LabelledSample:
    mean = vectors.mean(axis=0)
    arrays = (array.astype(np.float32) for array in (vectors, topics, mean))
    one, two, three = arrays
    return LabelledSample(one, labels, two, three, centre=False, heads=HEADS)


def flagged(found: list[str]) -> list[int]:
    return [head for head, verdict in enumerate(found) if verdict != WITHIN]


def test_adjusted_p_values_are_those_worked_out_by_hand() -> None:
    # Sorted .01 .03 .04 .2, times 4/1 4/2 4/3 4/4: .04 .06 .0533 .2; none above the next.
    assert benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.2])) == pytest.approx(
        [0.04, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.2]
    )
    assert benjamini_hochberg(np.array([0.9, 0.9])) == pytest.approx([0.9, 0.9])
    both = benjamini_hochberg(np.array([[0.01, 0.04, 0.03, 0.2], [0.9, 0.9, 0.9, 0.9]]))  # each row by itself
    assert both[0] == pytest.approx([0.04, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.2])
    assert both[1] == pytest.approx([0.9] * 4)


def test_a_two_sided_p_counts_what_lies_as_far_out_on_the_same_side() -> None:
    null = np.arange(1.0, 10.0)  # nine values: with the head itself ten
    # Above 9.5 lies none, from 9 on one, below 0 none, and five on either side of the middle.
    assert two_sided(np.array([9.5, 9.0, 0.0, 5.0]), null) == pytest.approx([0.2, 0.4, 0.2, 1.0])


def test_one_carrier_among_noise_is_the_head_that_stands_out() -> None:
    found = compare_with_slices(planted(1, 2), SLICINGS)
    for measure in ("names", "examples", "neighbour"):
        one = found[measure]
        assert one.verdicts[2] == ABOVE, measure
        assert int(one.values.argmax()) == 2
        assert one.spread_p < 0.02
        assert one.largest_p < 0.02
        assert one.best is not None
        assert one.best.head == 2
        assert one.best.p < 0.02
        assert ABOVE not in one.verdicts[:2] + one.verdicts[3:]


def test_slicings_that_are_measured_together_are_as_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    some = planted(1, 2)
    assert 1 < null._AT_ONCE // some.vectors.size < SLICINGS  # several batches of several, the last one smaller
    together = compare_with_slices(some, SLICINGS)
    monkeypatch.setattr(null, "_AT_ONCE", 1)
    for measure, alone in compare_with_slices(some, SLICINGS).items():
        found = together[measure]
        assert found.null == pytest.approx(alone.null, abs=1e-6), measure
        assert found.flagged_slices == sum(len(flagged(found.verdicts_of(row))) for row in found.null) / found.null.size
        if alone.best is not None:
            assert found.best is not None
            assert found.best.null == pytest.approx(alone.best.null, abs=1e-6)


def test_heads_that_carry_nothing_where_others_carry_all_lie_below() -> None:
    found = compare_with_slices(planted(2, 0, 1, 2, 3, 4), SLICINGS)
    assert found["examples"].verdicts[5] == BELOW


def test_a_redundant_pair_of_carriers_stands_out_together() -> None:
    found = planted(3, 1)
    vectors = found.vectors.reshape(-1, HEADS, DIM).copy()
    topics = found.topics.reshape(-1, HEADS, DIM).copy()
    vectors[:, 4], topics[:, 4] = vectors[:, 1], topics[:, 1]
    verdicts = compare_with_slices(
        sample(vectors.reshape(len(vectors), -1), found.labels, topics.reshape(TOPICS, -1)), SLICINGS
    )["names"].verdicts
    assert [head for head, verdict in enumerate(verdicts) if verdict == ABOVE] == [1, 4]


def test_heads_that_are_all_alike_do_not_stand_out() -> None:
    found = compare_with_slices(planted(4, *range(HEADS)), SLICINGS)
    for measure in OF_LABELS:
        assert flagged(found[measure].verdicts) == [], measure
        assert found[measure].spread_p > 0.05, measure


def test_shuffled_labels_and_random_slices_flag_at_most_one_head_in_twenty() -> None:
    real = planted(5, 0, 3)
    seen = dict.fromkeys(OF_LABELS, 0)
    for seed in range(10):
        labels = np.random.default_rng(seed).permutation(real.labels)
        shuffled = LabelledSample(real.vectors, labels, real.topics, real.mean, False, HEADS)
        found = compare_with_slices(shuffled, 50)
        for measure in OF_LABELS:
            seen[measure] += len(flagged(found[measure].verdicts))
    assert max(seen.values()) <= 0.05 * 10 * HEADS, seen
    seen = dict.fromkeys(MEASURES, 0)
    for number, order in enumerate(random_orders(HEADS * DIM, 10, seed=99)):
        mixed = LabelledSample(
            real.vectors[:, order], real.labels, real.topics[:, order], real.mean[order], False, HEADS
        )
        found = compare_with_slices(mixed, 50, seed=number)
        for measure in MEASURES:
            seen[measure] += len(flagged(found[measure].verdicts))
    assert max(seen.values()) <= 0.05 * 10 * HEADS, seen


def test_the_same_seed_gives_the_same_figures_and_another_one_others() -> None:
    one, again, other = (compare_with_slices(planted(6, 1), 20, seed=seed)["names"].null for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_the_difference_to_slices_is_paired_by_document() -> None:
    found = compare_with_slices(planted(7, 2), SLICINGS)["examples"]
    assert found.difference is not None
    assert found.difference.value == pytest.approx(found.values.mean() - found.null.mean(), abs=1e-6)
    assert found.difference.low < found.difference.value < found.difference.high


def test_a_document_is_left_out_of_its_own_topics_examples() -> None:
    # Five documents of topic 0 at (1, 0) and one at (3, 4); five of topic 1 at (0, 1): one head of two numbers.
    docs = np.array([[1, 0]] * 5 + [[3, 4]] + [[0, 1]] * 5, dtype=np.float64)[:, None, :]
    labels = np.array([0] * 6 + [1] * 5)
    found = examples_of(docs, labels, 2).similarity(docs, labels)[:, 0]
    # Without itself topic 0 is (5, 0): cosine 3/5; topic 1 is (0, 5): 4/5.
    assert found[5] == pytest.approx([0.6, 0.8])
    # The others of topic 0: (7, 4) without themselves, 7 / √65; at a right angle to topic 1.
    assert found[0] == pytest.approx([7 / 65**0.5, 0.0])
    # Of topic 1: (8, 4) is topic 0's sum, cosine 4 / √80; its own is 1.
    assert found[6] == pytest.approx([4 / 80**0.5, 1.0])


def test_similarity_to_examples_equals_means_computed_one_by_one() -> None:
    chance = np.random.default_rng(8)
    docs, labels = chance.normal(size=(40, 3, 5)), chance.integers(-1, 3, size=40)
    found = examples_of(docs, labels, 3).similarity(docs, labels)
    for doc in range(40):
        for topic in range(3):
            others = [other for other in range(40) if labels[other] == topic and other != doc]
            centre = docs[others].mean(axis=0)
            for head in range(3):
                cosine = docs[doc, head] @ centre[head] / np.linalg.norm(docs[doc, head]) / np.linalg.norm(centre[head])
                assert found[doc, head, topic] == pytest.approx(cosine)


def test_a_topic_with_few_examples_is_no_reference() -> None:
    labels = np.array([0] * LEAST_EXAMPLES + [1] * (LEAST_EXAMPLES - 1))
    docs = np.random.default_rng(0).normal(size=(len(labels), 2, 4))
    found = examples_of(docs, labels, 2)
    assert found.usable.tolist() == [True, False]
    assert np.isneginf(found.similarity(docs, labels)[:, :, 1]).all()


def test_an_interval_over_splits_allows_for_the_documents_that_they_share() -> None:
    found = over_splits(np.array([0.1, 0.3]))
    # Variance .02, times 1/2 + .2/.8; Student's t for one degree of freedom is 12.706.
    assert found.value == pytest.approx(0.2)
    assert found.high - found.value == pytest.approx(12.7062 * (0.02 * 0.75) ** 0.5, rel=1e-4)


def test_heads_with_directions_of_their_own_are_told_apart_better_than_slices() -> None:
    chance = np.random.default_rng(9)
    own = 0.6 * chance.normal(size=(HEADS, DIM))
    # What varies within a head varies in one direction, which the probe can ignore; a slice has several heads' parts.
    loud = 4 * chance.normal(size=(120, HEADS, 1)) * np.ones(DIM)
    found = separability((own + loud + chance.normal(size=(120, HEADS, DIM))).reshape(120, -1), HEADS)
    assert found is not None
    assert found.heads.mean() > found.slices.mean()
    assert found.difference.low > 0


def test_heads_without_directions_of_their_own_are_not() -> None:
    found = separability(np.random.default_rng(10).normal(size=(120, HEADS * DIM)), HEADS)
    assert found is not None
    assert found.difference.low < 0 < found.difference.high
    assert abs(found.heads.mean() - 1 / HEADS) < 0.05


def test_too_few_documents_are_not_compared() -> None:
    assert separability(np.ones((10, HEADS * DIM)), HEADS) is None
    assert separability(np.ones((100, DIM)), 1) is None


def test_the_tables_know_the_same_names() -> None:
    assert set(NULL_MEASURES) == {*MEASURES, "probe"}
    assert set(NULL_VERDICTS) == {ABOVE, WITHIN, BELOW}


def test_paired_intervals_cover_the_true_difference_about_95_times_in_100() -> None:
    """2,000 experiments of 300 documents: heads hit 0.55 of them and slices 0.45, both from one document's difficulty.

    Of 2,000, 95 % has a deviation of half a point.
    """
    chance = np.random.default_rng(6)
    difficulty = chance.random((300, 2_000))
    heads = (chance.random((300, 2_000)) < 0.4 + 0.3 * difficulty).astype(np.float32)
    slices = (chance.random((300, 2_000)) < 0.3 + 0.3 * difficulty).astype(np.float32)
    found = means(heads - slices)
    covered = ((found.low <= 0.1) & (found.high >= 0.1)).mean()
    assert 0.93 <= covered <= 0.97
