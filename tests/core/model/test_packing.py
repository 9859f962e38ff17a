"""Batches without padding, compiled blocks and delayed copies give what the plain path gives."""

import functools
import inspect
from typing import Any

import pytest
import torch
from torch.nn.attention import varlen

from core.errors import Mistake
from core.model import packing
from core.model.batches import pad
from core.model.compiled import CompiledBlocks
from core.model.copies import Arrivals
from core.model.extract import HeadExtractor, Rows
from core.model.families import FAMILIES
from core.model.packing import check_packs
from tests.core.model.test_families import (
    NAMES,
    case_of,
    close,
    documents,
    extracted,
    extractor_of,
    hooks_of,
    model_of,
    plain_output,
    same_rows,
)

pytestmark = pytest.mark.usefixtures("one_thread")

PACKED = [name for name in NAMES if FAMILIES[case_of(name).kind].packs]
DOCUMENTS = documents() * 2
"""68 tokens in all: more than the 40 positions of the tiny models."""


def reader(name: str, pooling: str) -> HeadExtractor:
    return HeadExtractor(model_of(name), (0, 1, 2), pooling, blocks=True, shares=True)


def same(found: Rows, wanted: Rows) -> None:
    same_rows(found, wanted)
    for rows, plain in ((found.blocks, wanted.blocks), (found.shares, wanted.shares)):
        assert rows.keys() == plain.keys()
        for layer in plain:
            close(rows[layer], plain[layer])


@pytest.mark.parametrize(
    ("name", "pooling"), [*((name, pooling) for name in PACKED for pooling in ("last", "mean")), ("bert", "first")]
)
def test_packed_documents_have_the_vectors_of_padded_ones(name: str, pooling: str) -> None:
    """Stages 1 to 4 at every layer; sliding windows are shorter than the longest document."""
    extract = reader(name, pooling)
    same(extract.packed(DOCUMENTS), extract(*pad(DOCUMENTS, case_of(name).filler)))


@pytest.fixture
def documented(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where a GPU would have flash attention: its function by what torch documents of it, in plain matrix products.

    Every call must fit the real function's signature. The fixture counts the documents of each call.
    """
    signature = inspect.signature(varlen.varlen_attn)
    calls: list[int] = []

    def varlen_attn(*args: Any, **kwargs: Any) -> torch.Tensor:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        query, key, value, ends, ends_k, longest, longest_k = given.args[:7]
        scale, (left, right), grouped = (given.arguments[name] for name in ("scale", "window_size", "enable_gqa"))
        lengths = ends.diff().tolist()
        assert torch.equal(ends, ends_k)
        assert ends.dtype == torch.int32
        assert longest == longest_k == max(lengths)
        assert grouped == (query.shape[1] != key.shape[1])
        calls.append(len(lengths))
        found = []
        for q, k, v in zip(*(states.split(lengths) for states in (query, key, value)), strict=True):
            k, v = (states.repeat_interleave(query.shape[1] // key.shape[1], dim=1) for states in (k, v))
            scores = torch.einsum("qhd,khd->hqk", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
            ahead = torch.arange(len(q)) - torch.arange(len(q))[:, None]  # of the key, seen from the query
            hidden = ((ahead > right) & (right >= 0)) | ((ahead < -left) & (left >= 0))
            weights = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
            found.append(torch.einsum("hqk,khd->qhd", weights, v))
        return torch.cat(found)

    monkeypatch.setattr(varlen, "varlen_attn", varlen_attn)
    monkeypatch.setattr(packing, "_has_flash", lambda query: True)
    return calls


@pytest.mark.parametrize("name", PACKED)
def test_flash_attention_is_asked_for_the_same(name: str, documented: list[int]) -> None:
    same_rows(extractor_of(name, "last").packed(documents()), extracted(name, "last"))
    assert documented == [5, 5, 5]  # one call per layer, for all documents at once


def test_flash_attention_takes_our_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's own function by its shapes alone, with tensors that have no numbers: here it has no kernel."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    monkeypatch.setattr(packing, "_has_flash", lambda query: True)
    module: Any = torch.nn.Module()
    module.is_causal = True
    with FakeTensorMode():
        query = torch.empty(1, 4, 12, 16, dtype=torch.bfloat16)
        key, value = (torch.empty(1, 2, 12, 16, dtype=torch.bfloat16) for _ in range(2))
        ends = torch.empty(3, dtype=torch.int32)
        out, weights = packing._attend(module, query, key, value, None, cu_seq_lens_q=ends, max_length_q=7)
    assert (out.shape, out.dtype, weights) == ((1, 12, 4, 16), torch.bfloat16, None)


def test_a_document_of_one_token_alone() -> None:
    extract = reader("mistral", "last")
    same(extract.packed([[11]]), extract(*pad([[11]], 0)))


def test_every_family_says_whether_its_attention_can_be_replaced() -> None:
    assert {name for name in FAMILIES if not FAMILIES[name].packs} == {"gemma2", "mpnet"}  # soft cap; bias of positions


@pytest.mark.parametrize("name", ["gemma2", "mpnet"])
def test_a_model_that_cannot_be_packed_is_refused(name: str) -> None:
    with pytest.raises(Mistake, match=f"Models of type '{name}' cannot be run without padding. Leave out --packed."):
        check_packs(model_of(name), FAMILIES[name])


def test_a_model_with_code_of_its_own_is_not_packed() -> None:
    class Own(type(model_of("llama"))):  # type: ignore[misc]
        pass

    with pytest.raises(Mistake, match="without padding"):
        check_packs(Own(model_of("llama").config), FAMILIES["llama"])


def test_the_models_own_attention_is_back_even_after_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = model_of("llama")
    before, plain = hooks_of(model), plain_output(model)

    def fail(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("in the middle of the forward pass")

    with monkeypatch.context() as patch:
        patch.setattr(model.get_submodule("layers.1.mlp"), "forward", fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            extractor_of("llama", "last").packed(documents())
    assert model.config._attn_implementation == "sdpa"
    assert hooks_of(model) == before
    assert torch.equal(plain_output(model), plain)


# Compiled blocks


@pytest.mark.parametrize("name", ["mistral", "bert"])
def test_compiled_blocks_give_the_same_and_share_one_graph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced by torch's compiler, but run as they are: generating code takes a minute."""
    from torch._dynamo.testing import CompileCounter

    graphs = CompileCounter()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=graphs))
    torch._dynamo.reset()
    extract = HeadExtractor(model_of(name), [2], "mean")
    compiled = CompiledBlocks(extract)
    for some in (documents(), documents()[:3]):  # other shapes
        with compiled.used():
            found = extract(*pad(some, 0))
        same_rows(found, extract(*pad(some, 0)))
    assert graphs.frame_count == 1  # blocks 1 and 2, both batches
    torch._dynamo.reset()


def test_blocks_that_are_read_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda forward, **options: lambda *args, **kwargs: 1 / 0)
    extract = HeadExtractor(model_of("mistral"), [0, 1], "last")
    with CompiledBlocks(extract).used():
        extract(*pad(documents(), 0))  # blocks 1 and 2 are read, 3 is the last
    only_last = HeadExtractor(model_of("mistral"), [2], "last")
    with pytest.raises(ZeroDivisionError), CompiledBlocks(only_last).used():
        only_last(*pad(documents(), 0))
    only_last(*pad(documents(), 0))


# Copies


def test_rows_arrive_one_batch_late_and_all_of_them() -> None:
    kept: list[tuple[list[int], float]] = []

    def keep(batch: list[int], rows: Rows) -> None:
        assert rows.output is not None
        kept.append((batch, float(rows.output)))

    arrivals = Arrivals(keep)
    arrivals.send([3, 1], Rows(output=torch.tensor(1.5)))
    assert kept == []
    arrivals.send([2], Rows(output=torch.tensor(2.5)))
    assert kept == [([3, 1], 1.5)]
    arrivals.finish()
    arrivals.finish()
    assert kept == [([3, 1], 1.5), ([2], 2.5)]
