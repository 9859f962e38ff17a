"""The cost model: worked out by hand, and against what torch counts while real models run."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cost_model import (
    FLOAT16,
    INT8,
    LAYOUTS,
    Layout,
    codebook_bytes,
    flops,
    hours,
    quantised_bytes,
    similarity_bytes,
    sustained,
    vector_bytes,
)
from core.errors import Mistake
from core.model.presets import PRESETS
from core.model.shape import ModelShape

SMALL = Layout(
    ModelShape(layers=2, heads=4, kv_heads=2, hidden=12, head_dim=5), intermediate=7, gated=True, causal=True
)
SFR = LAYOUTS["Salesforce/SFR-Embedding-Mistral"]


def test_weights_by_hand() -> None:
    # A layer: queries 12 × 20, keys and values 12 × 10 each, output 20 × 12, and three of 12 × 7.
    assert SMALL.weights == 2 * (240 + 120 + 120 + 240 + 3 * 84)
    two = Layout(SMALL.shape, 7, gated=False, causal=True)
    assert two.weights == 2 * (720 + 2 * 84)


def test_operations_by_hand() -> None:
    # One token sees itself: 2 × 1,944 of the weights, and 4 × 2 layers × 4 heads × 5.
    # Three tokens see 1, 2 and 3, on average 2.
    assert flops(SMALL, [0, 1, 3]).tolist() == [0, 3888 + 160, 3 * (3888 + 2 * 160)]
    both_ways = Layout(SMALL.shape, 7, gated=True, causal=False)
    assert flops(both_ways, [[3]]).tolist() == [[3 * (3888 + 3 * 160)]]


def test_the_study_s_model() -> None:
    """A layer has 41.9 million weights in the attention and 176.2 behind it: 14 billion operations a token."""
    assert SFR.weights == 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336) == 6_979_321_856
    # 1,000 tokens: 4 × 32 × 4096 × 500.5 of the attention is 1.9 % more.
    assert flops(SFR, 1000) == 1000 * (13_958_643_712 + 262_406_144)
    # On a GPU that sustains 100 TFLOP/s, a million such documents take 142.2 thousand seconds.
    assert hours(1e6 * flops(SFR, 1000), 100e12) == pytest.approx(142_210.49856 / 3600)


def test_hours_halve_with_twice_the_rate_and_broadcast() -> None:
    rates = sustained([[100.0], [200.0]], [0.25, 0.5])
    assert rates.tolist() == [[25, 50], [50, 100]]
    assert hours(360_000, rates).tolist() == [[4, 2], [2, 1]]


@pytest.mark.parametrize("share", [0, -0.1, 1.1, float("nan")])
def test_a_utilisation_is_a_share(share: float) -> None:
    with pytest.raises(Mistake, match="share of the peak"):
        sustained(312e12, [0.5, share])


def test_fewer_than_no_tokens() -> None:
    with pytest.raises(Mistake, match="fewer than 0"):
        flops(SFR, [5, -1])


def test_bytes_of_a_document() -> None:
    assert vector_bytes(SFR.shape) == 3 * 4096 * 2
    assert vector_bytes(SFR.shape, [3]) == 8192
    assert vector_bytes(SFR.shape, [3], INT8) == 4096 + 32 * 4
    # Heads × width is 20 at stage 1, the hidden size 12 at stage 3.
    assert vector_bytes(SMALL.shape, [1, 3], FLOAT16) == (20 + 12) * 2
    assert quantised_bytes(SFR.shape, [1, 3], codes=8) == 2 * 32 * 8
    assert codebook_bytes(SFR.shape, [3]) == 256 * 4096 * 2
    assert similarity_bytes(SFR.shape, topics=25, stages=[2]) == 33 * 25 * 2
    with pytest.raises(Mistake, match="A head of 128 numbers cannot be cut into 12 equal parts"):
        quantised_bytes(SFR.shape, codes=12)


def test_layouts_are_of_presets() -> None:
    assert set(LAYOUTS) <= set(PRESETS)


def test_torch_counts_the_same() -> None:
    """Every matrix product of a BERT and of a Llama with grouped keys; torch counts a causal mask's other half, too."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

    sizes = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
    bert = BertModel(BertConfig(vocab_size=20, **sizes), add_pooling_layer=False)
    llama = LlamaModel(LlamaConfig(vocab_size=20, num_key_value_heads=2, head_dim=16, **sizes))
    for model, shape, gated in (
        (bert, ModelShape(2, 4, 4, 32, 8), False),
        (llama, ModelShape(2, 4, 2, 32, 16), True),
    ):
        model.set_attn_implementation("eager")
        counter = FlopCounterMode(display=False)
        with torch.no_grad(), counter:
            model(torch.ones((3, 11), dtype=torch.long))
        ours = flops(Layout(shape, 48, gated=gated, causal=False), np.full(3, 11)).sum()
        assert counter.get_total_flops() == ours
