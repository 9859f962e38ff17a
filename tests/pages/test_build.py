"""The demo built by a button: what the job reports is read while it talks on both of its pipes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pages.shared import build
from pages.shared.build import Build

pytestmark = pytest.mark.slow
SOON = 60.0


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Build]:
    """A build whose job is a script."""

    def start(script: str) -> Build:
        file = tmp_path / "job"
        file.write_text(f"#!{sys.executable}\n{script}")
        file.chmod(0o755)
        monkeypatch.setattr(build.sys, "executable", str(file))
        return Build(tmp_path)

    return start


def ended(found: Build) -> Build:
    try:
        found._reader.join(SOON)
        assert not found.running, "the job hangs"
    finally:
        found._process.kill()
    return found


MANY = 'import json, sys\nfor line in range(4_000):\n    print("x" * 50, file=sys.stderr)\n'
"""200 kB: a pipe holds 64."""


def test_a_job_that_warns_at_length_goes_on(job: Callable[[str], Build]) -> None:
    found = ended(job(MANY + 'print(json.dumps({"step": "embed", "sentence": "done", "fraction": 0.75}))'))
    assert (found.fraction, found.sentence, found.problem) == (0.75, "embed: done", "")


def test_the_last_words_of_a_job_that_fails_are_its_problem(job: Callable[[str], Build]) -> None:
    found = ended(job(MANY + 'print("headscope: The disk is full.\\n", file=sys.stderr)\nsys.exit(1)'))
    assert found.problem == "The disk is full."


def test_a_job_that_fails_without_a_word(job: Callable[[str], Build]) -> None:
    assert ended(job("import sys; sys.exit(1)")).problem == "The job stopped without an error message."
