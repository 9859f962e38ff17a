"""Attention that follows similar words: planted, absent, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis.word_similarity import EXCHANGES, Cosines, cosines, followed, similarity_scores

CHANCE = np.random.default_rng(5)
WORDS, DIM, SENTENCES = 9, 16, 60
VECTORS = [CHANCE.normal(size=(WORDS, DIM)) for _ in range(SENTENCES)]
FORMS = [[f"w{word}" for word in range(WORDS)]] * SENTENCES


def softmax(scores: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    return found


def heads(number: int) -> np.ndarray:
    """``[head, from, to]``: similar words, the word before, a word that everybody attends to, chance."""
    unit = VECTORS[number] / np.linalg.norm(VECTORS[number], axis=1, keepdims=True)
    place = np.arange(WORDS)
    return softmax(
        np.stack(
            [
                4 * unit @ unit.T,
                4.0 * (place[None] - place[:, None] == -1),
                3.0 * np.tile(place == number % WORDS, (WORDS, 1)),
                np.random.default_rng(number).normal(size=(WORDS, WORDS)),
            ]
        )
    )


@pytest.mark.parametrize("causal", [False, True])
def test_only_the_head_that_follows_similar_words_is_beyond(causal: bool) -> None:
    rest = cosines(VECTORS, FORMS, causal, without_first=causal)
    seen = np.tri(WORDS) if causal else 1
    sums = np.stack([followed(heads(number) * seen, rest[number]) for number in range(SENTENCES)])
    found = similarity_scores(sums, rest)
    assert found.correlation[0] > 0.6
    assert found.low[0] > 0.5
    assert found.p[0] < 1e-6
    assert np.abs(found.correlation[1:]).max() < 0.1
    assert found.p[1:].min() > 0.001  # three heads of nothing
    assert np.abs(found.exchanged).max() < 0.1


def test_means_of_words_and_distances_are_taken_out_and_the_same_word_is_left_out() -> None:
    forms = [["The", "dog", "saw", "the", "cat"]] * 3
    rest = cosines([vectors[:5] for vectors in VECTORS[:3]], forms, causal=False, without_first=False)
    one = rest[0]
    assert not one.pairs[0, 3]
    assert not one.pairs.diagonal().any()
    assert one.rest[0] @ np.ones(5) == pytest.approx(np.zeros(5), abs=0.02)
    apart = np.arange(5)[None] - np.arange(5)[:, None]
    for distance in range(-4, 5):
        assert sum(part.rest[0][apart == distance].sum() for part in rest) == pytest.approx(0, abs=1e-5)


def test_sums_by_hand() -> None:
    pairs = ~np.eye(2, dtype=bool)
    rest = np.zeros((EXCHANGES + 1, 2, 2), dtype=np.float32)
    rest[0, 0, 1], rest[1:, 1, 0] = 2.0, 1.0
    wide = np.zeros((3, 3), dtype=bool)
    wide[0, 1:] = True
    more = np.zeros((EXCHANGES + 1, 3, 3), dtype=np.float32)
    more[0, 0, 1], more[0, 0, 2] = 1.0, -1.0
    between = np.array([[[0.0, 0.5, 0.1], [0, 0, 0], [0, 0, 0]]])
    # Less their mean 0.3: 0.2 and −0.2. The product is 0.4, the squares 0.08; nothing is exchanged.
    assert followed(between, Cosines(more, wide)) == pytest.approx(np.array([[0.4, 0.0, 0.08]]))
    # One other word only: nothing is left of its attention.
    assert followed(np.array([[[0, 0.5], [0.5, 0]]]), Cosines(rest, pairs)) == pytest.approx(np.zeros((1, 3)))
