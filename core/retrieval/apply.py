"""A head mask and weights, applied to vectors of the same model made anywhere: NumPy and this file are all it takes.

    kept = read_kept("heads.json")
    docs, query = prune(doc_vectors, kept), prune(query_vectors, kept)
    best = np.argsort(-(docs @ query[0]), kind="stable")

``prune`` gives vectors whose plain product is the lab's score: of the cosine of the full embedding, or of the weighted
mean of head cosines, as ``way`` of the file says.

A file of stage 4 has the way ``embedding``: heads turned up and down in the model's own embedding. ``turn`` makes that
of stored shares, the directions that the lab offers beside the file, and, where ``rest`` is kept, the embeddings
(stage 3):

    docs = turn(doc_shares, kept, np.load("directions.npy"), doc_embeddings)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WAYS = ("full", "weighted", "embedding")


@dataclass(frozen=True)
class Kept:
    """Which heads are kept, of how many, and their weights; heads are counted from 1."""

    model: str
    stage: int
    heads: int
    weights: dict[int, float]
    way: str = "full"
    rest: bool = True
    """By ``embedding``: whether what no head of the layer adds is kept."""

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise ValueError(f"Vectors cannot be computed for the way '{self.way}'. Choose one of: {', '.join(WAYS)}.")
        if not self.weights or not all(1 <= head <= self.heads for head in self.weights):
            raise ValueError(f"Heads are numbers from 1 to {self.heads}, at least one. Correct the file's weights.")
        if not all(0 < weight < float("inf") for weight in self.weights.values()):
            raise ValueError("The weight of a kept head must be above 0. Leave out heads that should not count.")

    def to_json(self) -> str:
        """The file's text; ``weights`` by head number, as JSON's keys are text."""
        about: dict[str, object] = {
            "model": self.model, "stage": self.stage, "heads": self.heads, "way": self.way
        }  # fmt: skip
        if self.way == "embedding":
            about["rest"] = self.rest
            about["meaning"] = f"{'rest + ' if self.rest else ''}sum over heads of weight times share, then length 1"
        return json.dumps(about | {"weights": {str(head): self.weights[head] for head in sorted(self.weights)}})


def read_kept(path: str | Path) -> Kept:
    """Reads what the lab's download wrote."""
    told = json.loads(Path(path).read_text(encoding="utf-8"))
    weights = {int(head): float(weight) for head, weight in told["weights"].items()}
    rest = bool(told.get("rest", True))
    return Kept(str(told["model"]), int(told["stage"]), int(told["heads"]), weights, str(told["way"]), rest)


def prune(vectors: np.ndarray, kept: Kept) -> np.ndarray:
    """From ``vectors[doc, head * dim]`` the kept heads', ``[doc, kept * dim]`` in float32, weighted.

    Of length 1 (or 0) each; by the weighted mean of cosines shorter, where a head of the vector is 0.
    """
    if kept.way == "embedding":
        raise ValueError("The file reweights heads in the model's own embedding. Use turn, not prune.")
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


def turn(shares: np.ndarray, kept: Kept, directions: np.ndarray, embeddings: np.ndarray | None = None) -> np.ndarray:
    """The model's own embedding with heads turned up and down, ``[doc, hidden]`` in float32, of length 1 (or 0) each.

    ``shares[doc, head * dim]`` are stage 4 as stored, ``directions[head, hidden, dim]`` those of its space. With
    ``kept.rest`` it takes the model's ``embeddings[doc, hidden]``, as they are, too: the rest is what they have beside
    the shares.
    """
    heads, hidden, dim = directions.shape
    shares = np.atleast_2d(shares)
    if kept.way != "embedding" or heads != kept.heads or shares.shape[1] != heads * dim:
        raise ValueError(f"Give shares of {kept.model} at stage 4, {kept.heads} heads, and a file of that stage.")
    if kept.rest and embeddings is None:
        raise ValueError("The file keeps the rest, so the model's embeddings (stage 3) are needed too.")
    weights = np.array([kept.weights.get(head, 0.0) for head in range(1, heads + 1)])
    # rest + Σ weight · share, with rest = embedding - Σ share
    factors = np.repeat(weights - 1 if kept.rest else weights, dim)
    flat = directions.transpose(0, 2, 1).reshape(heads * dim, hidden)
    turned = (shares.astype(np.float64) * factors) @ flat.astype(np.float64)
    if kept.rest:
        turned += np.atleast_2d(embeddings)  # type: ignore[arg-type]
    return _unit(turned).astype(np.float32)


def _unit(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
