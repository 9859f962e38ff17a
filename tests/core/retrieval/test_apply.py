"""Vectors that were pruned elsewhere rank documents as the lab does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from core.retrieval.apply import Kept, prune, read_kept
from core.retrieval.head_index import HeadIndex
from core.retrieval.ways import Heads, Seen, rank


@pytest.mark.parametrize("way", ["full", "weighted"])
@given(seed=some.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_product_of_pruned_vectors_is_the_score(way: str, seed: int) -> None:
    chance = np.random.default_rng(seed)
    docs, query = chance.normal(size=(60, 5 * 4)).astype(np.float32), chance.normal(size=20).astype(np.float32)
    weights = np.where(chance.random(5) < 0.5, 0, chance.uniform(0.1, 3, size=5))
    weights[seed % 5] = 1
    kept = Kept("a model", 1, 5, {head + 1: float(weight) for head, weight in enumerate(weights) if weight}, way)
    found = rank(way, Seen.of(HeadIndex.of([docs], 5), query.reshape(5, 4)), Heads(weights, np.ones(5)), 60)
    products = prune(docs, kept) @ prune(query, kept)[0]
    assert products[found.docs] == pytest.approx(found.scores, abs=1e-5)
    assert prune(docs, kept).shape == (60, 4 * (weights > 0).sum())


def test_by_hand() -> None:
    """Two heads of two numbers, the second kept alone: 3 and 4 become 0.6 and 0.8."""
    assert prune(np.array([[1.0, 2, 3, 4]]), Kept("m", 1, 2, {2: 5.0})).tolist() == [pytest.approx([0.6, 0.8])]
    # Weights 4 and 1: roots 2 and 1; by the weighted mean each head is a unit vector, over the root of 5.
    both = prune(np.array([1.0, 0, 3, 4]), Kept("m", 1, 2, {1: 4.0, 2: 1.0}, "weighted"))[0]
    assert both == pytest.approx(np.array([2, 0, 0.6, 0.8]) / 5**0.5)


def test_the_file_comes_back(tmp_path: Path) -> None:
    kept = Kept("a model", 2, 12, {10: 0.25, 3: 1.0}, "weighted")
    (tmp_path / "heads.json").write_text(kept.to_json(), encoding="utf-8")
    assert read_kept(tmp_path / "heads.json") == kept


@pytest.mark.parametrize(
    ("weights", "way", "sentence"),
    [
        ({}, "full", "from 1 to 4"),
        ({5: 1.0}, "full", "from 1 to 4"),
        ({1: 0.0}, "full", "above 0"),
        ({1: float("nan")}, "full", "above 0"),
        ({1: 1.0}, "voting", "Choose one of: full, weighted"),
    ],
)
def test_what_cannot_be_applied(weights: dict[int, float], way: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Kept("m", 1, 4, weights, way)


def test_vectors_of_another_model_are_refused() -> None:
    with pytest.raises(ValueError, match="10 numbers cannot be cut into 4 heads"):
        prune(np.ones((1, 10)), Kept("m", 1, 4, {1: 1.0}))


@pytest.mark.slow
def test_it_takes_numpy_and_the_file_alone(tmp_path: Path) -> None:
    """Copied out of the project, it runs, and imports nothing else of it."""
    source = Path(__file__).resolve().parents[3] / "core" / "retrieval" / "apply.py"
    (tmp_path / "apply.py").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    told = "import sys, apply; print(sorted({'core', 'torch', 'pandas', 'pyarrow'} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", told], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
