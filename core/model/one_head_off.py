"""One text with one head switched off: where the model's own embedding goes, and how far by chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.model.ablation import Change, random_direction
from core.model.stages import check_head

if TYPE_CHECKING:
    from torch import Tensor

    from core.model.embedder import Embedder

DIRECTIONS = 20
"""Random directions that a head is compared with."""


@dataclass(frozen=True)
class OneHeadOff:
    """Stage 3 of one text with and without a head, both ``[hidden]``, float32; the head counts from 1, as its layer."""

    layer: int
    head: int
    plain: np.ndarray
    without: np.ndarray
    angle: float
    """Degrees between the two."""
    random: np.ndarray
    """``[direction]``: the same where as much was removed in a random direction."""


def one_head_off(
    model: Embedder,
    text: str,
    layer: int,
    head: int,
    *,
    query: bool = False,
    directions: int = DIRECTIONS,
    check: Callable[[], None] = lambda: None,
) -> OneHeadOff:
    """The head's output replaced by zeros in the forward pass; ``check`` is called between the parts of the work."""
    shape = model.info.shape
    index = shape.layer_index(layer)
    check_head(head, shape.heads)
    plain: Change = {index: _as_it_is}
    changes: list[Mapping[int, Callable[[Tensor], Tensor]]] = [plain, model.without([(layer, head)])]
    changes += [random_direction(index, head - 1, shape, seed) for seed in range(directions)]
    rows = np.empty((len(changes), shape.hidden), dtype=np.float32)
    for _, swept in model.sweep([text], changes, query=query):
        rows[swept.change] = swept.output[0].float().cpu().numpy()
        check()
    angles = degrees_between(rows[0], rows[1:])
    return OneHeadOff(layer, head, rows[0], rows[1], float(angles[0]), angles[1:])


def degrees_between(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """``[other]`` of ``others[other, hidden]``; exact for small angles too, which a cosine near 1 would lose."""
    first, rest = _unit(one.astype(np.float64)), _unit(others.astype(np.float64))
    apart, along = (np.linalg.norm(found, axis=-1) for found in (rest - first, rest + first))
    return np.asarray(np.degrees(2 * np.arctan2(apart, along)))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-300)


def _as_it_is(outputs: Tensor) -> Tensor:
    return outputs
