"""Labels of a run's documents: the sources they can come from, and which its figures were computed from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.runs.manifest import Manifest

COLUMN, OPENAI, ZERO_SHOT, FILE = "column", "openai", "zero-shot", "file"

LABEL_SOURCES: dict[str, str] = {
    COLUMN: "the corpus's own topics",
    OPENAI: "a language model's answers",
    ZERO_SHOT: "the nearest topic embedding",
    FILE: "a file",
}
"""Sources of labels, and where each has its topics from."""

CIRCULAR = frozenset({ZERO_SHOT})
"""Sources that the embedding itself made: topic match measures them by the thing that they were made with."""
CIRCULAR_NOTE = (
    "Circular: these labels are the nearest topics themselves (zero-shot), so topic match compares the embedding with "
    "itself."
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
        words = LABEL_SOURCES.get(self.source, "an unknown source")
        return f"{self.source}: {words}" + (f" ({self.model})" if self.model else "")


@dataclass(frozen=True)
class Labels:
    """One source's labels: ``topics[doc]`` and, for documents without a topic, ``reasons[doc]``."""

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


def label_facts(manifest: Manifest, figures: str = "analyse") -> LabelFacts:
    """Of the labels that the ``figures`` of a step that has been done are of."""
    step = manifest.steps[figures]
    own = COLUMN if step.counts.get("labelled") else None
    source = step.options.get("label_source", own)
    label = manifest.steps.get("label")
    model = label.options.get("model") if label is not None and label.options.get("source") == source else None
    return LabelFacts(source, model)


def labels_of(names: Sequence[str | None], topics: Sequence[str]) -> np.ndarray:
    """Topic names as indices into ``topics``; -1 for none, and for one that is not among them."""
    index = {topic: number for number, topic in enumerate(topics)}
    return np.array([index.get(name, -1) if name is not None else -1 for name in names], dtype=np.int64)


def label_codes(names: pa.ChunkedArray, topics: Sequence[str]) -> np.ndarray:
    """``labels_of`` of a column, however long it is."""
    found = pc.index_in(names, value_set=pa.array(topics, pa.string()), skip_nulls=True)
    return np.asarray(pc.fill_null(found, -1).to_numpy().astype(np.int64))


def own_codes(names: pa.ChunkedArray) -> np.ndarray:
    """The same where the topics are those that occur, in alphabetical order."""
    return label_codes(names, sorted(names.drop_null().unique().to_pylist()))


def own(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Each document's similarity to its own topic: ``[doc, …, topic] -> [doc, …]``; NaN where ``labels`` is -1."""
    found = np.take_along_axis(values, np.maximum(labels, 0)[:, None, None], axis=2)[:, :, 0].astype(np.float32)
    found[labels < 0] = np.nan
    return found
