"""``export --vectors``: kept heads for FAISS and for stores with a named vector per head."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow.parquet as pq
import pytest

from core.errors import Mistake
from core.model.shape import ModelShape
from core.retrieval.apply import Kept, prune
from precompute import cli
from precompute.vector_export import KINDS, NOT_MAX_SIM, VectorExportConfig, export_vectors
from tests.support.synthetic import write_run

VECTORS = np.array([[3, 4, 1, 0], [0, 2, 0, 5], [1, 0, 0, -1]], dtype=np.float32)
"""Three documents, two heads of two numbers."""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    shape = ModelShape(layers=1, heads=2, kv_heads=2, hidden=4, head_dim=2)
    write_run(tmp_path, "run", shape, lambda _, first, count: VECTORS[first : first + count], ["a", None, "b"], 2)
    return tmp_path


def heads_file(tmp_path: Path, **changed: Any) -> Path:
    given = {"model": "planted", "stage": 1, "heads": 2, "weights": {1: 1.0, 2: 3.0}, "way": "weighted"} | changed
    path = tmp_path / "heads.json"
    path.write_text(Kept(**given).to_json())
    return path


def test_the_choices_of_the_command_are_the_table() -> None:
    assert tuple(KINDS) == cli.VECTOR_KINDS


def test_the_index_ranks_as_the_weighted_mean_of_head_cosines(cache: Path, tmp_path: Path) -> None:
    path = heads_file(tmp_path)
    export_vectors(VectorExportConfig(cache, "run", "faiss", tmp_path / "kept.faiss", path))
    index = faiss.read_index(str(tmp_path / "kept.faiss"))
    query = prune(np.array([[3, 4, 0, 1]], dtype=np.float32), Kept("planted", 1, 2, {1: 1.0, 2: 3.0}, "weighted"))
    scores, docs = index.search(query, 3)
    # Head cosines with the query: (1, 0), (0.8, 1), (0.6, -1); weights 1/4 and 3/4.
    assert docs[0].tolist() == [1, 0, 2]
    np.testing.assert_allclose(scores[0], [0.95, 0.25, -0.6], atol=1e-6)


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_every_head_is_a_vector_of_length_1_by_its_name(kind: str, cache: Path, tmp_path: Path) -> None:
    said = export_vectors(VectorExportConfig(cache, "run", kind, tmp_path / f"all.{kind}"))
    assert NOT_MAX_SIM in said
    if kind == "parquet":
        rows = pq.read_table(tmp_path / "all.parquet").to_pylist()
        found = [{name: row[name] for name in ("head_1", "head_2")} for row in rows]
        assert [(row["doc"], row["id"], row["topic"]) for row in rows] == [
            (0, "d0", "a"),
            (1, "d1", None),
            (2, "d2", "b"),
        ]
    else:
        lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
        found = [line["vector"] for line in lines]
        assert [(line["id"], line["payload"]["topic"]) for line in lines] == [(0, "a"), (1, None), (2, "b")]
    np.testing.assert_allclose([row["head_1"] for row in found], [[0.6, 0.8], [0, 1], [1, 0]], atol=1e-6)
    np.testing.assert_allclose([row["head_2"] for row in found], [[1, 0], [0, 1], [0, -1]], atol=1e-6)


def test_only_kept_heads_leave(cache: Path, tmp_path: Path) -> None:
    path = heads_file(tmp_path, weights={2: 1.0})
    export_vectors(VectorExportConfig(cache, "run", "parquet", tmp_path / "two.parquet", path))
    assert pq.read_schema(tmp_path / "two.parquet").names == ["doc", "id", "title", "topic", "head_2"]


def test_wrong_files_and_places_are_sentences(cache: Path, tmp_path: Path, command: Callable[..., Any]) -> None:
    other = heads_file(tmp_path, model="another")
    (tmp_path / "there.jsonl").write_text("")
    (tmp_path / "bad.json").write_text("[]")
    for heads, to, said in (
        (other, "new.jsonl", "'heads.json' is for another (2 heads), but the run's model is planted (2)."),
        (None, "there.jsonl", "exists already. Give a new file with --to."),
        (tmp_path / "bad.json", "new.jsonl", "is not a heads.json from the Retrieval lab"),
    ):
        with pytest.raises(Mistake) as mistake:
            export_vectors(VectorExportConfig(cache, "run", "jsonl", tmp_path / to, heads))
        assert said in str(mistake.value)
    outcome = command("export", "run", "--cache", cache, "--to", tmp_path / "model")
    assert outcome.status == 2
    assert "Give the heads to switch off with --heads FILE." in outcome.err
