"""The numbers that say how a model's attention is laid out: L, H, K, D, d."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from core.errors import Mistake

POOLINGS: dict[str, str] = {  # name -> what sentence-transformers calls it
    "last": "lasttoken",
    "mean": "mean",
    "first": "cls",
}
"""How token vectors become one: a manifest records it."""


@dataclass(frozen=True)
class ModelShape:
    """Sizes of one model; ``heads * head_dim`` need not equal ``hidden``."""

    layers: int
    heads: int
    kv_heads: int
    hidden: int
    head_dim: int

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> ModelShape:
        """From the part ``model`` of a manifest."""
        return cls(**{field.name: model[field.name] for field in fields(cls)})

    @property
    def stages(self) -> tuple[int, ...]:
        """The study's stages that can be cut into heads."""
        return (1, 2, 3) if self.hidden % self.heads == 0 else (1,)

    @property
    def possible_stages(self) -> tuple[int, ...]:
        """The same with stage 4, which a model has if its norms are known (core/model/shares.py)."""
        return (*self.stages, 4)

    def width(self, stage: int) -> int:
        """Numbers in one document's row at ``stage``, all heads side by side."""
        if stage == 4:
            return self.heads * min(self.head_dim, self.hidden)  # a share lies in a space no wider than the embedding
        return self.heads * self.head_dim if stage == 1 else self.hidden

    def refuse_uneven(self, stage: int) -> None:
        if stage not in self.possible_stages:
            raise Mistake(
                f"Stage {stage} cannot be cut into heads: the hidden size {self.hidden} is not divisible by "
                f"{self.heads} heads. Use stage 1, which holds each head's own output."
            )

    def layer_index(self, layer: int | None) -> int:
        """A layer as people count it (from 1; None is the last) as an index from 0."""
        if layer is None:
            return self.layers - 1
        if not 1 <= layer <= self.layers:
            raise Mistake(
                f"Layer {layer} does not exist (this model has layers 1–{self.layers}). Choose another with --layer."
            )
        return layer - 1

    def group_of(self, head: int) -> int:
        """The key/value group (from 0) that head index ``head`` (from 0) belongs to."""
        return head // (self.heads // self.kv_heads)
