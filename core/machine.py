"""This machine: its processors and the versions of its libraries."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from core import VERSION

_LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "pyarrow")


def versions() -> dict[str, str]:
    """Of what decides a run's numbers."""
    found = {"headscope": VERSION, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def cores() -> int:
    """Processors that this process may use (by affinity, as in a container); all where the system does not say."""
    asked = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    return len(asked(0)) if asked is not None else os.cpu_count() or 1


def wait_asleep() -> None:
    """To be called before torch is imported: threads that wait for each other leave their processors to others.

    They would spin otherwise: nothing is gained on a quiet machine, and beside other work ``embed`` took more than
    twice as long (docs/measured.md).
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
