"""Topic names, embedded by the run's own model in the run's own way: topics.parquet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from core.analysis.topics import original
from core.model.embedder import Embedder, Untrained
from core.model.same_model import Whereabouts, run_model
from core.model.stages import SHARE
from core.runs.manifest import Manifest
from core.runs.parts import digest_of
from core.runs.run import Run
from core.runs.schema import topics_schema
from precompute.job.fingerprint import fingerprint
from precompute.job.progress import silence_transformers

_ALIKE = ("revision", "layer", "pooling", "prompt", "max_tokens")
"""What of the model's record decides a topic's vector."""


@dataclass(frozen=True)
class TopicModel(Whereabouts):
    """How the run's model is found again for the topics' names."""

    def load(self, manifest: Manifest) -> Embedder:
        """The run's model with the run's settings; other weights are refused."""
        silence_transformers()
        return run_model(manifest.model, self, shares=SHARE in manifest.stages)

    def untrained(self, manifest: Manifest, seed: int, check: Callable[[int, str], None]) -> Embedder:
        """The same architecture and tokenizer with random weights; ``check`` may refuse its parameters on a device."""
        return run_model(manifest.model, self, Untrained(seed, check), SHARE in manifest.stages)


@dataclass(frozen=True)
class TopicTable:
    """A file to be written, and what it is made from."""

    path: Path
    table: pa.Table
    digest: str


def topic_tables(
    run: Run, manifest: Manifest, topics: Sequence[str], labels: Sequence[str | None], how: TopicModel
) -> list[TopicTable]:
    """The run's topics and the study's original ones, embedded; what is there already is not embedded again.

    They are written once the step has been recorded as running: a reader never sees new topics with old figures.
    """
    counts = Counter(labels)
    found: list[TopicTable] = []
    embedder: Embedder | None = None
    for path, names in ((run.topics_path, topics), (run.original_topics_path, original())):
        documents = [counts.get(name, 0) for name in names]
        known = {key: manifest.model[key] for key in _ALIKE}
        digest = fingerprint({**known, "topics": list(names), "documents": documents, "stages": list(manifest.stages)})
        if digest_of(path) == digest:
            continue
        embedder = embedder or how.load(manifest)
        embedded = embedder.embed(list(names))
        schema = topics_schema({stage: manifest.shape.width(stage) for stage in manifest.stages})
        columns = [pa.array(names, pa.string()), pa.array(documents, pa.int32())]
        for stage in manifest.stages:
            values = pa.array(np.ascontiguousarray(embedded.stage(stage), dtype=np.float32).reshape(-1))
            columns.append(pa.FixedSizeListArray.from_arrays(values, type=schema.field(f"stage_{stage}").type))
        found.append(TopicTable(path, pa.Table.from_arrays(columns, schema=schema), digest))
    return found
