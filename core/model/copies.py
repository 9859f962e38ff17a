"""Vectors on their way from a GPU: those of one batch are copied and stored while the next one is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from core.model.extract import Rows

if TYPE_CHECKING:
    import torch


class Arrivals:
    """Hands every batch's rows to ``keep``, on the CPU, one batch late; ``finish`` hands over the last."""

    def __init__(self, keep: Callable[[list[int], Rows], None]) -> None:
        self._keep = keep
        self._underway: tuple[list[int], Rows, torch.cuda.Event | None] | None = None

    def send(self, batch: list[int], rows: Rows) -> None:
        """Call it when the batch's forward pass has been started: it waits for the batch before alone."""
        import torch

        assert rows.output is not None
        copied = None
        on_gpu = rows.output.is_cuda
        rows = rows.on_cpu()
        if on_gpu:
            copied = torch.cuda.Event()
            copied.record()
        self.finish()
        self._underway = batch, rows, copied

    def finish(self) -> None:
        if self._underway is not None:
            batch, rows, copied = self._underway
            self._underway = None
            if copied is not None:
                copied.synchronize()
            self._keep(batch, rows)
