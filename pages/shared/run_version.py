"""What is read from a run while it is rebuilt: the old run or the new one, never some of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from core.errors import Mistake
from core.runs.manifest import Manifest
from core.runs.run import Run

Given = ParamSpec("Given")
Read = TypeVar("Read")
VECTORS = ("embed", "slim")
DOCUMENTS = ("embed", "label")
FIGURES = ("embed", "slim", "label", "analyse", "project")
"""The steps that decide vectors, documents, and all that is computed from them."""
RETRIEVAL = ("embed", "slim", "label", "analyse", "retrieve")
LAYERS = ("embed", "label", "layers")
ATTENTION = ("embed", "attention")
ABLATION = ("embed", "label", "ablate")
ASPECTS = ("embed", "slim", "label", "aspects")
SEARCH = ("embed", "search")
"""The same for what heads find, the layer sweep, what heads look at, ablation, aspects, and the full-text index."""


def version_of(manifest: Manifest, steps: tuple[str, ...]) -> str:
    """Changes as soon as one of the steps begins anew: each writes that down before it touches a file."""
    found = [manifest.steps[name] for name in steps if name in manifest.steps]
    return "/".join(f"{step.fingerprint}/{step.finished}" for step in found)


def one_version(
    *steps: str,
) -> Callable[
    [Callable[Concatenate[Run, str, Given], Read]],
    Callable[Concatenate[Run, str, Given], Read],
]:
    """For a function that reads ``(run, version, …)``: refuses what it has read if the run is another one by then.

    Without this the new run's files would be kept under the old one's version, beside what was read before.
    """

    def of(
        read: Callable[Concatenate[Run, str, Given], Read],
    ) -> Callable[Concatenate[Run, str, Given], Read]:
        @wraps(read)
        def checked(run: Run, version: str, *args: Given.args, **kwargs: Given.kwargs) -> Read:
            try:
                found = read(run, version, *args, **kwargs)
            except (Mistake, OSError) as problem:  # perhaps only because the files were being replaced
                raise _changed(run) if _now(run, steps) != version else problem from problem
            if _now(run, steps) != version:
                raise _changed(run)
            return found

        return checked

    return of


def _now(run: Run, steps: tuple[str, ...]) -> str:
    try:
        return version_of(run.manifest(), steps)
    except Mistake:
        return ""


def _changed(run: Run) -> Mistake:
    if not run.exists():
        return Mistake(f"The run '{run.name}' no longer exists. Choose another run, or wait until it is back.")
    return Mistake(f"The run '{run.name}' was rebuilt while this page was loading. Reload the page.")
