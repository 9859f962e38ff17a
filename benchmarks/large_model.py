"""The rehearsal of SFR-Embedding-Mistral: its width in two layers of random weights, through all steps and pages.

``make bench-large-model``: 4096 wide, 32 heads on 8, bfloat16, on the CPU. Every step is a process of its own, and all
pages are one more, so that each one's memory is its own. Whatever works here at this width and fails with the real
model fails because of its 32 layers or of the GPU. The figures show nothing learned, for nothing was.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.job import step
from benchmarks.result import Result
from core.runs.steps import STEPS
from tests.support import ROOT
from tests.support.peer import DEMO

RUN, MODEL, LAYERS = "rehearsal", "sfr-shape", 2
MOST_GB = 4.5
"""Of any step; 4.2 GB were seen when it was first tried by hand."""
OWN = {
    "embed": ["--source", "{corpus}", "--model", "{model}", "--dtype", "bfloat16", "--max-tokens", "256"],
    "label": ["--labels", "column"],
    "analyse": ["--topics", "labels"],
    "attention": ["--documents", "24"],
    "ablate": ["--documents", "24", "--tokens", "64", "--random", "4"],
}
"""The last two look at fewer documents, for they take longest: ``ablate`` runs the model again for every head."""


def write_corpus(path: Path, documents: int) -> None:
    """The first documents of every topic of the demo."""
    files = [file.read_text(encoding="utf-8").splitlines() for file in sorted(DEMO.glob("*.jsonl"))]
    lines = [line for group in zip(*files, strict=False) for line in group]
    path.write_text("\n".join(lines[:documents]) + "\n", encoding="utf-8")


def pages(cache: Path) -> tuple[float, float]:
    """Seconds and MB of a process that opens every page."""
    command = [sys.executable, "-m", "benchmarks.large", "--do", "walk", "--run", RUN]
    before = time.perf_counter()
    environment = {**os.environ, "HEADSCOPE_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    memory = json.loads(done.stdout.splitlines()[-1])["memory"]
    return time.perf_counter() - before, max(memory.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--without", nargs="+", default=[], choices=list(STEPS), metavar="STEP")
    options = parser.parse_args()
    wanted = [name for name, facts in STEPS.items() if facts.in_all in ("always", "optional", "on request")]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        cache, corpus = Path(folder) / "cache", Path(folder) / "corpus.jsonl"
        os.environ["HEADSCOPE_MODELS"] = folder
        write_corpus(corpus, options.documents)
        # Elsewhere: a process that is started begins with the peak of the one that starts it.
        subprocess.run(
            [sys.executable, "-m", "benchmarks.sfr_shape", str(Path(folder) / MODEL), str(LAYERS)], check=True
        )
        print(f"load {os.getloadavg()[0]:.1f}", flush=True)
        places = {"corpus": str(corpus), "model": str(Path(folder) / MODEL)}
        for name in (name for name in wanted if name not in options.without):
            cost = step(cache, RUN, name, [option.format(**places) for option in OWN.get(name, [])])
            memory = cost.megabytes / 1e3
            results.append(Result(name, f"{cost.seconds:.1f} s, {memory:.1f} GB", f"≤ {MOST_GB} GB", memory <= MOST_GB))
            print(f"{results[-1].what:12}{results[-1].measured}", flush=True)
        seconds, megabytes = pages(cache)
        results.append(Result("all pages", f"{seconds:.1f} s, {megabytes / 1e3:.1f} GB", "≤ 2 GB", megabytes <= 2_000))
    for result in results:
        print(f"{'reached' if result.reached else 'MISSED':8}{result.what:14}{result.measured:24}{result.target}")
    sys.exit(0 if all(result.reached for result in results) else 1)


if __name__ == "__main__":
    main()
