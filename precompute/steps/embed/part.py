"""The unit of work: a worker reads a part's documents, embeds them, and writes the part. It knows no engine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from core.errors import Mistake
from core.model.device import is_out_of_memory
from core.model.embedder import Embedded, Embedder, ModelInfo
from core.model.locate import ModelFiles
from core.model.stages import SHARE
from core.runs.parts import write_part
from core.runs.run import Run
from core.runs.shares import write_share_space
from precompute.job.child import Isolated
from precompute.job.storage import Storage
from precompute.steps.embed.part_spec import BatchDone, OnEvent, PartDone, PartSpec
from precompute.steps.embed.staging import Staged, begin, finished, forgive, staged, write_done
from precompute.steps.embed.surviving import Survivors, Unusable, embed_surviving

DEATHS = 2
"""So often a part's worker has died before the part is made in a process apart, which may."""
_CUDA = "CUDA error"


class Worker:
    """Holds a loaded model and makes one part after the other."""

    def __init__(self, spec: PartSpec, files: ModelFiles | None = None) -> None:
        """``files`` are the model's, where they have been located already."""
        self._spec, self._files, self._run = spec, files, spec.at()
        self._embedder: Embedder | None = None
        self._info: ModelInfo | None = None
        self._basis_written = False

    def load(self) -> ModelInfo:
        if self._info is None:
            self._info = self._loaded().info
        return self._info

    def work(self, number: int, on_event: OnEvent) -> PartDone:
        """Makes a part, unless it is there; killed at any moment, it leaves nothing that looks like a finished one."""
        part, info = staged(self._run, number), self.load()
        if found := finished(self._run, number, part.digest, self._spec.storage.kept(info)):
            return PartDone(number, found.documents, found.failed, 0, kept=True)
        deaths = begin(self._run, number, part.digest)
        try:
            survivors = self._survivors(number, part, on_event, careful=deaths >= DEATHS)
        except BaseException:
            with contextlib.suppress(Mistake):  # the disk is full
                forgive(self._run, number, part.digest, deaths)
            raise
        embedded = survivors.joined(info.shape, info.shares)
        lived = np.asarray([index not in survivors.failed for index in range(len(part.docs))])
        write_vectors(self._run, number, part.docs[lived], embedded, info, part.digest, self._spec.storage)
        if SHARE in self._spec.storage.kept(info):
            self._write_share_basis()
        learned = {"tokens": np.zeros(len(lived), np.int32), "truncated": np.zeros(len(lived), bool)}
        learned["tokens"][lived], learned["truncated"][lived] = embedded.tokens, embedded.truncated
        failed = [survivors.failed.get(index) for index in range(len(lived))]
        table = pa.table({"doc": part.docs, **learned, "failed": pa.array(failed, pa.string())})
        done = write_done(self._run, number, table, part.digest)  # last: with it the part counts as finished
        seen = int(np.minimum(embedded.tokens, info.max_tokens).sum())
        return PartDone(number, done.documents, done.failed, seen, kept=False)

    def embed(self, texts: list[str], on_batch: Callable[[int, int], None] | None = None) -> Embedded:
        try:
            return self._loaded().embed(texts, on_batch=on_batch)
        except Exception as error:
            if _CUDA in str(error) and not is_out_of_memory(error):
                raise Unusable(str(error)) from error  # whatever is tried after it fails, too
            raise

    def _survivors(self, number: int, part: Staged, on_event: OnEvent, careful: bool) -> Survivors:
        done = 0

        def on_batch(documents: int, tokens: int) -> None:
            nonlocal done
            done = min(len(part.texts), done + documents)
            on_event(BatchDone(number, done, len(part.texts), tokens))

        if not careful:
            return embed_surviving(lambda texts: self.embed(texts, on_batch), part.texts, self._spec.max_failures)
        self._embedder = None  # the model may have room on the device only once
        with Isolated(self._spec) as isolated:
            return embed_surviving(isolated.embed, part.texts, self._spec.max_failures)

    def _write_share_basis(self) -> None:
        """Once a run, by whoever is first: the model alone decides it."""
        if not self._basis_written:
            write_share_space(self._run, self._loaded().share_space(), self._spec.inputs)
            self._basis_written = True

    def _loaded(self) -> Embedder:
        if self._embedder is None:
            files = self._files or self._spec.embedder.locate()
            if files.revision != self._spec.revision:
                raise Mistake(
                    f"The model '{files.name}' is of revision {files.revision} here, the job's is of "
                    f"{self._spec.revision}. Put the same files on all machines."
                )
            if self._spec.threads is not None:
                import torch

                torch.set_num_threads(self._spec.threads)
            self._embedder = Embedder.load(self._spec.embedder, files)
        return self._embedder


def hush() -> None:
    """In a process of their own, libraries draw bars that nobody can read."""
    from transformers.utils import logging

    logging.disable_progress_bar()


def write_vectors(
    run: Run,
    number: int,
    docs: np.ndarray,
    embedded: Embedded,
    info: ModelInfo,
    digest: str,
    storage: Storage,
) -> None:
    """The vectors of a part at the stages that are kept: as asked, or all in float32 where float16 does not hold them.

    A part decides for itself, so that its values do not depend on the parts before it; a run that has both kinds in
    the end is widened as a whole.
    """
    heads = info.shape.heads
    rows = {stage: embedded.stage(stage) for stage in storage.kept(info)}
    dtype = storage.dtype_for(rows.values(), heads)
    for stage, vectors in rows.items():
        write_part(run.part_path(stage, number), docs, vectors, dtype, digest, heads)
