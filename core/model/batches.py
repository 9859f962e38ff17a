"""Documents of like length together, as many as a budget of tokens allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from core.errors import Mistake, listed

if TYPE_CHECKING:
    from torch import Tensor

PADDING_SIDES = ("right", "left")


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
