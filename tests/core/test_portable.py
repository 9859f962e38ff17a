"""Where the system is not Linux: no processor affinity (macOS), no file locks (Windows)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import Mistake
from core.machine import cores

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = """
import os, sys
del os.sched_getaffinity
sys.modules["fcntl"] = None  # its import fails
"""
READS = """
import numpy as np
from pathlib import Path
from core.machine import cores
from core.retrieval.head_index import HeadIndex
from core.runs.run import Run, open_run, run_names
from core.runs.verify import verify
from precompute.engines import local
from precompute.job.fingerprint import part_digest
from precompute.steps.project.config import ProjectConfig
cache = Path(sys.argv[1])
assert run_names(cache) == ["planted"]
run = open_run(cache, "planted")
assert verify(run, part_digest).problems == ()
assert not run.is_locked()
index = HeadIndex.of(run.vectors(1), run.manifest().shape.heads)
assert index.cosines(index.vectors[3])[0].argmax() == 3
assert cores() == ProjectConfig(cache, "planted").cores(10**6) == os.cpu_count()
"""
LOCKS = """
from pathlib import Path
from core.errors import Mistake
from core.runs.run import Run
run = Run(Path(sys.argv[1]), "planted")
for hold in (run.lock(), run.rank(0, "mark"), run.turn("beginning")):
    try:
        with hold:
            raise SystemExit("held")
    except Mistake as mistake:
        print(mistake)
"""


def without(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + program, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_what_only_reads_and_computes_needs_neither(planted_cache: Path) -> None:
    done = without(READS, str(planted_cache))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_job_without_file_locks_is_refused_in_one_sentence(planted_cache: Path) -> None:
    done = without(LOCKS, str(planted_cache))
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.splitlines()) == {
        "This system has no file locks that Headscope can use. Run it on Linux or macOS; on Windows, use WSL or Docker."
    }


def test_processors_are_counted_by_what_the_system_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 3}, raising=False)
    assert cores() == 2
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    assert cores() == 7
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert cores() == 1


def test_the_sentence_is_a_mistake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from core.runs.lock import locked

    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(Mistake, match="Linux or macOS"), locked(tmp_path / "lock", "run"):
        pass
