"""Shares and ledgers of every family in float64, against the model itself with everything else held fixed."""

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from core.errors import Mistake
from core.model.batches import pad
from core.model.extract import HeadExtractor
from core.model.families import FAMILIES, Family
from core.model.ledger import KINDS, Ledger, Term, check_exact, explain, ledgers, source_shares, word_pairs
from core.model.pooling import POOLINGS, Pool
from core.model.shares import full_shares, resliced
from tests.core.model.test_families import LAYERS, NAMES, case_of, documents, hooks_of, model_of

EXACT = 1e-9

pytestmark = pytest.mark.usefixtures("one_thread")


@functools.cache
def double_of(name: str) -> nn.Module:
    """The tiny model in float64. RMS norms of transformers compute in float32 whatever they are given: not these."""
    model = copy.deepcopy(model_of(name)).double()
    offset = 1.0 if "gemma" in name else 0.0
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = functools.partial(rms_norm, module, offset)
    return model


def rms_norm(module: Any, offset: float, tokens: torch.Tensor) -> torch.Tensor:
    eps = getattr(module, "variance_epsilon", None) or module.eps
    return tokens / (tokens.pow(2).mean(-1, keepdim=True) + eps).sqrt() * (module.weight + offset)


def extractor_of(name: str, pooling: str = "mean") -> HeadExtractor:
    return HeadExtractor(double_of(name), range(LAYERS), pooling, shares=True)


@functools.cache
def ledgers_of(name: str, pooling: str, side: str = "right") -> list[Ledger]:
    return ledgers(extractor_of(name, pooling), *pad(documents(), case_of(name).filler, side))


def output_of(name: str, pooling: str, doc: int) -> np.ndarray:
    """Stage 3 of one document alone, in float64."""
    with torch.inference_mode():
        tokens = double_of(name)(input_ids=torch.tensor([documents()[doc]])).last_hidden_state[0].numpy()
    return {"mean": tokens.mean(axis=0), "last": tokens[-1], "first": tokens[0]}[pooling]


def furthest(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


BATCHES = [
    (name, side)
    for name in NAMES
    for side in ("right", "left")
    # Eager attention in float64 masks with a number that its float32 softmax does not have: Gemma 2 gives NaN.
    if (name, side) != ("gemma2", "left")
]


# The second computation: the model's own wiring, everything else held at what it was


@contextmanager
def all_held(name: str, doc: int, but: str) -> Iterator[None]:
    """Every linear map but one returns what it returned for this document, and every norm uses the statistics it had.

    It knows nothing of which norms lie on the way, or what is added where.
    """
    model = double_of(name)
    seen: dict[str, torch.Tensor] = {}
    norms = {path: module for path, module in model.named_modules() if "Norm" in type(module).__name__}
    maps = {
        path: module
        for path, module in model.named_modules()
        if (isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D") and path != but
    }
    handles = [
        module.register_forward_hook(lambda m, args, out, path=path: seen.__setitem__(path, args[0].clone()))
        for path, module in norms.items()
    ]
    handles += [
        module.register_forward_hook(lambda m, args, out, path=path: seen.__setitem__(path, out.clone()))
        for path, module in maps.items()
    ]
    with torch.inference_mode():
        model(input_ids=torch.tensor([documents()[doc]]))
    for handle in handles:
        handle.remove()

    def held(path: str) -> Callable[..., torch.Tensor]:
        def norm(module: Any, args: Any, out: torch.Tensor) -> torch.Tensor:
            then, now = seen[path], args[0]
            bias = getattr(module, "bias", None)
            weight = module.weight + (1.0 if "gemma" in name else 0.0)
            if isinstance(module, nn.LayerNorm):
                centred = now - now.mean(-1, keepdim=True)
                frozen = centred / (then.var(-1, unbiased=False, keepdim=True) + module.eps).sqrt() * weight
            else:
                eps = getattr(module, "variance_epsilon", None) or module.eps
                frozen = now / (then.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight
            return frozen if bias is None else frozen + bias

        return norm

    handles = [module.register_forward_hook(held(path)) for path, module in norms.items()]
    handles += [
        module.register_forward_hook(lambda m, args, out, path=path: seen[path]) for path, module in maps.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def difference_made(name: str, pooling: str, doc: int, layer: int, head: int) -> np.ndarray:
    """The output with the head's columns of the projection less the output without them, all else held."""
    path, shape = case_of(name).projection.format(layer), case_of(name).shape
    weight = double_of(name).get_submodule(path).weight
    columns = slice(head * shape.head_dim, (head + 1) * shape.head_dim)
    with all_held(name, doc, path), torch.no_grad():
        full = output_of(name, pooling, doc)
        before = weight.clone()
        (weight if case_of(name).kind == "gpt2" else weight.T)[columns] = 0.0
        try:
            return full - output_of(name, pooling, doc)
        finally:
            weight.copy_(before)


@pytest.mark.parametrize("name", NAMES)
def test_a_heads_term_is_the_difference_its_columns_make(name: str) -> None:
    doc = 1
    for pooling in POOLINGS:
        ledger = ledgers_of(name, pooling)[doc]
        for layer in range(LAYERS):
            for head in (0, case_of(name).shape.heads - 1):
                term = ledger.vectors[ledger.terms.index(Term("head", layer + 1, head + 1))]
                assert furthest(term, difference_made(name, pooling, doc, layer, head)) <= EXACT


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize(("name", "side"), BATCHES)
def test_terms_add_up_to_the_output(name: str, pooling: str, side: str) -> None:
    case = case_of(name)
    for doc, ledger in enumerate(ledgers_of(name, pooling, side)):
        # transformers rotates in float32, so that padding on the left moves the model's own output.
        alone = output_of(name, pooling, doc)
        assert furthest(ledger.output, alone) <= (EXACT if side == "right" else 1e-5)
        assert furthest(ledger.vectors.sum(axis=0), ledger.output) <= EXACT
        assert ledger.residual <= EXACT
        assert ledger.parts.sum() == pytest.approx(1.0, abs=EXACT)
        assert sum(term.kind == "head" for term in ledger.terms) == LAYERS * case.shape.heads
        assert sum(term.kind == "mlp" for term in ledger.terms) == LAYERS
        assert len(set(ledger.terms)) == len(ledger.terms)
        assert {term.kind for term in ledger.terms} <= set(KINDS)


@pytest.mark.parametrize("name", NAMES)
def test_a_bias_is_a_term_where_the_model_has_one(name: str) -> None:
    ledger = ledgers_of(name, "mean")[0]
    biases = [term.layer for term in ledger.terms if term.kind == "bias"]
    assert biases == ([1, 2, 3] if case_of(name).biases else []) + ([None] if case_of(name).final_bias else [])


def test_the_embedding_term_by_hand() -> None:
    """Llama's embedding term is the pooled token's word vector times the final norm's gain over its scale."""
    model: Any = double_of("llama")
    ids = documents()[0]
    with torch.inference_mode():
        hidden = []
        handle = model.norm.register_forward_pre_hook(lambda m, args: hidden.append(args[0][0, -1]))
        model(input_ids=torch.tensor([ids]))
        handle.remove()
        rms = (hidden[0].pow(2).mean() + model.norm.variance_epsilon).sqrt()
        wanted = model.embed_tokens.weight[ids[-1]] / rms * model.norm.weight
    assert furthest(ledgers_of("llama", "last")[0].vectors[0], wanted.numpy()) <= EXACT


# The compact form


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize(("name", "side"), BATCHES)
def test_coordinates_have_the_lengths_and_angles_of_the_shares(name: str, pooling: str, side: str) -> None:
    extractor = extractor_of(name, pooling)
    shape = case_of(name).shape
    rows = extractor(*pad(documents(), case_of(name).filler, side))
    for layer in range(LAYERS):
        full = np.stack(
            [
                [one.vectors[one.terms.index(Term("head", layer + 1, head + 1))] for head in range(shape.heads)]
                for one in ledgers_of(name, pooling, side)
            ]
        )  # [doc, head, hidden]
        compact = rows.shares[layer].numpy().reshape(len(full), shape.heads, shape.head_dim)
        products = np.einsum("nhk,mhk->hnm", compact, compact)
        assert furthest(products, np.einsum("nhD,mhD->hnm", full, full)) <= EXACT
        basis = extractor.stream.basis(layer)
        directions = basis.directions.numpy()
        assert np.abs(np.einsum("hDk,hDl->hkl", directions, directions) - np.eye(shape.head_dim)).max() <= EXACT
        assert (basis.triangle.diagonal(dim1=-2, dim2=-1) >= 0).all()
        restored = full_shares(rows.shares[layer].numpy(), directions)
        assert restored.shape == full.shape
        assert furthest(restored, full) <= 1e-6  # coordinates are taken in float32


@pytest.mark.parametrize("name", ["bert", "qwen2", "gpt2"])
def test_random_slices_are_cut_before_the_projection(name: str) -> None:
    """Against single outputs: each number that enters the projection has a share, and a slice's is their sum."""
    extractor, shape = extractor_of(name), case_of(name).shape
    given = pad(documents(), case_of(name).filler)
    stream, width = extractor.stream, shape.heads * shape.head_dim
    order = np.random.default_rng(5).permutation(width)
    for layer in range(LAYERS):
        with torch.inference_mode(), stream.recorded(Pool("mean", given[1]), [layer]) as recording:
            extractor.model(input_ids=given[0], **extractor.arguments(given[1]))
            pooled = stream.pooled_heads(recording, layer).flatten(1).numpy()
            apart = torch.eye(width, dtype=torch.float64).unflatten(1, (shape.heads, shape.head_dim))
            singles = stream.from_heads(apart, layer).sum(dim=1).numpy()  # [output, hidden]
        shares = (pooled[:, order, None] * singles[order]).reshape(len(pooled), shape.heads, shape.head_dim, -1).sum(2)
        basis = stream.basis(layer)
        coordinates = extractor(*given).shares[layer].numpy()
        found = resliced(coordinates, basis.directions.numpy(), basis.triangle.numpy(), order)
        cut = found.reshape(len(pooled), shape.heads, -1)
        wanted = np.einsum("nhD,mhD->hnm", shares, shares)
        assert furthest(np.einsum("nhk,mhk->hnm", cut, cut), wanted) <= 1e-5


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", NAMES)
def test_stage_4_leaves_the_other_stages_as_they_are(name: str, pooling: str) -> None:
    model, given = model_of(name), pad(documents(), case_of(name).filler)
    before = hooks_of(model)
    three = HeadExtractor(model, (0, 2), pooling, blocks=True)(*given)
    four = HeadExtractor(model, (2, 0), pooling, blocks=True, shares=True)(*given)
    assert torch.equal(three.output, four.output)
    for layer in (0, 2):
        assert torch.equal(three.attention[layer], four.attention[layer])
        assert torch.equal(three.projected[layer], four.projected[layer])
        assert four.shares[layer].dtype == torch.float32
        width = case_of(name).shape.width(1)
        assert four.shares[layer].shape == (len(documents()), width)
        assert four.shares[layer].untyped_storage().nbytes() == four.shares[layer].numel() * 4
        exact = extractor_of(name, pooling)(*given).shares[layer]
        assert furthest(four.shares[layer].numpy(), exact.numpy()) <= 1e-4
    assert not three.shares
    assert hooks_of(model) == before


def test_half_precision_gives_float32_shares() -> None:
    model = copy.deepcopy(model_of("llama")).bfloat16()
    extractor = HeadExtractor(model, [2], "last", shares=True)
    given = pad(documents(), 0)
    found, wanted = extractor(*given).shares[2], extractor_of("llama", "last")(*given).shares[2]
    assert found.dtype == torch.float32
    assert float((found - wanted).abs().max()) < 0.05 * float(wanted.abs().max()) * LAYERS
    check_exact(extractor)


# Why two texts are similar


def test_cosine_by_hand() -> None:
    terms = (Term("embedding"), Term("head", 1, 2))
    first = Ledger(terms, np.array([[3.0, 0.0], [0.0, 4.0]]), np.array([3.0, 4.0]))
    second = Ledger(terms, np.array([[1.0, 0.0], [-1.0, 2.0]]), np.array([0.0, 2.0]))
    found = explain(first, second)
    assert found.cosine == pytest.approx(8 / 10)
    # The embedding: (3·0 + 3·1) / 2; the head: (4·2 + (-1·3 + 2·4)) / 2; both divided by 5 · 2.
    np.testing.assert_allclose(found.values, [0.15, 0.65])
    assert found.as_json() == {
        "cosine": pytest.approx(0.8),
        "terms": [
            {"kind": "embedding", "layer": None, "head": None, "value": pytest.approx(0.15)},
            {"kind": "head", "layer": 1, "head": 2, "value": pytest.approx(0.65)},
        ],
        "residual": pytest.approx(0.0, abs=1e-15),
    }
    assert first.parts.tolist() == pytest.approx([9 / 25, 16 / 25])


@pytest.mark.parametrize("name", NAMES)
def test_values_add_up_to_the_cosine(name: str) -> None:
    one, other = ledgers_of(name, "mean")[0], ledgers_of(name, "mean")[3]
    x, y = output_of(name, "mean", 0), output_of(name, "mean", 3)
    found = explain(one, other)
    assert found.cosine == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), abs=EXACT)
    assert found.values.sum() == pytest.approx(found.cosine, abs=EXACT)
    assert abs(found.residual) <= EXACT
    np.testing.assert_allclose(found.values, explain(other, one).values, atol=1e-15)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", NAMES)
def test_words_add_up_to_the_head(name: str, pooling: str) -> None:
    extractor = extractor_of(name, pooling)
    attention = extractor.model.config._attn_implementation
    one, other = ledgers_of(name, pooling)[1], ledgers_of(name, pooling)[4]
    values = explain(one, other).values
    lengths = np.linalg.norm(one.output) * np.linalg.norm(other.output)
    for layer in range(LAYERS):
        first, second = (source_shares(extractor, documents()[doc], layer) for doc in (1, 4))
        for head in range(case_of(name).shape.heads):
            found = word_pairs(extractor, first, second, layer, head)
            term = one.terms.index(Term("head", layer + 1, head + 1))
            assert found.pairs.shape == (5, 7)
            # Eager attention takes its exponentials in float32.
            assert found.first.sum() + found.second.sum() == pytest.approx(values[term], abs=1e-6)
            assert found.pairs.sum() == pytest.approx(one.vectors[term] @ other.vectors[term] / lengths, abs=1e-6)
    assert extractor.model.config._attn_implementation == attention


def test_a_head_that_sees_one_token_puts_all_on_it() -> None:
    """A causal model's first token reads itself alone."""
    found = source_shares(extractor_of("mistral", "first"), documents()[0], 0)
    assert np.abs(found.coordinates[:, 0]).max() > 0.01
    assert np.abs(found.coordinates[:, 1:]).max() == 0.0


# Models without exact shares


def test_a_family_without_norms_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "mistral", Family("layers.{}.self_attn.o_proj", "layers.{}.mlp"))
    extractor = HeadExtractor(model_of("mistral"), [2], "mean", shares=True)
    with pytest.raises(Mistake, match=r"models of type 'mistral'.*which norms lie between .* use stages 1 to 3"):
        extractor(*pad(documents(), 0))


def test_an_unknown_norm_is_refused() -> None:
    model: Any = copy.deepcopy(model_of("llama"))
    model.norm = nn.Identity()
    with pytest.raises(Mistake, match=r"norm \(Identity\) is neither a layer norm nor an RMS norm"):
        _ = HeadExtractor(model, [2], "mean").stream


@pytest.mark.parametrize("name", NAMES)
def test_every_family_is_exact(name: str) -> None:
    for pooling in POOLINGS:
        check_exact(HeadExtractor(model_of(name), [2], pooling))


def test_a_model_with_code_of_its_own_is_refused() -> None:
    model: Any = copy.deepcopy(model_of("llama"))
    block = model.layers[1]
    block.register_forward_hook(lambda m, args, out: out * 1.2)  # scales its residual stream
    with pytest.raises(Mistake, match=r"its terms miss its output by \d+\.\d %.*not built like .*'llama'"):
        check_exact(HeadExtractor(model, [2], "mean"))
