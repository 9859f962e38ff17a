"""Word attention and its scores, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from core.analysis.treebank import OffsetBaseline, Pairs
from core.analysis.word_attention import (
    MostAttended,
    most_attended,
    paired_p,
    relation_scores,
    word_attention,
    words_of_tokens,
)


def test_a_word_is_attended_to_by_the_sum_and_attends_by_the_mean_of_its_pieces() -> None:
    tokens = np.array([-1, 0, 0, 1, -1])  # [CLS] un ##tie rope [SEP]
    weights = np.array(
        [
            [
                [0.2, 0.2, 0.2, 0.2, 0.2],
                [0.1, 0.2, 0.3, 0.3, 0.1],
                [0.0, 0.1, 0.1, 0.7, 0.1],
                [0.5, 0.1, 0.3, 0.05, 0.05],
                [1.0, 0.0, 0.0, 0.0, 0.0],
            ]
        ]
    )
    between = word_attention(weights, tokens, words=2)
    assert between == pytest.approx(np.array([[[0.35, 0.5], [0.4, 0.05]]]))
    assert most_attended(between).tolist() == [[1, 0]]


def test_the_most_attended_word_is_another_one() -> None:
    between = np.array([[[0.9, 0.06, 0.04], [0.0, 1.0, 0.0], [0.1, 0.2, 0.7]]])
    assert most_attended(between).tolist() == [[1, -1, 1]]


def test_a_word_without_a_token_neither_attends_nor_is_attended_to() -> None:
    between = word_attention(np.array([[[0.4, 0.6], [0.5, 0.5]]]), np.array([0, 2]), words=3)
    assert between[0].tolist() == [[0.4, 0.0, 0.6], [0.0, 0.0, 0.0], [0.5, 0.0, 0.5]]
    assert most_attended(between).tolist() == [[2, -1, 0]]


def test_a_token_belongs_to_the_word_that_shares_most_of_its_characters() -> None:
    words = [(0, 3), (4, 8), (8, 9)]  # "The boat."
    characters = [None, (0, 3), (3, 6), (6, 9), (8, 9), (3, 4), (9, 9)]
    assert words_of_tokens(characters, words).tolist() == [-1, 0, 1, 1, 2, -1, -1]
    assert words_of_tokens([(0, 1)], []).tolist() == [-1]


def test_the_paired_test_is_the_binomial_tail_of_the_pairs_that_differ() -> None:
    hits = np.array([[1, 1, 1, 1, 1, 0, 1, 0], [0] * 8, [1, 1, 1, 1, 1, 1, 1, 1]], dtype=bool)
    baseline = np.array([0, 0, 0, 0, 0, 1, 1, 0], dtype=bool)
    # 5 wins and 1 loss: P(X >= 5) of 6 = 7/64. No wins: 1. 6 wins and no loss: 1/64.
    assert paired_p(hits, baseline) == pytest.approx([7 / 64, 1, 1 / 64])


SENTENCES = 24
ENDS = np.array([1] * 9 + [2] * 3 + [1] * 3 + [2] * 9)
"""The right word of word 0: in the first 12 sentences mostly the next, in the last 12 mostly the one after."""
RELATION = Pairs(np.arange(SENTENCES), np.zeros(SENTENCES, dtype=np.int64), ENDS)
CHOOSING = np.arange(SENTENCES) < 12


def attended(causal: bool = False, order: tuple[int, int, int] = (0, 2, 1)) -> MostAttended:
    """Head 1 always knows, head 2 attends to the next word; with words shuffled, both to the wrong place.

    ``order`` gives each word's place in the shuffled sentences.
    """
    plain = [np.array([[[end, 0, 0], [1, 2, 1]]]) for end in ENDS]
    shuffled = [np.array([[[3 - order[end], 0, 0], [3 - order[end], 0, 0]]]) for end in ENDS]
    return MostAttended(plain, shuffled, [np.array(order)] * SENTENCES, causal)


def test_heads_are_chosen_on_one_half_and_reported_on_the_other() -> None:
    found = relation_scores(attended(), RELATION, CHOOSING)
    assert found is not None
    assert found.offset == OffsetBaseline(1, 0.75, 0.25)
    assert (found.pairs_chosen, found.pairs_held_out) == (12, 12)
    assert found.chosen.tolist() == [[1.0, 0.75]]
    assert found.held_out.tolist() == [[1.0, 0.25]]
    assert found.shuffled.tolist() == [[0.0, 0.0]]
    assert found.best == (0, 0)
    # Against the offset 9 wins and no loss, 1/512; against shuffled words 12 wins, 1/4096. The larger, times two heads.
    assert found.p == pytest.approx(np.array([[1 / 256, 1.0]]))
    assert found.beyond.tolist() == [[True, False]]


def test_a_head_that_does_as_well_on_shuffled_words_is_not_beyond() -> None:
    same = attended()
    moved = [np.array([[[3 - row[0, 0, 0], 0, 0], [1, 0, 0]]]) for row in same.plain]  # places 1 and 2 are exchanged
    found = relation_scores(MostAttended(same.plain, moved, same.places, False), RELATION, CHOOSING)
    assert found is not None
    assert found.shuffled[0, 0] == 1.0
    assert found.p[0, 0] == 1.0


def test_in_a_causal_model_only_words_before_can_be_right() -> None:
    assert relation_scores(attended(causal=True), RELATION, CHOOSING) is None
    back = Pairs(RELATION.sentence, ENDS, RELATION.start)
    found = relation_scores(attended(causal=True), back, CHOOSING)
    assert found is not None
    assert found.offset == OffsetBaseline(-1, 0.75, 0.25)
    # Head 1 attends from both later words to word 0; head 2 from word 2 to word 1, from word 1 to word 2.
    assert found.held_out.tolist() == [[1.0, 0.0]]


def test_shuffled_pairs_that_a_causal_model_cannot_see_do_not_count() -> None:
    back = Pairs(RELATION.sentence, ENDS, RELATION.start)
    # Shuffled: word 1 comes first, word 0 second, word 2 last. Word 1 no longer sees word 0; word 2 does, 9 times.
    places = [np.array([1, 0, 2])] * SENTENCES
    shuffled = [np.array([[[-1, -1, 1], [-1, -1, 0]]])] * SENTENCES
    found = relation_scores(MostAttended(attended().plain, shuffled, places, True), back, CHOOSING)
    assert found is not None
    assert found.shuffled.tolist() == [[1.0, 0.0]]


def test_a_first_word_that_heads_rest_on_is_left_out() -> None:
    between = np.array([[[0.1, 0.0, 0.0], [0.9, 0.1, 0.0], [0.7, 0.2, 0.1]]])
    assert most_attended(between).tolist() == [[-1, 0, 0]]
    assert most_attended(between, without_first=True).tolist() == [[-1, -1, 1]]
    back = Pairs(RELATION.sentence, ENDS, RELATION.start)  # all to the first word
    same = attended(causal=True)
    assert relation_scores(MostAttended(same.plain, same.shuffled, same.places, True, True), back, CHOOSING) is None


def test_the_interval_is_over_sentences() -> None:
    """24 pairs in 24 sentences, a quarter of the held-out 12 right: the bootstrap of a binomial share."""
    found = relation_scores(attended(), RELATION, CHOOSING)
    assert found is not None
    assert found.interval.low[0, 0] == found.interval.high[0, 0] == 1.0
    assert 0 <= found.interval.low[0, 1] < 0.1
    assert 0.4 < found.interval.high[0, 1] < 0.6
    assert found.single == pytest.approx(np.array([[1 / 512, 1.0]]))


def test_a_half_without_pairs_has_no_scores() -> None:
    assert relation_scores(attended(), RELATION[:5], CHOOSING) is None
    assert relation_scores(attended(), RELATION[:0], CHOOSING) is None
