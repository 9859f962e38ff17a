"""Tokens joined to words, and a head's pairs of words in a matrix that adds up."""

import numpy as np
import pytest

from core.model.attention import Piece
from core.model.head_words import MOST_WORDS, head_words, words_of
from core.model.ledger import WordPairs


def pieces(text: str, *tokens: str) -> tuple[Piece, ...]:
    """Tokens of ``text`` one after the other; those in brackets are special."""
    found, at = [], 0
    for token in tokens:
        if token.startswith("["):
            found.append(Piece(None, None, token, True))
            continue
        at = text.index(token, at)
        found.append(Piece(at, at + len(token), token, False))
        at += len(token)
    return tuple(found)


def test_parts_of_a_word_are_joined_and_marks_are_not() -> None:
    text = "The harbour, the Harbour."
    found = pieces(text, "[CLS]", "The", "har", "bour", ",", "the", "Har", "bour", ".", "[SEP]")
    assert words_of(text, found) == [
        "[CLS]", "the", "harbour", "harbour", ",", "the", "harbour", "harbour", ".", "[SEP]",
    ]  # fmt: skip


def test_spaces_within_tokens_and_tokens_without_characters_are_no_harm() -> None:
    text = "Two words 🙂"
    found = (*pieces(text, "Two", " wor", "ds"), Piece(9, 11, "🙂", False), Piece(9, 11, "🙂", False))
    assert words_of(text, found) == ["two", "words", "words", "🙂", "🙂"]
    assert words_of("ab", (Piece(None, None, "▁a", False), Piece(None, None, "b", False))) == ["▁a", "b"]


def test_a_script_without_spaces_is_cut() -> None:
    text = "海" * 60
    assert max(map(len, words_of(text, pieces(text, *text)))) <= 24


def test_the_matrix_adds_up_and_begins_with_the_strongest_pair() -> None:
    first = "one two one"
    second = " ".join(f"w{at}" for at in range(20))
    chance = np.random.default_rng(0)
    pairs = chance.normal(size=(3, 20)) / 100
    pairs[[0, 2], 4] = 0.5
    found = WordPairs(chance.normal(size=3), chance.normal(size=20), pairs)
    both = (pieces(first, *first.split()), pieces(second, *second.split()))
    words = head_words((first, second), both, found)
    assert words.words[0][0] == "one"
    assert words.words[1][0] == "w4"
    assert words.matrix.shape == (3, MOST_WORDS + 1)
    assert words.matrix[0, 0] == pytest.approx(1.0)  # both times that the word is there
    assert words.matrix[-1].tolist() == [0] * (MOST_WORDS + 1)  # there are no other words
    assert words.shared == pytest.approx(pairs.sum())
    assert words.value == pytest.approx(found.first.sum() + found.second.sum())
