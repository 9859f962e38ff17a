"""A head mask and weights, applied to vectors of the same model made anywhere: NumPy and this file are all it takes.

    kept = read_kept("heads.json")
    docs, query = prune(doc_vectors, kept), prune(query_vectors, kept)
    best = np.argsort(-(docs @ query[0]), kind="stable")

``prune`` gives vectors whose plain product is the lab's score: of the cosine of the full embedding, or of the weighted
mean of head cosines, as ``way`` of the file says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WAYS = ("full", "weighted")


@dataclass(frozen=True)
class Kept:
    """Which heads are kept, of how many, and their weights; heads are counted from 1."""

    model: str
    stage: int
    heads: int
    weights: dict[int, float]
    way: str = "full"

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise ValueError(f"Vectors cannot be made for the way '{self.way}'. Choose one of: {', '.join(WAYS)}.")
        if not self.weights or not all(1 <= head <= self.heads for head in self.weights):
            raise ValueError(f"Heads are numbers from 1 to {self.heads}, at least one. Correct the file's weights.")
        if not all(0 < weight < float("inf") for weight in self.weights.values()):
            raise ValueError("A kept head's weight is a number above 0. Leave heads out that are not to count.")

    def to_json(self) -> str:
        """The file's text; ``weights`` by head number, as JSON's keys are text."""
        about = {"model": self.model, "stage": self.stage, "heads": self.heads, "way": self.way}
        return json.dumps(about | {"weights": {str(head): self.weights[head] for head in sorted(self.weights)}})


def read_kept(path: str | Path) -> Kept:
    """Reads what the lab's download wrote."""
    told = json.loads(Path(path).read_text(encoding="utf-8"))
    weights = {int(head): float(weight) for head, weight in told["weights"].items()}
    return Kept(str(told["model"]), int(told["stage"]), int(told["heads"]), weights, str(told["way"]))


def prune(vectors: np.ndarray, kept: Kept) -> np.ndarray:
    """From ``vectors[doc, head * dim]`` the kept heads', ``[doc, kept * dim]`` in float32, weighted.

    Of length 1 (or 0) each; by the weighted mean of cosines shorter, where a head of the vector is 0.
    """
    vectors = np.atleast_2d(vectors)
    if vectors.shape[1] % kept.heads:
        raise ValueError(
            f"Vectors of {vectors.shape[1]} numbers cannot be cut into {kept.heads} heads. Give those of {kept.model} "
            f"at stage {kept.stage}."
        )
    numbers = sorted(kept.weights)
    roots = np.sqrt([kept.weights[number] for number in numbers])
    parts = vectors.reshape(len(vectors), kept.heads, -1)[:, np.array(numbers) - 1].astype(np.float64)
    if kept.way == "weighted":
        parts = _unit(parts) * roots[:, None] / np.sqrt((roots**2).sum())
        return parts.reshape(len(parts), -1).astype(np.float32)
    return _unit((parts * roots[:, None]).reshape(len(parts), -1)).astype(np.float32)


def _unit(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
