"""What is asked of the step ``label``, what a source of labels has to work with, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.analysis.topics import AUTO
from core.runs.aspects import TOPIC
from core.runs.manifest import Manifest
from core.runs.run import Run
from precompute.job.progress import Meter
from precompute.job.topic_vectors import TopicModel


@dataclass(frozen=True)
class Asking:
    """How a language model is asked: what a person decides of labelling.config.AskConfig, which checks it."""

    model: str = "gpt-4o"
    base_url: str | None = None
    """None: OpenAI's own."""
    excerpt_tokens: int = 1500
    concurrency: int = 16
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_cost: float | None = None
    """In dollars."""


@dataclass(frozen=True)
class Spending:
    """Who is told what something will cost, and asked whether to spend it."""

    announce: Callable[[str], None] = lambda sentence: None
    approve: Callable[[float], bool] = lambda dollars: True


@dataclass(frozen=True)
class LabelConfig:
    cache: Path
    run: str
    labels: str | None = None
    """A name of precompute.steps.label.sources.SOURCES; None keeps the labels that the run has."""
    topics: str = AUTO
    """See core.analysis.topics.choose_topics, which sources that choose among topics give the corpus's own labels."""
    file: Path | None = None
    asking: Asking = field(default_factory=Asking)
    spending: Spending = field(default_factory=Spending)
    batch: bool = False
    """Half the price, within a day."""
    poll_seconds: float = 30.0
    dry_run: bool = False
    """Only say what it would cost."""
    again: bool = False
    model: TopicModel = field(default_factory=TopicModel)
    aspect: str = TOPIC
    """What is labelled; labels of others than the topic are stored as ``aspects/<aspect>/<source>.parquet``."""
    column: str | None = None
    """Of the corpus, that an aspect's labels are taken from; None: the one called as the aspect."""


@dataclass(frozen=True)
class LabelJob:
    """What a source of labels works with."""

    run: Run
    config: LabelConfig
    manifest: Manifest
    topics: tuple[str, ...]
    """What a source that chooses has to choose from; for one that checks, empty if anything goes."""
    meter: Meter
    definitions: tuple[str, ...] = ()
    """Of ``topics``, where these are values of another aspect."""

    @property
    def documents(self) -> int:
        return int(self.manifest.corpus["documents"])


@dataclass(frozen=True)
class SourceLabels:
    """A source's labels for all documents, in order."""

    table: pa.Table
    """core.runs.schema.LABELS."""
    unfinished: str = ""
    """Why some documents have not been asked about yet; empty where that is over."""
    notes: tuple[str, ...] = ()
    """What a person should know."""
    counts: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelResult:
    manifest: Manifest
    skipped: bool
    """Nothing had changed since the last time, or nothing was to be done."""
    notes: tuple[str, ...] = ()
    """What a person should know."""
