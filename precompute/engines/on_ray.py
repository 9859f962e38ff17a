"""A Ray cluster: actors hold the model and make parts where they are; only numbers and counts go over the wire.

Nothing of ours enters Ray's object store but these few bytes: the texts and vectors of a part go from the cache to the
worker and back, so that there is nothing to fill the store with.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.errors import Mistake
from core.model.embedder import ModelInfo
from precompute.engines.pool import WorkerDied, WorkerMessage, make_parts
from precompute.engines.task import EmbedTask, Resources
from precompute.steps.embed.part_spec import OnEvent, PartDone, PartSpec
from precompute.steps.embed.surviving import Unusable

_ROOT = Path(__file__).parents[2]
_PATIENCE = 5.0
"""Seconds after which a silent pool is asked again."""


def run(task: EmbedTask, on_event: OnEvent) -> None:
    ray = _ray()
    on_event("connecting to Ray")
    ours = not ray.is_initialized()
    if ours:
        address = task.resources.ray_address or os.environ.get("RAY_ADDRESS")
        try:
            ray.init(
                # Without an address Ray would look for a cluster that was here once, and wait for it.
                address=address or "local",
                log_to_driver=True,
                logging_level="error",
                # A node that lacks the project, or has it elsewhere, is told by Python itself.
                runtime_env={"env_vars": {"PYTHONPATH": str(_ROOT)}},
                **({} if address else {"include_dashboard": False}),
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise Mistake(
                f"Ray cannot be reached at '{address or 'this machine'}' ({str(error).splitlines()[0][:200]}). Start "
                "it with 'ray start', or name its address with --ray-address or RAY_ADDRESS."
            ) from error
    try:
        replicas = _replicas(ray, task)
        make_parts(task, on_event, Actors(ray, replicas, on_event), replicas.count)
    finally:
        if ours:
            ray.shutdown()


class Replica:
    """What Ray calls an actor: a worker somewhere in the cluster."""

    def __init__(self, spec: PartSpec) -> None:
        from precompute.steps.embed.part import Worker, hush

        hush()
        self._worker = Worker(spec)

    def load(self) -> ModelInfo | Mistake:
        """Mistakes are returned: raised, Ray would wrap them."""
        try:
            return self._worker.load()
        except Mistake as mistake:
            return mistake

    def work(self, number: int) -> PartDone | Mistake | WorkerDied:
        try:
            return self._worker.work(number, lambda _: None)
        except Mistake as mistake:
            return mistake
        except Unusable as error:
            return WorkerDied(str(error))


class _Replicas:
    def __init__(self, spec: PartSpec, count: int, num_gpus: float, num_cpus: int) -> None:
        self.spec, self.count, self.num_gpus, self.num_cpus = spec, count, num_gpus, num_cpus


def _replicas(ray: Any, task: EmbedTask) -> _Replicas:
    """How many there are to be at most, and what each needs: a GPU where the cluster has some, else its cores."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus, cpus = (int(sum(node.get(name, 0) for node in nodes)) for name in ("GPU", "CPU"))
    each = _gpus_each(task.resources, gpus)
    count = task.resources.workers or (max(1, int(gpus / each)) if each else max(1, len(nodes)))
    threads = max(1, cpus // count) if cpus else 1
    spec = replace(task.spec, threads=None if each else threads)
    smallest = max(1, int(min(node.get("CPU", 1) for node in nodes)))
    return _Replicas(spec, count, each, 1 if each else min(threads, smallest))


def _gpus_each(resources: Resources, there: int) -> float:
    if resources.num_gpus is not None:
        return resources.num_gpus
    return 1.0 if there else 0.0


class Actors:
    """Workers that are Ray's actors; one that finds no room comes up later, or never, and holds nobody up."""

    def __init__(self, ray: Any, replicas: _Replicas, on_event: OnEvent) -> None:
        self._ray, self._replicas, self._on_event = ray, replicas, on_event
        self._actor = ray.remote(Replica).options(
            num_gpus=replicas.num_gpus, num_cpus=replicas.num_cpus, max_restarts=0, scheduling_strategy="SPREAD"
        )
        self._asked: dict[Any, Hashable] = {}
        self._up = 0

    def start(self) -> Hashable:
        actor: Hashable = self._actor.remote(self._replicas.spec)
        self._asked[actor.load.remote()] = actor  # type: ignore[attr-defined]
        return actor

    def assign(self, worker: Hashable, number: int) -> None:
        self._asked[worker.work.remote(number)] = worker  # type: ignore[attr-defined]

    def receive(self) -> Iterator[WorkerMessage]:
        answered, _ = self._ray.wait(list(self._asked), num_returns=1, timeout=_PATIENCE)
        if not answered and not self._up:
            self._on_event(
                f"waiting for a replica: Ray needs free resources ({self._replicas.num_cpus} CPU, "
                f"{self._replicas.num_gpus:g} GPU)"
            )
        for answer in answered:
            worker = self._asked.pop(answer)
            try:
                said = self._ray.get(answer)
            except self._ray.exceptions.RayActorError as error:
                said = WorkerDied(str(error).strip().splitlines()[0])
            self._up += isinstance(said, ModelInfo)
            yield WorkerMessage(worker, said)

    def stop(self, worker: Hashable) -> None:
        for answer in [answer for answer, asked in self._asked.items() if asked is worker]:
            del self._asked[answer]
        self._ray.kill(worker)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise Mistake(
            "--engine ray needs Ray, which is not installed. Install it with 'pip install -r requirements-ray.txt', on "
            "every machine of the cluster."
        ) from error
    return ray
