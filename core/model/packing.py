"""Batches without padding: documents end to end in one row of tokens, each attending to its own tokens alone.

Everything but attention works token by token, so it need not know where a document ends. Attention is computed by
torch's variable-length flash attention where the device has it, otherwise by SDPA, one document after the other. A
dense mask over the whole row would give the same numbers, but takes time and memory with the square of its length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

from core.errors import Mistake
from core.model.device import on_device
from core.model.families import Family

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

_NAME = "headscope_packed"


def check_packs(model: nn.Module, family: Family) -> None:
    """Refuses a model whose attention cannot be replaced, or does more than ours; code of its own may do anything."""
    config: Any = model.config
    if not family.packs or not type(model).__module__.startswith("transformers."):
        raise Mistake(f"Models of type '{config.model_type}' cannot be run without padding. Leave out --packed.")


def packed_arguments(model: nn.Module, family: Family, ids: Sequence[Sequence[int]]) -> dict[str, Any]:
    """What the model is called with, inside ``packed_attention``: the documents' tokens as ``[1, token]``."""
    import torch

    config: Any = model.config
    device = next(model.parameters()).device
    lengths = [len(row) for row in ids]
    first = config.pad_token_id + 1 if family.counts_positions else 0
    positions = [list(range(first, first + length)) for length in lengths]
    ends = on_device([0, *accumulate(lengths)], torch.int32, device)
    return {
        "input_ids": on_device([list(chain.from_iterable(ids))], torch.long, device),
        "position_ids": on_device([list(chain.from_iterable(positions))], torch.long, device),
        "cu_seq_lens_q": ends,
        "max_length_q": max(lengths),
        **({"use_cache": False} if hasattr(config, "use_cache") else {}),
    }


@contextmanager
def packed_attention(model: Any) -> Iterator[None]:
    """The model's attention is ours meanwhile, and afterwards what it was before."""
    from transformers import AttentionInterface

    AttentionInterface.register(_NAME, _attend)  # no mask of that name is registered, so that none is made
    before = model.config._attn_implementation
    model.set_attn_implementation(_NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: None,
    *,
    cu_seq_lens_q: Tensor,
    max_length_q: int,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """``[1, head, token, dim]`` -> ``[1, token, head, dim]``; document ``i`` begins at token ``cu_seq_lens_q[i]``."""
    import torch

    causal = bool(module.is_causal if is_causal is None else is_causal)
    reach = -1 if sliding_window is None or sliding_window >= max_length_q else sliding_window - 1
    if _has_flash(query):
        from torch.nn.attention.varlen import varlen_attn

        queries, keys, values = (states[0].transpose(0, 1) for states in (query, key, value))
        out = varlen_attn(
            queries,
            keys,
            values,
            cu_seq_lens_q,
            cu_seq_lens_q,
            max_length_q,
            max_length_q,
            scale=scaling,
            window_size=(reach, 0 if causal else reach),
            enable_gqa=query.shape[1] != key.shape[1],
        )
        assert isinstance(out, torch.Tensor)
        return out.unsqueeze(0), None
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    parts = []
    for start, end in pairwise(cu_seq_lens_q.tolist()):
        mask = _band(end - start, reach, causal, query.device) if 0 <= reach < end - start else None
        of_one = [states[:, :, start:end] for states in (query, key, value)]
        parts.append(sdpa_attention_forward(module, *of_one, mask, scaling=scaling, is_causal=causal)[0])
    return torch.cat(parts, dim=1), None


def _has_flash(query: Tensor) -> bool:
    import torch

    return (
        query.is_cuda
        and query.dtype in (torch.bfloat16, torch.float16)
        and query.shape[-1] <= 256
        and torch.cuda.get_device_capability(query.device) >= (8, 0)
    )


def _band(length: int, reach: int, causal: bool, device: torch.device) -> Tensor:
    """Which tokens see which in a sliding window: ``[1, 1, from, to]``."""
    import torch

    places = torch.arange(length, device=device)
    behind = places[:, None] - places[None, :]
    seen = (behind <= reach) & (behind >= 0 if causal else behind >= -reach)
    return seen[None, None]
