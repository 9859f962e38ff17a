"""The engines against each other, against faults, and against size: ``python -m benchmarks.engines``.

(i) A Ray cluster of two nodes on this machine loses a worker and then a node; what comes out is compared with the
local engine's, document by document. (ii) Ray's overhead: the same documents by as many replicas on both engines, turn
by turn, after start-up. (iii) Ten and a hundred times the documents on the local engine: time a document, peak memory.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

from benchmarks.ray_nodes import ENVIRONMENT, cluster
from benchmarks.result import Result
from benchmarks.tiny_model import save_tiny_model, write_corpus
from core.runs.run import Run
from precompute.steps.embed.staging import finished_paths

FAULTS, OVERHEAD, GROWTH = 20_000, 5_000, (2_000, 20_000, 200_000)
"""Documents."""
MOST_OVERHEAD, TIME_DRIFT, MEMORY_DRIFT = 1.25, 0.15, 0.20
_MEASURED = """
import os, sys
program = [sys.executable, "-m", "precompute", *sys.argv[1:]]
_, status, used = os.wait4(os.spawnv(os.P_NOWAIT, sys.executable, program), 0)
print(used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A small process in between: a program counts as its own peak what the one that started it held just then."""


@dataclass(frozen=True)
class Ended:
    """A job that went well."""

    run: Run
    wall: float
    megabytes: float
    """The peak of the job's own process."""

    @property
    def seconds(self) -> float:
        """Of the step, from the first loaded model on."""
        return self.run.manifest().steps["embed"].seconds


def start(cache: Path, name: str, source: Path, model: str, *options: object) -> subprocess.Popen[str]:
    arguments = [
        "embed",
        name,
        "--cache",
        cache,
        "--source",
        source,
        "--model",
        model,
        "--replace",
        "--quiet",
        *options,
    ]
    return subprocess.Popen(
        [sys.executable, "-c", _MEASURED, *map(str, arguments)],
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        text=True,
    )


def embed(cache: Path, name: str, source: Path, model: str, *options: object) -> Ended:
    began = time.monotonic()
    job = start(cache, name, source, model, *options)
    out, _ = job.communicate()
    if job.returncode:
        sys.exit(f"the job '{name}' ended with status {job.returncode}")
    return Ended(Run(cache, name), time.monotonic() - began, int(out.split()[-1]) / 1e3)


def faults(folder: Path, documents: int) -> Result:
    """A worker, then a whole node killed while a cluster of two is at work."""
    model, source = str(save_tiny_model(folder / "tiny")), write_corpus(folder / "faults.jsonl", documents)
    size = max(10, documents // 100)
    local = embed(folder, "local", source, model, "--part-size", size).run
    run, parts = Run(folder, "ray"), -(-documents // size)
    with cluster() as (address, nodes):
        options = ("--engine", "ray", "--ray-address", address, "--workers", 2, "--part-size", size)
        job = start(folder, "ray", source, model, *options)
        _wait(job, lambda: len(finished_paths(run)) >= parts // 5 and all(node.replicas() for node in nodes))
        os.kill(nodes[0].replicas()[0], signal.SIGKILL)
        at = [len(finished_paths(run))]
        _wait(job, lambda: len(finished_paths(run)) >= parts // 2)
        nodes[1].kill()
        at.append(len(finished_paths(run)))
        job.communicate()
        if job.returncode:
            sys.exit(f"the job on Ray ended with status {job.returncode}")
    differing = _differing(local, run)
    killed = f"a worker was killed after {at[0]}, a node after {at[1]} of {parts} parts"
    return Result(
        f"{documents:,} documents on two Ray nodes",
        f"{killed}; {differing:,} documents differ from the local engine's",
        "0 differ",
        differing == 0,
    )


def overhead(folder: Path, documents: int, rounds: int) -> list[Result]:
    """Ray against the local engine, two replicas of MiniLM each."""
    source = write_corpus(folder / "overhead.jsonl", documents)
    options = ("--part-size", 250, "--workers", 2)
    seconds: dict[str, list[float]] = {"local": [], "ray": []}
    waited: dict[str, list[float]] = {"local": [], "ray": []}
    for turn in range(rounds):
        for engine in ("local", "ray") if turn % 2 else ("ray", "local"):
            ended = embed(folder, f"overhead-{engine}", source, "all-MiniLM-L6-v2", "--engine", engine, *options)
            seconds[engine].append(ended.seconds)
            waited[engine].append(ended.wall - ended.seconds)
            print(f"  {engine}: {ended.seconds:.1f} s after {ended.wall - ended.seconds:.1f} s of start-up", flush=True)
    ratio = statistics.median(ray / local for ray, local in zip(seconds["ray"], seconds["local"], strict=True))
    differing = _differing(Run(folder, "overhead-local"), Run(folder, "overhead-ray"))
    begun = ", ".join(f"{engine} {statistics.median(values):.1f} s" for engine, values in waited.items())
    return [
        Result(
            f"{documents:,} documents by two replicas of MiniLM",
            f"ray takes {ratio:.2f} × the local engine's time (start-up apart: {begun})",
            f"≤ {MOST_OVERHEAD} ×",
            ratio <= MOST_OVERHEAD,
        ),
        Result("the same documents", f"{differing:,} differ", "0 differ", differing == 0),
    ]


def growth(folder: Path, counts: tuple[int, ...]) -> list[Result]:
    """Time a document and peak memory as the corpus grows."""
    model = str(save_tiny_model(folder / "tiny"))
    each, memory = [], []
    for count in counts:
        source = write_corpus(folder / f"{count}.jsonl", count)
        ended = embed(folder, f"growth-{count}", source, model)
        each.append(ended.seconds / count * 1e3)
        memory.append(ended.megabytes)
        print(f"  {count:,}: {each[-1]:.3f} ms a document, {memory[-1]:,.0f} MB at most", flush=True)
        source.unlink()
    results = []
    for what, unit, values, drift in (
        ("time a document", "ms", each, TIME_DRIFT),
        ("peak memory", "MB", memory, MEMORY_DRIFT),
    ):
        # The first is what the others are measured by: of so few documents it is mostly the beginning.
        worst = max(abs(value / values[1] - 1) for value in values[2:]) if len(values) > 2 else 0.0
        shown = " → ".join(f"{value:,.3g}" if unit == "ms" else f"{value:,.0f}" for value in values)
        measured = f"{shown} {unit} for {' → '.join(f'{count:,}' for count in counts)} documents, {worst:.1%} apart"
        results.append(Result(what, measured, f"±{drift:.0%} beyond the first", worst <= drift))
    return results


def _wait(job: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    while not happened():
        if job.poll() is not None:
            sys.exit("the job ended before it could be disturbed")
        time.sleep(0.02)


def _differing(one: Run, other: Run) -> int:
    """Documents that are not the same, in any column of theirs or any number of their vectors."""
    ours, theirs = one.documents(), other.documents()
    if len(ours) != len(theirs):
        return max(len(ours), len(theirs))
    same = np.ones(len(ours), dtype=bool)
    for name in ours.column_names:
        pairs = zip(ours[name].to_pylist(), theirs[name].to_pylist(), strict=True)
        same &= np.asarray([a == b for a, b in pairs])
    for stage in one.manifest().stages:
        first = 0
        for left, right in zip(one.vectors(stage), other.vectors(stage), strict=True):
            same[first : first + len(left)] &= (left == right).all(axis=1)
            first += len(left)
    return int((~same).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", choices=("faults", "overhead", "growth"))
    parser.add_argument("--share", type=float, default=1.0, help="of the documents, to try it out")
    parser.add_argument("--rounds", type=int, default=3, help="of the comparison with Ray")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    counts = tuple(int(count * options.share) for count in GROWTH)
    measures: dict[str, Callable[[Path], list[Result]]] = {
        "faults": lambda folder: [faults(folder, int(FAULTS * options.share))],
        "overhead": lambda folder: overhead(folder, int(OVERHEAD * options.share), options.rounds),
        "growth": lambda folder: growth(folder, counts),
    }
    from transformers.utils import logging

    logging.disable_progress_bar()
    for name, measure in measures.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                results = measure(Path(folder))
            for result in results:
                reached = "reached" if result.reached else "MISSED "
                print(f"{reached}  {result.what}: {result.measured}, target {result.target}", flush=True)


if __name__ == "__main__":
    main()
