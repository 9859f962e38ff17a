"""One machine: the parts one after the other in this process."""

from __future__ import annotations

from precompute.engines.task import Task
from precompute.part import Tell, Worker


def run(task: Task, tell: Tell) -> None:
    worker = Worker(task.spec, task.files)
    tell(worker.load())
    for number in task.reader.numbers():
        tell(worker.work(number, tell))
