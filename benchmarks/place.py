"""Placing points on a map that is there, against the bare search for their neighbours: ``python -m benchmarks.place``.

The same planted head vectors (32 heads × 128) and threads, in turn in the same run. The map is a random projection:
where its points lie changes nothing about the work, only how fast is measured;
how well is measured by tests/precompute/test_project.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.project import DIM, THREADS, head_vectors
from core.maps.place import Placer

TURNS = 3


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of all processors together."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def compare(fitted: int, placed: int) -> dict[str, float]:
    vectors = head_vectors(fitted + placed)
    coordinates = vectors[:fitted] @ np.random.default_rng(0).normal(size=(DIM, 2)).astype(np.float32)
    new, placer = vectors[fitted:], Placer.of(vectors[:fitted], coordinates, THREADS)
    placer.place(new[:100])  # compiled only now
    turns = [(seconds(lambda: placer.place(new)), seconds(lambda: placer.index.search(new, 15))) for _ in range(TURNS)]
    wall, cpu = (statistics.median(own[at] for own, _ in turns) for at in (0, 1))
    return {
        "fitted": fitted,
        "placed": placed,
        "points a second": round(placed / wall),
        "points a second and core": round(placed / cpu),
        "times the search alone": round(statistics.median(own[0] / peer[0] for own, peer in turns), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--fitted", type=int, nargs="+", default=[32_000, 320_000])
    parser.add_argument("--placed", type=int, default=16_000)
    options = parser.parse_args()
    for fitted in options.fitted:
        print(json.dumps(compare(fitted, options.placed)), flush=True)


if __name__ == "__main__":
    main()
