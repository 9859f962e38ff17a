"""Corpora, and the job on them: within this process or as a process of its own."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.models import WORDS


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def write_corpus(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows as JSON lines and returns the file; a string is written as it is."""

    def write(rows: list[Any], name: str = "corpus.jsonl") -> Path:
        path = tmp_path / "corpora" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return write


@pytest.fixture(scope="session")
def some_rows() -> Callable[..., list[dict[str, Any]]]:
    """``count`` rows with different texts of ``words`` words each, always the same ones."""

    def rows(count: int, words: int = 6) -> list[dict[str, Any]]:
        chosen = random.Random(7)
        return [
            {"id": f"d{number}", "text": f"{number} {' '.join(chosen.choices(WORDS, k=words))}", "n": number}
            for number in range(count)
        ]

    return rows


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """``python -m precompute …`` within this process."""

    def call(*arguments: object) -> Outcome:
        from precompute.cli import main

        capfd.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as exit_:  # argparse
            status = int(exit_.code or 0)
        return Outcome(status, *capfd.readouterr())

    return call


@pytest.fixture
def start_job() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts ``python -m precompute …`` (or ``python -c script …``) as a process of its own.

    A ``cold`` one imports all that it needs itself, for tests of what that says or takes.
    """
    from tests.support.warm import WarmPopen

    started: list[subprocess.Popen[str]] = []

    def start(
        *arguments: object,
        script: str | None = None,
        cold: bool = sys.platform != "linux",
        preexec_fn: Callable[[], None] | None = None,
    ) -> subprocess.Popen[str]:
        program = ["-m", "precompute"] if script is None else ["-c", script]
        popen = subprocess.Popen if cold or preexec_fn else WarmPopen
        process = popen(
            [sys.executable, *program, *(str(argument) for argument in arguments)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # two jobs at once share two cores
            preexec_fn=preexec_fn,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def finish() -> Callable[[subprocess.Popen[str]], Outcome]:
    """Waits for a job and returns what it left behind."""

    def wait(process: subprocess.Popen[str]) -> Outcome:
        out, err = process.communicate(timeout=300)
        return Outcome(process.returncode, out, err)

    return wait
