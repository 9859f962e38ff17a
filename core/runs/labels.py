"""Where a run's topics come from: the sources it keeps, which of them its figures are of, and how they agree."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.analysis.agreement import Agreement, agreement
from core.runs.manifest import Manifest
from core.runs.results import labels_of, read_labels
from core.runs.run import Run

COLUMN, OPENAI, ZERO_SHOT, FILE = "column", "openai", "zero-shot", "file"

WORDS: dict[str, str] = {
    COLUMN: "the corpus's own topics",
    OPENAI: "a language model's answers",
    ZERO_SHOT: "the nearest topic embedding",
    FILE: "a file",
}
"""Sources of labels, and where each has its topics from."""

CIRCULAR = frozenset({ZERO_SHOT})
"""Sources that the embedding itself made: topic match measures them by the thing that they were made with."""
CIRCULAR_NOTE = (
    "Circular: these labels are the nearest topics themselves (zero-shot), so that topic match measures the embedding "
    "by itself."
)


@dataclass(frozen=True)
class LabelFacts:
    """What a run's figures were computed from; ``source`` is None where no document had a label."""

    source: str | None
    model: str | None
    """Who answered, where the source is a language model."""

    @property
    def circular(self) -> bool:
        return self.source in CIRCULAR

    @property
    def sentence(self) -> str:
        if self.source is None:
            return "no document has a label"
        words = WORDS.get(self.source, "an unknown source")
        return f"{self.source}: {words}" + (f" ({self.model})" if self.model else "")


@dataclass(frozen=True)
class Labels:
    """One source's labels: ``topics[doc]`` and, where there is none, ``reasons[doc]``."""

    source: str
    topics: pa.ChunkedArray
    reasons: pa.ChunkedArray

    @property
    def labelled(self) -> int:
        return len(self.topics) - int(self.topics.null_count)

    @property
    def why_not(self) -> dict[str, int]:
        """Documents without a topic, by reason, the most frequent first."""
        missing = self.reasons.filter(pc.is_null(self.topics))
        return dict(Counter(reason or "no reason was given" for reason in missing.to_pylist()).most_common())


@dataclass(frozen=True)
class Compared:
    """Two sources of one run: ``topics`` name the axes of the confusion, the most frequent first."""

    first: str
    second: str
    topics: tuple[str, ...]
    agreement: Agreement

    @property
    def sentence(self) -> str:
        found = self.agreement
        if not found.documents:
            return f"{self.first} and {self.second} have labelled no document in common."
        kappa = (
            "Cohen's kappa is not defined, as both know one topic only"
            if np.isnan(found.kappa)
            else f"Cohen's kappa {found.kappa:.2f} ({found.low:.2f}–{found.high:.2f})"
        )
        return (
            f"{self.first} and {self.second} agree on {found.share:.1%} of {found.documents:,} documents that both "
            f"have labelled; {kappa}."
        )

    def as_json(self) -> dict[str, Any]:
        """For machines; None where a figure is not defined."""
        found = self.agreement
        figures = {name: getattr(found, name) for name in ("share", "kappa", "low", "high")}
        return {
            "first": self.first,
            "second": self.second,
            **{name: getattr(found, name) for name in ("documents", "only_first", "only_second", "neither")},
            **{name: None if np.isnan(value) else value for name, value in figures.items()},
            "topics": list(self.topics),
            "confusion": found.confusion.tolist(),
        }


def label_facts(manifest: Manifest, figures: str = "analyse") -> LabelFacts:
    """Of the labels that the ``figures`` of a step that has been done are of."""
    step = manifest.steps[figures]
    own = COLUMN if step.counts.get("labelled") else None
    source = step.options.get("label_source", own)
    label = manifest.steps.get("label")
    model = label.options.get("model") if label is not None and label.options.get("source") == source else None
    return LabelFacts(source, model)


def kept_sources(run: Run) -> list[str]:
    """The sources whose labels the run keeps, in the order of WORDS."""
    return [source for source in WORDS if run.has(run.labels_path(source))]


def kept_labels(run: Run, source: str) -> Labels:
    table = read_labels(run, source)
    return Labels(source, table["topic"], table["reason"])


def compare(first: Labels, second: Labels) -> Compared:
    """Two sources' agreement; topics that only one of them knows are on both axes."""
    names = [first.topics.to_pylist(), second.topics.to_pylist()]
    counts = Counter(name for name in itertools.chain(*names) if name is not None)
    topics = tuple(sorted(counts, key=lambda topic: (-counts[topic], topic)))
    one, two = (labels_of(each, topics) for each in names)
    return Compared(first.source, second.source, topics, agreement(one, two, len(topics)))


def all_compared(run: Run) -> list[Compared]:
    """Every two kept sources that have labelled anything."""
    found = [labels for source in kept_sources(run) if (labels := kept_labels(run, source)).labelled]
    return [compare(first, second) for first, second in itertools.combinations(found, 2)]
