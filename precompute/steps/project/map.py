"""Making one map of a run: fitting a sample or all of its points, and placing the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.similarity import refuse_not_finite, unit
from core.maps.place import Placer
from core.maps.quality import kept_neighbours
from core.maps.tsne import MapConfig, check_perplexity, fit
from core.runs.parts import digest_of, write_table
from core.runs.run import Run
from precompute.job.progress import OnProgress
from precompute.job.vectors import StageVectors
from precompute.steps.project.config import ProjectConfig


@dataclass(frozen=True)
class MapQuality:
    """What is to be said of a map."""

    kl: float
    kept: float
    """See core.maps.quality.kept_neighbours; of the fitted points."""
    perplexity: float
    fitted: int


@dataclass(frozen=True)
class StagedMap:
    """``coordinates[point, 2]``, points in order of document, then head; not turned yet."""

    coordinates: np.ndarray
    quality: MapQuality


@dataclass(frozen=True)
class MapMaker:
    target: Run
    config: ProjectConfig
    heads: int
    docs: int
    _vectors: dict[int, StageVectors] = field(default_factory=dict)
    _norms: dict[int, np.ndarray] = field(default_factory=dict)

    def make(
        self, stage: int, head: int, chosen: np.ndarray, path: Path, digest: str, on_progress: OnProgress
    ) -> StagedMap:
        """The map of one head, or of all together (0), with the documents of ``chosen`` fitted; kept at ``path``.

        What an earlier, interrupted start has kept there is not made again.
        """
        if digest_of(path) == digest:
            return _unstaged(path)
        made = self._fit(stage, head, chosen, on_progress)
        write_table(path, _staged(made), digest)
        return made

    def _fit(self, stage: int, head: int, chosen: np.ndarray, on_progress: OnProgress) -> StagedMap:
        on_progress(0, "nearest neighbours")
        parts = [rows[np.isin(docs, chosen)] for docs, rows in self.rows(stage, head)]
        vectors = np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])
        perplexity = check_perplexity(self.config.perplexity, len(vectors))
        config = MapConfig(perplexity, self.config.iterations, self.config.seed, self.config.cores(len(vectors)))

        def on_iteration(done: int, kl: float) -> None:
            on_progress(0.9 * done / config.iterations, f"iteration {done} of {config.iterations}, KL {kl:.3f}")

        fitted = fit(self.config.method, vectors, config, on_iteration)
        kept = kept_neighbours(vectors, fitted.coordinates, config.seed, config.threads)
        places = fitted.coordinates
        if len(chosen) < self.docs:
            places = self._with_placed(stage, head, chosen, vectors, places, on_progress)
        return StagedMap(places, MapQuality(fitted.kl, kept, perplexity, len(vectors)))

    def _with_placed(
        self,
        stage: int,
        head: int,
        chosen: np.ndarray,
        vectors: np.ndarray,
        fitted: np.ndarray,
        on_progress: OnProgress,
    ) -> np.ndarray:
        """All points: those that were fitted, and the others placed among them, a part at a time."""
        placer = Placer.of(vectors, fitted, self.config.cores(len(vectors)))
        each = 1 if head else self.heads
        places = np.empty((self.docs, each, 2), dtype=np.float32)
        places[chosen] = fitted.reshape(len(chosen), each, 2)
        for docs, rows in self.rows(stage, head):
            rest = ~np.isin(docs, chosen)
            places[docs[rest]] = placer.place(rows[rest].reshape(-1, rows.shape[-1])).reshape(-1, each, 2)
            on_progress(0.9 + 0.1 * (docs[-1] + 1) / self.docs, "placing the documents beyond the sample")
        return places.reshape(-1, 2)

    def rows(self, stage: int, head: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """``docs[doc]`` and ``[doc, head, dim]`` (one head, or all), a part at a time, as the metric wants them."""
        first, norms = 0, []
        for part in self._of(stage):
            refuse_not_finite(part, self.heads, stage, first, self.target.rebuild)
            rows = part.astype(np.float32).reshape(len(part), self.heads, -1)
            if stage not in self._norms:
                norms.append(np.linalg.norm(rows, axis=2))
            rows = rows[:, head - 1 : head] if head else rows
            yield np.arange(first, first + len(part)), unit(rows) if self.config.metric == "cosine" else rows
            first += len(part)
        if stage not in self._norms:
            self._norms[stage] = np.concatenate(norms)

    def activations(self, stage: int) -> np.ndarray:
        """``[doc, head]``: the norms of the head vectors as they are."""
        if stage not in self._norms:  # the maps of this stage were there from before
            for _ in self.rows(stage, 0):
                pass
        return self._norms[stage]

    def _of(self, stage: int) -> StageVectors:
        if stage not in self._vectors:
            self._vectors.clear()  # one stage at a time
            self._norms.clear()
            self._vectors[stage] = StageVectors(self.target, stage)
        return self._vectors[stage]


def _staged(made: StagedMap) -> pa.Table:
    columns = {"x": made.coordinates[:, 0], "y": made.coordinates[:, 1]}
    for name, value in asdict(made.quality).items():
        columns[name] = np.full(len(made.coordinates), value)
    return pa.table(columns)


def _unstaged(path: Path) -> StagedMap:
    table = pq.read_table(path, page_checksum_verification=True)
    places = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    return StagedMap(places, MapQuality(**{name: table[name][0].as_py() for name in MapQuality.__dataclass_fields__}))
