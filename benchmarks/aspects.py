"""How long the step aspects takes, and how much memory: ``python -m benchmarks.aspects [--documents N]``.

Planted head vectors, 32 heads × 128 at three stages, three aspects: 25 topics, 10 genres, 4 languages. The run is
written first, in a process of its own, so that the peak is the step's.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from core.analysis.topics import merged
from core.machine import cores
from core.model.shape import ModelShape
from tests.support.synthetic import write_run

SHAPE = ModelShape(layers=32, heads=32, kv_heads=8, hidden=4096, head_dim=128)


def build(cache: Path, documents: int) -> None:
    """A run 'big' whose head 1 leans towards the topic and head 2 towards the genre."""
    chance = np.random.default_rng(0)
    topic, genre, language = (chance.integers(values, size=documents) for values in (25, 10, 4))
    of_topic, of_genre = chance.normal(size=(25, 128)), chance.normal(size=(10, 128))

    def vectors(stage: int, first: int, count: int) -> np.ndarray:
        found = np.random.default_rng([stage, first]).normal(size=(count, 32, 128))
        found[:, 0] += 0.3 * of_topic[topic[first : first + count]]
        found[:, 1] += 0.3 * of_genre[genre[first : first + count]]
        return found.reshape(count, -1).astype(np.float16)

    write_run(
        cache,
        "big",
        SHAPE,
        vectors,
        [merged()[code] for code in topic],
        texts=[f"{doc} " + " ".join(map(str, chance.integers(10_000, size=300))) for doc in range(documents)],
        extra={
            "genre": ("string", [f"genre {code}" for code in genre]),
            "language": ("string", [f"language {code}" for code in language]),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=10_000)
    documents = parser.parse_args().documents
    from precompute.steps.aspects.step import AspectsConfig, run

    with tempfile.TemporaryDirectory() as folder:
        writer = multiprocessing.get_context("spawn").Process(target=build, args=(Path(folder), documents))
        writer.start()
        writer.join()
        began, used = time.perf_counter(), time.process_time()
        result = run(AspectsConfig(Path(folder), "big"))
        found = {
            "documents": documents,
            "aspects": result.manifest.steps["aspects"].counts["aspects"],
            "seconds": round(time.perf_counter() - began, 1),
            "processor_seconds": round(time.process_time() - used, 1),
            "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
            "cores": cores(),
            "load_after": round(os.getloadavg()[0], 1),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
