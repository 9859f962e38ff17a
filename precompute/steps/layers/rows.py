"""The forward pass of the layer sweep: one pooled row a document, layer and stage, on the disk while it is needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.model.embedder import Embedder
from core.model.shape import ModelShape
from core.model.share_space import ShareSpace
from core.model.stages import SHARE
from core.runs.files import replacing, write_mistake

_FILES = {1: "attention", 2: "projected", 3: "outputs", SHARE: "shares"}
"""By stage: the fields of core.model.embedder.Embedded, and the files that hold them."""
_WHOLE = "whole"
"""The file that says what the others were made from, written once all of them are there."""


@dataclass(frozen=True)
class LayerRows:
    """Memory maps ``[layer, text, width]`` by stage: the system keeps of them in memory what it has room for."""

    vectors: dict[int, np.ndarray]
    directions: np.ndarray | None = None
    """Of stage 4, every layer's ``Q``: ``[layer, head, hidden, dim]``."""
    triangles: np.ndarray | None = None
    """The same of ``R``: ``[layer, head, dim, width]``."""

    def at(self, layer: int, stage: int) -> np.ndarray:
        """``[text, width]`` of a layer index, read into memory."""
        return np.array(self.vectors[stage][layer])

    def space(self, layer: int, stage: int) -> ShareSpace | None:
        """What the rows of stage 4 mean at a layer index; None where rows are enough."""
        if stage != SHARE:
            return None
        assert self.directions is not None
        assert self.triangles is not None
        return ShareSpace(np.array(self.directions[layer]), np.array(self.triangles[layer]))


def embed_layers(
    folder: Path,
    texts: Sequence[str],
    shape: ModelShape,
    digest: str,
    load: Callable[[], Embedder],
    on_batch: Callable[[int, int], None],
    shares: bool = False,
) -> LayerRows:
    """Every layer's rows of ``texts``, all from one pass; rows that are there from before are not made again.

    Memory does not grow with layers or documents: a batch leaves one row a document, layer and stage, and those lie in
    files of ``folder``, ``4 · layers · texts · width`` bytes a stage. With ``shares`` there is stage 4, and what its
    rows mean, which takes as many bytes as the model's output projections in float32.
    """
    marker = folder / _WHOLE
    if not (marker.is_file() and marker.read_text(encoding="utf-8") == digest):
        marker.unlink(missing_ok=True)
        model = load().every_layer(shares)
        found = model.embed(list(texts), on_batch=on_batch, room=lambda name, size: _room(folder, name, size))
        rows = [found.attention, found.projected, found.outputs, found.shares]
        if shares:
            rows += _write_spaces(folder, model, shape)
        for each in rows:
            if isinstance(each, np.memmap):
                each.flush()
        with replacing(marker) as temporary:
            temporary.write_text(digest, encoding="utf-8")
    stages = (*shape.stages, SHARE) if shares else shape.stages
    vectors = {
        stage: _opened(folder, _FILES[stage], (shape.layers, len(texts), shape.width(stage))) for stage in stages
    }
    if not shares:
        return LayerRows(vectors)
    return LayerRows(vectors, *(_opened(folder, name, size) for name, size in _space_sizes(shape).items()))


def _space_sizes(shape: ModelShape) -> dict[str, tuple[int, ...]]:
    """By file."""
    dim = shape.width(SHARE) // shape.heads
    each = (shape.layers, shape.heads)
    return {"directions": (*each, shape.hidden, dim), "triangles": (*each, dim, shape.head_dim)}


def _write_spaces(folder: Path, model: Embedder, shape: ModelShape) -> list[np.ndarray]:
    directions, triangles = (_room(folder, name, size) for name, size in _space_sizes(shape).items())
    for layer in range(shape.layers):
        space = model.share_space(layer)
        directions[layer], triangles[layer] = space.directions, space.triangle
    return [directions, triangles]


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


def _opened(folder: Path, name: str, size: tuple[int, ...]) -> np.ndarray:
    rows: np.ndarray = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    assert rows.shape == size, "the digest names the texts and the model"
    return rows
