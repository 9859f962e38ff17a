"""Shares and ablation on real weights: MiniLM (post-norm, mean) and SmolLM2 (pre-norm, last token)."""

from __future__ import annotations

import itertools
import json
from functools import lru_cache

import numpy as np
import pytest
import torch

from core.errors import Mistake
from core.model.embedder import Embedded, Embedder, EmbedderConfig
from core.model.ledger import Term, explain
from core.model.shares import full_shares
from tests.support.peer import DEMO, demo_texts

pytestmark = pytest.mark.slow
MODELS = ("all-MiniLM-L6-v2", "SmolLM2-135M")
MINILM = MODELS[0]


@lru_cache(maxsize=2)
def embedder(model: str) -> Embedder:
    return Embedder.load(EmbedderConfig(model=model, shares=True))


@lru_cache(maxsize=1)
def demo() -> tuple[Embedded, np.ndarray, Embedded]:
    """MiniLM's vectors of the demo corpus, the index of each document's topic, and the vectors of the topics' names."""
    rows = [json.loads(line) for path in sorted(DEMO.glob("*.jsonl")) for line in path.open(encoding="utf-8")]
    names = sorted({row["topic"] for row in rows})
    model = embedder(MINILM)
    labels = np.array([names.index(row["topic"]) for row in rows])
    return model.embed([row["text"] for row in rows]), labels, model.embed(names)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def texts_for(model: str) -> list[str]:
    texts = demo_texts()[::25]
    return texts if model == MINILM else [" ".join(text.split()[:40]) for text in texts[:6]]


@pytest.mark.parametrize("model", MODELS)
def test_terms_of_real_documents_add_up_within_1e5(model: str) -> None:
    found = embedder(model).ledgers(texts_for(model))
    assert max(one.residual for one in found) <= 1e-5
    pairs = [explain(one, other) for one, other in itertools.pairwise(found)]
    assert max(abs(pair.residual) for pair in pairs) <= 1e-5
    embedded = embedder(model).embed(texts_for(model))
    np.testing.assert_allclose(unit(np.stack([one.output for one in found])), unit(embedded.output), atol=1e-5)
    # Stage 4 is the ledger's terms of the last layer.
    layers, heads = embedder(model).info.shape.layers, embedder(model).info.shape.heads
    full = full_shares(embedded.stage(4), embedder(model).share_space().directions)
    for head in range(heads):
        wanted = np.stack([one.vectors[one.terms.index(Term("head", layers, head + 1))] for one in found])
        assert np.abs(full[:, head] - wanted).max() <= 1e-5 * np.abs(embedded.output).max()


def test_words_of_real_documents_add_up_to_the_head() -> None:
    first, second = demo_texts()[0], demo_texts()[1]
    model = embedder(MINILM)
    whole = explain(*model.ledgers([first, second]))
    found = model.word_pairs(first, second, 6, 11)
    value = whole.values[whole.terms.index(Term("head", 6, 11))]
    assert found.first.sum() + found.second.sum() == pytest.approx(value, abs=1e-5)
    assert found.pairs.shape == (min(256, len(found.first)), len(found.second))
    with pytest.raises(Mistake, match="Head 13 does not exist"):
        model.word_pairs(first, second, 6, 13)


def test_the_last_layers_heads_are_61_percent_of_the_demo_and_head_11_is_12() -> None:
    documents, _, _ = demo()
    shares = full_shares(documents.stage(4), embedder(MINILM).share_space().directions)  # [doc, head, hidden]
    lengths = (documents.output**2).sum(axis=1)
    parts = np.einsum("nhD,nD->nh", shares, documents.output) / lengths[:, None]
    assert parts.sum(axis=1).mean() == pytest.approx(0.61, abs=0.005)
    assert parts[:, 10].mean() == pytest.approx(0.12, abs=0.005)


def test_head_11s_share_finds_the_topic_for_60_percent_and_the_sum_of_the_heads_for_67() -> None:
    documents, labels, names = demo()
    directions = embedder(MINILM).share_space().directions

    def match(document: np.ndarray, name: np.ndarray) -> float:
        return float(((unit(document) @ unit(name).T).argmax(axis=1) == labels).mean())

    head = [vectors.stage(4).reshape(-1, 12, 32)[:, 10] for vectors in (documents, names)]
    assert match(*head) == pytest.approx(0.60, abs=0.01)
    summed = [full_shares(vectors.stage(4), directions).sum(axis=1) for vectors in (documents, names)]
    assert match(*summed) == pytest.approx(0.67, abs=0.01)


def test_float16_keeps_lengths_and_angles_within_a_thousandth() -> None:
    documents, _, _ = demo()
    full = full_shares(documents.stage(4), embedder(MINILM).share_space().directions)[:60]
    stored = documents.stage(4)[:60].astype(np.float16).astype(np.float32).reshape(60, 12, 32)
    lengths = np.linalg.norm(stored, axis=2) / np.linalg.norm(full, axis=2)
    assert np.abs(lengths - 1).max() <= 1e-3
    cosines = np.einsum("nhk,mhk->hnm", unit(stored), unit(stored))
    assert np.abs(cosines - np.einsum("nhD,mhD->hnm", unit(full), unit(full))).max() <= 1e-3


@pytest.mark.parametrize("model", MODELS)
def test_heads_switched_off_equal_weights_edited_by_hand(model: str) -> None:
    loaded, texts = embedder(model), texts_for(model)[:4]
    shape = loaded.info.shape
    off = [(shape.layers, 3), (2, 1), (shape.layers, shape.heads)]
    found = loaded.embed(texts, change=loaded.without(off)).output
    swept = {index: vectors for batch, one in loaded.sweep(texts, [loaded.without(off)]) for index, vectors in
             zip(batch, one.output.numpy(), strict=True)}  # fmt: skip
    before = {}
    extractor = loaded.extractor
    try:
        with torch.no_grad():
            for layer, head in off:
                projection = extractor.model.get_submodule(extractor.family.projection.format(layer - 1))
                before.setdefault(projection, projection.weight.clone())
                projection.weight[:, (head - 1) * shape.head_dim : head * shape.head_dim] = 0.0
        wanted = loaded.embed(texts).output
    finally:
        with torch.no_grad():
            for projection, weight in before.items():
                projection.weight.copy_(weight)
    np.testing.assert_allclose(unit(found), unit(wanted), atol=1e-5)
    np.testing.assert_allclose(unit(np.stack([swept[index] for index in range(len(texts))])), unit(wanted), atol=1e-5)
    assert np.abs(unit(wanted) - unit(loaded.embed(texts).output)).max() > 1e-3


def test_stage_4_is_there_only_if_asked_for() -> None:
    plain = Embedder.load(EmbedderConfig()).embed(["One."])
    with pytest.raises(Mistake, match="Stage 4 was not read"):
        plain.stage(4)
