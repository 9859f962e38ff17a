"""What is removed at one layer: every head, every key/value group, all heads, and as much in random directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.analysis.ablation_effects import GROUP, HEAD, LAYER
from core.model.ablation import Change, random_direction, without
from core.model.embedder import Embedder
from core.model.shape import ModelShape

if TYPE_CHECKING:
    from torch import Tensor

MOST_NUMBERS = 2**27
"""Of embeddings that are in memory at once: 512 MB."""


@dataclass(frozen=True)
class Removal:
    """One change at one layer (from 1): of ``head`` (or group) from 1, 0 for all; of a random direction, its draw."""

    kind: str
    layer: int
    head: int
    heads: tuple[int, ...]
    """From 0: those whose output is removed, or whose size a random removal has."""
    draw: int = 0
    """From 1; 0 for what is no random removal."""


def removals(layer: int, shape: ModelShape, draws: int, seed: int) -> list[Removal]:
    """All of one layer, random ones last; their sizes are those of the heads (and groups) in turn."""
    groups = [tuple(group) for group in np.arange(shape.heads).reshape(shape.kv_heads, -1).tolist()]
    units: dict[str, list[tuple[int, ...]]] = {HEAD: [(head,) for head in range(shape.heads)]}
    if 1 < shape.kv_heads < shape.heads:
        units[GROUP] = groups
    found = [Removal(kind, layer, 1 + at, one) for kind, many in units.items() for at, one in enumerate(many)]
    if shape.heads > 1:
        found.append(Removal(LAYER, layer, 0, tuple(range(shape.heads))))
    for kind, many in units.items():
        order = np.random.default_rng([seed, layer]).permutation(len(many))
        for draw in range(draws):
            at = int(order[draw % len(order)])
            found.append(Removal(kind, layer, 1 + at, many[at], 1 + draw))
    return found


@dataclass(frozen=True)
class SweptTexts:
    """Everything that is embedded under each change."""

    texts: Sequence[str]
    """Documents, then topics' names."""
    queries: Sequence[str]

    def plain(self, model: Embedder) -> np.ndarray:
        """``[text, hidden]`` by the unchanged model."""
        rows = [model.embed(list(self.texts)).output]
        if self.queries:
            rows.append(model.embed(list(self.queries), query=True).output)
        return np.concatenate(rows)

    def without(
        self,
        model: Embedder,
        asked: Sequence[Removal],
        instead: dict[int, Tensor] | None,
        seed: int,
        on_done: Callable[[float], None],
    ) -> Iterator[tuple[Removal, np.ndarray]]:
        """Each removal's ``[text, hidden]``, as many at a time as fit into memory; ``on_done`` is told the share."""
        count = len(self.texts) + len(self.queries)
        some = max(1, MOST_NUMBERS // (count * model.info.shape.hidden))
        sizes = np.array([1 + len(text) for text in (*self.texts, *self.queries)], dtype=np.float64)
        done, total = 0.0, float(sizes.sum()) * len(asked)
        for start in range(0, len(asked), some):
            here = asked[start : start + some]
            rows = np.empty((len(here), count, model.info.shape.hidden), dtype=np.float32)
            changes = [_change(one, model.info.shape, instead, seed) for one in here]
            for first, texts, query in ((0, self.texts, False), (len(self.texts), self.queries, True)):
                for batch, swept in model.sweep(list(texts), changes, query=query) if texts else ():
                    at = np.array(batch) + first
                    rows[swept.change, at] = swept.output.float().cpu().numpy()
                    done += float(sizes[at].sum())
                    on_done(done / total)
            yield from zip(here, rows, strict=True)


def _change(one: Removal, shape: ModelShape, instead: dict[int, Tensor] | None, seed: int) -> Change:
    layer = one.layer - 1
    if not one.draw:
        return without([(layer, head) for head in one.heads], shape, instead)
    chance = np.random.default_rng([seed, one.layer, one.draw, len(one.heads)])
    return random_direction(layer, one.heads, shape, int(chance.integers(2**31)), instead)
