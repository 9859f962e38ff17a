"""The forward pass of the layer sweep: one pooled row a document, layer and stage, on the disk while it is needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.model.embedder import Embedder
from core.model.shape import ModelShape
from core.runs.files import replacing, write_mistake

_FILES = {1: "attention", 2: "projected", 3: "outputs"}
"""By stage: the fields of core.model.embedder.Embedded, and the files that hold them."""
_WHOLE = "whole"
"""The file that says what the others were made from, written once all of them are there."""


@dataclass(frozen=True)
class LayerRows:
    """Memory maps ``[layer, text, width]`` by stage: the system keeps of them in memory what it has room for."""

    vectors: dict[int, np.ndarray]

    def at(self, layer: int, stage: int) -> np.ndarray:
        """``[text, width]`` of a layer index, read into memory."""
        return np.array(self.vectors[stage][layer])


def embed_layers(
    folder: Path,
    texts: Sequence[str],
    shape: ModelShape,
    digest: str,
    load: Callable[[], Embedder],
    on_batch: Callable[[int, int], None],
) -> LayerRows:
    """Every layer's rows of ``texts``, all from one pass; rows that are there from before are not made again.

    Memory does not grow with layers or documents: a batch leaves one row a document, layer and stage, and those lie in
    files of ``folder``, ``4 · layers · texts · width`` bytes a stage.
    """
    marker = folder / _WHOLE
    if not (marker.is_file() and marker.read_text(encoding="utf-8") == digest):
        marker.unlink(missing_ok=True)
        found = (
            load()
            .every_layer()
            .embed(list(texts), on_batch=on_batch, room=lambda name, size: _room(folder, name, size))
        )
        for rows in (found.attention, found.projected, found.outputs):
            if isinstance(rows, np.memmap):
                rows.flush()
        with replacing(marker) as temporary:
            temporary.write_text(digest, encoding="utf-8")
    return LayerRows({stage: _opened(folder, stage, shape, len(texts)) for stage in shape.stages})


def _room(folder: Path, name: str, size: tuple[int, ...]) -> np.ndarray:
    path = folder / f"{name}.npy"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=size)
        # All of it now: a disk that is full is an error here, and the end of the process once the file is mapped.
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    except OSError as error:
        raise write_mistake(path, error) from error
    return rows


def _opened(folder: Path, stage: int, shape: ModelShape, texts: int) -> np.ndarray:
    rows: np.ndarray = np.load(folder / f"{_FILES[stage]}.npy", mmap_mode="r", allow_pickle=False)
    assert rows.shape == (shape.layers, texts, shape.width(stage)), "the digest names the texts and the model"
    return rows
