"""Runs with planted vectors, written to a cache without any model: for benchmarks and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from core.model.embedder import Embedded, Room, in_memory
from core.model.ledger import Ledger, Term
from core.model.shape import ModelShape
from core.model.share_space import ShareSpace
from core.runs.manifest import Manifest, Step
from core.runs.parts import write_part, write_table
from core.runs.run import Run
from core.runs.schema import documents_schema
from core.runs.shares import write_share_space
from precompute.job.fingerprint import part_digest
from precompute.job.topic_vectors import TopicModel

EMBEDDED = "planted"
"""The fingerprint of the step 'embed' of such a run."""


def write_run(
    cache: Path,
    name: str,
    shape: ModelShape,
    vectors: Callable[[int, int, int], np.ndarray],
    labels: Sequence[str | None],
    part_size: int = 1_000,
    stages: tuple[int, ...] = (1, 2, 3),
    dtype: str = "float16",
    texts: list[str] | None = None,
    tokens: Sequence[int] | None = None,
    extra: Mapping[str, tuple[str, Sequence[object]]] | None = None,
    space: ShareSpace | None = None,
) -> Run:
    """A finished run; ``vectors(stage, first, count)`` gives ``[doc, width]`` of the documents from ``first`` on.

    ``extra`` are columns of the corpus's own: their kind, a key of EXTRA_TYPES, and their values. ``space`` is that of
    stage 4.
    """
    extra = extra or {}
    run, count = Run(cache, name), len(labels)
    ids, texts = [f"d{doc}" for doc in range(count)], texts or [f"Document {doc}." for doc in range(count)]
    for number, first in enumerate(range(0, count, part_size)):
        docs = np.arange(first, min(first + part_size, count), dtype=np.int32)
        digest = part_digest(EMBEDDED, ((ids[doc], texts[doc]) for doc in docs))
        for stage in stages:
            write_part(run.part_path(stage, number), docs, vectors(stage, first, len(docs)), dtype, digest, shape.heads)
    if space is not None:
        write_share_space(run, space, EMBEDDED)
    columns: dict[str, Any] = {
        "doc": np.arange(count, dtype=np.int32),
        "id": ids,
        "title": texts,
        "text": texts,
        "url": [None] * count,
        "tokens": list(tokens or [3] * count),
        "truncated": [False] * count,
        "topic": list(labels),
        "label_source": [None if label is None else "column" for label in labels],
        "label_score": [None] * count,
        **{name: list(values) for name, (_, values) in extra.items()},
    }
    kinds = {name: kind for name, (kind, _) in extra.items()}
    write_table(run.documents_path, pa.table(columns, schema=documents_schema(kinds)), EMBEDDED)
    model = {
        "name": "planted",
        "revision": "planted",
        "layer": shape.layers,
        "pooling": "mean",
        "prompt": "",
        "query_prompt": "",
        "max_tokens": 128,
        "dtype": "float32",
        "notes": [],
        **asdict(shape),
    }
    counts = {"parts": -(-count // part_size), "tokens": 3 * count, "truncated": 0, "duplicate": 0}
    manifest = Manifest(
        model=model,
        vectors={"dtype": dtype, "stages": list(stages), "part_size": part_size},
        corpus={"source": "planted", "fingerprint": "planted", "documents": count, "extra": kinds},
        versions={},
        steps={"embed": Step(EMBEDDED, "done", "2026-01-01T00:00:00+00:00", counts=counts)},
    )
    run.write_manifest(manifest)
    return run


def random_space(shape: ModelShape, seed: int = 0) -> ShareSpace:
    """Of heads whose outputs are projected at random."""
    columns = np.random.default_rng(seed).normal(size=(shape.heads, shape.hidden, shape.head_dim))
    return ShareSpace(*(part.astype(np.float32) for part in np.linalg.qr(columns)))


class PlantedTopics(TopicModel):
    """Gives each topic's name the vectors that were planted for it, instead of asking a model; others get noise."""

    def __init__(self, shape: ModelShape, planted: Mapping[int, Mapping[str, np.ndarray]]) -> None:
        """``planted[stage][topic]`` is ``[width]``."""
        super().__init__()
        object.__setattr__(self, "_shape", shape)
        object.__setattr__(self, "_planted", planted)

    def load(self, manifest: Manifest) -> Any:
        return self

    def embed(self, texts: Sequence[str]) -> Embedded:
        shape: ModelShape = self._shape  # type: ignore[attr-defined]
        chance = np.random.default_rng(1)
        rows = []
        for stage in (1, 2, 3, 4):
            noise = chance.normal(size=(len(texts), shape.width(stage))).astype(np.float32)
            known = self._planted.get(stage, {})  # type: ignore[attr-defined]
            rows.append(np.stack([known.get(text, noise[row]) for row, text in enumerate(texts)]).astype(np.float32))
        nothing = np.zeros(len(texts), dtype=np.int32)
        return Embedded(rows[0][None], rows[1][None], rows[2], nothing, nothing.astype(bool), shares=rows[3][None])


FOOTBALL_REPORT = np.concatenate([np.tile(np.eye(8, dtype=np.float32)[0], (3, 1)) + 2, np.eye(8)[:1]])
"""``[head, dim]``: a document about football that ``misnamed_run`` does not have."""


def misnamed_run(cache: Path) -> Run:
    """An analysed run whose heads 1 to 3 carry the topic, but each name points to another topic's documents.

    Head 4 is noise.
    """
    from precompute.steps.analyse import step as analyse

    shape = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
    chance = np.random.default_rng(0)
    directions = np.tile(np.eye(8)[:3], (1, 4)).astype(np.float32)  # [topic, width]
    labels = [("football", "politics", "cooking")[doc % 3] for doc in range(60)]
    vectors = directions[np.arange(60) % 3] + 2 + chance.normal(0, 0.1, size=(60, 32))
    vectors[:, 24:] = chance.normal(size=(60, 8))
    names = {"politics": directions[0], "cooking": directions[1], "football": directions[2]}
    stored = vectors.astype(np.float16)
    run = write_run(cache, "misnamed", shape, lambda _, first, count: stored[first : first + count], labels, 25)
    model = PlantedTopics(shape, dict.fromkeys((1, 2, 3), names))
    analyse.run(analyse.AnalyseConfig(cache, "misnamed", model=model))
    return run


class PlantedLayers(TopicModel):
    """Gives every text the rows that were planted for it at every layer, instead of asking a model."""

    def __init__(self, planted: Callable[[Sequence[str]], Mapping[int, np.ndarray]]) -> None:
        """``planted(texts)`` is, by stage, ``[layer, text, width]``."""
        super().__init__()
        object.__setattr__(self, "_planted", planted)

    def load(self, manifest: Manifest) -> Any:
        object.__setattr__(self, "_shape", manifest.shape)
        return self

    def check_exact(self) -> None:
        """Its ledgers add up."""

    def each_ledger(self, texts: Sequence[str]) -> Iterator[tuple[int, Ledger]]:
        """Of texts that were embedded: head h of layer l has (10 l + h) % of the embedding, the embeddings the rest."""
        shape: ModelShape = self._shape  # type: ignore[attr-defined]
        places = [(layer, head) for layer in range(1, shape.layers + 1) for head in range(1, shape.heads + 1)]
        shares = np.array([(10 * layer + head) / 100 for layer, head in places])
        terms = (Term("embedding"), *(Term("head", layer, head) for layer, head in places))
        for at, text in enumerate(texts):
            output = self._outputs[text]  # type: ignore[attr-defined]
            yield at, Ledger(terms, np.outer([1 - shares.sum(), *shares], output).astype(np.float32), output)

    def every_layer(self, shares: bool = False) -> Any:
        return self

    def embed(
        self, texts: Sequence[str], on_batch: Callable[[int, int], None] = lambda *_: None, room: Room = in_memory
    ) -> Embedded:
        found = self._planted(texts)  # type: ignore[attr-defined]
        rows = {}
        for stage, name in enumerate(("attention", "projected", "outputs"), start=1):
            rows[name] = room(name, found[stage].shape)
            rows[name][:] = found[stage]
        on_batch(len(texts), 3 * len(texts))
        object.__setattr__(self, "_outputs", dict(zip(texts, found[3][-1], strict=True)))
        nothing = np.zeros(len(texts), dtype=np.int32)
        return Embedded(
            rows["attention"], rows["projected"], found[3][-1], nothing, nothing.astype(bool), rows["outputs"]
        )
