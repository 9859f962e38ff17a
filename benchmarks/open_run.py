"""``python -m benchmarks.open_run``: what ``headscope.open_run`` takes on a million documents.

The run is planted (tiny vectors, one line of text per document, every file with its checksum in the manifest), and
opened by a process of its own. Targets: importing takes at most 0.5 s without torch, opening 1 s and 300 MB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from benchmarks.result import Result
from core.model.shape import ModelShape
from core.runs.run import Run
from core.settings import PROJECT
from tests.support.synthetic import write_run

DOCUMENTS = 1_000_000
SHAPE = ModelShape(layers=2, heads=2, kv_heads=2, hidden=4, head_dim=2)
TIMES = 5
"""Processes; the fastest counts, for other work of the machine only ever adds."""
OPEN = """
import json, sys, time
def most():
    lines = open("/proc/self/status").read().splitlines()  # getrusage counts the process that started this one
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
def step(name, act):
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    found[name] = [time.perf_counter() - wall, time.process_time() - cpu, most()]
found = {}
step("import", lambda: __import__("headscope"))
import headscope
step("open", lambda: globals().update(run=headscope.open_run("large", cache=sys.argv[1])))
found["torch"] = "torch" in sys.modules
step("repr", lambda: repr(run))
step("stages", lambda: run.tables)
step("one column", lambda: run.read_documents(["topic"]))
print(json.dumps(found))
"""


def planted(cache: Path, documents: int) -> Run:
    """The run, made where it is not there."""
    run = Run(cache, "large")
    if run.exists():
        return run
    chance = np.random.default_rng(0)
    labels = [("river", "engine", "harbour")[doc % 3] for doc in range(documents)]
    write_run(cache, run.name, SHAPE, lambda stage, first, count: chance.normal(size=(count, 4)), labels)
    files = sorted(path for path in run.folder.rglob("*.parquet"))
    sums = {path.relative_to(run.folder).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files}
    run.write_manifest(replace(run.manifest(), files=sums))
    return run


def opened(cache: Path) -> tuple[dict[str, list[float]], bool]:
    """By step, the least seconds, seconds of the processor and MB of some processes; and whether torch was imported."""
    found = []
    for _ in range(TIMES):
        told = subprocess.run([sys.executable, "-c", OPEN, str(cache)], cwd=PROJECT, check=True, capture_output=True)
        found.append(json.loads(told.stdout))
    torch = any(one.pop("torch") for one in found)
    return {step: [min(one[step][at] for one in found) for at in range(3)] for step in found[0]}, torch


def main(cache: Path, documents: int) -> list[Result]:
    run = planted(cache, documents)
    size = (run.folder / "manifest.json").stat().st_size / 2**20
    found, torch = opened(cache)
    for name, told in found.items():
        print(f"{name:<12} {told[0]:7.3f} s  {told[1]:7.3f} s of the processor  {told[2]:6.0f} MB at the most")
    print(f"manifest: {size:.2f} MB, {documents:,} documents")
    seconds, _, memory = found["open"]
    return [
        Result(
            "import headscope",
            f"{found['import'][0]:.2f} s",
            "0.5 s, no torch",
            found["import"][0] <= 0.5 and not torch,
        ),
        Result("open_run", f"{seconds:.2f} s", "1 s", seconds <= 1),
        Result("memory after opening", f"{memory:.0f} MB", "300 MB", memory <= 300),
    ]


if __name__ == "__main__":
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTS
    with tempfile.TemporaryDirectory() as folder:
        for result in main(Path(folder), documents):
            print(f"{result.what}: {result.measured} (target {result.target}){'' if result.reached else '  MISSED'}")
