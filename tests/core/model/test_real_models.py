"""The contract, on real weights: MiniLM (mean pooling, 12 heads) and SmolLM2 (last token, 9 heads on 3)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from core.model.embedder import Embedded, Embedder, EmbedderConfig
from core.model.ledger import Term, explain
from core.model.stages import split_heads
from tests.support.peer import demo_texts, peer

pytestmark = pytest.mark.slow
MODELS = ("all-MiniLM-L6-v2", "SmolLM2-135M")
ROUNDING = 5e-5
TEXTS = [
    "A short one.",
    "",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. 日本語も少し。",
    *demo_texts()[:6],
    "over and over " * 300,  # longer than MiniLM takes
]


SHORTER = [" ".join(text.split()[: 8 + 4 * index]) for index, text in enumerate(TEXTS) if index not in (4, 5, 6, 7)]
"""For SmolLM2, which is thirty layers deep: short, long, empty, and in other scripts, but fewer."""


def texts_for(model: str) -> list[str]:
    return TEXTS if model == "all-MiniLM-L6-v2" else SHORTER


@lru_cache(maxsize=4)
def embedder(model: str, padding: str = "right", layers: tuple[int | None, ...] = (None,)) -> Embedder:
    return Embedder.load(EmbedderConfig(model=model, padding=padding, layers=layers))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def furthest(one: Embedded, other: Embedded, stages: tuple[int, ...] = (1, 2, 3)) -> float:
    """Largest difference at any stage, relative to the size of the vectors there."""
    return max(
        float(np.abs(one.stage(stage) - other.stage(stage)).max() / np.abs(one.stage(stage)).max()) for stage in stages
    )


@pytest.mark.parametrize("model", MODELS)
def test_stage_3_is_what_sentence_transformers_returns(model: str) -> None:
    texts = [text for text in texts_for(model) if text]  # of an empty text SmolLM2 has no token to pool
    ours = embedder(model)
    theirs = peer(model, ours.info.max_tokens).encode(texts, batch_size=3)
    assert np.abs(unit(ours.embed(texts).output) - unit(theirs)).max() <= 1e-4


@pytest.mark.parametrize("model", MODELS)
def test_terms_add_up_to_the_embedding_and_to_the_cosine(model: str) -> None:
    texts = [text for text in texts_for(model) if text][:4]
    ours = embedder(model)
    found = ours.ledgers(texts)
    assert max(ledger.residual for ledger in found) <= 1e-5
    output = unit(ours.embed(texts).output.astype(np.float64))
    for one, other in ((0, 1), (2, 3)):
        explained = explain(found[one], found[other])
        assert abs(explained.residual) <= 1e-5
        assert explained.values.sum() == pytest.approx(output[one] @ output[other], abs=1e-5)
    (layer, head), (first, second) = (ours.info.shape.layers, 2), texts[:2]
    words = ours.word_pairs(first, second, layer, head)
    value = explain(found[0], found[1]).values[found[0].terms.index(Term("head", layer, head))]
    assert words.first.sum() + words.second.sum() == pytest.approx(value, abs=1e-5)
    assert [len(ours.pieces(text)) for text in (first, second)] == list(words.pairs.shape)


def test_minilm_equals_sentence_transformers_in_any_batch_composition() -> None:
    model = embedder("all-MiniLM-L6-v2")
    theirs = peer("all-MiniLM-L6-v2", 256).encode(TEXTS, batch_size=1)
    generator = np.random.default_rng(7)
    for _ in range(4):
        order = generator.permutation(len(TEXTS))[: generator.integers(1, len(TEXTS) + 1)]
        ours = unit(model.embed([TEXTS[index] for index in order]).output)
        assert np.abs(ours - theirs[order]).max() <= 1e-4


@pytest.mark.parametrize("model", MODELS)
def test_stage_1_times_the_projection_is_stage_2(model: str) -> None:
    """The projection is linear, so it commutes with every pooling."""
    loaded = embedder(model)
    extractor = loaded.extractor
    projection = extractor.model.get_submodule(extractor.family.projection.format(extractor.shape.layers - 1))
    weight = projection.weight.detach().numpy().astype(np.float64)
    bias = 0.0 if projection.bias is None else projection.bias.detach().numpy().astype(np.float64)
    found = loaded.embed(texts_for(model))
    expected = found.stage(1).astype(np.float64) @ weight.T + bias
    assert np.abs(expected - found.stage(2)).max() <= 1e-4 * np.abs(expected).max()


def test_shapes_tokens_and_truncation() -> None:
    mini, smol = embedder("all-MiniLM-L6-v2"), embedder("SmolLM2-135M")
    assert (mini.info.pooling, mini.info.max_tokens, mini.info.shape.kv_heads) == ("mean", 256, 12)
    assert (smol.info.pooling, smol.info.shape.heads, smol.info.shape.kv_heads) == ("last", 9, 3)
    found = mini.embed(TEXTS)
    assert split_heads(found.stage(1), 1, mini.info.shape).shape == (len(TEXTS), 12, 32)
    assert found.tokens[0] == 6  # [CLS] a short one . [SEP]
    assert found.tokens[-1] == 902  # 300 × "over and over", [CLS] and [SEP]
    assert found.truncated.tolist() == (found.tokens > 256).tolist()


def test_the_weights_are_loaded_with_sdpa_attention() -> None:
    for model in MODELS:
        assert embedder(model).extractor.model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("model", MODELS)
def test_a_document_does_not_depend_on_its_batch_mates_or_the_padding_side(model: str) -> None:
    """Within float32's rounding over 30 layers, which differs by processor: 1.2e-5 was seen."""
    texts = texts_for(model)
    together = embedder(model).embed(texts)
    assert furthest(together, embedder(model, "left").embed(texts)) <= ROUNDING
    for index in (0, 2, len(texts) - 1):
        alone = embedder(model).embed([texts[index]])
        for stage in (1, 2, 3):
            wanted = together.stage(stage)[index]
            assert np.abs(alone.stage(stage)[0] - wanted).max() <= ROUNDING * np.abs(wanted).max()


@pytest.mark.parametrize("model", MODELS)
def test_batches_without_padding_give_the_same(model: str) -> None:
    """A small budget, so that there are several batches, whose vectors are stored one batch late."""
    texts = texts_for(model)
    config = EmbedderConfig(model=model, token_budget=300, shares=True)
    plain, packed = (Embedder.load(replace(config, packed=how)).embed(texts) for how in (False, True))
    assert furthest(plain, packed, stages=(1, 2, 3, 4)) <= ROUNDING


@pytest.mark.parametrize("packed", [False, True])
def test_bfloat16_turns_no_head_vector_by_more_than_3_degrees(packed: bool) -> None:
    exact = Embedder.load(EmbedderConfig(shares=True)).embed(TEXTS)
    half = Embedder.load(EmbedderConfig(shares=True, dtype="bfloat16", packed=packed)).embed(TEXTS)
    for stage in (1, 2, 3, 4):
        one, other = (unit(found.stage(stage).reshape(-1, 32)) for found in (exact, half))
        assert np.degrees(np.arccos((one * other).sum(axis=1).min())) < 3


def test_several_layers_in_one_pass_are_each_layer_by_itself() -> None:
    both = embedder("all-MiniLM-L6-v2", layers=(2, 6)).embed(TEXTS[:4])
    for position, layer in enumerate((2, 6)):
        one = embedder("all-MiniLM-L6-v2", layers=(layer,)).embed(TEXTS[:4])
        for stage in (1, 2, 3):
            assert np.allclose(one.stage(stage), both.stage(stage, position), atol=1e-6)
    assert not np.allclose(both.stage(1, 0), both.stage(1, 1), atol=1e-2)


def test_a_batch_that_does_not_fit_is_halved_and_the_next_ones_are_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Embedder.load(EmbedderConfig(token_budget=1_024))
    texts = [" ".join(text.split()[: 10 + 5 * index]) for index, text in enumerate(TEXTS)]
    expected = model.embed(texts)
    real, sizes = model.extractor.__call__, []

    class Small:
        """A device with room for three documents at a time."""

        blocks = shares = False

        def __call__(self, ids, mask):
            sizes.append(len(ids))
            if len(ids) > 3:
                raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
            return real(ids, mask)

    monkeypatch.setattr(model, "extractor", Small())
    assert furthest(expected, model.embed(texts)) <= 1e-5
    assert sizes[0] > 3
    halvings = [position for position, size in enumerate(sizes) if size > 3]
    assert sizes[halvings[-1] + 1 :]
    model.embed(["word " * 60] * 8)
    assert max(sizes[halvings[-1] + 1 :]) <= 3  # learnt, for the rest of that call and for the next


def test_smollm2_is_converted_once_and_found_again(tmp_path: Path) -> None:
    from core.model.locate import default_models_dir, locate

    first = locate("SmolLM2-135M", default_models_dir())
    stamp = (first.folder / "model.safetensors").stat().st_mtime_ns
    again = locate("smollm2-135m", default_models_dir())
    assert again.folder == first.folder
    assert (again.folder / "model.safetensors").stat().st_mtime_ns == stamp
    assert not [path for path in first.folder.parent.iterdir() if path.name.startswith(".")]
