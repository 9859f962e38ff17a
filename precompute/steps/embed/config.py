"""What ``embed`` is told, and what it tells in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from core.errors import Mistake, listed
from core.model.embedder import EmbedderConfig
from core.runs.backend import backend_at
from core.runs.manifest import Manifest
from precompute.engines import ENGINES, Resources
from precompute.job.fingerprint import fingerprint
from precompute.job.storage import Storage
from precompute.steps.embed.corpus import Filters
from precompute.steps.embed.corpus_columns import Columns
from precompute.steps.embed.part_spec import PartSpec

ALGORITHM = 1
"""Raised whenever the same inputs give other vectors, so that older runs are made again."""


@dataclass(frozen=True)
class EmbedConfig:
    cache: Path
    run: str
    source: str = "demo"
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    columns: Columns = field(default_factory=Columns)
    filters: Filters = field(default_factory=Filters)
    part_size: int = 1_000
    storage: Storage = field(default_factory=Storage)
    max_failures: int = 0
    """Documents that may be left out because they cannot be embedded."""
    engine: str = "local"
    resources: Resources = field(default_factory=Resources)
    replace: bool = False
    """Make a finished run anew, or one that holds other inputs; an interrupted run of these inputs goes on.

    A finished run is there for its readers until the new one is finished, too.
    """
    warn: Callable[[str], None] = lambda sentence: None
    """Called with what a person should know while the corpus is read."""
    source_given: bool = True
    """Whether the corpus was named: stage 4 is added to a finished run without naming it again."""


@dataclass(frozen=True)
class EmbedResult:
    manifest: Manifest
    skipped: bool
    """Nothing had changed since the last time."""
    parts_kept: int = 0
    """Parts that an earlier, interrupted start had finished."""
    bytes: int = 0
    """All that the run takes on the disk."""
    left: int = 0
    """Parts that others, who share the run, have not finished; the last of them finishes it."""
    awaits_rank_0: bool = False
    """Rank 0 is to finish the run; this one has made its parts."""
    gone: tuple[str, ...] = ()
    """Steps that the replaced run had, and this one has not yet."""
    added: int | None = None
    """The stage that was added to a finished run."""


def check(config: EmbedConfig) -> None:
    if config.engine not in ENGINES:
        raise Mistake(f"There is no engine '{config.engine}'. Choose one of {listed(ENGINES)}.")
    for name, value, least in (
        ("--part-size", config.part_size, 1),
        ("--max-failures", config.max_failures, 0),
        ("--workers", config.resources.workers, 1),
        ("--num-gpus", config.resources.num_gpus, 0),
    ):
        if value is not None and value < least:
            raise Mistake(f"{name} must be at least {least}, not {value}.")


def inputs_of(config: EmbedConfig, source: str, revision: str) -> str:
    """The fingerprint of all that decides which numbers come out; not of where or in which batches."""
    names = ("layers", "pooling", "prompt", "max_tokens", "dtype")
    return fingerprint(
        {
            "algorithm": ALGORITHM,
            "source": source,
            "model": [revision, *(getattr(config.embedder, name) for name in names)],
            "columns": config.columns,
            "filters": _deciding(config.filters),
            "part_size": config.part_size,
            **config.storage.asked(),
        }
    )


def _deciding(filters: Filters) -> dict[str, Any]:
    """The filters as they were fingerprinted from the first.

    Whether bad records are skipped and copies of ids numbered is left out: where there are none it changes nothing, and
    where there are some the refused command is to go on once --skip-bad or --duplicate-ids is added.
    """
    found = asdict(replace(filters, skip_bad=False))
    del found["duplicate_ids"]
    return found


def options_of(config: EmbedConfig) -> dict[str, Any]:
    """What was asked for, without the defaults."""
    asked = {**asdict(config.columns), **asdict(config.filters)}
    defaults = {**asdict(Columns()), **asdict(Filters())}
    return {key: value for key, value in asked.items() if value != defaults[key]} | config.storage.asked()


def spec_of(config: EmbedConfig, draft: str | None, revision: str, inputs: str) -> PartSpec:
    return PartSpec(
        backend_at(config.cache).place,
        config.run,
        draft,
        replace(config.embedder, shares=config.storage.model_shares),
        revision,
        inputs,
        config.max_failures,
        storage=config.storage,
    )
