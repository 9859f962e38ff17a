"""Which heads may go: planted carriers are kept, copies go, and noise claims nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from core.retrieval.head_index import HeadIndex
from core.retrieval.judge import Asked, Judge
from core.retrieval.pruning import Curve, backward, curve, enough, halves, importance, mask, random_band
from core.retrieval.votes import Say
from core.retrieval.ways import WAYS, Heads, Seen, rank

HEADS, CARRIERS, DIM, DOCS, QUERIES = 32, (3, 8, 13, 21, 30), 8, 400, 80


def asked(vectors: np.ndarray, queries: np.ndarray, relevant: list[tuple[int, ...]]) -> Asked:
    index = HeadIndex.of([vectors.reshape(len(vectors), -1)], vectors.shape[1])
    seen = tuple(Seen.of(index, query) for query in queries)
    return Asked(seen, tuple(relevant), np.zeros(len(vectors), dtype=int), np.full(len(queries), -1))


def scores(vectors: np.ndarray) -> np.ndarray:
    return Say.of([vectors.reshape(len(vectors), -1)], vectors.shape[1]).weight


def planted(carriers: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, Asked]:
    """Every query has one relevant document for each carrier, near it in that head alone; other heads are noise."""
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(DOCS, HEADS, DIM)).astype(np.float32)
    queries, relevant = chance.normal(size=(QUERIES, HEADS, DIM)).astype(np.float32), []
    for query in queries:
        wanted = chance.permutation(DOCS)[: len(CARRIERS)]
        for head, doc in zip(carriers, wanted, strict=False):
            query[head] = vectors[doc, head] + 0.2 * chance.normal(size=DIM)
        relevant.append(tuple(int(doc) for doc in wanted))
    return vectors, asked(vectors, queries, relevant)


@pytest.mark.parametrize("way", WAYS)
@given(seed=some.integers(0, 1_000))
@settings(max_examples=8, deadline=None)
def test_the_judge_ranks_as_the_way_does(way: str, seed: int) -> None:
    chance = np.random.default_rng(seed)
    vectors, queries = (
        chance.normal(size=(60, 4, 3)).astype(np.float32),
        chance.normal(size=(5, 4, 3)).astype(np.float32),
    )
    weights = mask(chance.permutation(4)[: 1 + seed % 4], 4)
    found = asked(vectors, queries, [(0,)] * 5)
    judge = Judge.of(way, found, scores(vectors))
    ranked = judge.ranked(judge.total(weights), 8)
    for query, seen in enumerate(found.seen):
        wanted = rank(way, seen, Heads(weights, scores(vectors)), 60)
        place = {int(doc): float(score) for doc, score in zip(wanted.docs, wanted.scores, strict=True)}
        assert [place[int(doc)] for doc in ranked[query]] == pytest.approx(wanted.scores[:8], rel=1e-4, abs=1e-6)


def test_a_query_that_is_a_document_does_not_find_itself() -> None:
    vectors = np.random.default_rng(0).normal(size=(20, 2, 3)).astype(np.float32)
    given_ = asked(vectors, vectors[:4], [(5,)] * 4)
    itself = Asked(given_.seen, given_.relevant, given_.topics, np.array([0, 1, 2, -1]))
    judge = Judge.of("full", itself, np.ones(2))
    ranked = judge.ranked(judge.total(np.ones(2)), 20)
    assert ranked.shape == (4, 19)
    assert [row in ranked[row] for row in range(4)] == [False, False, False, True]


def test_greedy_pruning_keeps_the_carriers_and_voting_with_them_beats_the_full_embedding() -> None:
    vectors, queries = planted(CARRIERS)
    choose, tell = halves(QUERIES)
    order = backward(Judge.of("decay", queries.some(choose), scores(vectors)))
    assert set(order[-len(CARRIERS) :]) == set(CARRIERS)
    told = Judge.of("decay", queries.some(tell), scores(vectors))
    found = enough(curve(Judge.of("decay", queries.some(choose), scores(vectors)), order), told)
    assert set(CARRIERS) <= set(found.heads)
    assert len(found.heads) <= 8
    assert found.claim == "better"
    side_by_side = Judge.of("full", queries.some(tell), scores(vectors))
    full = side_by_side.verdict(side_by_side.total(np.ones(HEADS)))
    pruned = told.verdict(told.total(mask(found.heads, HEADS)))
    assert pruned.mean() - full.mean() > 3 * (pruned - full).std() / np.sqrt(len(full))
    worth = importance(told)
    assert set(np.argsort(worth.alone.value)[-len(CARRIERS) :]) == set(CARRIERS)


def test_on_pure_noise_nothing_is_claimed() -> None:
    """In 20 draws the interval may exclude zero now and then; a bias of choosing would make it most of them."""
    claims = []
    for seed in range(20):
        chance = np.random.default_rng(seed)
        vectors = chance.normal(size=(60, 6, 4)).astype(np.float32)
        queries = asked(
            vectors, chance.normal(size=(60, 6, 4)).astype(np.float32), [(int(chance.integers(60)),) for _ in range(60)]
        )
        choose, tell = halves(60, seed)
        first, second = (Judge.of("full", queries.some(part), np.ones(6)) for part in (choose, tell))
        claims.append(enough(curve(first, backward(first)), second).claim)
    assert claims.count("no difference shown") >= 17


def test_of_two_heads_alike_one_goes_and_the_other_stays() -> None:
    chance = np.random.default_rng(1)
    vectors = chance.normal(size=(200, 3, 6)).astype(np.float32)
    vectors[:, 1] = vectors[:, 0]
    queries, relevant = chance.normal(size=(60, 3, 6)).astype(np.float32), []
    for query in queries:
        docs = chance.permutation(200)[:2]
        query[0] = query[1] = vectors[docs[0], 0] + 0.1 * chance.normal(size=6)
        query[2] = vectors[docs[1], 2] + 0.1 * chance.normal(size=6)
        relevant.append(tuple(int(doc) for doc in docs))
    judge = Judge.of("decay", asked(vectors, queries, relevant), np.ones(3))
    order = backward(judge)
    assert order[0] in (0, 1)  # whichever: the other stands for both
    assert importance(judge).lost.value[2] > importance(judge).lost.value[:2].max()


def test_a_curve_by_hand() -> None:
    """Heads go in the order 2, 0, 1: with one head it is head 1, with two heads 0 and 1."""
    found = Curve(np.array([2, 0, 1]), np.array([[0.0, 1.0], [0.5, 1.0], [1.0, 1.0]]))
    assert [found.kept(size).tolist() for size in (1, 2, 3)] == [[1], [0, 1], [0, 1, 2]]
    assert found.interval.value.tolist() == [0.5, 0.75, 1.0]


def test_one_standard_error_by_hand() -> None:
    """All heads reach 0.75 (0.5 and 1: error 0.25), two reach 0.5, which is just within it; one reaches 0.25."""
    vectors = np.random.default_rng(0).normal(size=(10, 3, 2)).astype(np.float32)
    judge = Judge.of("full", asked(vectors, vectors[:2], [(0,), (1,)]), np.ones(3))
    chosen = Curve(np.array([2, 0, 1]), np.array([[0.0, 0.5], [0.5, 0.5], [0.5, 1.0]]))
    assert enough(chosen, judge).heads.tolist() == [0, 1]


def test_random_orders_end_where_every_order_ends() -> None:
    vectors, queries = planted(CARRIERS, 3)
    judge = Judge.of("mean", queries.some(range(10)), scores(vectors))
    band = random_band(judge, orders=3)
    assert band.shape == (3, HEADS)
    assert band[:, -1] == pytest.approx(judge.verdict(judge.total(np.ones(HEADS))).mean())
    assert np.ptp(band[:, 0]) > 0


def test_the_halves_share_no_query() -> None:
    choose, tell = halves(101)
    assert sorted([*choose, *tell]) == list(range(101))
    assert (halves(101)[0] == choose).all()
