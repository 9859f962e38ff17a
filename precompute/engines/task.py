"""What an engine is given, and what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.locate import ModelFiles
from precompute.part import PartSpec, Tell
from precompute.reading import Reader


@dataclass(frozen=True)
class Task:
    """The parts of one run; ``reader.numbers()`` gives each as soon as its documents are there."""

    spec: PartSpec
    files: ModelFiles
    """The model's, on this machine."""
    reader: Reader


@dataclass(frozen=True)
class Engine:
    """A way to have all parts made.

    ``run`` returns when all are finished. It tells of a loaded model first and takes a number from the reader only
    then, for with that word the run is begun; ``tell`` is to be called in the thread that ``run`` was called in.
    """

    help: str
    run: Callable[[Task, Tell], None]
