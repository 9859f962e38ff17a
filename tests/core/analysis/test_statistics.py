"""Intervals, areas under the curve, cosines and slices, against numbers worked out by hand and laws that hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis import bootstrap
from core.analysis.auc import Auc, Histograms, auc
from core.analysis.bootstrap import (
    RESAMPLES,
    folded,
    groups_of,
    means,
    moved_back,
    near_best,
    ratios,
    resamples,
    shares,
)
from core.analysis.similarity import POOLINGS, pooled, refuse_not_finite, similarity, unit
from core.errors import Mistake
from core.model.stages import HEADS, RANDOM, cut, permutation
from core.runs.labels import own

pytestmark = pytest.mark.filterwarnings("error")  # a warning of numpy in ordinary use is a bug
few = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 10_000)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def brute_force(scores: np.ndarray, positive: np.ndarray) -> float:
    """Every pair counted: 1 for a win, one half for a tie."""
    pairs = [
        1.0 if one > other else 0.5 if one == other else 0.0 for one in scores[positive] for other in scores[~positive]
    ]
    return sum(pairs) / len(pairs)


# Resampling


def test_a_resample_draws_as_many_documents_as_there_are() -> None:
    drawn = np.concatenate(list(resamples(7, 50)))
    assert drawn.shape == (50, 7)
    assert drawn.dtype == np.float32
    assert (drawn.sum(axis=1) == 7).all()
    assert (drawn > 1).any()  # with replacement
    assert len({row.tobytes() for row in drawn}) > 40


def test_every_document_is_drawn_equally_often() -> None:
    """Each count is binomial: 1,000 × 5 draws of which a fifth is 1,000, with deviation √(5,000 × 0.2 × 0.8) = 28."""
    assert np.concatenate(list(resamples(5))).sum(axis=0) == pytest.approx([RESAMPLES] * 5, abs=4 * 28)


@pytest.mark.parametrize(
    ("size", "least", "rows"),
    [(1, 1, [1] * 10), (30, 1, [3, 3, 3, 1]), (100, 1, [10]), (30, 4, [4, 4, 2]), (1, 32, [10])],
)
def test_ten_resamples_of_ten_documents_come_in_chunks_and_are_the_same_ones(
    monkeypatch: pytest.MonkeyPatch, size: int, least: int, rows: list[int]
) -> None:
    whole = np.concatenate(list(resamples(10, 10)))
    monkeypatch.setattr(bootstrap, "CHUNK", size)
    monkeypatch.setattr(bootstrap, "LEAST_ROWS", least)
    found = list(resamples(10, 10))
    assert [len(chunk) for chunk in found] == rows
    assert np.array_equal(np.concatenate(found), whole)


def test_the_seed_decides() -> None:
    values = normal(30, 2)
    assert np.array_equal(means(values, seed=1).low, means(values, seed=1).low)
    assert not np.array_equal(means(values, seed=1).low, means(values, seed=2).low)


def test_interval_of_ten_coin_tosses() -> None:
    """Five heads of ten: resampled heads are binomial(10, ½), P(≤ 1) = 11/1,024 < 2.5 % < 56/1,024 = P(≤ 2)."""
    found = means(np.repeat([[0.0], [1.0]], 5, axis=0))
    assert found.value == pytest.approx([0.5])
    assert found.low == pytest.approx([0.2])
    assert found.high == pytest.approx([0.8])


def test_samples_that_come_in_documents_are_drawn_with_them() -> None:
    """A hundred samples in each document, all right or all wrong: no surer than ten coin tosses."""
    hits, counts = np.repeat([[0.0], [100.0]], 5, axis=0), np.full((10, 1), 100.0)
    found = ratios(hits, counts)
    assert (found.value, found.low, found.high) == (
        pytest.approx([0.5]),
        pytest.approx([0.2]),
        pytest.approx([0.8]),
    )


def test_a_ratio_weighs_documents_by_their_samples() -> None:
    """1 of 1 and 1 of 3 make 2 of 4, not the mean of 1 and 1/3; twice the same document makes 1 or 1/3."""
    found = ratios(np.array([[1.0], [1.0]]), np.array([[1.0], [3.0]]))
    assert found.value == pytest.approx([0.5])
    assert found.low == pytest.approx([1 / 3])
    assert found.high == pytest.approx([1])


def test_columns_do_not_mix() -> None:
    values = normal(20, 3)
    together = means(values)
    for column in range(3):
        alone = means(values[:, column : column + 1])
        assert alone.value == pytest.approx(together.value[column : column + 1])
        assert alone.low == pytest.approx(together.low[column : column + 1], abs=1e-6)
        assert alone.high == pytest.approx(together.high[column : column + 1], abs=1e-6)


def test_the_interval_covers_the_truth_about_95_times_in_100() -> None:
    """400 experiments, one a column, of 100 documents around 3. Of 400, 95 % has a deviation of 1.1 points."""
    found = means(3 + normal(100, 400, seed=4))
    covered = ((found.low <= 3) & (found.high >= 3)).mean()
    assert 0.90 <= covered <= 0.98


def test_groups_hold_every_document_once_and_their_sums() -> None:
    """5 documents in 2 groups: what each has is added to its own."""
    values = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0], [5.0, 50.0]])
    found = folded(values, np.array([0, 1, 0, 1, 1]))
    assert found[:2].tolist() == [[4.0, 40.0], [11.0, 110.0]]
    assert not found[2:].any()
    assert groups_of(bootstrap.FOLDED_ABOVE) is None
    many = groups_of(bootstrap.FOLDED_ABOVE + 1)
    assert many is not None
    assert np.ptp(np.bincount(many, minlength=bootstrap.GROUPS)) == 1, "as many in each, or one more"


def test_by_groups_the_interval_is_the_documents_own_to_within_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means of 20,000 skewed numbers in four columns: their standard error is known, 1 / sqrt(20,000)."""
    values = np.random.default_rng(0).exponential(size=(20_000, 4))
    alone = means(values)
    monkeypatch.setattr(bootstrap, "FOLDED_ABOVE", 10_000)
    grouped = means(values)
    assert np.allclose(alone.value, grouped.value, atol=1e-6)
    expected = 2 * 1.96 / np.sqrt(len(values))
    for found in (alone, grouped):
        assert np.allclose(found.high - found.low, expected, rtol=0.1)


def test_an_effect_that_was_not_planted_is_not_found_and_one_that_was_is() -> None:
    values = normal(200, 2, seed=2)
    values[:, 1] += 0.5  # seven standard errors of 1 / √200
    found = means(values)
    assert found.low[0] < 0 < found.high[0]
    assert found.low[1] > 0.14  # 0.5 less five standard errors


@few
@given(seed=seeds, docs=st.integers(1, 30), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_an_interval_contains_its_value(seed: int, docs: int, scale: float) -> None:
    values = scale * normal(docs, 4, seed=seed)
    found = means(values)
    assert (found.low <= found.value + 1e-6 * scale).all()
    assert (found.high >= found.value - 1e-6 * scale).all()


def test_an_interval_contains_its_value_to_the_last_digit() -> None:
    """One document with one hit of three: every resample is that document."""
    found = shares(np.array([[1.0]]), np.array([[3.0]]))
    assert found.low <= found.value <= found.high


def test_all_hits_and_none_take_the_exact_bound() -> None:
    """The least rate that gives ten of ten with a chance of 2.5 %: p¹⁰ = 0.025, p = 0.6915."""
    found = shares(np.repeat([[1.0, 0.0]], 10, axis=0))
    assert found.value.tolist() == [1, 0]
    assert found.low == pytest.approx([0.6915, 0], abs=1e-4)
    assert found.high == pytest.approx([1, 0.3085], abs=1e-4)


def test_the_exact_bound_counts_documents_that_have_a_sample() -> None:
    """Two of four documents have samples, five each: p² = 0.025, p = 0.1581; the ten samples do not count."""
    weights = np.array([[5.0], [5.0], [0.0], [0.0]])
    found = shares(weights, weights)
    assert found.value == pytest.approx([1])
    assert found.low == pytest.approx([0.1581], abs=1e-4)
    assert shares(np.zeros((4, 1)), weights).high == pytest.approx([1 - 0.1581], abs=1e-4)


def test_shares_between_none_and_all_are_the_bootstrap_s() -> None:
    hits = np.repeat([[0.0], [1.0]], 5, axis=0)
    found, plain = shares(hits), means(hits)
    assert (found.low, found.high) == (pytest.approx(plain.low), pytest.approx(plain.high))


@few
@given(seed=seeds, docs=st.integers(2, 40), chance=st.floats(0, 1))
def test_shares_lie_between_0_and_1_and_are_never_sure(seed: int, docs: int, chance: float) -> None:
    hits = np.random.default_rng(seed).random((docs, 3)) < chance
    found = shares(hits.astype(np.float32))
    assert (found.low >= 0).all()
    assert (found.high <= 1).all()
    assert (found.high - found.low > 0).all()
    assert (found.low <= found.value + 1e-6).all()
    assert (found.high >= found.value - 1e-6).all()


def test_documents_without_a_sample_count_for_nothing() -> None:
    found = ratios(np.array([[1.0], [0.0], [0.0]]), np.array([[2.0], [2.0], [0.0]]))
    assert found.value == pytest.approx([1 / 4])
    assert 0 <= found.low[0] <= found.high[0] <= 1 / 2


def test_a_column_without_any_sample_is_nan_without_a_warning() -> None:
    found = shares(np.ones((4, 2)), np.array([[1.0, 0.0]] * 4))
    assert np.isnan([found.value[1], found.low[1], found.high[1]]).all()
    assert found.value[0] == 1


def test_the_interval_of_an_inflated_statistic_is_moved_back() -> None:
    """Draws 0, 0.01², …, 1, which lean to one side. Percentiles 0.025² and 0.975², mean 0.335.

    The mean of k² / 10⁴ for k to 100 is 338,350 / 101 / 10⁴ = 0.335, so all is moved by 0.3 - 0.335.
    """
    found = moved_back(np.array([0.3]), np.linspace(0, 1, 101)[:, None] ** 2)
    assert found.value == pytest.approx([0.3])
    assert found.low == pytest.approx([0.025**2 - 0.035], abs=1e-4)
    assert found.high == pytest.approx([0.975**2 - 0.035], abs=1e-4)


# Area under the curve


def test_auc_of_four_documents() -> None:
    """3 and 1 against 2 and 0: three of four pairs are won.

    Shares won are 1 and ½ on one side, ½ and 1 on the other: variance 1/8 over 2, twice; 0.75 ± 1.96 × √(1/8).
    """
    scores, positive = np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, False, True, False])
    found = auc(scores, positive)
    assert found.value == 0.75
    assert found.low == pytest.approx(0.75 - 1.959964 * 0.125**0.5)  # 0.057
    assert found.high == 1
    mirrored = auc(-scores, positive)
    assert mirrored.value == 0.25
    assert mirrored.low == 0
    assert mirrored.high == pytest.approx(1 - float(found.low))


def test_ties_count_half() -> None:
    """2 against 1, 2 and 3: won, tied, lost. 2 and 3 against 2: tied, won."""
    assert auc(np.array([2.0, 1.0, 2.0, 3.0]), np.array([True, False, False, False])).value == 0.5
    assert auc(np.array([2.0, 3.0, 2.0]), np.array([True, True, False])).value == 0.75


def test_documents_parted_wholly_are_as_sure_as_their_number() -> None:
    """Three against four: p³ = 0.025, p = 0.2924."""
    scores, positive = np.arange(7.0), np.arange(7) >= 4
    found = auc(scores, positive)
    assert (found.value, found.high) == (1, 1)
    assert found.low == pytest.approx(0.2924, abs=1e-4)
    mirrored = auc(-scores, positive)
    assert (mirrored.value, mirrored.low) == (0, 0)
    assert mirrored.high == pytest.approx(1 - 0.2924, abs=1e-4)


def test_a_topic_with_one_document_says_little() -> None:
    """Above eight of nine: p = 0.025 for one document, on whichever side it is alone."""
    scores = np.arange(10.0)
    found = auc(scores, scores == 8)
    assert found.value == pytest.approx(8 / 9)
    assert (found.low, found.high) == (pytest.approx(0.025), 1)
    mirrored = auc(scores, scores != 8)
    assert mirrored.value == pytest.approx(1 / 9)
    assert (mirrored.low, mirrored.high) == (0, pytest.approx(0.975))


@pytest.mark.parametrize("positive", [[True, True], [False, False]])
def test_a_topic_with_no_document_has_no_auc(positive: list[bool]) -> None:
    found = auc(np.array([1.0, 2.0]), np.array(positive))
    assert np.isnan([found.value, found.low, found.high]).all()


def test_scores_that_are_all_equal_say_nothing() -> None:
    found = auc(np.zeros(40), np.arange(40) < 20)
    assert found.value == 0.5
    assert found.low <= 0.5 <= found.high


def test_stacked_keeps_the_order() -> None:
    positive = np.array([True, True, False, False])
    up, down = auc(np.array([3.0, 4.0, 1.0, 2.0]), positive), auc(np.array([1.0, 2.0, 3.0, 4.0]), positive)
    found = Auc.stacked([up, down])
    assert found.value.tolist() == [1, 0]
    assert found.low.tolist() == [float(up.low), float(down.low)]
    assert found.high.tolist() == [float(up.high), float(down.high)]


grades = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=25).filter(
    lambda rows: len({side for _, side in rows}) == 2
)


@few
@given(grades)
def test_auc_is_the_share_of_pairs_won(rows: list[tuple[int, bool]]) -> None:
    scores, positive = np.array([grade for grade, _ in rows], float), np.array([side for _, side in rows])
    found = auc(scores, positive)
    assert found.value == pytest.approx(brute_force(scores, positive))
    assert found.value + auc(-scores, positive).value == pytest.approx(1)
    assert auc(scores, ~positive).value == pytest.approx(1 - found.value)
    assert auc(np.exp(scores), positive).value == pytest.approx(found.value)  # the order alone counts
    assert found.low >= 0
    assert found.high <= 1
    if len(set(scores)) > 1:  # else see test_scores_that_are_all_equal_say_nothing
        assert found.low <= found.value <= found.high


def test_a_shift_of_one_deviation_is_found_with_its_known_area() -> None:
    """Φ(1 / √2) = 0.7602; of 200 intervals 95 % contain it, with a deviation of 1.5 points."""
    chance = np.random.default_rng(0)
    positive = np.arange(80) < 40
    found = Auc.stacked([auc(chance.normal(size=80) + positive, positive) for _ in range(200)])
    assert found.value.mean() == pytest.approx(0.7602, abs=0.01)
    assert 0.90 <= ((found.low <= 0.7602) & (found.high >= 0.7602)).mean() <= 0.99


def test_shuffled_labels_sit_at_one_half() -> None:
    chance = np.random.default_rng(1)
    scores = np.concatenate([np.zeros(40), np.ones(40)]) + chance.normal(size=80)
    found = Auc.stacked([auc(scores, chance.permutation(80) < 40) for _ in range(200)])
    assert found.value.mean() == pytest.approx(0.5, abs=0.02)
    assert 0.90 <= ((found.low <= 0.5) & (found.high >= 0.5)).mean() <= 0.99


# Areas from histograms


def histogram_auc(values: np.ndarray, labels: np.ndarray, chunk: int = 1_000) -> np.ndarray:
    histograms = Histograms(*values.shape[1:])
    for start in range(0, len(values), chunk):
        histograms.add(values[start : start + chunk], labels[start : start + chunk])
    return histograms.auc()


@few
@given(seed=seeds, docs=st.integers(4, 40))
def test_histograms_are_exact_where_no_bin_holds_different_values(seed: int, docs: int) -> None:
    """Bins are 2/1,024 wide, so that multiples of 1/512 fall into bins of their own, and into few enough to tie."""
    chance = np.random.default_rng(seed)
    # 511/512 is left out: it shares the last bin with 1
    values = (chance.choice([-512, -300, -1, 0, 1, 2, 510, 512], (docs, 2, 3)) / 512).astype(np.float32)
    labels = chance.permutation(np.arange(docs) % 3)
    found = histogram_auc(values, labels)
    for row, topic in np.ndindex(2, 3):
        assert found[row, topic] == pytest.approx(brute_force(values[:, row, topic], labels == topic))


@few
@given(seed=seeds, spread=st.sampled_from([0.5, 0.05, 0.005]))
def test_histograms_err_by_no_more_than_half_the_pairs_within_a_bin(seed: int, spread: float) -> None:
    """A pair in one bin counts ½ instead of 0 or 1."""
    chance = np.random.default_rng(seed)
    values = np.clip(0.3 + spread * chance.normal(size=(60, 1, 2)), -1, 1).astype(np.float32)
    labels = np.arange(60) % 2
    found = histogram_auc(values, labels)
    for topic in range(2):
        scores = values[:, 0, topic]
        bins = np.minimum(np.floor((scores + 1) * 4_096), 8_191)  # few heads and topics: the finest bins
        shared = (bins[labels == topic][:, None] == bins[labels != topic]).mean()
        assert abs(found[0, topic] - auc(scores, labels == topic).value) <= shared / 2 + 1e-6


def test_histograms_of_ordinary_cosines_come_within_a_hundredth() -> None:
    chance = np.random.default_rng(3)
    labels = np.arange(300) % 3
    values = np.clip(0.2 * chance.normal(size=(300, 4, 3)), -1, 1).astype(np.float32)
    values[np.arange(300), 2, labels] += 0.2  # one deviation, in row 2 alone
    found = histogram_auc(values, labels)
    for row, topic in np.ndindex(4, 3):
        exact = auc(values[:, row, topic], labels == topic).value
        assert found[row, topic] == pytest.approx(float(exact), abs=0.01)
    assert found[2].min() > 0.68  # Φ(1 / √2) = 0.76, with a deviation of 0.03
    assert abs(found[[0, 1, 3]] - 0.5).max() < 0.12


def test_histograms_of_cosines_close_together() -> None:
    """A head whose vectors all point one way: cosines 0.9 ± 0.001, with topics one deviation apart."""
    labels = np.arange(400) % 2
    values = 0.9 + 0.001 * normal(400, 1, 2, seed=5)
    values[np.arange(400), 0, labels] += 0.001
    found = histogram_auc(values, labels)
    assert found[0, 0] == pytest.approx(float(auc(values[:, 0, 0], labels == 0).value), abs=0.01)


@pytest.mark.parametrize("chunk", [1, 7, 50])
def test_documents_may_be_added_in_any_chunks(chunk: int) -> None:
    values, labels = np.tanh(normal(50, 2, 3)), np.arange(50) % 3
    assert np.array_equal(histogram_auc(values, labels, chunk), histogram_auc(values, labels))


def test_a_topic_with_no_document_or_with_all_has_no_histogram_auc() -> None:
    values = np.tanh(normal(6, 2, 3))
    assert np.isnan(histogram_auc(values, np.zeros(6, dtype=int))).all()
    found = histogram_auc(values, np.array([0, 0, 0, 1, 1, 1]))
    assert np.isnan(found[:, 2]).all()
    assert np.isfinite(found[:, :2]).all()


def test_the_ends_of_the_scale_have_their_bins() -> None:
    """The topic's one document has cosine 1, the rest 0.5 and -1; the other way round in the second row."""
    values = np.zeros((3, 2, 1), dtype=np.float32)
    values[:, 0, 0], values[:, 1, 0] = [1, 0.5, -1], [-1, 0.5, 1]
    assert histogram_auc(values, np.array([0, 1, 1])).tolist() == [[1], [0]]


# Cosines


def test_similarity_of_known_angles() -> None:
    """Two heads of two dimensions; the full cosine is that of the four numbers side by side."""
    docs = np.array([[[3, 4], [0, 2]]], dtype=np.float32)
    topics = np.array([[[4, 3], [0, -1]], [[3, 4], [0, 2]]], dtype=np.float32)
    found = similarity(docs, topics)
    assert found.shape == (1, 3, 2)
    assert found.dtype == np.float32
    # (12 + 12 - 2) / (√29 × √26), and 1 with itself
    assert found[0, 0] == pytest.approx([22 / (29 * 26) ** 0.5, 1])
    assert found[0, 1] == pytest.approx([24 / 25, 1])
    assert found[0, 2] == pytest.approx([-1, 1])


def test_poolings_of_known_angles() -> None:
    """Mean vectors (1, 1) and (0, -1): cosine -1 / √2. Head cosines 1 and (1 - 4) / 5: mean 0.2, largest 1."""
    docs = np.array([[[3, 0], [-1, 2]]], dtype=np.float32)
    topics = np.array([[[1, 0], [-1, -2]]], dtype=np.float32)
    found = pooled(docs, topics, similarity(docs, topics))
    assert found.shape == (1, len(POOLINGS), 1)
    assert dict(zip(POOLINGS, found[0, :, 0], strict=True)) == {
        "mean of vectors": pytest.approx(-(0.5**0.5)),
        "mean of cosines": pytest.approx(0.2),
        "max of cosines": pytest.approx(1),
    }


def test_poolings_leave_the_full_embedding_out() -> None:
    """Full: (9 - 1) / √(10 × 10) = 0.8. Heads: 1 and -1. Mean vectors 2 and 1: cosine 1."""
    docs = np.array([[[3.0], [1.0]]], dtype=np.float32)
    topics = np.array([[[3.0], [-1.0]]], dtype=np.float32)
    values = similarity(docs, topics)
    assert values[0, :, 0] == pytest.approx([0.8, 1, -1])
    assert pooled(docs, topics, values)[0, :, 0] == pytest.approx([1, 0, 1])


def test_vectors_without_length_have_cosine_zero() -> None:
    docs = np.zeros((2, 2, 3), dtype=np.float32)
    docs[1, 1] = 1  # the first head of both documents is nil
    found = similarity(docs, np.ones((4, 2, 3), dtype=np.float32))
    assert (found[0] == 0).all()
    assert (found[1, 1] == 0).all()
    assert found[1, 2] == pytest.approx([1] * 4)
    assert found[1, 0] == pytest.approx([0.5**0.5] * 4)
    assert (similarity(docs, np.zeros((4, 2, 3), dtype=np.float32)) == 0).all()
    assert (pooled(docs, np.ones((4, 2, 3), dtype=np.float32), found)[0] == 0).all()


def test_constant_vectors_have_cosine_one_and_their_centred_selves_zero() -> None:
    docs = np.full((3, 2, 4), 0.1, dtype=np.float32)
    assert similarity(docs, docs[:2]) == pytest.approx(np.ones((3, 3, 2)))
    centred = docs - docs.mean(axis=0)
    assert (similarity(centred, docs[:2]) == 0).all()


def test_unit_lengths() -> None:
    found = unit(np.array([[3, 4], [0, 0], [-5, 0]], dtype=np.float32))
    assert found == pytest.approx(np.array([[0.6, 0.8], [0, 0], [-1, 0]]))


@few
@given(seed=seeds, heads=st.integers(1, 4), dim=st.integers(1, 5), factor=st.floats(1e-4, 1e4))
def test_cosines_lie_within_one_and_do_not_change_with_length(seed: int, heads: int, dim: int, factor: float) -> None:
    docs, topics = normal(6, heads, dim, seed=seed), normal(3, heads, dim, seed=seed + 1)
    found = similarity(docs, topics)
    assert np.abs(found).max() <= 1
    longer = similarity(np.float32(factor) * docs, topics)
    assert longer == pytest.approx(found, abs=1e-5)
    assert similarity(docs, -topics) == pytest.approx(-found, abs=1e-6)
    assert similarity(topics, docs) == pytest.approx(found.transpose(2, 1, 0), abs=1e-6)
    with_itself = similarity(docs, docs)[np.arange(6), :, np.arange(6)]
    assert with_itself == pytest.approx(np.ones((6, 1 + heads)), abs=1e-5)
    poolings = pooled(docs, topics, found)
    assert np.abs(poolings).max() <= 1 + 1e-6
    assert (poolings[:, 2] >= poolings[:, 1] - 1e-6).all()


def test_rounding_takes_no_cosine_beyond_one() -> None:
    """Of 500 vectors with themselves, float32 takes some to 1.0000001 before they are clipped."""
    docs = normal(500, 2, 8)
    assert (unit(docs) @ unit(docs).transpose(0, 2, 1)).max() > 1
    assert np.abs(similarity(docs, np.concatenate([docs, -docs]))).max() == 1


def test_the_cosine_of_mean_vectors_does_not_exceed_one() -> None:
    docs = normal(500, 1, 8)
    assert np.abs(pooled(docs, docs, similarity(docs, docs))).max() <= 1


@few
@given(seed=seeds)
def test_one_head_is_the_full_embedding(seed: int) -> None:
    docs, topics = normal(5, 1, 6, seed=seed), normal(3, 1, 6, seed=seed + 1)
    found = similarity(docs, topics)
    assert found[:, 0] == pytest.approx(found[:, 1], abs=1e-6)


def test_a_planted_topic_is_near_in_its_head_alone() -> None:
    docs, topics = normal(200, 4, 16), normal(5, 4, 16, seed=1)
    docs[:, 2] += topics[3, 2]
    found = similarity(docs, topics).mean(axis=0)  # [1 + head, topic]
    assert np.unravel_index(found[1:].argmax(), (4, 5)) == (2, 3)
    found[:, 3] = 0  # the topics that were not planted: 1 / √(16 × 200) = 0.02 by chance, more beside the planted one
    assert np.abs(found[[1, 2, 4]]).max() < 0.08


def test_own_takes_the_labelled_topic() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 2, 2)  # doc 0: [[0, 1], [2, 3]], doc 2: [[8, 9], [10, 11]]
    found = own(values, np.array([1, -1, 0]))
    assert found[0].tolist() == [1, 3]
    assert np.isnan(found[1]).all()
    assert found[2].tolist() == [8, 10]
    assert values[1].tolist() == [[4, 5], [6, 7]]  # left as they were


def test_own_of_no_labels_is_nan() -> None:
    assert np.isnan(own(normal(4, 3, 2), np.full(4, -1))).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_told_with_its_head_and_document(bad: float) -> None:
    rows = np.zeros((4, 6), dtype=np.float32)
    refuse_not_finite(rows, 3, 2, 100, "embed --run x")
    rows[2, 5] = rows[3, 0] = bad  # the sixth number is the third head's
    with pytest.raises(Mistake, match=r"^Head 3 of document 102 .* stage 2.*'embed --run x'\.$"):
        refuse_not_finite(rows, 3, 2, 100, "embed --run x")


# Slices


def test_heads_are_cut_where_they_are() -> None:
    rows = np.arange(12, dtype=np.float16).reshape(2, 6)
    found = cut(rows, 3, HEADS)
    assert found.dtype == np.float32
    assert found.tolist() == [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]
    assert permutation(6, HEADS).tolist() == [0, 1, 2, 3, 4, 5]


def test_random_slices_are_the_same_dimensions_in_another_order_for_every_document() -> None:
    rows = np.arange(3 * 48).reshape(3, 48)
    found = cut(rows, 4, RANDOM)
    assert found.shape == (3, 4, 12)
    order = permutation(48, RANDOM)
    assert sorted(order) == list(range(48))
    assert found.reshape(3, 48).tolist() == rows[:, order].tolist()
    assert np.array_equal(cut(rows, 4, RANDOM), found)  # always the same


@pytest.mark.parametrize("width", [48, 96, 384])
def test_random_slices_mix_the_heads(width: int) -> None:
    """A slice of a quarter holds dimensions of all four heads."""
    order = permutation(width, RANDOM)
    assert sorted(order) == list(range(width))
    assert np.array_equal(order, permutation(width, RANDOM))
    assert all(len(set(slice_ // (width // 4))) == 4 for slice_ in order.reshape(4, -1))


def test_slicing_does_not_change_the_full_embedding() -> None:
    docs, topics = normal(10, 48), normal(3, 48, seed=1)
    heads, random = (similarity(cut(docs, 4, slicing), cut(topics, 4, slicing)) for slicing in (HEADS, RANDOM))
    assert random[:, 0] == pytest.approx(heads[:, 0], abs=1e-6)
    assert np.abs(random[:, 1:] - heads[:, 1:]).max() > 0.1


def test_what_a_head_alone_has_is_gone_in_random_slices() -> None:
    """Topics are planted in head 2's twelve dimensions; random slices hold about three of them each."""
    labels = np.arange(90) % 3
    docs, topics = normal(90, 48), np.zeros((3, 48), dtype=np.float32)
    topics[:, 12:24] = normal(3, 12, seed=1)
    docs[:, 12:24] += 2 * topics[labels, 12:24]
    spread = {}
    for slicing in (HEADS, RANDOM):
        mine = own(similarity(cut(docs, 4, slicing), cut(topics, 4, slicing)), labels)[:, 1:].mean(axis=0)
        spread[slicing] = float(mine.max() - mine.min())
    assert spread[HEADS] > 0.8
    assert spread[RANDOM] < 0.4


def test_within_one_standard_error_of_the_best_by_hand() -> None:
    """Behind the best by 0.1 on average: every time by 0.1 is clear, by 0 or 0.4 (error 0.1) is not."""
    best = np.array([0.1, 0.9, 0.5, 0.7])
    always, once = best - 0.1, best - np.array([0, 0, 0, 0.4])
    found = near_best(np.stack([best, always, once], axis=1))
    assert found.tolist() == [True, False, True]
    assert near_best(np.array([[0.2, 0.3]])).tolist() == [False, True]
