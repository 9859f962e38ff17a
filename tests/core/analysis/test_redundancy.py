"""Head × head CKA: known pairs of heads, an independent formula, and groups planted or not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis.redundancy import FOLDS, Moments, Redundancy, cluster_order, group_comparison
from core.model.shape import ModelShape

pytestmark = pytest.mark.filterwarnings("error")


def redundancy(heads: np.ndarray, pieces: tuple[int, ...] = ()) -> Redundancy:
    """Of ``heads[doc, head, dim]``, added at once or cut before the documents of ``pieces``."""
    rows = heads.reshape(len(heads), -1).astype(np.float32)
    moments = Moments(rows.mean(axis=0, dtype=np.float64), heads.shape[1])
    edges = [0, *sorted(pieces), len(rows)]
    for first, last in pairwise(edges):
        moments.add(rows[first:last], first)
    return moments.redundancy()


def draw(seed: int, docs: int, heads: int, dim: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(docs, heads, dim))


def brute_force(first: np.ndarray, second: np.ndarray) -> float:
    """Debiased CKA of ``[doc, dim]`` and ``[doc, dim]``: Song et al.'s unbiased HSIC, of Gram matrices.

    Without any centring: the estimator does not need it.
    """

    def hsic(one: np.ndarray, other: np.ndarray) -> float:
        docs = len(one)
        gram, another = one @ one.T, other @ other.T
        np.fill_diagonal(gram, 0)
        np.fill_diagonal(another, 0)
        return float(
            np.trace(gram @ another)
            + gram.sum() * another.sum() / ((docs - 1) * (docs - 2))
            - 2 / (docs - 2) * (gram @ another).sum()
        ) / (docs * (docs - 3))

    return hsic(first, second) / (hsic(first, first) * hsic(second, second)) ** 0.5


def turned(vectors: np.ndarray, seed: int) -> np.ndarray:
    """``[doc, dim]`` by a random rotation."""
    return vectors @ np.linalg.qr(np.random.default_rng(seed).normal(size=(vectors.shape[1],) * 2))[0]


def test_the_same_head_twice() -> None:
    heads = draw(0, 50, 2, 8)
    heads[:, 1] = heads[:, 0]
    assert redundancy(heads).cka == pytest.approx(np.ones((2, 2)), abs=1e-5)


@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (100, 0), (0.01, 0), (1, 5), (-3, 1)])
def test_rotation_scale_and_shift_do_not_count(scale: float, shift: float) -> None:
    heads = draw(1, 60, 2, 8)
    heads[:, 1] = scale * turned(heads[:, 0], 2) + shift
    assert redundancy(heads).cka[0, 1] == pytest.approx(1, abs=1e-4)


def test_independent_heads_have_nothing_in_common() -> None:
    """Also on the average over many pairs: without the correction it would be about 32 / (200 + 32) = 0.14."""
    found = [redundancy(draw(seed, 200, 4, 32)).cka[np.triu_indices(4, 1)] for seed in range(10)]
    assert np.mean(found) == pytest.approx(0, abs=0.02)
    assert np.abs(found).max() < 0.1


def test_half_of_a_head_is_shared() -> None:
    """Of 16 independent dimensions each, 8 are the same: CKA is 8 / √(16 · 16)."""
    heads = draw(3, 4_000, 2, 16)
    heads[:, 1, :8] = heads[:, 0, :8]
    found = redundancy(heads)
    assert found.cka[0, 1] == pytest.approx(0.5, abs=0.02)
    assert found.low[0, 1] < 0.5 < found.high[0, 1]


@pytest.mark.parametrize(("docs", "dim"), [(5, 3), (12, 4), (30, 2), (9, 20)])
def test_against_unbiased_hsic_of_gram_matrices(docs: int, dim: int) -> None:
    heads = draw(4, docs, 3, dim) + 1
    heads[:, 1] += 2 * heads[:, 0]
    expected = [[brute_force(heads[:, one], heads[:, other]) for other in range(3)] for one in range(3)]
    assert redundancy(heads).cka == pytest.approx(np.array(expected), abs=1e-4)


@pytest.mark.parametrize("level", [0.0, 0.1, 1 / 3, -700.0])
def test_a_head_that_does_not_vary_has_nothing_in_common_with_any(level: float) -> None:
    heads = draw(5, 40, 4, 6)
    heads[:, 1] = level
    heads[:, 3] = level
    found = redundancy(heads)
    assert found.cka[1].tolist() == found.cka[:, 3].tolist() == [0, 0, 0, 0]
    assert found.cka[[0, 2], [0, 2]] == pytest.approx([1, 1])
    assert np.isfinite(found.low).all()
    assert sorted(found.order.tolist()) == [0, 1, 2, 3]


def test_symmetric_with_ones_on_the_diagonal() -> None:
    found = redundancy(draw(6, 70, 5, 4))
    for values in (found.cka, found.low, found.high):
        assert values == pytest.approx(values.T, abs=1e-6)
    for values in (found.cka, found.low, found.high):
        assert np.diag(values) == pytest.approx(np.ones(5), abs=1e-6)


def test_the_order_of_documents_does_not_change_the_value() -> None:
    heads = draw(7, 64, 3, 5)
    shuffled = heads[np.random.default_rng(0).permutation(64)]
    assert redundancy(shuffled).cka == pytest.approx(redundancy(heads).cka, abs=1e-5)


def test_a_large_mean_does_not_blur_the_value() -> None:
    """What all documents have in common is taken off first, in numbers that hold it."""
    heads = draw(8, 80, 3, 4)
    assert redundancy(heads + 100).cka == pytest.approx(redundancy(heads).cka, abs=1e-3)


@settings(max_examples=60, deadline=None)
@given(docs=st.integers(4, 45), data=st.data())
def test_documents_may_come_in_pieces_of_any_size(docs: int, data: st.DataObject) -> None:
    pieces = data.draw(st.lists(st.integers(1, docs - 1), max_size=8, unique=True))
    heads = draw(docs, docs, 3, 4)
    once, often = redundancy(heads), redundancy(heads, tuple(pieces))
    assert often.cka == pytest.approx(once.cka, abs=1e-4)
    for name in ("low", "high"):
        assert getattr(often, name) == pytest.approx(getattr(once, name), abs=2e-3, nan_ok=True)


@pytest.mark.parametrize("docs", [1, 2, 3])
def test_fewer_than_four_documents_are_too_few(docs: int) -> None:
    found = redundancy(draw(9, docs, 3, 4))
    assert np.isnan(found.cka).all()
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()
    assert found.order.tolist() == [0, 1, 2]


def test_four_documents_have_a_value_and_no_interval() -> None:
    """Leaving one of four out leaves three, which are too few."""
    found = redundancy(draw(10, 4, 3, 4))
    assert np.isfinite(found.cka).all()
    assert np.isnan(found.low).all()


@pytest.mark.parametrize("docs", [5, 8, 9, 100])
def test_the_interval_holds_the_value(docs: int) -> None:
    heads = draw(11, docs, 4, 6)
    heads[:, 1] += heads[:, 0]
    found = redundancy(heads)
    assert (found.low <= found.cka + 1e-9).all()  # a head with itself: 1 but for rounding
    assert (found.cka <= found.high + 1e-9).all()


def test_the_interval_shrinks_with_more_documents() -> None:
    """By about √100 with a hundred times the documents; a third is left for chance."""
    heads = draw(12, 8_000, 2, 6)
    heads[:, 1] += heads[:, 0]
    few, many = redundancy(heads[:80]), redundancy(heads)
    assert many.high[0, 1] - many.low[0, 1] < (few.high[0, 1] - few.low[0, 1]) / 3


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """y = x + e has covariances I, I and 2 I: CKA is d / (√d · √(4 d)) = 0.5. Of 100, 95 are expected (3 SD: 6.5)."""
    held = 0
    for seed in range(100):
        heads = draw(seed, 200, 2, 6)
        heads[:, 1] += heads[:, 0]
        found = redundancy(heads)
        held += found.low[0, 1] <= 0.5 <= found.high[0, 1]
    assert held >= 88


# Order.


def test_two_planted_clusters_of_heads_stand_together() -> None:
    """Heads of even and of odd number share a vector each."""
    chance = np.random.default_rng(13)
    common = chance.normal(size=(2, 100, 6))
    heads = np.stack([common[head % 2] + 0.5 * chance.normal(size=(100, 6)) for head in range(8)], axis=1)
    found = redundancy(heads)
    assert sorted(found.order.tolist()) == list(range(8))
    assert [len(set(half % 2)) for half in (found.order[:4], found.order[4:])] == [1, 1]
    assert found.cka[0, 2] > 0.5 > found.cka[0, 1]


@pytest.mark.parametrize("heads", [1, 2])
def test_the_order_of_one_or_two_heads(heads: int) -> None:
    assert cluster_order(np.eye(heads)).tolist() == list(range(heads))
    assert redundancy(draw(14, 20, heads, 4)).order.tolist() == list(range(heads))


# Heads that share a key/value head.

SHAPE = ModelShape(layers=1, heads=16, kv_heads=4, hidden=64, head_dim=4)


def symmetric(pairs: np.ndarray) -> np.ndarray:
    return np.triu(pairs, 1) + np.triu(pairs, 1).T + np.eye(len(pairs))


def test_means_of_groups_by_hand() -> None:
    """Heads 1, 2 and 3, 4 share: 0.8 and 0.6 within; 0.1, 0.2, 0.3, 0.4 between."""
    cka = symmetric(np.array([[1, 0.8, 0.1, 0.2], [0, 1, 0.3, 0.4], [0, 0, 1, 0.6], [0, 0, 0, 1]]))
    found = group_comparison(cka, ModelShape(layers=1, heads=4, kv_heads=2, hidden=8, head_dim=2))
    assert found is not None
    assert (found.within, found.between) == (pytest.approx(0.7), pytest.approx(0.25))
    assert (found.pairs_within, found.pairs_between) == (2, 4)
    # Four heads fall into two pairs in three ways, and this one is the best of them.
    assert found.p == pytest.approx(1 / 3, abs=0.02)


def test_planted_groups_are_found() -> None:
    chance = np.random.default_rng(15)
    common = chance.normal(size=(4, 100, 4))
    heads = np.stack([common[SHAPE.group_of(head)] + chance.normal(size=(100, 4)) for head in range(16)], axis=1)
    found = group_comparison(redundancy(heads).cka, SHAPE)
    assert found is not None
    assert found.p < 0.01
    assert found.within > found.between + 0.1
    assert (found.pairs_within, found.pairs_between) == (24, 96)  # 4 · 6 of 120


def test_the_p_of_heads_without_groups_is_anywhere() -> None:
    """Below 0.05 once in twenty; more than four of twenty happen with a chance of 0.003."""
    found = [group_comparison(symmetric(draw(seed, 16, 16, 1)[:, :, 0]), SHAPE, seed) for seed in range(20)]
    p = np.array([one.p for one in found if one is not None])
    assert len(p) == 20
    assert (p < 0.05).sum() <= 4
    assert (p > 0.95).sum() <= 4
    assert 0.25 < p.mean() < 0.75  # 0.5, and four times its error of 0.29 / √20


def test_planted_clusters_that_are_not_the_groups_are_no_finding() -> None:
    """Alike heads are 1, 5, 9, 13 and so on, one in each group: heads that share are less alike than others."""
    cluster = np.arange(16) % 4
    found = group_comparison(symmetric((cluster[:, None] == cluster).astype(float)), SHAPE)
    assert found is not None
    assert found.within == 0
    assert found.between == pytest.approx(24 / 96)
    assert found.p > 0.9


def test_where_all_pairs_are_equal_p_is_one() -> None:
    found = group_comparison(symmetric(np.full((16, 16), 0.3)), SHAPE)
    assert found is not None
    assert found.p == 1


def test_the_same_seed_gives_the_same_p() -> None:
    cka = symmetric(draw(16, 16, 16, 1)[:, :, 0])
    assert group_comparison(cka, SHAPE, 3) == group_comparison(cka, SHAPE, 3)


@pytest.mark.parametrize("kv_heads", [1, 16])
def test_no_comparison_where_all_heads_share_or_none_does(kv_heads: int) -> None:
    shape = ModelShape(layers=1, heads=16, kv_heads=kv_heads, hidden=64, head_dim=4)
    assert group_comparison(symmetric(draw(17, 16, 16, 1)[:, :, 0]), shape) is None


def test_no_comparison_without_numbers() -> None:
    assert group_comparison(np.full((16, 16), np.nan), SHAPE) is None


def test_memory_does_not_depend_on_the_documents() -> None:
    """A sum for each fold, and no vector is kept."""
    moments = Moments(np.zeros(12), 3)
    before = {name: np.shape(value) for name, value in vars(moments).items()}
    moments.add(np.ones((500, 12)), 0)
    assert {name: np.shape(value) for name, value in vars(moments).items()} == before
    assert before["_products"] == (FOLDS, 12, 12)
