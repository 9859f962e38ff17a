"""From a vector a token to a vector a document, in the model's own way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from core.errors import Mistake, listed
from core.model.device import on_device
from core.model.shape import POOLINGS

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def check_pooling(name: str) -> str:
    """The pooling of that name, by our word or by sentence-transformers'."""
    for ours, theirs in POOLINGS.items():
        if name in (ours, theirs):
            return ours
    raise Mistake(f"Pooling '{name}' is not supported. Choose one of {listed(POOLINGS)} with --pooling.")


class Pool:
    """One batch's pooling: built from its mask ``[doc, token]``, then applied at every stage."""

    def __init__(self, name: str, mask: Tensor, device: torch.device | None = None) -> None:
        """``device`` is the tokens', where it is not the mask's."""
        import torch

        self._padded = not bool(mask.all())  # of a mask on a GPU, this waits for all that the GPU was given to do
        self._mask = mask.to(device or mask.device, non_blocking=True).bool()
        self._rows: Tensor | None = None
        if name == "last":
            positions = torch.arange(mask.shape[1], device=self._mask.device)
            self._rows = (self._mask * positions).argmax(dim=1)
        elif name == "first":
            self._rows = self._mask.int().argmax(dim=1)

    @property
    def one_token(self) -> bool:
        """Whether a single token's row stands for the document, so that the others need no further work."""
        return self._rows is not None

    @property
    def shortens(self) -> bool:
        """Whether the rest of the last layer can work on these rows alone."""
        return self.one_token

    def keep_row(self, tokens: Tensor) -> Tensor:
        """``[doc, token, dim] -> [doc, 1, dim]``: the pooled token alone (only where ``one_token``)."""
        import torch

        if tokens.shape[1] == 1:
            return tokens
        return tokens[torch.arange(len(tokens), device=tokens.device), self._rows].unsqueeze(1)

    def select(self, tokens: Tensor) -> Tensor:
        """The tokens that are pooled: ``[doc, 1, dim]`` where one stands for the document, otherwise all."""
        return self.keep_row(tokens) if self.one_token else tokens

    def __call__(self, tokens: Tensor, scale: Tensor | None = None) -> Tensor:
        """``[doc, token, dim] -> [doc, dim]``, in float32 or wider; nothing of a padding token is in it.

        Each of the selected tokens is first multiplied by its ``scale``, ``[doc, token]``.
        """
        if self.one_token:
            row = widened(self.keep_row(tokens).squeeze(1))
            return row if scale is None else row * scale
        return self._mean(widened(tokens), scale)

    def _mean(self, tokens: Tensor, scale: Tensor | None) -> Tensor:
        import torch

        if self._padded:
            # masked_fill, not a product with the mask: a padding token's value may be NaN, and NaN * 0 is NaN.
            tokens = tokens.masked_fill(~self._mask.unsqueeze(2), 0.0)
            scale = scale.masked_fill(~self._mask, 0.0) if scale is not None else None
        elif scale is None:
            return tokens.mean(dim=1)
        total = tokens.sum(dim=1) if scale is None else torch.bmm(scale.unsqueeze(1), tokens).squeeze(1)
        return total / self._mask.sum(dim=1, keepdim=True)


class PackedPool(Pool):
    """The same for documents end to end in one row: ``[1, token, dim]`` instead of ``[doc, token, dim]``."""

    def __init__(self, name: str, lengths: Sequence[int], device: torch.device) -> None:
        import torch

        self._lengths = list(lengths)
        ends = list(accumulate(lengths))
        rows = {"last": [end - 1 for end in ends], "first": [0, *ends[:-1]]}.get(name)
        self._rows = None if rows is None else on_device(rows, torch.long, device)

    @property
    def shortens(self) -> bool:
        return False  # a row of other tokens than the residual stream's could not be added to it

    def keep_row(self, tokens: Tensor) -> Tensor:
        """``[1, token, dim] -> [doc, 1, dim]``."""
        return tokens if tokens.shape[1] == 1 else tokens[0, self._rows].unsqueeze(1)

    def _mean(self, tokens: Tensor, scale: Tensor | None) -> Tensor:
        import torch

        scaled = tokens if scale is None else tokens * scale.unsqueeze(2)
        return torch.stack([one.mean(dim=0) for one in scaled[0].split(self._lengths)])


def widened(tokens: Tensor) -> Tensor:
    """In float32, unless it is wider."""
    import torch

    return tokens if tokens.dtype == torch.float64 else tokens.float()
