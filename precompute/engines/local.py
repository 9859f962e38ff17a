"""One machine: the parts one after the other in this process, or by several processes, on several GPUs one each."""

from __future__ import annotations

import selectors
from collections.abc import Hashable, Iterator
from dataclasses import replace

from core.errors import Mistake
from core.machine import cores
from precompute.engines.crew import Dead, Word, make_parts
from precompute.engines.task import Task
from precompute.job.child import Child
from precompute.steps.embed.part import Worker
from precompute.steps.embed.part_spec import PartSpec, Tell
from precompute.steps.embed.surviving import Died, Unusable

_PATIENCE = 1.0
"""Seconds after which a silent crew is no longer listened to, for the moment."""


def run(task: Task, tell: Tell) -> None:
    """In this process, unless there are several GPUs or a number of workers was asked for."""
    gpus, workers = _gpus(task.spec.embedder.device), task.hands.workers
    if workers is None and gpus < 2:
        worker = Worker(task.spec, task.files)
        tell(worker.load())
        for number in task.reader.numbers():
            tell(worker.work(number, tell))
        return
    size = workers or gpus
    make_parts(task, tell, Processes(_specs(task.spec, size, gpus)), size)


def _specs(spec: PartSpec, size: int, gpus: int) -> list[PartSpec]:
    """What each of the processes is told: its GPU, or its share of the cores."""
    if gpus:
        devices = [replace(spec.embedder, device=f"cuda:{number % gpus}") for number in range(size)]
        return [replace(spec, embedder=embedder) for embedder in devices]
    return [replace(spec, threads=max(1, cores() // size))] * size


def _gpus(device: str | None) -> int:
    """How many GPUs there are to share out; none where one, or something else, was asked for by name."""
    if device not in (None, "cuda"):
        return 0
    import torch

    return torch.cuda.device_count()


class Processes:
    """Workers that are processes of this machine."""

    def __init__(self, specs: list[PartSpec]) -> None:
        self._specs = specs
        self._taken: dict[Hashable, int] = {}
        self._selector = selectors.DefaultSelector()

    def hire(self) -> Child:
        place = next(place for place in range(len(self._specs)) if place not in self._taken.values())
        child = Child(self._specs[place])
        child.send(None)
        self._taken[child] = place
        self._selector.register(child, selectors.EVENT_READ)
        return child

    def give(self, hand: Hashable, number: int) -> None:
        assert isinstance(hand, Child)
        hand.send(number)

    def hear(self) -> Iterator[Word]:
        for key, _ in self._selector.select(_PATIENCE):
            child = key.fileobj
            assert isinstance(child, Child)
            try:
                yield Word(child, child.receive())
            except (Died, Unusable) as error:
                yield Word(child, Dead(str(error)))
            except Mistake as mistake:
                yield Word(child, mistake)

    def dismiss(self, hand: Hashable) -> None:
        assert isinstance(hand, Child)
        self._selector.unregister(hand)
        del self._taken[hand]
        hand.close()
