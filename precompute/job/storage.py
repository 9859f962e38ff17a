"""How the vectors of a run are stored: which stages, and as what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from core.model.shape import ModelShape
from core.model.stages import STAGES
from core.runs.describe import check_stages
from core.runs.number_formats import fits_float16
from core.runs.schema import INT8, STORED_AS


@dataclass(frozen=True)
class Storage:
    stages: tuple[int, ...] | None = None
    """None: all that the model has."""
    dtype: str = STORED_AS[0]
    """float16 is float32 where that does not hold the values; int8 holds them all."""

    def __post_init__(self) -> None:
        if self.stages is not None:
            chosen = tuple(sorted(set(self.stages)))
            object.__setattr__(self, "stages", None if chosen == tuple(STAGES) else chosen)

    def kept(self, shape: ModelShape) -> tuple[int, ...]:
        """The stages of a model of that shape; one that it has not is refused."""
        return check_stages(self.stages, shape)

    def dtype_for(self, rows: Iterable[np.ndarray], heads: int) -> str:
        """What a part's ``rows[doc, width]`` of some stages are written as."""
        if self.dtype == INT8 or all(not len(one) or fits_float16(one, heads) for one in rows):
            return self.dtype
        return "float32"

    def asked(self) -> dict[str, Any]:
        """What differs from the default: of the fingerprint, so that older runs keep theirs, and of the record."""
        default = asdict(Storage())
        return {f"store_{name}": value for name, value in asdict(self).items() if value != default[name]}
