"""Ranks with an object store between them: each machine has its own mirror, and rank 0 leads; on a real S3 server."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import Mistake
from core.remote import lease
from core.remote.lease import Lease
from core.remote.mirror import cache_at, mirror_at
from core.runs.run import Run
from core.runs.verify import verify
from precompute.engines import store_ranks
from precompute.job.fingerprint import part_digest
from precompute.steps.embed import step as embed
from precompute.steps.embed.command import summary
from precompute.steps.embed.staging import done_path, finished_paths
from precompute.steps.embed.step import EmbedConfig, EmbedResult
from tests.support.engine_runs import break_off, files, twenty_in_parts_of_three
from tests.support.jobs import Outcome


@pytest.fixture
def config(
    here: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    some_rows: Callable[..., list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    one_thread: None,
) -> EmbedConfig:
    """Twenty documents in seven parts."""
    for name in ("precompute.engines.ranks.PATIENCE", "precompute.engines.store_ranks._PATIENCE"):
        monkeypatch.setattr(name, 0.01)
    return twenty_in_parts_of_three(here, tiny_model, write_corpus(some_rows(20)), "ranks")


@pytest.fixture
def rank(
    config: EmbedConfig, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., EmbedResult]:
    """A rank on a machine of its own, rank 0 on the one that is here."""

    def start(number: int, world: int, **changes: Any) -> EmbedResult:
        mirrors = tmp_path / ("another" if number else "mirror")
        with monkeypatch.context() as patch:
            for name, value in {"RANK": number, "WORLD_SIZE": world, "HEADSCOPE_MIRROR": mirrors}.items():
                patch.setenv(name, str(value))
            return embed.run(replace(config, cache=cache_at(address, mirrors), **changes))

    return start


def is_read(run: Run) -> bool:
    return (run.staging / "read.json").exists()


def check(config: EmbedConfig, plain: Path) -> None:
    """What is in the store is what one process makes in a folder, byte by byte, and nothing besides."""
    embed.run(replace(config, cache=plain, engine="local"))
    mirror = mirror_at(config.cache)
    assert mirror is not None
    there = {rest: mirror.store.get(f"run/{rest}") for rest in mirror.store.listing("run")}
    assert there.pop("manifest.json")
    assert there.pop("files.json")
    assert there == files(Run(plain, "run"))
    assert verify(Run(config.cache, "run"), part_digest).problems == ()
    assert not [name for name in mirror.store.listing("") if name.startswith((".rank", ".lease"))]


def test_a_rank_goes_on_where_it_was_killed_and_none_is_waited_for_that_is_not_there(
    config: EmbedConfig, rank: Callable[..., EmbedResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, mirror = Run(config.cache, "run"), mirror_at(config.cache)
    assert mirror is not None
    with monkeypatch.context() as patch:
        for name, value in {"RANK": "0", "WORLD_SIZE": "3"}.items():
            patch.setenv(name, value)
        break_off(config, 1, monkeypatch, once=is_read)  # of 0, 3, 6
    alone = rank(1, 3)
    assert summary("run", alone).startswith("run: this rank's parts are done; rank 0 finishes the run.")
    assert [path.stem for path in finished_paths(run)] == ["part-00000", "part-00001", "part-00004"]
    assert rank(1, 3).parts_kept == 2
    with pytest.raises(Mistake, match="has vectors from different inputs"):
        rank(1, 3, part_size=4)
    killed = Lease(mirror, "run", 2)  # its process is gone, but it has not said so
    killed._ended.set()
    monkeypatch.setattr(lease, "STALE", 1.0)
    assert lease.is_held(mirror, "run", 2)
    ended = rank(0, 3)
    assert not lease.is_held(mirror, "run", 2), "it was waited for until it was not heard of any more"
    assert (ended.parts_kept, ended.manifest.is_done("embed")) == (1, True)
    killed.release()
    check(config, tmp_path / "plain")
    assert rank(1, 3).skipped
    with pytest.raises(Mistake, match="Ranks cannot build a new 'run' beside the finished one in an object store"):
        rank(0, 3, replace=True)
    with pytest.raises(Mistake, match="Ranks cannot build a new 'run' beside the finished one in an object store"):
        rank(1, 3, replace=True, part_size=4)


def test_each_rank_is_there_once_and_waits_for_rank_0_but_not_for_ever(
    config: EmbedConfig, rank: Callable[..., EmbedResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = mirror_at(config.cache)
    assert mirror is not None
    monkeypatch.setattr(lease, "RENEWED", 0.1)
    twin = Lease(mirror, "run", 1)
    with pytest.raises(Mistake, match="Another job is working on run 'run' as rank '1': process"):
        rank(1, 2)
    twin._ended.set()  # as if it had been killed
    monkeypatch.setattr(lease, "STALE", 0.5)
    monkeypatch.setattr(store_ranks, "GIVEN_UP", 0.1)
    with pytest.raises(
        Mistake, match=r"Rank 0, which reads the corpus, has not been heard from for 0 minutes\. Start it"
    ):
        rank(1, 2)


def test_two_machines_at_once_one_of_which_is_killed(
    config: EmbedConfig,
    address: str,
    tmp_path: Path,
    start_job: Callable[..., subprocess.Popen[str]],
    finish: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    options = ("--source", config.source, "--model", config.embedder.model, "--part-size", 3, "--engine", "ranks")

    def start(number: int) -> subprocess.Popen[str]:
        monkeypatch.setenv("RANK", str(number))
        monkeypatch.setenv("HEADSCOPE_MIRROR", str(tmp_path / ("another" if number else "mirror")))
        return start_job("embed", "run", "--cache", address, *options)

    other, first = start(1), start(0)
    run = Run(config.cache, "run")
    store = mirror_at(config.cache).store  # type: ignore[union-attr]
    while first.poll() is None and not store.head(f"run/{done_path(run, 1).relative_to(run.folder)}"):
        time.sleep(0.02)
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    again = finish(start(1))
    ended = finish(first)
    assert (again.status, ended.status) == (0, 0), (again, ended)
    check(config, tmp_path / "plain")
