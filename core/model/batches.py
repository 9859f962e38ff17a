"""How many tokens of a text a model takes, and batches of documents of like length within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from core.errors import Mistake, listed
from core.model.families import FAMILIES

if TYPE_CHECKING:
    from torch import Tensor

PADDING_SIDES = ("right", "left")
_WITHIN_REASON = 2_048
"""Where nobody says how long a text may be, and the model's positions have no end in sight."""


def batches(lengths: Sequence[int], budget: int | Callable[[], int]) -> Iterator[list[int]]:
    """Indices of ``lengths``, longest first, in batches of at most ``budget`` tokens, padding included.

    A document longer than the budget is a batch of its own. Longest first: if memory is short, it shows at once. A
    budget that may shrink on the way is given as a function, which is asked before every batch.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    start = 0
    while start < len(order):
        tokens = budget() if callable(budget) else budget
        size = max(1, tokens // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


def pad(ids: Sequence[Sequence[int]], filler: int, side: str = "right") -> tuple[Tensor, Tensor]:
    """Token ids and mask of one batch, both ``[doc, token]``."""
    import torch

    if side not in PADDING_SIDES:
        raise Mistake(f"Padding side '{side}' is unknown. Choose one of {listed(PADDING_SIDES)}.")
    longest = max(len(row) for row in ids)
    padded = torch.full((len(ids), longest), filler, dtype=torch.long)
    mask = torch.zeros((len(ids), longest), dtype=torch.long)
    for index, row in enumerate(ids):
        where = slice(0, len(row)) if side == "right" else slice(longest - len(row), longest)
        padded[index, where] = torch.tensor(row)
        mask[index, where] = 1
    return padded, mask


def choose_max_tokens(asked: int | None, known: int | None, model: Any, tokenizer: Any) -> int:
    """What was asked for, else what the preset or the model's files say, else what its positions allow."""
    learned = _learned_positions(model)
    if asked is not None:
        if learned is not None and asked > learned:
            raise Mistake(f"--max-tokens {asked} is more than this model's {learned} positions. Give a smaller number.")
        return asked
    if known is not None:
        return known
    return int(min(tokenizer.model_max_length, learned or _WITHIN_REASON, _WITHIN_REASON))


def _learned_positions(model: Any) -> int | None:
    """Rows of the table of positions, for models that have one; rotary and relative positions have no end."""
    import torch

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Embedding) and name.endswith(("position_embeddings", "wpe")):
            # Positions counted from the padding index up never reach two rows of the table.
            family = FAMILIES.get(model.config.model_type)
            return int(module.num_embeddings) - (2 if family and family.counts_positions else 0)
    return None
