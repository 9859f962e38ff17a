"""From a vector a token to a vector a document, in the model's own way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import Mistake, listed
from core.model.shape import POOLINGS

if TYPE_CHECKING:
    from torch import Tensor


def check_pooling(name: str) -> str:
    """The pooling of that name, by our word or by sentence-transformers'."""
    for ours, theirs in POOLINGS.items():
        if name in (ours, theirs):
            return ours
    raise Mistake(f"Pooling '{name}' is not supported. Choose one of {listed(POOLINGS)} with --pooling.")


class Pool:
    """One batch's pooling: built from its mask ``[doc, token]``, then applied at every stage."""

    def __init__(self, name: str, mask: Tensor) -> None:
        import torch

        self._mask = mask.bool()
        self._rows: Tensor | None = None
        if name == "last":
            positions = torch.arange(mask.shape[1], device=mask.device)
            self._rows = (self._mask * positions).argmax(dim=1)
        elif name == "first":
            self._rows = self._mask.int().argmax(dim=1)
        self._padded = not bool(self._mask.all())

    @property
    def one_token(self) -> bool:
        """Whether a single token's row stands for the document, so that the others need no further work."""
        return self._rows is not None

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
        import torch

        if self.one_token:
            row = widened(self.keep_row(tokens).squeeze(1))
            return row if scale is None else row * scale
        tokens = widened(tokens)
        if self._padded:
            # masked_fill, not a product with the mask: a padding token's value may be NaN, and NaN * 0 is NaN.
            tokens = tokens.masked_fill(~self._mask.unsqueeze(2), 0.0)
            scale = scale.masked_fill(~self._mask, 0.0) if scale is not None else None
        elif scale is None:
            return tokens.mean(dim=1)
        total = tokens.sum(dim=1) if scale is None else torch.bmm(scale.unsqueeze(1), tokens).squeeze(1)
        return total / self._mask.sum(dim=1, keepdim=True)


def widened(tokens: Tensor) -> Tensor:
    """In float32, unless it is wider."""
    import torch

    return tokens if tokens.dtype == torch.float64 else tokens.float()
