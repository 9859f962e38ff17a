"""The unit of work: a worker reads a part's documents, embeds them, and writes the part. It knows no engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from core.draft import Draft
from core.embedder import Embedded, Embedder, EmbedderConfig, ModelInfo
from core.errors import Mistake
from core.locate import ModelFiles
from core.shape import ModelShape
from core.store import Run, write_part
from precompute.staging import Staged, finished, staged, write_done
from precompute.storage import Storage


@dataclass(frozen=True)
class PartSpec:
    """All that a worker must be told, wherever it is started; small, and the same for all parts."""

    cache: Path
    run: str
    draft: str | None
    """The kind of draft that the run is made in; None where it is made in its own place."""
    embedder: EmbedderConfig
    revision: str
    """Of the model's weights: a worker elsewhere must not take others of the same name."""
    inputs: str
    """The fingerprint of the step."""
    storage: Storage = field(default_factory=Storage)

    def at(self) -> Run:
        return Run(self.cache, self.run) if self.draft is None else Draft(self.cache, self.run, self.draft)


@dataclass(frozen=True)
class Batch:
    """``done`` of a part's documents have been embedded; the model saw ``tokens`` in the latest."""

    part: int
    done: int
    of: int
    tokens: int


@dataclass(frozen=True)
class PartDone:
    """A part is finished."""

    part: int
    documents: int
    failed: int
    tokens: int
    """That the model saw just now."""
    kept: bool
    """It was there already."""


Event = ModelInfo | Batch | PartDone | str
"""What an engine tells of its work: first that a model is loaded, and in a text what it waits for."""
Tell = Callable[[Event], None]


class Worker:
    """Holds a loaded model and makes one part after the other."""

    def __init__(self, spec: PartSpec, files: ModelFiles | None = None) -> None:
        """``files`` are the model's, where they have been located already."""
        self._spec, self._files, self._run = spec, files, spec.at()
        self._embedder: Embedder | None = None

    def load(self) -> ModelInfo:
        return self._loaded().info

    def work(self, number: int, tell: Tell) -> PartDone:
        """Makes a part, unless it is there; killed at any moment, it leaves nothing that looks like a finished one."""
        part, info = staged(self._run, number), self.load()
        if found := finished(self._run, number, part.digest, self._spec.storage.kept(info.shape)):
            return PartDone(number, found.documents, found.failed, 0, kept=True)
        embedded = self._embed(number, part, tell)
        write_vectors(self._run, number, part.docs, embedded, info.shape, part.digest, self._spec.storage)
        table = pa.table(
            {
                "doc": part.docs,
                "tokens": embedded.tokens,
                "truncated": embedded.truncated,
                "failed": pa.nulls(len(part.docs), pa.string()),
            }
        )
        done = write_done(self._run, number, table, part.digest)  # last: with it the part counts as finished
        seen = int(np.minimum(embedded.tokens, info.max_tokens).sum())
        return PartDone(number, done.documents, done.failed, seen, kept=False)

    def _embed(self, number: int, part: Staged, tell: Tell) -> Embedded:
        done = 0

        def on_batch(documents: int, tokens: int) -> None:
            nonlocal done
            done += documents
            tell(Batch(number, done, len(part.texts), tokens))

        return self._loaded().embed(part.texts, on_batch=on_batch)

    def _loaded(self) -> Embedder:
        if self._embedder is None:
            files = self._files or self._spec.embedder.locate()
            if files.revision != self._spec.revision:
                raise Mistake(
                    f"The model '{files.name}' is of revision {files.revision} here, the job's is of "
                    f"{self._spec.revision}. Put the same files on all machines."
                )
            self._embedder = Embedder.load(self._spec.embedder, files)
        return self._embedder


def write_vectors(
    run: Run,
    number: int,
    docs: np.ndarray,
    embedded: Embedded,
    shape: ModelShape,
    digest: str,
    storage: Storage,
) -> None:
    """The vectors of a part at the stages that are kept: as asked, or all in float32 where float16 does not hold them.

    A part decides for itself, so that its values do not depend on the parts before it; a run that has both kinds in
    the end is widened as a whole.
    """
    rows = {stage: embedded.stage(stage) for stage in storage.kept(shape)}
    dtype = storage.dtype_for(rows.values(), shape.heads)
    for stage, vectors in rows.items():
        write_part(run.part_path(stage, number), docs, vectors, dtype, digest, shape.heads)
