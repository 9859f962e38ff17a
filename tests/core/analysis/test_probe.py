"""The probe: which samples it sees, how they are split, and what it can and cannot tell."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis import probe as module
from core.analysis.probe import (
    BY_DOCUMENT,
    BY_SAMPLE,
    SAMPLES,
    SPLITS,
    Samples,
    can_probe,
    choose_samples,
    held_out,
    mistakes_within_groups,
    probe,
    probes,
)
from core.errors import Mistake
from core.model.shape import ModelShape

pytestmark = pytest.mark.filterwarnings("error")  # a warning of numpy in ordinary use is a bug
few = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 10_000)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# Samples


def test_few_documents_are_all_seen_with_all_their_heads() -> None:
    found = choose_samples(10, 2)
    assert found.docs.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9]
    assert found.heads.tolist() == [0, 1] * 10
    assert len(found) == 20


def test_the_study_s_number() -> None:
    """32,000 samples of 32 heads are 1,000 documents each."""
    found = choose_samples(3_000, 32)
    assert len(found) == SAMPLES == 32_000
    assert np.bincount(found.heads).tolist() == [1_000] * 32


@few
@given(docs=st.integers(10, 60), heads=st.integers(2, 6), each=st.integers(10, 40), seed=seeds)
def test_every_head_has_as_many_samples_and_no_pair_comes_twice(docs: int, heads: int, each: int, seed: int) -> None:
    found = choose_samples(docs, heads, each * heads + heads - 1, seed)  # what is left over is no sample
    assert np.bincount(found.heads).tolist() == [min(docs, each)] * heads
    assert len(set(zip(found.docs, found.heads, strict=True))) == len(found)
    assert (np.diff(found.docs) >= 0).all()
    assert found.docs.min() >= 0
    assert found.docs.max() < docs


def test_heads_draw_documents_of_their_own() -> None:
    """50 of 500 documents for each of two heads share 5 on average, not 50."""
    found = choose_samples(500, 2, 100)
    first, second = (set(found.docs[found.heads == head]) for head in range(2))
    assert len(first & second) < 20
    assert max(first | second) > 400  # from the whole corpus


def test_the_seed_decides() -> None:
    one, again, other = (choose_samples(100, 2, 20, seed).docs.tolist() for seed in (1, 1, 2))
    assert one == again
    assert one != other


@pytest.mark.parametrize("part", [1, 7, 40, 100])
def test_parts_of_the_corpus_find_their_samples(part: int) -> None:
    samples = choose_samples(40, 3, 45)
    seen: list[int] = []
    for first in range(0, 40, part):
        chosen = samples.within(first, part)
        assert all(first <= doc < first + part for doc in samples.docs[chosen])
        seen += range(len(samples))[chosen]
    assert seen == list(range(len(samples)))


@pytest.mark.parametrize(("docs", "heads"), [(9, 3), (0, 3), (100, 1)])
def test_too_few_documents_or_heads(docs: int, heads: int) -> None:
    with pytest.raises(
        Mistake, match=rf"^The probe needs at least 10 documents and 2 heads; this run has {docs} and {heads}\.$"
    ):
        choose_samples(docs, heads)


@pytest.mark.parametrize(("docs", "heads", "can"), [(10, 2, True), (9, 2, False), (10, 1, False), (0, 0, False)])
def test_whether_there_is_enough_is_known_beforehand(docs: int, heads: int, can: bool) -> None:
    assert can_probe(docs, heads) is can


def test_too_few_samples_asked_for() -> None:
    with pytest.raises(Mistake, match=r"^--probe-samples 29 is too few: give at least 30\.$"):
        choose_samples(100, 3, 29)
    assert len(choose_samples(100, 3, 30)) == 30


# Splits


@few
@given(docs=st.integers(10, 60), heads=st.integers(2, 6), each=st.integers(10, 40), seed=seeds)
def test_no_document_is_on_both_sides(docs: int, heads: int, each: int, seed: int) -> None:
    samples = choose_samples(docs, heads, each * heads, seed)
    test = held_out(samples, BY_DOCUMENT, seed)
    tested, trained = set(samples.docs[test]), set(samples.docs[~test])
    assert not tested & trained
    assert len(tested) == max(1, round(0.2 * len(tested | trained)))


@few
@given(docs=st.integers(10, 60), heads=st.integers(2, 6), each=st.integers(10, 40), seed=seeds)
def test_a_fifth_of_each_head_s_samples_is_tested_on(docs: int, heads: int, each: int, seed: int) -> None:
    samples = choose_samples(docs, heads, each * heads, seed)
    test = held_out(samples, BY_SAMPLE, seed)
    assert np.bincount(samples.heads[test]).tolist() == [max(1, round(0.2 * min(docs, each)))] * heads


def test_by_sample_most_documents_are_on_both_sides() -> None:
    samples = choose_samples(50, 8)
    test = held_out(samples, BY_SAMPLE)
    assert len(set(samples.docs[test]) & set(samples.docs[~test])) > 30


@pytest.mark.parametrize("split", SPLITS)
def test_the_split_is_random_and_the_same_again(split: str) -> None:
    samples = choose_samples(50, 3)
    assert np.array_equal(held_out(samples, split, 1), held_out(samples, split, 1))
    assert not np.array_equal(held_out(samples, split, 1), held_out(samples, split, 2))
    drawn = np.mean([held_out(samples, split, seed) for seed in range(200)], axis=0)
    assert drawn == pytest.approx([0.2] * 150, abs=0.13)  # deviation √(0.2 × 0.8 / 200) = 0.028, and 150 of them


# What is reported


def always_head_0(train: np.ndarray, heads: np.ndarray, test: np.ndarray) -> np.ndarray:
    return np.zeros(len(test), dtype=np.int64)


@pytest.mark.parametrize("split", SPLITS)
def test_a_probe_that_always_says_the_same_head(monkeypatch: pytest.MonkeyPatch, split: str) -> None:
    """Ten documents and three heads: six of thirty samples are tested on, two a head."""
    monkeypatch.setattr(module, "predict_heads", always_head_0)
    found = probe(np.zeros((30, 2)), choose_samples(10, 3), split)
    assert (found.train, found.test) == (24, 6)
    assert found.accuracy.value == pytest.approx([1 / 3])
    assert found.recall.value.tolist() == [1, 0, 0]
    assert found.confusion.tolist() == [[2, 0, 0], [2, 0, 0], [2, 0, 0]]
    # two documents: p² = 0.025, p = 0.1581
    assert found.recall.low == pytest.approx([0.1581, 0, 0], abs=1e-4)
    assert found.recall.high == pytest.approx([1, 0.8419, 0.8419], abs=1e-4)


def test_confusion_has_the_true_head_in_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Head 0 is taken for 1, 1 for 2, 2 for itself; the vector is the head's number."""
    samples = choose_samples(10, 3)
    monkeypatch.setattr(module, "predict_heads", lambda train, heads, test: np.array([1, 2, 2])[test[:, 0]])
    found = probe(samples.heads[:, None], samples, BY_DOCUMENT)
    assert found.confusion.tolist() == [[0, 2, 0], [0, 0, 2], [0, 0, 2]]
    assert found.recall.value.tolist() == [0, 0, 1]


def test_the_interval_is_of_documents_not_of_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten documents are tested on, with 20 samples each, five of them all right and five all wrong.

    That is ten coin tosses: P(≤ 1) = 11/1,024 < 2.5 % < 56/1,024 = P(≤ 2), so from 2 to 8 of 10.
    """
    samples = choose_samples(50, 20)
    tested = np.unique(samples.docs[held_out(samples, BY_DOCUMENT)])
    right = np.isin(samples.docs, tested[:5])
    vectors = np.where(right, samples.heads, (samples.heads + 1) % 20)[:, None]
    monkeypatch.setattr(module, "predict_heads", lambda train, heads, test: test[:, 0])
    found = probe(vectors, samples, BY_DOCUMENT)
    assert found.accuracy.value == pytest.approx([0.5])
    assert found.accuracy.low == pytest.approx([0.2])
    assert found.accuracy.high == pytest.approx([0.8])


def test_training_and_testing_get_their_own_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vector is the sample's number, so that each side says which ones it got."""
    samples = choose_samples(10, 3)
    test = held_out(samples, BY_DOCUMENT, 4)

    def check(train: np.ndarray, heads: np.ndarray, tested: np.ndarray) -> np.ndarray:
        assert train[:, 0].tolist() == np.flatnonzero(~test).tolist()
        assert heads.tolist() == samples.heads[~test].tolist()
        assert tested[:, 0].tolist() == np.flatnonzero(test).tolist()
        return samples.heads[test]

    monkeypatch.setattr(module, "predict_heads", check)
    assert probe(np.arange(30)[:, None], samples, BY_DOCUMENT, 4).accuracy.value == [1]


# What it can tell


@pytest.mark.parametrize("split", SPLITS)
def test_planted_heads_are_told_apart(split: str) -> None:
    """Four centres about √(2 × 8) × 4 = 16 apart, with noise of 1: none is taken for another."""
    samples = choose_samples(60, 4)
    found = probe(4 * normal(4, 8)[samples.heads] + normal(240, 8, seed=1), samples, split)
    assert found.accuracy.value == [1]
    assert found.accuracy.high == [1]
    assert 0.5 < found.accuracy.low < 1
    assert np.array_equal(found.confusion, 12 * np.eye(4))  # a fifth of 60 each


def test_only_the_head_that_differs_is_told() -> None:
    """Head 2 stands apart; the other three are alike, so that one in three is told by luck.

    Over ten sets of vectors, since one alone may be lucky: 900 test samples of heads that are alike.
    """
    samples = choose_samples(150, 4)
    alike = []
    for seed in range(10):
        vectors = normal(600, 8, seed=seed)
        vectors[samples.heads == 2, 3] += 12
        found = probe(vectors, samples, BY_DOCUMENT, seed)
        assert found.recall.value[2] == 1
        assert found.confusion[2].tolist() == found.confusion[:, 2].tolist() == [0, 0, 30, 0]
        alike.append(found.recall.value[[0, 1, 3]].mean())
    deviation = (1 / 3 * 2 / 3 / 900) ** 0.5
    assert np.mean(alike) == pytest.approx(1 / 3, abs=3 * deviation)


@pytest.mark.parametrize("split", SPLITS)
def test_shuffled_heads_sit_at_chance(split: str) -> None:
    """200 test samples and 4 heads: ¼ with a deviation of √(¼ × ¾ / 200) = 0.031."""
    samples = choose_samples(250, 4)
    vectors = 4 * normal(4, 8)[samples.heads] + normal(1_000, 8, seed=1)
    shuffled = Samples(samples.docs, np.random.default_rng(2).permutation(samples.heads))
    found = probe(vectors, shuffled, split)
    assert found.accuracy.value == pytest.approx([0.25], abs=3 * 0.031)
    assert found.accuracy.low < found.accuracy.value < found.accuracy.high


def test_intervals_of_random_vectors_contain_chance_about_95_times_in_100() -> None:
    samples = choose_samples(50, 4)
    found = [probe(normal(200, 3, seed=seed), samples, BY_DOCUMENT, seed).accuracy for seed in range(40)]
    covered = np.mean([one.low[0] <= 0.25 <= one.high[0] for one in found])
    assert covered >= 0.8  # ten documents are few for a bootstrap
    assert np.mean([one.value[0] for one in found]) == pytest.approx(0.25, abs=0.04)


def test_what_leaks_by_sample_does_not_by_document() -> None:
    """A document's two heads are opposite, and it has a direction of its own.

    Whoever saw one of the two in training knows the other; of a new document nothing is known.
    """
    samples = choose_samples(150, 2)
    vectors = normal(150, 400)[samples.docs] * np.array([1, -1])[samples.heads][:, None]
    by_sample, by_document = (probe(vectors, samples, split).accuracy for split in (BY_SAMPLE, BY_DOCUMENT))
    assert by_sample.value[0] > 0.8
    assert by_document.low[0] < 0.5 < by_document.high[0]
    assert by_sample.low[0] > by_document.high[0]


@pytest.mark.parametrize("factor", [1e-3, 1e3])
@pytest.mark.parametrize("seed", [0, 10])
def test_the_scale_of_a_dimension_does_not_count(seed: int, factor: float) -> None:
    samples = choose_samples(20, 3)
    vectors = normal(3, 4, seed=seed)[samples.heads] + normal(60, 4, seed=seed + 1)
    scaled = vectors * np.array([1, factor, 1, 1]) + np.array([0, 0, 100, 0])
    found, again = (probe(rows, samples, BY_SAMPLE) for rows in (vectors, scaled))
    assert abs(found.confusion - again.confusion).sum() <= 2  # one sample on the border may change sides


def test_heads_that_differ_in_nothing_are_not_told_apart() -> None:
    """All vectors are the same, so that one head is named throughout: right for a third."""
    found = probe(np.full((60, 4), 0.1, dtype=np.float32), choose_samples(20, 3), BY_DOCUMENT)
    assert found.accuracy.value == pytest.approx([1 / 3])
    assert sorted(found.recall.value) == [0, 0, 1]


def test_float16_vectors_do_not_overflow() -> None:
    samples = choose_samples(20, 2)
    vectors = (np.array([[60_000], [-60_000]])[samples.heads] + normal(40, 3)).astype(np.float16)
    assert probe(vectors, samples, BY_DOCUMENT).accuracy.value == [1]


def test_a_probe_that_does_not_converge_gives_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ITERATIONS", 1)
    with pytest.raises(Mistake, match="has not converged"):
        probe(normal(60, 4), choose_samples(20, 3), BY_SAMPLE)


def test_of_several_at_once_none_that_does_not_converge_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constant vectors have nothing to learn and are done at once, whichever comes first; filters are as before."""
    monkeypatch.setattr(module, "MOST_ITERATIONS", 1)
    before, slices = list(warnings.filters), {"done at once": np.zeros((60, 4)), "not": normal(60, 4)}
    for vectors in (slices, dict(reversed(slices.items()))):
        with pytest.raises(Mistake, match="has not converged"):
            probes(vectors, choose_samples(20, 3))
    assert list(warnings.filters) == before


def test_several_at_once_are_those_one_by_one() -> None:
    samples, slices = choose_samples(20, 3), {"heads": normal(60, 4), "random": normal(60, 4) + 1}
    found = probes(slices, samples)
    assert list(found) == [(slicing, split) for slicing in slices for split in SPLITS]
    for (slicing, split), each in found.items():
        alone = probe(slices[slicing], samples, split)
        assert each.confusion.tolist() == alone.confusion.tolist()
        assert each.accuracy.value == alone.accuracy.value
    assert probes(slices, None) == {}


# What is doubtful


def test_a_head_without_a_test_sample_has_no_recall_and_no_warning() -> None:
    """Two heads, 10 of 1,000 documents each: by document four of about twenty are tested on, sometimes of one head."""
    samples = choose_samples(1_000, 2, 20)
    alone = next(seed for seed in range(200) if len(set(samples.heads[held_out(samples, BY_DOCUMENT, seed)])) == 1)
    found = probe(normal(20, 3), samples, BY_DOCUMENT, alone)
    assert np.isnan(found.recall.value).sum() == 1


def test_one_test_document_is_not_sure() -> None:
    samples = choose_samples(10, 3)
    found = probe(normal(30, 3), samples, BY_DOCUMENT).accuracy
    assert 0 < found.value[0] < 1
    assert found.high[0] - found.low[0] > 0.1


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises((Mistake, ValueError, KeyError)):
        held_out(choose_samples(10, 2), "documents")


def test_mistakes_within_groups_by_hand() -> None:
    """Four heads in two groups: of 10 mistakes, 6 are 1↔2 or 3↔4; one of the three other heads is a sibling."""
    shape = ModelShape(layers=1, heads=4, kv_heads=2, hidden=8, head_dim=2)
    confusion = np.array([[9, 3, 1, 0], [2, 9, 0, 1], [1, 0, 9, 1], [0, 1, 0, 9]])
    found = mistakes_within_groups(confusion, shape)
    assert found is not None
    assert (found.wrong, found.share, found.chance) == (10, 0.6, pytest.approx(1 / 3))
    assert mistakes_within_groups(np.eye(4), shape) is None
    alone = ModelShape(layers=1, heads=4, kv_heads=4, hidden=8, head_dim=2)
    assert mistakes_within_groups(confusion, alone) is None
