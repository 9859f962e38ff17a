"""Topic names, embedded by the run's own model in the run's own way: topics.parquet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from core.embedder import Embedder, EmbedderConfig
from core.errors import Mistake
from core.manifest import Manifest
from core.schema import topics_schema
from core.store import Run, digest_of, write_table
from core.topics import original
from precompute.fingerprint import fingerprint

_ALIKE = ("revision", "layer", "pooling", "prompt", "max_tokens")
"""What of the model's record decides a topic's vector."""


@dataclass(frozen=True)
class TopicModel:
    """How the run's model is found again; by its name if nothing is said."""

    model: str | None = None
    device: str | None = None
    trust_remote_code: str | None = None
    models_dir: Path | None = None

    def load(self, manifest: Manifest) -> Embedder:
        """The run's model with the run's settings; other weights are refused."""
        record = manifest.model
        name = self.model or str(record["name"])
        config = EmbedderConfig(
            model=name,
            layers=(record["layer"],),
            pooling=record["pooling"],
            prompt=record["prompt"],
            max_tokens=record["max_tokens"],
            device=self.device,
            trust_remote_code=self.trust_remote_code,
            models_dir=self.models_dir,
        )
        try:
            files = config.locate()
        except Mistake as mistake:
            if self.model:
                raise
            raise Mistake(
                f"{mistake} The topics' names need the run's own model; if it is a folder, give --model."
            ) from mistake
        if files.revision != record["revision"]:
            raise Mistake(
                f"The model '{name}' is not the one that made this run's vectors ({record['name']}): its weights "
                "differ. Give the right one with --model."
            )
        return Embedder.load(config, files)


def write_topics(
    run: Run, manifest: Manifest, topics: Sequence[str], labels: Sequence[str | None], how: TopicModel
) -> None:
    """Writes the run's topics and the study's original ones; what is there already is not embedded again."""
    counts = Counter(labels)
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
        write_table(path, pa.Table.from_arrays(columns, schema=schema), digest)
