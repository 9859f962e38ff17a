"""What attention falls on: by hand, by properties, and against real shuffles; what tokens are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from core.analysis.attention_measures import FARTHEST, MEASURES, OFFSETS, Sums, may_see, measured, measures
from core.model.token_kinds import kinds, rare_ids
from core.model.tokens import Spans

DELIMITER, RARE = np.array([False, True, False]), np.array([False, False, True])
ENCODER = np.array([[[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]]])
CAUSAL = np.array([[[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5, 0.25, 0.25]]])
"""``[head, from, to]``: one head, three tokens; token 2 is a delimiter, token 3 is rare."""


def mean(sums: Sums, measure: str, head: int = 0) -> float:
    place = list(MEASURES).index(measure)
    return float(sums.value[head, place] / sums.weight[place])


def shuffled(sums: Sums, measure: str) -> float:
    place = list(MEASURES).index(measure)
    return float(sums.shuffled[0, place] / sums.weight[place])


def random_weights(tokens: int, heads: int, causal: bool, seed: int, scale: float = 1.0) -> np.ndarray:
    """``[head, from, to]`` with nothing in it but chance."""
    scores = np.random.default_rng(seed).normal(scale=scale, size=(heads, tokens, tokens))
    if causal:
        scores = np.where(np.tri(tokens, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    found: np.ndarray = weights / weights.sum(axis=2, keepdims=True)
    return found


def test_an_encoder_s_measures_by_hand() -> None:
    found = measured(ENCODER, DELIMITER, RARE)
    assert mean(found, "previous") == pytest.approx((0.1 + 0.25) / 2)
    assert mean(found, "same") == pytest.approx((0.5 + 0.6 + 0.5) / 3)
    assert mean(found, "next") == pytest.approx((0.3 + 0.3) / 2)
    assert mean(found, "first") == pytest.approx((0.1 + 0.25) / 2)  # not from itself
    assert mean(found, "delimiters") == pytest.approx((0.3 + 0.6 + 0.25) / 3)
    assert mean(found, "rare") == pytest.approx((0.2 + 0.3 + 0.5) / 3)
    assert mean(found, "distance") == pytest.approx(((0.3 + 2 * 0.2) + (0.1 + 0.3) + (2 * 0.25 + 0.25)) / 3)
    assert mean(found, "window") == pytest.approx(1)
    nats = [-sum(share * np.log(share) for share in row) for row in ENCODER[0].tolist()]
    assert mean(found, "entropy") == pytest.approx(np.mean(nats) / np.log(3))
    # Shuffled: every token a third.
    assert [shuffled(found, name) for name in ("previous", "same", "next", "first", "delimiters", "rare")] == (
        pytest.approx([1 / 3] * 6)
    )
    assert shuffled(found, "distance") == pytest.approx(((0 + 1 + 2) + (1 + 0 + 1) + (2 + 1 + 0)) / 9)


def test_tokens_that_rest_give_the_first_one_more_than_half() -> None:
    assert measured(ENCODER, DELIMITER, RARE).rests.tolist() == [0]  # 0.1 and 0.25
    assert measured(CAUSAL, DELIMITER, RARE).rests.tolist() == [1]  # 0.75, and exactly half is not more
    assert (measured(CAUSAL, DELIMITER, RARE) + measured(CAUSAL, DELIMITER, RARE)).rests.tolist() == [2]


def test_a_causal_model_s_measures_by_hand() -> None:
    """Its first token has no choice and counts for nothing; it never looks ahead."""
    found = measured(CAUSAL, DELIMITER, RARE)
    assert mean(found, "previous") == pytest.approx((0.75 + 0.25) / 2)
    assert mean(found, "same") == pytest.approx((0.25 + 0.25) / 2)
    assert found.weight[list(MEASURES).index("next")] == 0
    assert mean(found, "first") == pytest.approx((0.75 + 0.5) / 2)
    assert mean(found, "delimiters") == pytest.approx((0.25 + 0.25) / 2)
    assert mean(found, "rare") == pytest.approx((0 + 0.25) / 2)
    assert mean(found, "distance") == pytest.approx((0.75 + (2 * 0.5 + 0.25)) / 2)
    two, three = 0.75 * np.log(4 / 3) + 0.25 * np.log(4), 0.5 * np.log(2) + 0.5 * np.log(4)
    assert mean(found, "entropy") == pytest.approx((two / np.log(2) + three / np.log(3)) / 2)
    # Shuffled: a half each for the second token, a third each for the third.
    assert shuffled(found, "previous") == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert shuffled(found, "first") == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert shuffled(found, "delimiters") == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert shuffled(found, "rare") == pytest.approx((0 + 1 / 3) / 2)
    assert shuffled(found, "distance") == pytest.approx((1 / 2 + 3 / 3) / 2)


def test_the_window_is_eight_tokens_on_either_side() -> None:
    weights = np.zeros((1, 20, 20))
    weights[0, :, :] = np.eye(20)
    weights[0, 0] = np.eye(20)[8]  # as far as it reaches
    weights[0, 19] = np.eye(20)[10]  # one too far
    assert mean(measured(weights, np.zeros(20), np.zeros(20)), "window") == pytest.approx(19 / 20)


def test_the_average_pattern_by_hand() -> None:
    """By distance, the first token's share left out: what is left of 1 is what fell on it."""
    found = measured(ENCODER, DELIMITER, RARE)
    expected = {-1: 0.25, 0: 0.6 + 0.5, 1: 0.3 + 0.3, 2: 0.2}
    pattern = dict(zip(OFFSETS.tolist(), found.pattern[0].tolist(), strict=True))
    assert {offset: value for offset, value in pattern.items() if value} == pytest.approx(expected)
    assert found.pattern_shuffled[OFFSETS.tolist().index(1)] == pytest.approx(2 / 3)


def test_what_is_farther_than_the_pattern_reaches_counts_at_its_end() -> None:
    tokens = FARTHEST + 10
    weights = np.full((2, tokens, tokens), 1 / tokens)  # the second head shows that everything may be seen
    weights[0] = np.eye(tokens)[-1]
    pattern = measured(weights, np.zeros(tokens), np.zeros(tokens)).pattern[0]
    assert pattern[-1] == tokens - FARTHEST
    assert pattern.sum() == tokens


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tokens", [1, 2, 3, 40])
def test_masses_are_shares_and_the_pattern_adds_up(tokens: int, causal: bool) -> None:
    chance = np.random.default_rng(tokens)
    weights = random_weights(tokens, 3, causal, seed=tokens, scale=3.0)
    found = measured(weights, chance.random(tokens) < 0.2, chance.random(tokens) < 0.3)
    counted = found.weight > 0
    shares = [name not in ("distance",) for name in MEASURES]
    means = found.value[:, counted & shares] / found.weight[counted & shares]
    assert (means >= 0).all()
    assert (means <= 1 + 1e-12).all()
    looking = tokens - causal if tokens > 1 else 0
    assert found.weight[list(MEASURES).index("entropy")] == looking
    first = weights[:, 1 if causal else 0 :, 0].sum(axis=1) if looking else 0.0
    assert found.pattern.sum(axis=1) + first == pytest.approx(np.full(3, looking))


@pytest.mark.parametrize("causal", [False, True])
def test_even_attention_is_its_own_baseline(causal: bool) -> None:
    allowed = np.tri(12) if causal else np.ones((12, 12))
    delimiter, rare = np.arange(12) % 4 == 1, np.arange(12) % 3 == 2
    found = measured((allowed / allowed.sum(axis=1, keepdims=True))[None], delimiter, rare)
    assert found.value == pytest.approx(found.shuffled)
    assert found.pattern[0] == pytest.approx(found.pattern_shuffled)
    assert mean(found, "entropy") == pytest.approx(1)


@pytest.mark.parametrize("causal", [False, True])
def test_the_baseline_is_what_real_shuffles_give_on_average(causal: bool) -> None:
    """500 shuffles of what each token may look at: within four standard errors at every measure."""
    tokens, chance = 7, np.random.default_rng(3)
    delimiter, rare = np.arange(tokens) % 3 == 1, np.arange(tokens) % 4 == 3
    weights = random_weights(tokens, 1, causal, seed=5, scale=2.0)
    expected = measured(weights, delimiter, rare).shuffled[0]
    drawn = []
    for _ in range(500):
        mixed = weights.copy()
        for token in range(tokens):
            seen = token + 1 if causal else tokens
            mixed[0, token, :seen] = chance.permutation(weights[0, token, :seen])
        drawn.append(measured(mixed, delimiter, rare).value[0])
    error = np.std(drawn, axis=0) / len(drawn) ** 0.5
    assert (np.abs(np.mean(drawn, axis=0) - expected) <= 4 * error + 1e-9).all()


def test_documents_one_by_one_and_all_at_once_are_the_same() -> None:
    parts = [
        measured(random_weights(tokens, 2, True, seed=tokens), np.arange(tokens) % 5 == 1, np.arange(tokens) % 4 == 2)
        for tokens in (3, 9, 24)
    ]
    together = parts[0] + parts[1] + parts[2]
    value, weight = np.stack([part.value for part in parts]), np.stack([part.weight for part in parts])
    found = measures(value, together.shuffled, weight)
    known = together.weight > 0
    assert found.value.value[:, known] == pytest.approx(together.value[:, known] / together.weight[known])
    assert found.shuffled[:, known] == pytest.approx(together.shuffled[:, known] / together.weight[known])
    assert np.isnan(found.value.value[:, ~known]).all()
    assert (~known).sum() == 1  # "next"
    assert (found.value.low[:, known] <= found.value.value[:, known] + 1e-6).all()
    assert (found.value.high[:, known] >= found.value.value[:, known] - 1e-6).all()


def test_what_may_be_seen_is_read_off_the_weights() -> None:
    full, causal = random_weights(6, 2, False, 0), random_weights(6, 2, True, 0)
    assert may_see(full).all()
    assert np.array_equal(may_see(causal), np.tri(6, dtype=bool))
    band = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) <= 2
    sliding = full * band / (full * band).sum(axis=2, keepdims=True)
    assert np.array_equal(may_see(sliding), band)
    # Whoever cannot see the first token says nothing about it.
    assert measured(sliding, np.zeros(6), np.zeros(6)).weight[list(MEASURES).index("first")] == 2


def test_what_tokens_are() -> None:
    text = "Dig: wells, deep\n("
    words = ["[CLS]", "Dig", ":", "wells", ",", "deep", "Ċ", "(", "[UNK]", "[SEP]"]
    places = [None, (0, 3), (3, 4), (5, 10), (10, 11), (12, 16), (16, 17), (17, 18), None, None]
    special = [True, *[False] * 8, True]
    spans = Spans(list(range(10)), places, special, 10, words)
    found = kinds(spans, text, special_ids={0, 8, 9}, rare={0, 1, 2, 5})
    marks = [word for word, mark in zip(words, found.delimiter.tolist(), strict=True) if mark]
    assert marks == ["[CLS]", ":", ",", "Ċ", "(", "[SEP]"]  # a word that is not known is none
    assert [word for word, seldom in zip(words, found.rare.tolist(), strict=True) if seldom] == ["Dig", "deep"]


def test_a_prompt_s_words_are_no_delimiters_and_a_tokenizer_without_characters_is_read_by_its_tokens() -> None:
    spans = Spans([5, 6, 7, 8], [None] * 4, [True, True, False, False], 4, ["▁query", ":", "▁so", "##."])
    found = kinds(spans, "so.", special_ids={9}, rare={5, 7})
    assert found.delimiter.tolist() == [False, True, False, True]
    assert found.rare.tolist() == [False, False, True, False]  # the first token is never rare


def test_rare_tokens_together_are_a_quarter_at_most() -> None:
    # 100 tokens: 10 that occur once, 5 twice, one five times, then common ones.
    counts = {**dict.fromkeys(range(10), 1), **dict.fromkeys(range(10, 15), 2), 15: 5, 16: 35, 17: 40}
    assert rare_ids(counts) == frozenset(range(16))  # 10 + 10 + 5 = 25
    assert rare_ids(counts, share=0.2) == frozenset(range(15))
    assert rare_ids(Counter({1: 1, 2: 1, 3: 1})) == {1, 2, 3}  # all occur once
    assert rare_ids({}) == frozenset()
