"""How the vectors of a run are stored: which stages, and as what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import Mistake
from core.model.embedder import ModelInfo
from core.model.stages import SHARE, STUDY
from core.runs.describe import check_stages
from core.runs.number_formats import fits_float16
from core.runs.schema import INT8, STORED_AS


@dataclass(frozen=True)
class Storage:
    stages: tuple[int, ...] | None = None
    """None: those of the study that the model has, and with ``shares`` stage 4."""
    dtype: str = STORED_AS[0]
    """float16 is float32 where that does not hold the values; int8 holds them all."""
    shares: bool = False
    """Stage 4 too, where the model has exact shares; among ``stages`` it is insisted on."""

    def __post_init__(self) -> None:
        if self.stages is not None:
            chosen = tuple(sorted(set(self.stages)))
            if chosen == (SHARE,):
                raise Mistake(f"Stage {SHARE} is stored beside others, not alone. Use --stages 3 {SHARE}, for example.")
            object.__setattr__(self, "stages", None if chosen == STUDY else chosen)
            object.__setattr__(self, "shares", SHARE in chosen)  # those that were named, and no other

    @property
    def model_shares(self) -> bool | None:
        """What the model is asked for: stage 4 (True), where it has it (None), or none (False)."""
        return (True if self.stages else None) if self.shares else False

    def kept(self, info: ModelInfo) -> tuple[int, ...]:
        """The stages that are stored of a model; one that it has not is refused."""
        return info.stages if self.stages is None else check_stages(self.stages, info.shape)

    def dtype_for(self, rows: Iterable[np.ndarray], heads: int) -> str:
        """What a part's ``rows[doc, width]`` of some stages are written as."""
        if self.dtype == INT8 or all(not len(one) or fits_float16(one, heads) for one in rows):
            return self.dtype
        return "float32"

    def asked(self) -> dict[str, Any]:
        """What differs from the default: of the fingerprint, so that older runs keep theirs, and of the record.

        Stage 4 is no part of it: a run gets it without being embedded anew.
        """
        found: dict[str, Any] = {}
        study = tuple(stage for stage in self.stages or STUDY if stage != SHARE)
        if study != STUDY:
            found["store_stages"] = study
        if self.dtype != Storage.dtype:
            found["store_dtype"] = self.dtype
        return found
