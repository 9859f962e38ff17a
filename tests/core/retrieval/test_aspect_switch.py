"""Switching an aspect: the planted heads are taken, the figures are of documents that were not learned from."""

import numpy as np
import pytest

from core.errors import Mistake
from core.retrieval.apply import Kept, prune
from core.retrieval.aspect_judge import (
    EQUAL,
    ERASED,
    OWN,
    SLICES,
    SWITCHED,
    WAYS,
    Switched,
    head_cosines,
    judge_switch,
)
from core.retrieval.aspect_switch import FOLLOW, IGNORE, NEUTRAL, first_others, learn_weights, same_value_share
from core.retrieval.findings import switch_sentences

HEADS, DIM = 5, 8
GENRE, TOPIC = 0, 1
"""Heads that carry an aspect; 2 carries a little of both, the others are noise."""


def planted(docs: int = 240, seed: int = 0) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    chance = np.random.default_rng(seed)
    labels = {"genre": np.arange(docs) % 4, "topic": np.arange(docs) // 4 % 6}
    vectors = chance.standard_normal((docs, HEADS, DIM))
    vectors[:, GENRE] += 2 * np.eye(DIM)[labels["genre"]]
    vectors[:, TOPIC] += 2 * np.eye(DIM)[labels["topic"]]
    vectors[:, 2] += np.eye(DIM)[labels["genre"]] + np.eye(DIM)[labels["topic"]]
    return vectors, labels


def switched(positions: dict[str, str], seed: int = 0) -> Switched:
    vectors, labels = planted(seed=seed)
    return judge_switch(vectors, vectors.reshape(len(vectors), -1), labels, positions)


def test_the_first_others_by_hand() -> None:
    scores = np.array([[9, 1, 3, 2], [5, 9, 5, 1], [0, 1, 9, 2], [1, 1, 1, 9]], dtype=float)
    ranked = first_others(scores, 2)
    assert ranked.tolist() == [[2, 3], [0, 2], [3, 1], [0, 1]]  # equal ones in order of the documents
    shares = same_value_share(ranked, np.array([0, 1, 0, -1]))
    np.testing.assert_array_equal(shares, [0.5, 0, 0, np.nan])


def test_the_head_that_carries_an_aspect_is_taken_and_the_one_of_the_ignored_aspect_is_not() -> None:
    vectors, labels = planted()
    cosines = head_cosines(vectors)
    for followed, ignored, own, other in (("genre", "topic", GENRE, TOPIC), ("topic", "genre", TOPIC, GENRE)):
        weights = learn_weights(cosines, labels, {followed: FOLLOW, ignored: IGNORE})
        assert weights.argmax() == own
        assert weights[other] == 0
        assert weights.mean() == pytest.approx(1, abs=0.01)
        assert (weights >= 0).all()


def test_ignoring_alone_keeps_the_other_heads() -> None:
    vectors, labels = planted()
    weights = learn_weights(head_cosines(vectors), labels, {"topic": IGNORE})
    assert weights[TOPIC] == weights.min() < 0.2
    assert (weights[[GENRE, 3, 4]] > 0.5).all()


def test_nothing_switched_is_equal_weights() -> None:
    vectors, labels = planted(40)
    assert learn_weights(head_cosines(vectors), labels, {"genre": NEUTRAL}).tolist() == [1] * HEADS


def test_held_out_documents_gain_what_is_followed_and_lose_what_is_ignored() -> None:
    found = switched({"genre": FOLLOW, "topic": IGNORE})
    assert list(found.shares) == list(WAYS)
    assert found.difference("genre").low > 0.1
    assert found.difference("topic").high < -0.1
    assert found.difference("genre", against=SLICES).low > 0.1
    assert float(np.mean(found.shares[SWITCHED]["topic"])) < found.chance["topic"] + 0.05
    assert found.difference("topic", ERASED).high < 0  # the rival erases as well
    # 60 documents per genre and 40 per topic in 240: of the 119 others of a half, about 29 and 19 are alike.
    assert found.chance == pytest.approx({"genre": 29.5 / 119.5, "topic": 19.5 / 119.5}, abs=0.01)


def test_rows_have_every_aspect_and_way_with_what_is_gained() -> None:
    found = switched({"genre": FOLLOW, "topic": IGNORE})
    rows = found.rows()
    assert [(row["aspect"], row["way"]) for row in rows] == [(name, way) for name in ("genre", "topic") for way in WAYS]
    row = next(row for row in rows if (row["aspect"], row["way"]) == ("genre", SWITCHED))
    gained = found.difference("genre")
    assert (row["position"], row["documents"]) == (FOLLOW, 240)
    assert row["value"] == pytest.approx(found.shares[SWITCHED]["genre"].mean(), abs=1e-6)
    assert row["low"] < row["value"] < row["high"]
    assert [row["gained"], row["gained_low"]] == pytest.approx([gained.value, gained.low], abs=0.01)


def test_sentences_claim_only_what_the_intervals_show() -> None:
    first, second, rivals = switch_sentences(switched({"genre": FOLLOW, "topic": IGNORE}))
    assert first.startswith("Follow genre: the share of documents with the same genre among the first 10 rises from 0.")
    assert second.startswith(
        "Ignore topic: the share of documents with the same topic among the first 10 falls from 0."
    )
    assert rivals.startswith(
        "Heads beat random slices whose weights were learned in the same way for genre and topic. LEACE"
    )
    chance = np.random.default_rng(0)
    labels = {"genre": chance.integers(3, size=120)}
    noise = chance.standard_normal((120, HEADS, DIM))
    said = switch_sentences(judge_switch(noise, noise.reshape(120, -1), labels, {"genre": FOLLOW}))
    assert "does not change measurably" in said[0]
    assert said[1].startswith("For genre, heads are not shown to beat random slices whose weights")


def test_shuffled_labels_gain_nothing() -> None:
    vectors, labels = planted()
    gained = []
    for seed in range(8):
        shuffled = {name: np.random.default_rng(seed).permutation(codes) for name, codes in labels.items()}
        own = vectors.reshape(len(vectors), -1)
        found = judge_switch(vectors, own, shuffled, {"genre": FOLLOW, "topic": IGNORE}, seed)
        gained.append(found.difference("genre").low > 0)
    assert sum(gained) <= 1


def test_without_an_ignored_aspect_there_is_nothing_to_erase() -> None:
    found = switched({"genre": FOLLOW, "topic": NEUTRAL})
    assert ERASED not in found.ways
    assert found.positions == {"genre": FOLLOW}
    assert float(found.difference("genre", EQUAL, EQUAL).value) == 0
    assert set(found.ways) == set(WAYS) - {ERASED}


def test_documents_without_a_value_do_not_count() -> None:
    vectors, labels = planted()
    labels["genre"][::3] = -1
    found = judge_switch(vectors, vectors.reshape(len(vectors), -1), labels, {"genre": FOLLOW})
    assert np.isnan(found.shares[OWN]["genre"][::3]).all()
    assert not np.isnan(found.shares[OWN]["topic"]).any()
    assert found.weights.argmax() == GENRE


def test_the_exported_weights_rank_as_the_judged_ones() -> None:
    vectors, labels = planted(60)
    weights = learn_weights(head_cosines(vectors), labels, {"genre": FOLLOW})
    kept = Kept(
        "m", 1, HEADS, {head + 1: float(weight) for head, weight in enumerate(weights) if weight > 0}, "weighted"
    )
    products = prune(vectors.reshape(60, -1), kept)
    judged = np.tensordot(weights / weights.sum(), head_cosines(vectors), 1)
    np.testing.assert_allclose(products @ products.T, judged, atol=1e-5)


def test_unknown_aspects_and_positions_are_refused() -> None:
    vectors, labels = planted(20)
    with pytest.raises(Mistake, match="no aspect called 'mood'"):
        learn_weights(head_cosines(vectors), labels, {"mood": FOLLOW})
    with pytest.raises(Mistake, match="'off' is not a position"):
        learn_weights(head_cosines(vectors), labels, {"genre": "off"})


@pytest.mark.parametrize("docs", [3, 4])
def test_very_few_documents_do(docs: int) -> None:
    vectors, labels = planted(docs)
    found = judge_switch(vectors, vectors.reshape(docs, -1), labels, {"genre": FOLLOW, "topic": IGNORE})
    assert np.isfinite(found.weights).all()
    assert (found.weights > 0).any()


def test_heads_without_length_get_no_weight_error() -> None:
    _, labels = planted(20)
    found = learn_weights(np.zeros((HEADS, 20, 20)), labels, {"genre": FOLLOW})
    assert found.tolist() == [1] * HEADS
