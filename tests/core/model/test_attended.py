"""Where heads look: weights that add up to 1, that give the head's own vector, and that leave the model as it was."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch

from core.model.embedder import Embedder, EmbedderConfig
from core.model.stages import split_heads

MODELS = ("all-MiniLM-L6-v2", "SmolLM2-135M")
TEXT = "The Danish harbour froze over in January, and the ferries stayed where they were."
VALUES = {"all-MiniLM-L6-v2": "encoder.layer.{}.attention.self.value", "SmolLM2-135M": "layers.{}.self_attn.v_proj"}


@lru_cache(maxsize=4)
def embedder(model: str, layer: int | None = None, pooling: str | None = None) -> Embedder:
    return Embedder.load(EmbedderConfig(model=model, layers=(layer,), pooling=pooling))


def caught(model: Embedder, path: str, text: str, inputs: bool = False) -> np.ndarray:
    """What comes out of a module (or goes into it) for one text, ``[token, width]``."""
    found: list[torch.Tensor] = []

    def keep(module: Any, args: Any, output: Any) -> None:
        found.append(args[0] if inputs else output)

    handle = model.extractor.model.get_submodule(path).register_forward_hook(keep)
    model.embed([text])
    handle.remove()
    return found[0][0].double().numpy()


@pytest.mark.parametrize(
    ("model", "pooling"), [(MODELS[0], None), (MODELS[0], "first"), (MODELS[0], "last"), (MODELS[1], None)]
)
def test_weights_times_values_are_the_heads_vectors(model: str, pooling: str | None) -> None:
    """What a head looked at, and what it found there, is its vector at stage 1: for all H heads.

    Every pooling with every family: tests/core/model/test_families.py.
    """
    loaded = embedder(model, None, pooling)
    shape = loaded.info.shape
    found = loaded.attended(TEXT)
    assert found.weights.shape == (shape.heads, len(found.pieces))
    assert found.weights.min() >= 0
    assert found.weights.sum(axis=1) == pytest.approx(np.ones(shape.heads), abs=1e-5)
    values = caught(loaded, VALUES[model].format(shape.layers - 1), TEXT).reshape(len(found.pieces), shape.kv_heads, -1)
    vectors = split_heads(loaded.embed([TEXT]).stage(1), 1, shape)[0]
    for head in range(shape.heads):
        expected = found.weights[head] @ values[:, shape.group_of(head)]
        assert vectors[head] == pytest.approx(expected, abs=1e-4 * float(np.abs(vectors).max()))


def test_minilms_weights_are_the_softmax_of_queries_and_keys() -> None:
    loaded = embedder(MODELS[0], 3)
    block = "encoder.layer.2.attention.self"
    queries, keys = (caught(loaded, f"{block}.{name}", TEXT).reshape(-1, 12, 32) for name in ("query", "key"))
    scores = np.einsum("qhd,khd->hqk", queries, keys) / 32**0.5
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    assert loaded.attended(TEXT).weights == pytest.approx(weights.mean(axis=1), abs=1e-5)
    assert not np.allclose(loaded.attended(TEXT).weights, embedder(MODELS[0]).attended(TEXT).weights, atol=1e-2)


@pytest.mark.parametrize("model", MODELS)
def test_the_model_is_left_as_it_was(model: str) -> None:
    loaded = embedder(model)
    texts = [TEXT, "Another one, " * 20]
    before = loaded.embed(texts)
    loaded.attended(TEXT)
    after = loaded.embed(texts)
    for stage in (1, 2, 3):
        assert np.array_equal(before.stage(stage), after.stage(stage))
    assert loaded.extractor.model.config._attn_implementation == "sdpa"
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in loaded.extractor.model.modules())


def test_the_model_is_left_as_it_was_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = embedder(MODELS[0])

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("stopped in the middle")

    layer = loaded.extractor.model.get_submodule("encoder.layer.5.intermediate")
    with monkeypatch.context() as patch:
        patch.setattr(layer, "forward", fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            loaded.attended(TEXT)
    assert loaded.extractor.model.config._attn_implementation == "sdpa"
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in loaded.extractor.model.modules())
    assert loaded.attended(TEXT).weights.shape[0] == 12


def test_threads_that_embed_meanwhile_get_the_same_vectors() -> None:
    loaded = embedder(MODELS[0])
    before, found = loaded.embed([TEXT]), []
    threads = [threading.Thread(target=lambda: found.append(loaded.embed([TEXT]))) for _ in range(6)]
    for thread in threads:
        thread.start()
        loaded.attended(TEXT)
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(np.array_equal(before.stage(stage), each.stage(stage)) for each in found for stage in (1, 2, 3))


def test_pieces_are_the_texts_own_characters() -> None:
    found = embedder(MODELS[0]).attended("Naïve cafés, 日本!")
    own = [(piece.start, piece.end, piece.text) for piece in found.pieces if not piece.special]
    assert own == [(0, 5, "Naïve"), (6, 11, "cafés"), (11, 12, ","), (13, 14, "日"), (14, 15, "本"), (15, 16, "!")]
    assert [(piece.text, piece.start) for piece in found.pieces if piece.special] == [("[CLS]", None), ("[SEP]", None)]


def test_a_long_text_is_seen_as_far_as_it_is_embedded() -> None:
    found = embedder(MODELS[0]).attended("cat " * 600)
    assert len(found.pieces) == found.weights.shape[1] == 256
    assert found.total == 602
    assert found.pieces[254].end == 4 * 254 - 1


def test_the_empty_text() -> None:
    found = embedder(MODELS[0]).attended("")
    assert [piece.text for piece in found.pieces] == ["[CLS]", "[SEP]"]
    assert found.weights.sum(axis=1) == pytest.approx(np.ones(12), abs=1e-5)
