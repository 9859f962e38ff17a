"""Ranks with an object store between them and no file system: rank 0 leads, as the one job that has the run's lease.

A store has no locks by which to take turns. So rank 0 alone begins the run, reads the corpus and finishes; the others
make their parts as they are laid down. Of a rank that is not heard of rank 0 makes the parts itself, so that none is
waited for that was killed or never started.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from core.errors import Mistake
from core.model.locate import ModelFiles
from core.remote.lease import STALE, is_held, outwait, rank_leased
from core.remote.mirror import Mirror, mirror_at
from core.runs.manifest import Manifest
from core.runs.run import Run
from precompute.engines.place import RankPlace, place_of
from precompute.engines.ranks import numbers, on_own_device
from precompute.engines.task import EmbedTask
from precompute.steps.embed.part import Worker
from precompute.steps.embed.part_spec import OnEvent, PartSpec
from precompute.steps.embed.staging import Read, finished_paths, is_staged, read_record

_PATIENCE = 2.0
"""Seconds between two looks at what others have done."""
GIVEN_UP = 5 * STALE
"""Seconds after which a rank 0 that is not heard of is waited for no longer."""


def lead(task: EmbedTask, on_event: OnEvent) -> None:
    """Rank 0's own parts, and then those of ranks that are not there."""
    if task.spec.draft is not None:
        raise not_beside(task.spec.run)
    place, run = place_of(os.environ), task.reader.run
    worker = Worker(on_own_device(task.spec, place), task.files)
    task.begin(worker.load())
    task.reader.shared_by = place.world
    for number in numbers(task.reader, place, on_event):
        on_event(worker.work(number, on_event))
    assert task.reader.read is not None
    while left := unfinished(run, task.reader.read):
        orphan = next((part for part in left if not is_held(_mirror(run), run.name, part % place.world)), None)
        if orphan is not None:
            on_event(worker.work(orphan, on_event))
        else:
            on_event(f"rank 0 is waiting for {len(left):,} parts of other ranks")
            time.sleep(_PATIENCE)


def follow(run: Run, spec: PartSpec, files: ModelFiles, refuse: Callable[[], None], on_event: OnEvent) -> None:
    """The parts of one of the other ranks; ``refuse`` looks whether another run is there that is not to be touched."""
    place = place_of(os.environ)
    with run.rank(place.rank, spec.inputs[:12]), rank_leased(_mirror(run), run.name, place.rank):
        worker = Worker(on_own_device(spec, place), files)
        worker.load()
        for number in _laid_down(run, spec.inputs, place, refuse, on_event):
            try:
                on_event(worker.work(number, on_event))
            except (OSError, Mistake):
                if is_done(run, spec.inputs):  # this rank was taken for dead
                    return
                raise


def not_beside(run: str) -> Mistake:
    return Mistake(
        f"Ranks cannot build a new '{run}' beside the finished one in an object store. Choose another run name, or "
        "replace it with --engine local or ray."
    )


def is_follower(run: Run) -> bool:
    """Whether this is another rank than the first; a claim that a killed one has left elsewhere is waited out."""
    rank = place_of(os.environ).rank
    outwait(_mirror(run), run.name, rank or None)
    return rank > 0


def unfinished(run: Run, read: Read) -> list[int]:
    """The parts that nobody has finished."""
    there = {path.stem for path in finished_paths(run)}
    return [number for number in range(read.parts) if f"part-{number:05d}" not in there]


def is_done(run: Run, inputs: str) -> bool:
    return (manifest := manifest_of(run)) is not None and manifest.is_done("embed", inputs)


def manifest_of(run: Run) -> Manifest | None:
    with contextlib.suppress(Mistake):
        if run.exists():
            return run.manifest()
    return None


def _laid_down(run: Run, inputs: str, place: RankPlace, refuse: Callable[[], None], on_event: OnEvent) -> Iterator[int]:
    """This rank's parts, each as soon as rank 0 has read it."""
    number, heard = place.rank, time.monotonic()
    while not is_done(run, inputs):
        step = manifest.steps.get("embed") if (manifest := manifest_of(run)) is not None else None
        begun = step is not None and step.fingerprint == inputs
        if begun and is_staged(run, number):
            yield number
            number, heard = number + place.world, time.monotonic()
            continue
        if begun and (read := read_record(run, inputs)) is not None and number >= read.parts:
            return
        refuse()
        if is_held(_mirror(run), run.name):
            heard = time.monotonic()
        elif time.monotonic() - heard > GIVEN_UP:
            raise Mistake(
                f"Rank 0, which reads the corpus, has not been heard from for {GIVEN_UP / 60:.0f} minutes. Start it, "
                "then start the same command here again: finished parts are kept."
            )
        on_event(f"rank {place.rank} of {place.world} is waiting for rank 0 to read part {number + 1}")
        time.sleep(_PATIENCE)


def _mirror(run: Run) -> Mirror:
    mirror = mirror_at(run.cache)
    assert mirror is not None
    return mirror
