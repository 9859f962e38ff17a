"""A stage's rows as measures need them: the full embedding, the heads, and random slices of the same size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.model.share_space import ShareSpace


@dataclass(frozen=True)
class StageRows:
    """``vectors[doc, width]``; with the ``space`` of shares, stage 4's."""

    vectors: np.ndarray
    space: ShareSpace | None = None

    @property
    def width(self) -> int:
        """How many numbers a random slicing shuffles."""
        return int(self._outputs.shape[1])

    @cached_property
    def full(self) -> np.ndarray:
        """The full embedding: the heads side by side, or the sum of their shares."""
        return self.vectors if self.space is None else self.space.full(self.vectors)

    @cached_property
    def _outputs(self) -> np.ndarray:
        return self.vectors if self.space is None else self.space.outputs(self.vectors)

    def sliced(self, order: np.ndarray) -> np.ndarray:
        """The dimensions in this ``order``, ``[doc, width]``: slices stand where heads did."""
        if self.space is None:
            return np.asarray(self.vectors[:, order])
        return self.space.slices(order)(self._outputs).reshape(len(self.vectors), -1)
