"""What is asked of the step ``project``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.errors import Mistake, listed
from core.machine import cores
from core.maps.tsne import LIMIT, METHODS, METRICS, MapConfig
from core.runs.manifest import Manifest
from precompute.job.fingerprint import fingerprint

ALGORITHM = 1
"""Raised whenever the same inputs give another map."""
PLACING = 2
"""The same for points that are placed on a map, and not fitted."""
_SETTINGS = ("method", "perplexity", "iterations", "metric", "limit", "by_head", "seed")
"""What decides a map; the number of threads only decides its last digits."""
FEW_POINTS = 5_000
"""So few are fitted by one thread: several would wait for each other most of the time, and on a busy machine long."""


@dataclass(frozen=True)
class ProjectConfig:
    cache: Path
    run: str
    method: str = "opentsne"
    perplexity: float | None = None
    """None: 30, or less where points are few."""
    iterations: int = MapConfig.iterations
    metric: str = METRICS[0]
    limit: int = LIMIT
    """Points that are fitted; the rest is placed among them."""
    by_head: bool = False
    """Also a map for each head by itself."""
    seed: int = 0
    threads: int | None = None
    """None: all there are, or one where points are few; with 1 the map is the same every time."""
    again: bool = False

    def __post_init__(self) -> None:
        for value, known, word in ((self.method, METHODS, "map method"), (self.metric, METRICS, "metric")):
            if value not in known:
                raise Mistake(f"There is no {word} '{value}'. Choose one of {listed(known)}.")
        if self.iterations < 30:
            raise Mistake(f"--iterations {self.iterations} is too few for a map. Give 30 or more (usual: 750).")
        if self.limit < 4:
            raise Mistake(f"--point-limit must be at least 4, not {self.limit}.")
        if self.threads is not None and self.threads < 1:
            raise Mistake(f"--threads must be at least 1, not {self.threads}.")

    def cores(self, points: int) -> int:
        """Threads for a map of so many points."""
        if self.threads is not None:
            return self.threads
        if points <= FEW_POINTS:
            return 1
        return cores()

    @property
    def options(self) -> dict[str, object]:
        """What was asked for, without the defaults."""
        asked = {name: getattr(self, name) for name in _SETTINGS}
        return {name: value for name, value in asked.items() if value != getattr(ProjectConfig, name)}

    def inputs(self, manifest: Manifest, labels: np.ndarray) -> str:
        """The fingerprint of all that decides which map comes out."""
        sampled = len(labels) * manifest.shape.heads > self.limit
        return fingerprint(
            {
                "algorithm": ALGORITHM,
                **({"placing": PLACING} if sampled else {}),
                "embed": manifest.vectors_fingerprint,
                "settings": [getattr(self, name) for name in _SETTINGS],
                "labels": labels.tolist() if sampled else None,
            }
        )
