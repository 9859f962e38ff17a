"""Many processes, started by something else, that share a run: each makes every N-th part.

None waits for one that may not have been started: whoever finds nobody reading reads, for itself and the others.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

from core.runs.run import Run
from precompute.engines.place import RankPlace, place_of
from precompute.engines.task import EmbedTask
from precompute.steps.embed.finishing import done_by_another
from precompute.steps.embed.part import Worker
from precompute.steps.embed.part_spec import OnEvent, PartSpec
from precompute.steps.embed.reading import CorpusReader
from precompute.steps.embed.staging import is_staged, read_record

PATIENCE = 0.5
"""Seconds between two looks for documents that others read."""


def run(task: EmbedTask, on_event: OnEvent) -> None:
    place = place_of(os.environ)
    worker = Worker(on_own_device(task.spec, place), task.files)
    task.begin(worker.load())
    task.reader.shared_by = place.world
    for number in numbers(task.reader, place, on_event):
        on_event(worker.work(number, on_event))


def enter(run: Run, inputs: str) -> contextlib.AbstractContextManager[None]:
    """Each rank is there once, and all of them have the same inputs."""
    return run.rank(place_of(os.environ).rank, inputs[:12])


def on_own_device(spec: PartSpec, place: RankPlace) -> PartSpec:
    """Where a machine's GPUs are seen by all its ranks, each takes its own."""
    if spec.embedder.device not in (None, "cuda"):
        return spec
    import torch

    gpus = torch.cuda.device_count()
    return spec if gpus < 2 else replace(spec, embedder=replace(spec.embedder, device=f"cuda:{place.local % gpus}"))


def numbers(reader: CorpusReader, place: RankPlace, on_event: OnEvent) -> Iterator[int]:
    """This rank's parts, as they are laid down by whoever reads; the reading is taken over if nobody does."""
    reading, number = _Reading(reader), place.rank
    try:
        while True:
            if is_staged(reader.run, number):
                yield number
                number += place.world
                continue
            read = read_record(reader.run, reader.inputs)
            if read is not None and number >= read.parts and not reading.is_at_work():
                reader.read = read
                return
            if done_by_another(reader.run, reader.inputs) is not None:
                return
            if not reading.is_at_work():
                reading.start()
            on_event(f"rank {place.rank} of {place.world} is waiting for part {number + 1} to be read")
            time.sleep(PATIENCE)
    finally:
        reading.stop()


class _Reading:
    """The reading of the corpus beside the work, if no other rank is at it."""

    def __init__(self, reader: CorpusReader) -> None:
        self._reader, self._thread = reader, threading.Thread()
        self._error: BaseException | None = None
        self._stopped = False

    def is_at_work(self) -> bool:
        if self._error is not None:
            raise self._error
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._read, name="reading")
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        if self._thread.is_alive():
            self._thread.join()

    def _read(self) -> None:
        try:
            with self._reader.run.turn("reading") as mine:
                if not mine or done_by_another(self._reader.run, self._reader.inputs) is not None:
                    return
                self._reader.open(True)
                for _ in self._reader.numbers():
                    if self._stopped:
                        return
        except BaseException as error:
            self._error = error
