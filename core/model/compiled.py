"""Blocks compiled by torch: those that nothing is read from, for a compiled block does not see new hooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from core.model.extract import HeadExtractor


class CompiledBlocks:
    """Compiled once, when they are first run, and used only where it is asked for."""

    def __init__(self, extractor: HeadExtractor) -> None:
        import torch

        model, family = extractor.model, extractor.family
        read = {*extractor.layers, extractor.shape.layers - 1}
        paths = [family.block.format(layer) for layer in range(extractor.shape.layers) if layer not in read]
        self._blocks: list[Any] = [model.get_submodule(path) for path in paths]
        # Lengths differ from batch to batch, so that shapes are left open; blocks of one kind share what is compiled.
        self._forward = [torch.compile(block.forward, dynamic=True) for block in self._blocks]

    @contextmanager
    def used(self) -> Iterator[None]:
        for block, forward in zip(self._blocks, self._forward, strict=True):
            block.forward = forward  # before the class's own
        try:
            yield
        finally:
            for block in self._blocks:
                del block.forward
