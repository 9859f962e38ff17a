"""Induction and syntax on real weights, against an independent computation, and on random ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch

from core.analysis.conllu import Sentence, read_treebank
from core.analysis.induction import induction_scores
from core.analysis.treebank import RELATIONS, choosing_half, pairs
from core.analysis.word_attention import RelationScores, relation_scores
from core.errors import Mistake
from core.model.embedder import Embedder, EmbedderConfig
from core.model.induction import repeated_attention
from precompute.steps.attention.treebank import read_sentence, read_sentences

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]
MODELS = ("all-MiniLM-L6-v2", "SmolLM2-135M")


@lru_cache(maxsize=2)
def embedder(model: str) -> Embedder:
    return Embedder.load(EmbedderConfig(model=model))


@lru_cache(maxsize=2)
def peer(model: str) -> tuple[Any, Any]:
    """The same weights and tokenizer, loaded by transformers alone."""
    from transformers import AutoModel, AutoTokenizer

    folder = EmbedderConfig(model=model).locate().folder
    loaded = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    return loaded.eval(), AutoTokenizer.from_pretrained(folder)


def attentions(model: str, ids: list[int]) -> list[np.ndarray]:
    with torch.inference_mode():
        output = peer(model)[0](input_ids=torch.tensor([ids]), output_attentions=True)
    return [layer[0].double().numpy() for layer in output.attentions]


def most_attended_by_loops(model: str, sentence: Sentence) -> list[list[list[int]]]:
    """By layer, head and word: tokens by the tokenizer's own ``char_to_token``, sums and means by plain loops."""
    encoding = peer(model)[1](sentence.text)
    pieces = []
    start = 0
    for word in sentence.words:
        places = {encoding.char_to_token(0, start + offset) for offset in range(len(word.form))}
        pieces.append(sorted(place for place in places if place is not None))
        start += len(word.form) + word.space
    found = []
    for weights in attentions(model, encoding["input_ids"]):
        rows = []
        for head in weights:
            row = []
            for source, mine in enumerate(pieces):
                sums = [
                    0.0 if source == target else sum(head[one, other] for one in mine for other in theirs) / len(mine)
                    for target, theirs in enumerate(pieces)
                ]
                row.append(sums.index(max(sums)) if max(sums) > 0 else -1)
            rows.append(row)
        found.append(rows)
    return found


@pytest.mark.parametrize("model", MODELS)
def test_most_attended_words_equal_an_independent_computation(model: str) -> None:
    for sentence in read_treebank()[::120]:
        ours = read_sentence(embedder(model), sentence)
        theirs = np.array(most_attended_by_loops(model, sentence))
        # Where two words are attended to alike, rounding decides.
        assert (ours == theirs).mean() >= 0.999


@pytest.mark.parametrize("model", MODELS)
def test_induction_scores_equal_an_independent_computation(model: str) -> None:
    loaded = embedder(model)
    length = 6
    found = induction_scores(repeated_attention(loaded._extract, loaded.tokens, length, sequences=1, seed=3))
    special = loaded.tokens.special_ids
    ordinary = [token for token in range(peer(model)[0].config.vocab_size) if token not in special]
    row = np.random.default_rng(3).choice(ordinary, size=length, replace=False).tolist()
    begin, end = loaded.tokens.begin, loaded.tokens.end
    for layer, weights in enumerate(attentions(model, [*begin, *row, *row, *end])):
        for head, one in enumerate(weights):
            second, first = len(begin) + length, len(begin)
            induction = sum(one[second + place, first + place + 1] for place in range(length)) / length
            duplicate = sum(one[second + place, first + place] for place in range(length)) / length
            assert found.induction[layer, head] == pytest.approx(induction, abs=1e-4)
            assert found.duplicate[layer, head] == pytest.approx(duplicate, abs=1e-4)


def test_smollm2_has_the_induction_heads_that_are_known() -> None:
    loaded = embedder("SmolLM2-135M")
    found = induction_scores(repeated_attention(loaded._extract, loaded.tokens, sequences=2))
    first = [(int(place) // 9 + 1, int(place) % 9 + 1) for place in np.argsort(-found.induction.ravel())[:5]]
    assert {(19, 7), (18, 4), (18, 5)} <= set(first)
    assert found.induction[18, 6] > 0.8
    assert found.duplicate[14, 3] > 0.5
    assert found.baseline[18, 6] < 0.01


def test_a_model_that_reads_too_few_tokens_is_refused() -> None:
    short = Embedder.load(EmbedderConfig(model="all-MiniLM-L6-v2", max_tokens=9))
    with pytest.raises(Mistake, match="Induction needs 8 tokens besides special ones, but this model reads 9"):
        repeated_attention(short._extract, short.tokens)


def scores(model: Embedder) -> dict[str, RelationScores]:
    """Of every third sentence, each relation that has pairs in both halves."""
    sentences = read_treebank()[::3]
    attended = read_sentences(model, sentences)
    half = choosing_half(len(sentences))
    found = {name: relation_scores(attended, pairs(sentences, name), half) for name in RELATIONS}
    return {name: one for name, one in found.items() if one is not None}


def test_minilm_has_heads_that_follow_syntax_beyond_any_fixed_offset() -> None:
    found = scores(embedder("all-MiniLM-L6-v2"))
    assert list(found) == list(RELATIONS)
    for relation in ("determiner → noun", "preposition → its object"):
        layer, head = found[relation].best
        assert (layer + 1, head + 1) == (4, 2)
        assert found[relation].held_out[layer, head] > found[relation].offset.held_out + 0.15
        assert found[relation].beyond[layer, head]


def test_an_untrained_model_has_none() -> None:
    from transformers import AutoModel

    untrained = Embedder.load(EmbedderConfig(model="all-MiniLM-L6-v2"))
    torch.manual_seed(0)
    random = AutoModel.from_config(untrained._extract.model.config)
    untrained._extract.model.load_state_dict(random.state_dict())
    assert not any(one.beyond.any() for one in scores(untrained).values())


@pytest.mark.parametrize(("model", "causal"), [(MODELS[0], False), (MODELS[1], True)])
def test_causality_is_read_off_the_attention(model: str, causal: bool) -> None:
    assert read_sentences(embedder(model), read_treebank()[:1]).causal is causal
