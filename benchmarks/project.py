"""Maps against scikit-learn's and openTSNE's own t-SNE: ``python -m benchmarks.project [--points N …]``.

The same planted head vectors (32 heads × 128), perplexity, iterations and threads, one after the other in the same
run, each in a process of its own so that its peak of memory is its own. Up to 30,000 points the peer is scikit-learn;
above, where that would take hours, openTSNE with its defaults. Both maps are judged by the same nearest neighbours:
how many of a point's ten true neighbours are among its ten on the map, and the KL divergence.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HEADS, DIM, PERPLEXITY, ITERATIONS = 32, 128, 30, 750
THREADS = os.cpu_count() or 1


def head_vectors(points: int, seed: int = 0) -> np.ndarray:
    """``[point, dim]``: documents of 25 topics seen by 32 heads, each through a map of its own, with noise."""
    chance = np.random.default_rng(seed)
    docs = -(-points // HEADS)
    latent = chance.normal(size=(25, 24))[chance.integers(25, size=docs)] + 0.7 * chance.normal(size=(docs, 24))
    vectors = np.empty((docs, HEADS, DIM), dtype=np.float32)
    for head in range(HEADS):
        seen = chance.normal(size=(24, DIM)) * (0.9 ** np.arange(24))[:, None] / np.sqrt(24)
        centre = 0.5 * chance.normal(size=DIM)
        vectors[:, head] = centre + latent @ seen + 0.25 * chance.normal(size=(docs, DIM))
    return vectors.reshape(-1, DIM)[:points]


def headscope(vectors: np.ndarray) -> np.ndarray:
    from core.maps.tsne import MapConfig, fit

    return fit("opentsne", vectors, MapConfig(PERPLEXITY, ITERATIONS, threads=THREADS)).coordinates


def scikit_learn(vectors: np.ndarray) -> np.ndarray:
    from sklearn.manifold import TSNE

    model = TSNE(perplexity=PERPLEXITY, max_iter=ITERATIONS, init="pca", random_state=0, n_jobs=THREADS)
    return np.asarray(model.fit_transform(vectors))


def opentsne(vectors: np.ndarray) -> np.ndarray:
    from openTSNE import TSNE

    return np.asarray(TSNE(perplexity=PERPLEXITY, n_jobs=THREADS, random_state=0).fit(vectors))


CONTENDERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "headscope": headscope,
    "scikit-learn": scikit_learn,
    "openTSNE": opentsne,
}


def measure(name: str, points: int, path: Path) -> dict[str, float]:
    """Runs one contender in this process; its map goes to ``path``."""
    vectors = head_vectors(points)
    CONTENDERS[name](vectors[:2_000])  # imports and compiles
    began = time.perf_counter()
    np.save(path, CONTENDERS[name](vectors))
    return {"seconds": time.perf_counter() - began, "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def judge(vectors: np.ndarray, maps: dict[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """The share of true neighbours kept by each of the maps, and its KL divergence."""
    from core.maps.neighbours import Index
    from core.maps.repulsion import RepulsionGrid, divergence
    from core.maps.tsne import MapConfig, affinities

    chosen = np.random.default_rng(1).choice(len(vectors), min(5_000, len(vectors)), replace=False)
    true = Index(vectors, THREADS, exact=True).search(vectors[chosen], 11).points
    graph = affinities(vectors, MapConfig(PERPLEXITY, threads=THREADS)).astype(np.float32)
    verdicts = {}
    for name, places in maps.items():
        near = Index(places, THREADS, exact=True).search(places[chosen], 11).points
        kept = [len(np.intersect1d(a[a != i], b[b != i])) / 10 for i, a, b in zip(chosen, true, near, strict=True)]
        normaliser = RepulsionGrid(0.2, THREADS).field(places).at(places).potential.sum(dtype=np.float64) - len(places)
        kl = divergence(graph, places, places).sum() + np.log(normaliser)
        verdicts[name] = {"recall_at_10": float(np.mean(kept)), "kl": float(kl)}
    return verdicts


def compare(points: int, peer: str) -> dict[str, Any]:
    """Both at ``points``, and the ratios that count."""
    found: dict[str, Any] = {"points": points, "iterations": ITERATIONS, "threads": THREADS}
    maps = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in (peer, "headscope"):
            path = Path(folder) / "map.npy"
            command = [sys.executable, "-m", "benchmarks.project", "--measure", name, str(points), str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[name] = json.loads(done.stdout)
            maps[name] = np.load(path)
    for name, verdict in judge(head_vectors(points), maps).items():
        found[name] |= verdict
        found[name] = {key: round(value, 4) for key, value in found[name].items()}
    found["times_faster"] = round(found[peer]["seconds"] / found["headscope"]["seconds"], 2)
    found["recall_ratio"] = round(found["headscope"]["recall_at_10"] / found[peer]["recall_at_10"], 4)
    found["kl_ratio"] = round(found["headscope"]["kl"] / found[peer]["kl"], 4)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, nargs="+", default=[10_000, 30_000, 320_000])
    parser.add_argument("--peer", choices=[name for name in CONTENDERS if name != "headscope"])
    parser.add_argument("--measure", nargs=3, metavar=("NAME", "POINTS", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, points, path = options.measure
        print(json.dumps(measure(name, int(points), Path(path))))
        return
    for points in options.points:
        peer = options.peer or ("scikit-learn" if points <= 30_000 else "openTSNE")
        print(json.dumps(compare(points, peer)), flush=True)


if __name__ == "__main__":
    main()
