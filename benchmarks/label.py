"""How fast documents are asked about, and in how much memory: ``python -m benchmarks.label [--documents N …]``.

A server that answers in 200 ms, in a process of its own; 500 documents at concurrency 32 against the time that it alone
would take. Then the memory that the asking takes for more and more documents, each size in a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOPICS = ("Cooking", "Sports", "Astronomy")
DELAY, DOCUMENTS, CONCURRENCY = 0.2, 500, 32
_FILLER = "It was a quiet day, and nobody expected what the papers would say about it in the evening. "


@contextlib.contextmanager
def server(delay: float) -> Iterator[str]:
    """The tests' server; its address."""
    command = [sys.executable, "-m", "tests.support.openai_server", "--delay", str(delay), "--topics", *TOPICS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def texts(count: int) -> Iterator[str]:
    """Documents of about 3,000 characters, no two of them alike."""
    for number in range(count):
        yield f"Document {number} is about {TOPICS[number % len(TOPICS)]}. {_FILLER * 32}"


def measure(url: str, documents: int, concurrency: int) -> dict[str, float]:
    """Asks about ``documents`` with an empty store, then with a full one."""
    from precompute.labelling.answers import AnswerStore
    from precompute.labelling.ask import AskConfig, ask

    config = AskConfig(TOPICS, base_url=url, concurrency=concurrency)
    with tempfile.TemporaryDirectory() as folder, AnswerStore(Path(folder) / "answers.sqlite") as answers:
        seconds, busy = [], []
        for _ in range(2):
            began, cpu = time.perf_counter(), time.process_time()
            tally = ask(texts(documents), documents, config, answers, lambda tally: None)
            seconds.append(time.perf_counter() - began)
            busy.append(time.process_time() - cpu)
            assert tally.labelled == documents
    return {
        "documents": documents,
        "seconds": seconds[0],
        "cpu_seconds": busy[0],
        "from_the_store_seconds": seconds[1],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def alone(url: str, documents: int, concurrency: int) -> dict[str, Any]:
    """In a process of its own: memory that was once taken is never given back."""
    command = [sys.executable, "-m", "benchmarks.label", "--measure", url, str(documents), str(concurrency)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, nargs="*", default=[1_000, 10_000, 100_000], help="for the memory")
    parser.add_argument("--repeat", type=int, default=3, help="of the speed")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        url, documents, concurrency = options.measure
        print(json.dumps(measure(url, int(documents), int(concurrency))))
        return
    ideal = math.ceil(DOCUMENTS / CONCURRENCY) * DELAY
    with server(DELAY) as url:
        for _ in range(options.repeat):
            found = alone(url, DOCUMENTS, CONCURRENCY)
            found.update(ideal_seconds=ideal, ratio=found["seconds"] / ideal)
            print(json.dumps({key: round(value, 3) for key, value in found.items()}), flush=True)
    with server(0.0) as url:
        for documents in options.documents:
            found = alone(url, documents, CONCURRENCY)
            print(json.dumps({key: round(value, 3) for key, value in found.items()}), flush=True)


if __name__ == "__main__":
    main()
