"""Ten times the documents, the same memory: the job holds a part at a time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEASURED = """
import resource, subprocess, sys
status = subprocess.run([sys.executable, "-m", "precompute", *sys.argv[1:]]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""
"""A small process in between: a program counts as its own peak what the one that started it held just then."""


def test_memory_does_not_grow_with_the_corpus(
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    some_rows: Callable[..., list[dict[str, Any]]],
    start_job: Callable[..., subprocess.Popen[str]],
    finish: Callable[..., Any],
) -> None:
    jobs, sources = [], []
    for count in (2_000, 20_000):
        # A short text, and 8 kB beside it: who keeps all documents keeps 144 MB more, over a fifth of what torch takes.
        rows = [{**row, "note": f"{row['n']:08d}" * 1_000} for row in some_rows(count, words=5)]
        sources.append(write_corpus(rows, f"{count}.jsonl"))
        options = ("--source", sources[-1], "--model", tiny_model, "--part-size", 500, "--quiet")
        jobs.append(start_job("embed", f"run-{count}", "--cache", tmp_path, *options, script=MEASURED))
    few, many = map(finish, jobs)
    for source in sources:
        source.unlink()  # pytest keeps its folders for a while
    assert few.status == many.status == 0
    assert int(many.out) <= 1.2 * int(few.out)
