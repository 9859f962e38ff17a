"""Induction and syntax on real weights, against an independent computation, and on random ones."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.analysis.conllu import Sentence, read_treebank
from core.analysis.induction import induction_scores
from core.analysis.treebank import RELATIONS, choosing_half, pairs
from core.analysis.word_attention import RelationScores, relation_scores
from core.analysis.word_similarity import cosines
from core.errors import Mistake
from core.model.embedder import Embedder, EmbedderConfig, Untrained
from core.model.induction import repeated_attention
from precompute.steps.attention.experiments import Experiments, claims_of, relation_rows, score_rows
from precompute.steps.attention.parts import AttentionWork
from precompute.steps.attention.repeated import repeated_scores
from precompute.steps.attention.tables import Claims
from precompute.steps.attention.treebank import _vectors, read_parts, read_sentence, read_sentences, sight

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
    found = induction_scores(repeated_attention(loaded.extractor, loaded.tokens, length, sequences=1, seed=3))
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
    found = induction_scores(repeated_attention(loaded.extractor, loaded.tokens, sequences=2))
    first = [(int(place) // 9 + 1, int(place) % 9 + 1) for place in np.argsort(-found.induction.ravel())[:5]]
    assert {(19, 7), (18, 4), (18, 5)} <= set(first)
    assert found.induction[18, 6] > 0.8
    assert found.duplicate[14, 3] > 0.5
    assert found.baseline[18, 6] < 0.01


def test_a_model_that_reads_too_few_tokens_is_refused() -> None:
    short = Embedder.load(EmbedderConfig(model="all-MiniLM-L6-v2", max_tokens=9))
    with pytest.raises(Mistake, match="Induction needs 8 tokens besides special ones, but this model reads 9"):
        repeated_attention(short.extractor, short.tokens)


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


def shown(model: Embedder, folder: Path, sentences: list[Sentence]) -> Claims:
    """The types that the experiments of the step show."""
    work = AttentionWork(model, model.info.shape, folder, "digest")
    reading = read_parts(work, sentences, 0, lambda fraction, message: None)
    found = Experiments(model.info.shape, repeated_scores(work, 0), reading, [])
    rests = np.zeros((model.info.shape.layers, model.info.shape.heads))
    return claims_of(score_rows(found, rests), relation_rows(found, 0))


def test_an_untrained_model_has_none(tmp_path: Path) -> None:
    """So it is over all sentences: docs/head-types.md."""
    twin = Embedder.load(EmbedderConfig(model="all-MiniLM-L6-v2"), untrained=Untrained(0, lambda *size: None))
    assert not any(shown(twin, tmp_path, read_treebank()[::3]).values())


def test_minilm_s_clearest_heads_get_their_types(tmp_path: Path) -> None:
    found = shown(embedder("all-MiniLM-L6-v2"), tmp_path, read_treebank()[::3])
    assert "modifier" in found[4, 2]
    assert "semantic similarity" in found[2, 2]
    assert "duplicate token" in found[3, 10]


@pytest.mark.parametrize("model", MODELS)
def test_what_is_left_of_cosines_equals_least_squares(model: str) -> None:
    """Two sentences: cosines by plain loops, and their residual on words and distances as indicators."""
    loaded, sentences = embedder(model), read_treebank()[40:42]
    causal, without_first = sight(loaded, sentences)
    forms = [[word.form for word in sentence.words] for sentence in sentences]
    ours = cosines([_vectors(loaded, sentence) for sentence in sentences], forms, causal, without_first)
    table = peer(model)[0].get_input_embeddings().weight.detach().numpy()
    rows: list[tuple[int, int, int, float]] = []
    for number, sentence in enumerate(sentences):
        encoding, start, means = peer(model)[1](sentence.text), 0, []
        for word in sentence.words:
            pieces = {encoding.char_to_token(0, start + offset) for offset in range(len(word.form))} - {None}
            means.append(np.mean([table[encoding["input_ids"][piece]] for piece in pieces], axis=0))
            start += len(word.form) + word.space
        for one, other in np.ndindex(len(means), len(means)):
            if forms[number][one].casefold() == forms[number][other].casefold():
                continue
            if not (causal and other >= one) and not (without_first and other == 0):
                scale = np.linalg.norm(means[one]) * np.linalg.norm(means[other])
                rows.append((number, one, other, float(means[one] @ means[other] / scale)))
    marks = [{f"from {n} {one}", f"to {n} {other}", f"apart {other - one}"} for n, one, other, _ in rows]
    names = sorted(set().union(*marks))
    design = np.array([[float(name in mark) for name in names] for mark in marks])
    target = np.array([row[3] for row in rows])
    rest = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    mine = np.array([ours[number].rest[0, one, other] for number, one, other, _ in rows])
    assert np.corrcoef(mine, rest)[0, 1] > 0.98


@pytest.mark.parametrize(("model", "causal"), [(MODELS[0], False), (MODELS[1], True)])
def test_causality_is_read_off_the_attention(model: str, causal: bool) -> None:
    assert read_sentences(embedder(model), read_treebank()[:1]).causal is causal
