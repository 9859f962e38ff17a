"""What a worker is told, and what it tells: small things that go from one process, or machine, to another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core.model.embedder import EmbedderConfig, ModelInfo
from core.remote.mirror import cache_at
from core.runs.replace import NewVersion
from core.runs.run import Run
from core.settings import setting
from precompute.job.storage import Storage


@dataclass(frozen=True)
class PartSpec:
    """All that a worker must be told, wherever it is started; small, and the same for all parts."""

    cache: str
    """As people know it: a folder that all machines see, or an address, of which each has a mirror of its own."""
    run: str
    draft: str | None
    """The kind of draft that the run is made in; None where it is made in its own place."""
    embedder: EmbedderConfig
    revision: str
    """Of the model's weights: a worker elsewhere must not take others of the same name."""
    inputs: str
    """The fingerprint of the step."""
    max_failures: int = 0
    threads: int | None = None
    """That the model may use; None leaves it to torch."""
    storage: Storage = field(default_factory=Storage)

    def at(self) -> Run:
        cache = cache_at(self.cache, setting("HEADSCOPE_MIRROR"))
        return Run(cache, self.run) if self.draft is None else NewVersion(cache, self.run, self.draft)


@dataclass(frozen=True)
class Batch:
    """``done`` of a part's documents have been embedded; the model saw ``tokens`` in the latest."""

    part: int
    done: int
    of: int
    tokens: int


@dataclass(frozen=True)
class PartDone:
    """A part is finished."""

    part: int
    documents: int
    failed: int
    tokens: int
    """That the model saw just now."""
    kept: bool
    """It was there already."""


Event = ModelInfo | Batch | PartDone | str
"""What an engine tells of its work: first that a model is loaded, and in a text what it waits for."""
Tell = Callable[[Event], None]
