"""Locks where processes come and go: no two hold one name, and nobody is told of a process that has ended."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from core.errors import Mistake
from core.runs.lock import is_locked, locked
from core.runs.run import Run


def test_a_rank_whose_file_was_removed_while_another_waited_is_not_held_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second opens the file, the first ends and removes it: what the second locks then is nobody's name."""
    import fcntl

    run, path = Run(tmp_path, "run"), tmp_path / ".rank0-run"
    real, first = fcntl.flock, True

    def removed_before(file: object, how: int) -> None:
        nonlocal first
        if first:
            first = False
            path.unlink()
        real(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", removed_before)
    with run.rank(0, "mark"):
        assert path.is_file()
        with pytest.raises(Mistake, match="Another job is working"), run.rank(0, "mark"):
            raise AssertionError("rank 0 is held twice")
    assert not path.exists()


def test_many_who_want_the_same_rank_hold_it_one_at_a_time(tmp_path: Path) -> None:
    run, at_once, most, held = Run(tmp_path, "run"), 0, 0, 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal at_once, most, held
        for _ in range(30):
            try:
                with run.rank(0, "mark"):
                    with guard:
                        at_once += 1
                        held += 1
                        most = max(most, at_once)
                    with guard:
                        at_once -= 1
            except Mistake:
                continue

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held >= 30
    assert most == 1


def test_a_job_that_failed_leaves_no_note(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    def job() -> None:
        with locked(path, "run"):
            assert f"process {os.getpid()} " in path.read_text()
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        job()
    assert path.read_text() == ""
    assert not is_locked(path)


def test_a_refusal_does_not_name_a_killed_job_when_others_share_the_run(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("process 4194305 on elsewhere, since 2020-01-01 00:00:00 UTC")
    with locked(path, "run", shared=True), pytest.raises(Mistake) as refused, locked(path, "run"):
        raise AssertionError("held twice")
    assert str(refused.value) == "Another job is working on run 'run'. Wait until it has ended."
