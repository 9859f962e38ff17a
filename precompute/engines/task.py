"""What an engine is given, and what it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from core.model.embedder import ModelInfo
from core.model.locate import ModelFiles
from core.runs.run import Run
from precompute.steps.embed.part_spec import OnEvent, PartSpec
from precompute.steps.embed.reading import CorpusReader


@dataclass(frozen=True)
class Resources:
    """How many workers there are to be, and what each is given."""

    workers: int | None = None
    """None leaves it to the engine."""
    num_gpus: float | None = None
    ray_address: str | None = None


@dataclass(frozen=True)
class EmbedTask:
    """The parts of one run; ``reader.numbers()`` gives each as soon as its documents are there."""

    spec: PartSpec
    files: ModelFiles
    """The model's, on this machine."""
    reader: CorpusReader
    begin: Callable[[ModelInfo], None]
    """To be called once, with a loaded model and before a number is taken from the reader: begins the run, and removes
    one of other inputs that was to be replaced."""
    resources: Resources = Resources()


@dataclass(frozen=True)
class Engine:
    """A way to have all parts made.

    ``run`` returns when all are finished. Both callbacks are to be called in the thread that ``run`` was called in.
    """

    help: str
    run: Callable[[EmbedTask, OnEvent], None]
    enter: Callable[[Run, str], contextlib.AbstractContextManager[None]] = lambda run, inputs: contextlib.nullcontext()
    """What is held as long as ``run`` is at work on a run with inputs of this fingerprint, beyond the run's lock."""
    shared: bool = False
    """Several commands make one run together, each its share; ``run`` returns when this one's is finished."""
