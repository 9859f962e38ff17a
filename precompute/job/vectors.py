"""A stage's vectors for a step that passes over them more than once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core.runs.run import Run

HELD = 2**25
"""Bytes of a stage's vectors that are held in memory."""


class StageVectors:
    """The parts ``[doc, width]`` of one stage, in order: their files are read once where they fit into HELD."""

    def __init__(self, run: Run, stage: int) -> None:
        self._run, self._stage = run, stage
        self._parts: list[np.ndarray] | None = None

    def __iter__(self) -> Iterator[np.ndarray]:
        if self._parts is not None:
            yield from self._parts
            return
        parts: list[np.ndarray] | None = []
        held = 0
        for part in self._run.vectors(self._stage):
            held += part.nbytes
            if parts is not None and held <= HELD:
                parts.append(part)
            else:
                parts = None
            yield part
        self._parts = parts
