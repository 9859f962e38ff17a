"""Heads switched off in the forward pass, of every family, against weights edited by hand."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from core.errors import Mistake
from core.model.ablation import Change, ablated, mean_outputs, outputs_of, random_direction, sweep, without
from core.model.batches import pad
from core.model.extract import HeadExtractor
from core.model.pooling import POOLINGS
from tests.core.model.test_families import (
    LAYERS,
    NAMES,
    POOL_BY_HAND,
    by_hand,
    case_of,
    documents,
    hooks_of,
    model_of,
)

TOLERANCE = 1e-5
OFF = ((0, 1), (2, 3), (2, 0))

pytestmark = pytest.mark.usefixtures("one_thread")


def extractor_of(name: str, pooling: str = "mean") -> HeadExtractor:
    return HeadExtractor(model_of(name), (0, 1, 2), pooling)


def batch_of(name: str, side: str = "right") -> tuple[torch.Tensor, torch.Tensor]:
    return pad(documents(), case_of(name).filler, side)


def output(extractor: HeadExtractor, given: tuple[torch.Tensor, torch.Tensor], *changes: Change) -> np.ndarray:
    with ablated(extractor, *changes):
        return extractor(*given).output.numpy()


def edited(name: str, off: tuple[tuple[int, int], ...], means: dict[int, np.ndarray] | None = None) -> nn.Module:
    """The model with the heads' projection columns at zero, and what a constant output would add in the bias."""
    model, case = copy.deepcopy(model_of(name)), case_of(name)
    dim = case.shape.head_dim
    with torch.no_grad():
        for layer, head in off:
            projection = model.get_submodule(case.projection.format(layer))
            columns = slice(head * dim, (head + 1) * dim)
            weight = projection.weight if case.kind == "gpt2" else projection.weight.T
            if means is not None:
                added = torch.as_tensor(means[layer][columns], dtype=weight.dtype) @ weight[columns]
                bias = 0.0 if projection.bias is None else projection.bias
                projection.bias = nn.Parameter(bias + added)
            weight[columns] = 0.0
    return model


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", NAMES)
def test_off_by_zeros_is_the_model_without_the_columns(name: str, pooling: str, side: str) -> None:
    extractor, given = extractor_of(name, pooling), batch_of(name, side)
    found = output(extractor, given, without(OFF, extractor.shape))
    by_weights = HeadExtractor(edited(name, OFF), (), pooling)(*given).output
    close(found, by_weights.numpy())
    plain = extractor(*given).output
    assert plain is not None
    assert np.abs(found - plain.numpy()).max() > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_off_by_the_mean_is_the_model_with_a_constant_in_the_bias(name: str) -> None:
    extractor, given = extractor_of(name, "last"), batch_of(name)
    means = mean_outputs(extractor, [given])
    by_document = {
        layer: np.mean([by_hand(name, doc).attention[layer].mean(axis=0) for doc in range(len(documents()))], axis=0)
        for layer in range(LAYERS)
    }
    for layer in range(LAYERS):
        close(means[layer].numpy(), by_document[layer])
    found = output(extractor, given, without(OFF, extractor.shape, means))
    close(found, HeadExtractor(edited(name, OFF, by_document), (), "last")(*given).output.numpy())
    assert np.abs(found - output(extractor, given, without(OFF, extractor.shape))).max() > 1e-3


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", NAMES)
def test_every_head_taken_from_another_text_gives_that_texts_attention(name: str, pooling: str) -> None:
    """Stage 1 of the last layer is then the other text's; patched with its own outputs, a text stays as it is."""
    extractor = extractor_of(name, pooling)
    here, other = documents()[1], documents()[0][:5]
    everything = [(2, head) for head in range(extractor.shape.heads)]
    with ablated(extractor, without(everything, extractor.shape, outputs_of(extractor, other))):
        found = extractor(*pad([here], case_of(name).filler)).attention[2].numpy()
    close(found, extractor(*pad([other], case_of(name).filler)).attention[2].numpy())
    own = without([(layer, 1) for layer in range(LAYERS)], extractor.shape, outputs_of(extractor, here))
    given = pad([here], case_of(name).filler)
    close(output(extractor, given, own), extractor(*given).output.numpy())


def test_one_patched_head_is_the_other_texts_head() -> None:
    extractor = extractor_of("bert", "mean")
    other = outputs_of(extractor, documents()[4])
    for layer in range(LAYERS):
        close(other[layer].numpy(), by_hand("bert", 4).attention[layer])
    with ablated(extractor, without([(1, 2)], extractor.shape, other)):
        found = extractor(*pad([list(reversed(documents()[4]))], 0)).attention[1].numpy()[0]
    wanted = POOL_BY_HAND["mean"](by_hand("bert", 4).attention[1])
    close(found[16:24], wanted[16:24])
    assert np.abs(found[:16] - wanted[:16]).max() > 0.01


def test_a_text_of_another_length_cannot_be_patched_in() -> None:
    extractor = extractor_of("bert")
    change = without([(1, 2)], extractor.shape, outputs_of(extractor, documents()[0]))
    with pytest.raises(Mistake, match=r"The other text has 9 tokens and this one 5:.*Use its mean over tokens"):
        output(extractor, pad([documents()[1]], 0), change)
    assert not any(count for _, count in hooks_of(model_of("bert")))


@pytest.mark.parametrize(
    ("head", "sentence"),
    [((0, 4), r"Head 5 does not exist \(this model has heads 1–4\)"), ((3, 0), "Layer 4 does not")],
)
def test_a_head_that_does_not_exist(head: tuple[int, int], sentence: str) -> None:
    with pytest.raises(Mistake, match=sentence):
        without([head], extractor_of("bert").shape)


def test_a_random_direction_removes_as_much_as_the_head() -> None:
    shape = extractor_of("qwen3").shape
    tokens = torch.randn(2, 3, 64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    removed = tokens - random_direction(1, 2, shape, seed=5)[1](tokens)
    np.testing.assert_allclose(removed.norm(dim=-1), tokens[..., 32:48].norm(dim=-1))
    again = tokens - random_direction(1, 2, shape, seed=5)[1](tokens)
    assert torch.equal(removed, again)
    assert not torch.allclose(removed, tokens - random_direction(1, 2, shape, seed=6)[1](tokens))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", NAMES)
def test_sweep_is_each_ablation_by_itself(name: str, pooling: str, side: str) -> None:
    """Single heads, sets over several layers and another kind of change, in mixed order, some side by side."""
    extractor, given = extractor_of(name, pooling), batch_of(name, side)
    shape = extractor.shape
    changes: list[Change] = [without([(layer, head)], shape) for layer in (2, 0, 1) for head in range(shape.heads)]
    changes += [without(OFF, shape), without([(1, 1), (2, 1)], shape), random_direction(1, 0, shape, seed=3)]
    before = hooks_of(model_of(name))
    budget = 3 * given[0].numel()
    found = {one.change: one.output.numpy() for one in sweep(extractor, *given, changes, token_budget=budget)}
    assert sorted(found) == list(range(len(changes)))
    for index, change in enumerate(changes):
        close(found[index], output(extractor, given, change))
    assert hooks_of(model_of(name)) == before
    assert not any("forward" in vars(module) for module in model_of(name).modules())


def test_sweep_computes_what_comes_before_once() -> None:
    """Layer 1 runs once for all changes in layer 3, and so does layer 3's attention."""
    extractor, given = extractor_of("bert"), batch_of("bert")
    calls: list[str] = []
    watched = ("encoder.layer.0.output", "encoder.layer.2.attention.self.query", "encoder.layer.2.output")
    handles = [
        model_of("bert")
        .get_submodule(path)
        .register_forward_hook(lambda m, args, out, path=path: calls.append(path) if out.shape[1] > 2 else None)
        for path in watched
    ]
    changes = [without([(2, head)], extractor.shape) for head in range(4)]
    try:
        list(sweep(extractor, *given, changes, token_budget=1))
    finally:
        for handle in handles:
            handle.remove()
    causality = 1  # the extractor's own question to the model, four tokens long
    assert [calls.count(path) - causality for path in watched] == [1, 1, 1 + 4]


def test_a_sweep_that_is_given_up_leaves_the_model_as_it_was() -> None:
    extractor, given = extractor_of("mpnet"), batch_of("mpnet")
    plain = extractor(*given).output
    next(sweep(extractor, *given, [without([(layer, 0)], extractor.shape) for layer in range(LAYERS)]))
    assert torch.equal(extractor(*given).output, plain)
    assert not any(count for _, count in hooks_of(model_of("mpnet")))
