"""Every family's three stages against a second computation: attention weights times values, by hand, one document
at a time, without padding, masks or hooks on the projection."""

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from core.errors import Mistake
from core.model.attention import attention
from core.model.batches import pad
from core.model.extract import HeadExtractor, Rows
from core.model.families import FAMILIES, family_of, shape_of
from core.model.shape import POOLINGS, ModelShape
from core.model.stages import split_heads

TOLERANCE = 1e-5  # on numbers of order 1: what float32 rounding leaves between two orders of summing
LAYERS = 3
VOCABULARY = 64
LENGTHS = (9, 5, 1, 12, 7)

pytestmark = pytest.mark.usefixtures("one_thread")


# The families, and where each keeps its values

Values = Callable[[np.ndarray, ModelShape], np.ndarray]
"""The value projection's output ``[token, width]`` as value vectors ``[kv_head, token, dim]``."""


def own_projection(out: np.ndarray, shape: ModelShape) -> np.ndarray:
    return out.reshape(len(out), shape.kv_heads, shape.head_dim).transpose(1, 0, 2)


def last_columns(out: np.ndarray, shape: ModelShape) -> np.ndarray:
    """Queries, keys and values side by side (Phi-3, GPT-2, ModernBERT)."""
    return own_projection(out[:, -shape.kv_heads * shape.head_dim :], shape)


def interleaved(out: np.ndarray, shape: ModelShape) -> np.ndarray:
    """Each head's query, key and value side by side, then the next head's (GPT-NeoX)."""
    return out.reshape(len(out), shape.heads, 3, shape.head_dim)[:, :, 2].transpose(1, 0, 2)


GROUPED_WIDE = ModelShape(layers=LAYERS, heads=4, kv_heads=2, hidden=32, head_dim=16)  # 4 · 16 is not 32
GROUPED_PLAIN_WIDTH = ModelShape(layers=LAYERS, heads=4, kv_heads=2, hidden=32, head_dim=8)
PLAIN = ModelShape(layers=LAYERS, heads=4, kv_heads=4, hidden=32, head_dim=8)


@dataclass(frozen=True)
class Case:
    """A tiny model of one family, and what is known about it beforehand."""

    kind: str
    config: dict[str, Any] = field(default_factory=dict)
    value: str = "layers.{}.self_attn.v_proj"
    values: Values = own_projection
    causal: bool = True
    shape: ModelShape = GROUPED_WIDE
    attention: str = "sdpa"
    """The attention that transformers chooses for this family when it is not told."""
    filler: int = 0
    projection: str = "layers.{}.self_attn.o_proj"
    """Written out once more: a wrong path in core must not be wrong here too."""
    biases: bool = False
    """Every layer adds a constant to the residual stream."""
    final_bias: bool = False
    """So does the norm at the end."""


GROUPED = {"num_key_value_heads": 2, "head_dim": 16}
GEMMA = {**GROUPED, "query_pre_attn_scalar": 16, "sliding_window": 4}
BERT: dict[str, Any] = {
    "value": "encoder.layer.{}.attention.self.value",
    "projection": "encoder.layer.{}.attention.output.dense",
    "causal": False,
    "shape": PLAIN,
    "biases": True,
}

NEOX: dict[str, Any] = {
    "value": "layers.{}.attention.query_key_value",
    "values": interleaved,
    "shape": PLAIN,
    "projection": "layers.{}.attention.dense",
    "biases": True,
    "final_bias": True,
}

OF_FAMILY: dict[str, Case] = {  # by model_type: one for each row of FAMILIES
    "mistral": Case("mistral", {**GROUPED, "sliding_window": None}),
    "llama": Case("llama", {**GROUPED, "attention_bias": True}, biases=True),
    "qwen2": Case("qwen2", {"num_key_value_heads": 2}, shape=GROUPED_PLAIN_WIDTH),
    "qwen3": Case("qwen3", GROUPED),
    "phi3": Case(
        "phi3",
        {"num_key_value_heads": 2},
        value="layers.{}.self_attn.qkv_proj",
        values=last_columns,
        shape=GROUPED_PLAIN_WIDTH,
    ),
    # SDPA has no soft cap, so that transformers chooses eager. The cap is low enough to change the attention.
    "gemma2": Case("gemma2", {**GEMMA, "attn_logit_softcapping": 1.5}, attention="eager"),
    "gemma3_text": Case("gemma3_text", {**GEMMA, "sliding_window_pattern": 2}),
    "olmo2": Case("olmo2", {"num_key_value_heads": 2}, shape=GROUPED_PLAIN_WIDTH),
    "gpt_neox": Case("gpt_neox", **NEOX),
    "gpt2": Case(
        "gpt2",
        {"n_inner": 48},
        value="h.{}.attn.c_attn",
        values=last_columns,
        shape=PLAIN,
        projection="h.{}.attn.c_proj",
        biases=True,
        final_bias=True,
    ),
    "bert": Case("bert", **BERT),
    "roberta": Case("roberta", **BERT, filler=1),
    "xlm-roberta": Case("xlm-roberta", **BERT, filler=1),
    "camembert": Case("camembert", **BERT, filler=1),
    "mpnet": Case(
        "mpnet",
        value="encoder.layer.{}.attention.attn.v",
        projection="encoder.layer.{}.attention.attn.o",
        causal=False,
        shape=PLAIN,
        attention="eager",
        filler=1,
        biases=True,
    ),
    "modernbert": Case(
        "modernbert",
        {"local_attention": 4, "global_attn_every_n_layers": 2, "attention_bias": True},
        value="layers.{}.attn.Wqkv",
        projection="layers.{}.attn.Wo",
        biases=True,
        values=last_columns,
        causal=False,
        shape=PLAIN,
    ),
    "distilbert": Case(
        "distilbert",
        {"dim": 32, "n_heads": 4, "n_layers": LAYERS, "hidden_dim": 48},
        value="transformer.layer.{}.attention.v_lin",
        projection="transformer.layer.{}.attention.out_lin",
        biases=True,
        causal=False,
        shape=PLAIN,
    ),
}

VARIANTS: dict[str, Case] = {  # what one family's models differ in among themselves
    "mistral, sliding window": Case("mistral", {**GROUPED, "sliding_window": 4}),
    "mistral, 5 heads on 32": Case(
        "mistral",
        {"num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 8, "sliding_window": None},
        shape=ModelShape(layers=LAYERS, heads=5, kv_heads=1, hidden=32, head_dim=8),
    ),
    "qwen2, sliding window in the last layer": Case(
        "qwen2",
        {"num_key_value_heads": 2, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2},
        shape=GROUPED_PLAIN_WIDTH,
    ),
    "gemma3_text, both ways": Case(
        "gemma3_text", {**GEMMA, "use_bidirectional_attention": True, "sliding_window_pattern": 2}, causal=False
    ),
    "gpt_neox, one after the other": Case(
        "gpt_neox",
        {"use_parallel_residual": False},
        **NEOX,
    ),
}

CASES: dict[str, Case] = {**OF_FAMILY, **VARIANTS}
NAMES = [*FAMILIES, *VARIANTS]  # the families' own table: a row without a test model is an error
COUNTING = {name for name, family in FAMILIES.items() if family.counts_positions}


def case_of(name: str) -> Case:
    if name not in CASES:
        pytest.fail(
            f"FAMILIES has a row '{name}' but tests/core/model/test_families.py has no tiny model of it: add one."
        )
    return CASES[name]


# Tiny models with weights large enough that attention is far from uniform


def config_of(kind: str, **extra: Any) -> Any:
    common = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 40,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "cls_token_id": 2,
        "sep_token_id": 3,
    }
    if kind in ("distilbert", "gpt2"):  # their own names for the same sizes
        common = {k: v for k, v in common.items() if k not in ("hidden_size", "intermediate_size")}
    if kind == "gpt2":
        extra = {"n_embd": 32, "n_positions": common.pop("max_position_embeddings"), **extra}
    return AutoConfig.for_model(kind, **{**common, **extra})


def with_seeded_weights(model: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for _, weights in sorted(model.named_parameters()):
            noise = torch.randn(weights.shape, generator=generator)
            if weights.ndim > 1:
                weights.copy_(noise * 1.5 / weights.shape[-1] ** 0.5)
            else:
                weights.add_(noise * 0.3)  # norms stay near their identity, biases leave zero
    return model.eval()


@functools.cache
def model_of(name: str) -> nn.Module:
    """The model as ``AutoModel`` gives it: with the attention that transformers chooses."""
    case = case_of(name)
    config = config_of(case.kind, **{"pad_token_id": case.filler, **case.config})
    return with_seeded_weights(AutoModel.from_config(config))


@functools.cache
def eager_of(name: str) -> nn.Module:
    model = AutoModel.from_config(copy.deepcopy(model_of(name).config), attn_implementation="eager")
    model.load_state_dict(model_of(name).state_dict())
    return model.eval()


@functools.cache
def documents() -> list[list[int]]:
    """Token ids without the special ones, of different lengths, the longest neither first nor last."""
    generator = np.random.default_rng(3)
    return [generator.integers(10, VOCABULARY, length).tolist() for length in LENGTHS]


# The second computation


@dataclass(frozen=True)
class Tokenwise:
    """One document's stages for every token; stages 1 and 2 by layer."""

    weights: list[np.ndarray]
    attention: list[np.ndarray]
    projected: list[np.ndarray]
    output: np.ndarray


def apply_projection(name: str, layer: int, inputs: np.ndarray) -> np.ndarray:
    """``inputs @ W + b`` in numpy, from the module's weights."""
    module: Any = model_of(name).get_submodule(case_of(name).projection.format(layer))
    weight = module.weight.detach().double().numpy()
    if case_of(name).kind != "gpt2":  # its Conv1D keeps [in, out], a linear map [out, in]
        weight = weight.T
    bias = 0.0 if module.bias is None else module.bias.detach().double().numpy()
    return inputs @ weight + bias


@functools.cache
def by_hand(name: str, document: int) -> Tokenwise:
    """One document alone through the eager model; heads from its attention weights and value vectors."""
    case, model = case_of(name), eager_of(name)
    caught: dict[int, np.ndarray] = {}

    def catch(layer: int) -> Callable[..., None]:
        return lambda module, args, out: caught.__setitem__(layer, out[0].double().numpy())

    handles = [
        model.get_submodule(case.value.format(layer)).register_forward_hook(catch(layer)) for layer in range(LAYERS)
    ]
    with torch.inference_mode():
        ids = torch.tensor([documents()[document]])
        weights = [one[0].double().numpy() for one in model(input_ids=ids, output_attentions=True).attentions]
        for handle in handles:
            handle.remove()
        output = model(input_ids=ids).last_hidden_state[0].double().numpy()
    attention = []
    for layer in range(LAYERS):
        values = case.values(caught[layer], case.shape)
        of_head = [values[head * case.shape.kv_heads // case.shape.heads] for head in range(case.shape.heads)]
        attention.append(np.hstack([weights[layer][head] @ of_head[head] for head in range(case.shape.heads)]))
    projected = [apply_projection(name, layer, attention[layer]) for layer in range(LAYERS)]
    return Tokenwise(weights, attention, projected, output)


POOL_BY_HAND: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "last": lambda tokens: tokens[-1],
    "first": lambda tokens: tokens[0],
    "mean": lambda tokens: tokens.mean(axis=0),
}


def expected(name: str, pooling: str, pick: Callable[[Tokenwise], np.ndarray]) -> np.ndarray:
    return np.stack([POOL_BY_HAND[pooling](pick(by_hand(name, doc))) for doc in range(len(LENGTHS))])


@functools.cache
def extractor_of(name: str, pooling: str, layers: tuple[int, ...] = (0, 1, 2)) -> HeadExtractor:
    return HeadExtractor(model_of(name), layers, pooling)


def extracted(name: str, pooling: str, side: str = "right", layers: tuple[int, ...] = (0, 1, 2)) -> Rows:
    """All documents in one batch."""
    return extractor_of(name, pooling, layers)(*pad(documents(), case_of(name).filler, side))


def close(found: torch.Tensor | None, wanted: np.ndarray | torch.Tensor | None) -> None:
    assert found is not None
    np.testing.assert_allclose(found.numpy(), np.asarray(wanted), rtol=TOLERANCE, atol=TOLERANCE)


def same_rows(found: Rows, wanted: Rows) -> None:
    assert found.attention.keys() == wanted.attention.keys() == found.projected.keys() == wanted.projected.keys()
    for layer in wanted.attention:
        close(found.attention[layer], wanted.attention[layer])
        close(found.projected[layer], wanted.projected[layer])
    close(found.output, wanted.output)


# What each test model is


@pytest.mark.parametrize("name", NAMES)
def test_test_model_is_what_it_claims(name: str) -> None:
    case, model = case_of(name), model_of(name)
    assert model.config.model_type == case.kind
    assert model.config._attn_implementation == case.attention
    assert eager_of(name).config._attn_implementation == "eager"
    # Attention far from uniform: otherwise a wrong group of values or a wrong mask would hardly show.
    longest = by_hand(name, LENGTHS.index(max(LENGTHS)))
    for weights in longest.weights:
        seen = (weights[:, -1] > 0).sum(axis=1)
        assert (weights[:, -1].max(axis=1) * seen).mean() > 1.5
    spread = [tokens.std() for tokens in (*longest.attention, *longest.projected, longest.output)]
    assert min(spread) > 0.1
    assert max(spread) < 20


@pytest.mark.parametrize("name", NAMES)
def test_shape_and_direction(name: str) -> None:
    case = case_of(name)
    extractor = HeadExtractor(model_of(name), [0], "mean")
    assert extractor.shape == case.shape
    assert shape_of(model_of(name), FAMILIES[case.kind]) == case.shape
    assert extractor.causal is case.causal


def test_sliding_windows_and_soft_caps_matter() -> None:
    """A test model's window and cap are small enough to be seen: without them the numbers are others."""
    twelve = LENGTHS.index(12)
    for name in ("mistral, sliding window", "qwen2, sliding window in the last layer", "gemma3_text"):
        last = [weights[:, -1] for weights in by_hand(name, twelve).weights]
        assert any((row[:, :-4] == 0).all() and (row[:, -4:] > 0).all() for row in last), name
    uncapped = copy.deepcopy(eager_of("gemma2"))
    for layer in uncapped.layers:
        layer.self_attn.attn_logit_softcapping = None
    with torch.inference_mode():
        plain = uncapped(input_ids=torch.tensor([documents()[twelve]])).last_hidden_state[0].numpy()
    assert np.abs(plain - by_hand("gemma2", twelve).output).max() > 0.05


# The stages


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", NAMES)
def test_three_stages(name: str, pooling: str, side: str) -> None:
    rows = extracted(name, pooling, side)
    for layer in range(LAYERS):
        close(rows.attention[layer], expected(name, pooling, lambda doc, layer=layer: doc.attention[layer]))
        close(rows.projected[layer], expected(name, pooling, lambda doc, layer=layer: doc.projected[layer]))
        close(rows.projected[layer], apply_projection(name, layer, rows.attention[layer].double().numpy()))
    close(rows.output, expected(name, pooling, lambda doc: doc.output))


@pytest.mark.parametrize("pooling", ["last", "mean"])
@pytest.mark.parametrize("name", NAMES)
def test_what_every_block_leaves_to_the_next(name: str, pooling: str) -> None:
    """Against transformers' own hidden states of each document alone, of which index 0 is before the first layer."""
    model = model_of(name)
    before = hooks_of(model)
    extractor = HeadExtractor(model, range(LAYERS), pooling, blocks=True)
    found = extractor(*pad(documents(), case_of(name).filler, "right"))
    assert sorted(found.blocks) == [0, 1]  # of the last layer there is the model's own output
    assert sorted(found.attention) == [0, 1, 2]
    own = copy.deepcopy(model)  # asked for hidden states, transformers leaves hooks of its own in the model
    with torch.inference_mode():
        alone = [own(input_ids=torch.tensor([ids]), output_hidden_states=True) for ids in documents()]
    for layer in (0, 1):
        hidden = [one.hidden_states[layer + 1][0].double().numpy() for one in alone]
        close(found.blocks[layer], np.stack([POOL_BY_HAND[pooling](tokens) for tokens in hidden]))
    same_rows(found, extracted(name, pooling))
    assert hooks_of(model) == before


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", NAMES)
def test_a_document_alone_is_the_same(name: str, pooling: str) -> None:
    together = extracted(name, pooling)
    alone = [extractor_of(name, pooling)(*pad([document], case_of(name).filler)) for document in documents()]
    joined = Rows(
        {layer: torch.cat([rows.attention[layer] for rows in alone]) for layer in range(LAYERS)},
        {layer: torch.cat([rows.projected[layer] for rows in alone]) for layer in range(LAYERS)},
        torch.cat([rows.output for rows in alone if rows.output is not None]),
    )
    same_rows(together, joined)
    same_rows(extracted(name, pooling, "left"), joined)


@pytest.mark.parametrize("layers", [(0,), (1,), (2,), (2, 0), ()])
@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_only_the_layers_asked_for(pooling: str, layers: tuple[int, ...]) -> None:
    whole, some = extracted("qwen3", pooling), extracted("qwen3", pooling, layers=layers)
    wanted = Rows({i: whole.attention[i] for i in layers}, {i: whole.projected[i] for i in layers}, whole.output)
    same_rows(some, wanted)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in COUNTING])
def test_what_stands_in_the_padding_is_never_seen(name: str, side: str) -> None:
    ids, mask = pad(documents(), case_of(name).filler, side)
    garbage = torch.where(mask.bool(), ids, torch.arange(ids.numel()).reshape(ids.shape) % 50 + 10)
    assert (garbage != ids).sum() == (mask == 0).sum() > 0
    for pooling in POOLINGS:
        extract = extractor_of(name, pooling)
        same_rows(extract(garbage, mask), extract(ids, mask))


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", NAMES)
def test_only_pooled_rows_are_kept(name: str, pooling: str) -> None:
    shape, rows = case_of(name).shape, extracted(name, pooling)
    assert set(vars(rows)) == {"attention", "projected", "blocks", "output", "shares"}
    widths = {1: [*rows.attention.values()], 2: [*rows.projected.values()], 3: [rows.output]}
    for stage, tensors in widths.items():
        for tensor in tensors:
            assert tensor is not None
            assert tensor.shape == (len(LENGTHS), shape.width(stage))
            assert tensor.dtype == torch.float32
            # A view would keep its whole batch of tokens alive.
            assert tensor.untyped_storage().nbytes() == tensor.numel() * 4


def test_half_precision_gives_float32_rows() -> None:
    model = copy.deepcopy(model_of("llama")).bfloat16()
    rows = HeadExtractor(model, [2], "last")(*pad(documents(), 0))
    exact = extracted("llama", "last")
    for found, wanted in ((rows.attention[2], exact.attention[2]), (rows.output, exact.output)):
        assert found is not None
        assert found.dtype == torch.float32
        assert float((found - wanted).abs().max()) < 0.2  # eight bits of mantissa, three layers


# The shortcut and the hooks


def test_last_layer_works_on_one_token_a_document() -> None:
    """The shortcut is taken where one token stands for the document, and only in the last layer."""
    model, widths = model_of("mistral"), {}
    handles = [
        model.get_submodule(f"layers.{layer}.{part}").register_forward_hook(
            lambda module, args, out, key=(layer, part): widths.__setitem__(key, out.shape[1])
        )
        for layer in range(LAYERS)
        for part in ("self_attn.o_proj", "mlp.up_proj")
    ]
    try:
        for pooling, last in (("last", 1), ("first", 1), ("mean", 12)):
            extracted("mistral", pooling)
            assert widths == {(layer, part): last if layer == 2 else 12 for layer, part in widths}
            assert len(widths) == 2 * LAYERS
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.parametrize(
    ("name", "padding", "told"),
    [
        ("llama", "none", set()),
        ("llama", "right", set()),  # no real token sees what comes after it
        ("llama", "left", {"attention_mask", "position_ids"}),
        ("bert", "none", set()),
        ("bert", "right", {"attention_mask"}),
        ("bert", "left", {"attention_mask", "position_ids"}),
        ("roberta", "right", {"attention_mask"}),
        ("roberta", "left", {"attention_mask"}),  # counts its positions itself
    ],
)
def test_model_is_told_of_padding_where_it_must_be(name: str, padding: str, told: set[str]) -> None:
    """transformers may find left padding by the positions alone, so that the numbers do not show a missing mask."""
    seen: dict[str, Any] = {}
    extract = extractor_of(name, "last")
    rows = [[11, 12, 13], [14, 15, 16] if padding == "none" else [14]]
    ids, mask = pad(rows, case_of(name).filler, "left" if padding == "left" else "right")
    handle = model_of(name).register_forward_pre_hook(lambda module, args, given: seen.update(given), with_kwargs=True)
    try:
        extract(ids, mask)
    finally:
        handle.remove()
    assert told == {"attention_mask", "position_ids"} & seen.keys()
    if "attention_mask" in told:
        assert torch.equal(seen["attention_mask"], mask)
    if "position_ids" in told:
        assert seen["position_ids"].tolist() == [[0, 1, 2], [0, 0, 0]]
    assert not seen.get("use_cache")


def hooks_of(model: nn.Module) -> list[tuple[str, int]]:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs")
    return [(name, len(getattr(module, kind))) for name, module in model.named_modules() for kind in kinds]


def plain_output(model: nn.Module) -> torch.Tensor:
    with torch.inference_mode():
        return model(input_ids=torch.tensor(documents()[:1])).last_hidden_state


@pytest.mark.parametrize("name", NAMES)
def test_no_hook_is_left(name: str) -> None:
    model = model_of(name)
    before, plain = hooks_of(model), plain_output(model)
    assert not any(count for _, count in before)
    for pooling in POOLINGS:
        extracted(name, pooling)
        assert hooks_of(model) == before
    assert torch.equal(plain_output(model), plain)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_no_hook_is_left_after_an_exception(pooling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("bert")
    before, plain = hooks_of(model), plain_output(model)
    extract = HeadExtractor(model, [0, 2], pooling)

    def fail(*args: Any) -> None:
        raise RuntimeError("in the middle of the forward pass")

    with monkeypatch.context() as patch:
        patch.setattr(model.get_submodule("encoder.layer.2.output"), "forward", fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            extract(*pad(documents(), 0))
    assert hooks_of(model) == before
    assert torch.equal(plain_output(model), plain)
    same_rows(extract(*pad(documents(), 0)), extracted("bert", pooling, layers=(0, 2)))


# Heads that do not divide the hidden size


def test_uneven_heads_have_stage_1_alone() -> None:
    name = "mistral, 5 heads on 32"
    shape, rows = case_of(name).shape, extracted(name, "last")
    assert shape.stages == (1,)
    heads = split_heads(rows.attention[2].numpy(), 1, shape)
    assert heads.shape == (len(LENGTHS), 5, 8)
    wanted = by_hand(name, 0)
    np.testing.assert_allclose(heads[0, 3], wanted.attention[2][-1, 24:32], atol=TOLERANCE)
    assert rows.output is not None
    for stage, vectors in ((2, rows.projected[2]), (3, rows.output)):
        with pytest.raises(Mistake, match=rf"Stage {stage} .*hidden size 32 is not divisible by 5 heads. Use stage 1"):
            split_heads(vectors.numpy(), stage, shape)


def test_even_heads_are_cut_side_by_side() -> None:
    shape = case_of("qwen3").shape
    assert shape.stages == (1, 2, 3)
    assert [shape.width(stage) for stage in (1, 2, 3)] == [64, 32, 32]
    assert [shape.group_of(head) for head in range(4)] == [0, 0, 1, 1]
    row = np.arange(64.0)[None]
    assert split_heads(row, 1, shape)[0, 3].tolist() == list(range(48, 64))
    assert split_heads(row[:, :32], 2, shape)[0, 3].tolist() == list(range(24, 32))


# Families that are not in the table


@dataclass(frozen=True)
class Stranger:
    config: dict[str, Any]
    projection: str


STRANGERS = {
    "electra": Stranger({"embedding_size": 32}, "encoder.layer.{}.attention.output.dense"),
    "deberta-v2": Stranger(  # its attention maps positions too, D → D
        {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "share_att_key": False, "position_buckets": 4},
        "encoder.layer.{}.attention.output.dense",
    ),
    "opt": Stranger({"ffn_dim": 48, "word_embed_proj_dim": 32}, "decoder.layers.{}.self_attn.out_proj"),
    "falcon": Stranger({}, "h.{}.self_attention.dense"),
    "gpt_neo": Stranger(
        {"num_layers": 3, "num_heads": 4, "attention_types": [[["global"], 3]]}, "h.{}.attn.attention.out_proj"
    ),
    "gpt_bigcode": Stranger({}, "h.{}.attn.c_proj"),
    "gemma": Stranger(GROUPED, "layers.{}.self_attn.o_proj"),
}


def refusal(model: nn.Module) -> str:
    with pytest.raises(Mistake) as caught:
        HeadExtractor(model, [0], "mean")
    return str(caught.value)


@pytest.fixture(params=STRANGERS)
def stranger(request: pytest.FixtureRequest) -> tuple[str, nn.Module]:
    kind = request.param
    assert kind not in FAMILIES
    return kind, with_seeded_weights(AutoModel.from_config(config_of(kind, **STRANGERS[kind].config)))


def test_unknown_family_is_told_the_row_to_add(stranger: tuple[str, nn.Module]) -> None:
    kind, model = stranger
    message = refusal(model)
    assert f"'{kind}'" in message
    assert "core/model/families.py" in message
    assert f'"{kind}": Family("{STRANGERS[kind].projection}"' in message
    for known in FAMILIES:
        assert known in message
    # The path is a module of the model, maps the heads' outputs to the hidden size, and is the attention's last map.
    called: list[str] = []
    path = STRANGERS[kind].projection.format(0)
    attention = path.rsplit(".", 1)[0].removesuffix(".output")
    parts = {name: module for name, module in model.named_modules() if name.startswith(f"{attention}.")}
    wide = {name: m for name, m in parts.items() if isinstance(m, nn.Linear) or type(m).__name__ == "Conv1D"}
    assert path in wide
    for name, module in wide.items():
        module.register_forward_hook(lambda module, args, out, name=name: called.append(name))
    plain_output(model)
    assert called[-1] == path


def test_unknown_family_without_a_guess_still_says_where() -> None:
    """ALBERT's layers share one attention, so that no path with a layer's number is right."""
    message = refusal(AutoModel.from_config(config_of("albert", embedding_size=16)))
    assert "'albert'" in message
    assert "core/model/families.py" in message
    assert '"albert": Family("path.to.layer.{}.output_projection"' in message


def test_a_row_that_names_another_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.model.families import Family

    wrong = Family("layers.{}.mlp.down_proj", "layers.{}.mlp")
    monkeypatch.setitem(FAMILIES, "mistral", wrong)
    model = AutoModel.from_config(config_of("mistral", **GROUPED, intermediate_size=50))
    assert family_of(model) is wrong
    assert refusal(model).startswith("The module layers.0.mlp.down_proj takes 50 numbers, which 4 heads cannot share")


# Where the heads look


@pytest.mark.parametrize("pooling", POOL_BY_HAND)
@pytest.mark.parametrize("name", NAMES)
def test_attention_from_the_pooled_token(name: str, pooling: str) -> None:
    """Every family's weights, also where they must be asked for, at every layer; the model's own way comes back."""
    for document, ids in enumerate(documents()):
        for layer in range(LAYERS):
            found = attention(extractor_of(name, pooling), ids, layer)
            wanted = by_hand(name, document).weights[layer]  # [head, from, to]
            pooled = np.stack([POOL_BY_HAND[pooling](rows) for rows in wanted])
            np.testing.assert_allclose(found, pooled, rtol=TOLERANCE, atol=TOLERANCE)
    assert model_of(name).config._attn_implementation == case_of(name).attention
