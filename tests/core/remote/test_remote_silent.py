"""An object store that accepts connections and never answers: readers go on with the mirror, and it comes back."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import Mistake, NoAnswer
from core.model.shape import ModelShape
from core.remote import breaker, mirror
from core.remote.mirror import cache_at, for_readers, mirror_at
from core.runs import backend
from core.runs.backend import fetched_by, trouble_at
from core.runs.run import Run, open_run, run_names
from precompute.steps.analyse import step as analyse
from tests.support.apps import page_at
from tests.support.s3_server import S3Server
from tests.support.synthetic import PlantedTopics, write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
READERS = 5
HANG = 30.0
"""Seconds after which a reader counts as hung: far more than one may wait, far less than a job's retries take."""


def planted(cache: Path, documents: int = 12) -> Run:
    labels = [("rivers", "engines")[doc % 2] for doc in range(documents)]
    vectors = np.random.default_rng(0).normal(size=(documents, 32))
    return write_run(cache, "run", SHAPE, lambda stage, first, n: vectors[first : first + n], labels, part_size=5)


def all_at_once(read: Callable[[], Any], readers: int = READERS) -> list[Any]:
    """What each of several readers got who began in the same moment: a value, or the Mistake that was raised."""
    together = threading.Barrier(readers)

    def one(_: int) -> Any:
        together.wait()
        try:
            return read()
        except Mistake as mistake:
            return mistake

    pool = ThreadPoolExecutor(readers)
    try:
        return list(pool.map(one, range(readers), timeout=HANG))
    finally:
        pool.shutdown(wait=False)


def until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)


Silence = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def silence(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Silence:
    """The store says nothing for a while; only then are readers in a hurry, for the machine may be busy."""
    monkeypatch.setattr(breaker, "PROBED", 0.1)

    @contextmanager
    def silent() -> Iterator[None]:
        with s3_server.silent(), monkeypatch.context() as patched:
            patched.setattr(breaker, "SILENCE", 0.5)
            yield

    return silent


@pytest.fixture
def readers(here: Path, elsewhere: Path) -> Path:
    """A cache whose readers do not wait, with a run in the store of which nothing is mirrored yet."""
    planted(here)
    return for_readers(elsewhere)


def read_all(cache: Path) -> tuple[list[str], int, int]:
    run = open_run(cache, "run")
    return run_names(cache), len(run.documents()), len(list(run.vectors(1)))


def test_readers_have_what_is_mirrored_while_the_store_is_silent(silence: Silence, readers: Path) -> None:
    before = read_all(readers)
    with silence():
        assert all_at_once(lambda: read_all(readers)) == [before] * READERS
        assert re.fullmatch(
            r"s3://\S+ has not answered since \d\d:\d\d:\d\d UTC\. The server retries by itself: reload the page "
            r"in a moment\. If this persists, check the network connection and AWS_ENDPOINT_URL\.",
            trouble_at(readers),
        )


def test_readers_of_an_app_that_was_started_while_the_store_is_silent_have_the_mirror(
    silence: Silence, readers: Path
) -> None:
    before = read_all(readers)
    del backend._ATTACHED[readers]  # as in another process
    for_readers(readers)
    with silence():
        assert all_at_once(lambda: read_all(readers)) == [before] * READERS
        assert trouble_at(readers)
        assert fetched_by(readers) == ""


def test_what_is_not_mirrored_is_refused_in_a_sentence_while_the_store_is_silent(
    silence: Silence, readers: Path
) -> None:
    run = open_run(readers, "run")
    with silence():
        for said in (*all_at_once(run.documents), *all_at_once(lambda: list(run.vectors(3)))):
            assert isinstance(said, NoAnswer)
            assert "has not answered since" in str(said)


def test_a_reader_who_comes_while_nothing_is_mirrored_is_told_that_the_store_is_silent(
    silence: Silence, readers: Path
) -> None:
    with silence():
        for said in all_at_once(lambda: open_run(readers, "run")):
            assert "has not answered since" in str(said)
        assert run_names(readers) == []


def test_a_silent_store_is_asked_by_nobody_but_the_probe(silence: Silence, readers: Path) -> None:
    read_all(readers)
    found = mirror_at(readers)
    assert found is not None
    with silence():
        read_all(readers)
        asked = []
        found.store.get = found.store.folders = found.store.head = lambda *_: asked.append(1)  # type: ignore
        for _ in range(3):
            read_all(readers)
        with pytest.raises(NoAnswer):
            list(Run(readers, "run").vectors(3))
    assert asked == []


def test_a_store_that_answers_again_is_noticed_without_a_reader(silence: Silence, readers: Path) -> None:
    run = open_run(readers, "run")
    with silence():
        all_at_once(lambda: run_names(readers))
        assert trouble_at(readers)
    until(lambda: not trouble_at(readers))
    assert read_all(readers) == (["run"], 12, 3)
    assert len(list(run.vectors(3))) == 3


def test_a_store_that_drops_connections_is_no_different(
    s3_server: S3Server, readers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "PROBED", 0.1)
    before = read_all(readers)
    s3_server.shut()
    try:
        assert all_at_once(lambda: read_all(readers)) == [before] * READERS
        assert "has not answered since" in trouble_at(readers)
        with pytest.raises(NoAnswer):
            list(Run(readers, "run").vectors(3))
    finally:
        s3_server.open()
    until(lambda: not trouble_at(readers))
    assert len(list(Run(readers, "run").vectors(3))) == 3


def test_a_large_file_that_flows_is_waited_for_and_fetched_once(
    s3_server: S3Server, readers: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = mirror_at(here)
    assert there is not None
    data = np.random.default_rng(0).bytes(800_000)
    there.store.put(".building-replace-run/large.bin", data)
    monkeypatch.setattr(breaker, "SILENCE", 4.0)
    large = readers / ".building-replace-run" / "large.bin"
    found = mirror_at(readers)
    assert found is not None

    fetch, fetched = found.store.fetch, list[str]()

    def counted(name: str, to: Path) -> Any:
        fetched.append(name)
        return fetch(name, to)

    def read() -> bytes:
        found.fetch(large)
        return large.read_bytes()

    monkeypatch.setattr(found.store, "fetch", counted)
    monkeypatch.setattr(s3_server, "rate", 180_000)  # longer in all than a reader waits for silence
    assert all_at_once(read) == [data] * READERS
    assert fetched == [".building-replace-run/large.bin"]
    assert not trouble_at(readers)


def test_a_fetch_that_readers_have_left_ends_in_the_background(
    s3_server: S3Server, readers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_run(readers, "run")
    found = mirror_at(readers)
    assert found is not None
    go_on, fetch = threading.Event(), found.store.fetch

    def late(name: str, to: Path) -> Any:
        with found.breaker.waiting():
            go_on.wait(HANG)
        return fetch(name, to)

    monkeypatch.setattr(found.store, "fetch", late)
    with monkeypatch.context() as patched:
        patched.setattr(breaker, "SILENCE", 0.5)
        with pytest.raises(NoAnswer):
            found.fetch(run.documents_path)
    go_on.set()
    until(run.documents_path.is_file)
    assert len(run.documents()) == 12


def test_a_job_keeps_waiting(s3_server: S3Server, here: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(here)
    monkeypatch.setattr(breaker, "SILENCE", 0.0)
    with ThreadPoolExecutor(1) as pool:
        with s3_server.silent():
            reading = pool.submit(lambda: read_all(elsewhere))
            until(lambda: any(call.since is not None for call in mirror_at(elsewhere).breaker._running.values()))  # type: ignore
            time.sleep(0.3)
            assert not reading.done()
        assert reading.result(HANG) == (["run"], 12, 3)


def test_a_page_says_that_it_shows_the_mirror(
    silence: Silence, address: str, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(here)
    analyse.run(analyse.AnalyseConfig(here, "run", model=PlantedTopics(SHAPE, {})))
    monkeypatch.setenv("HEADSCOPE_MIRROR", str(tmp_path / "another"))
    page = "pages/explore/overview/page.py"
    assert not page_at(address, page, monkeypatch).sidebar.warning  # type: ignore[arg-type]
    with silence():
        app = page_at(address, page, monkeypatch)  # type: ignore[arg-type]
        assert not app.error
        assert re.match(
            r"This page shows what the server fetched by \d\d:\d\d:\d\d UTC\. s3://\S+ has not answered since ",
            app.sidebar.warning[0].value.replace("\\", ""),
        )
        app = page_at(address, page, monkeypatch, stage="3")  # type: ignore[arg-type]
        assert "has not answered since" in app.error[0].value
        monkeypatch.setenv("HEADSCOPE_MIRROR", str(tmp_path / "empty"))
        app = page_at(address, page, monkeypatch)  # type: ignore[arg-type]
        assert "has not answered since" in app.error[0].value
    monkeypatch.setenv("HEADSCOPE_MIRROR", str(tmp_path / "another"))
    until(lambda: not trouble_at(cache_at(address, tmp_path / "another")))
    app = page_at(address, page, monkeypatch, stage="3")  # type: ignore[arg-type]
    assert not app.error
    assert not app.sidebar.warning


def test_asking_whether_a_file_is_here_removes_nothing(here: Path, elsewhere: Path) -> None:
    """Of a run that is being made another machine may replace a file: the old one goes when the new one is fetched."""
    theirs, mine = mirror_at(elsewhere), mirror_at(here)
    assert theirs is not None
    assert mine is not None
    mine.store.put("run/heads/part.parquet", b"old")
    path = elsewhere / "run/heads/part.parquet"
    theirs.fetch(path)
    assert theirs.is_here(path)
    mine.store.put("run/heads/part.parquet", b"new")
    assert not theirs.is_here(path)
    assert theirs.has(path)
    assert path.read_bytes() == b"old"
    theirs.fetch(path)
    assert path.read_bytes() == b"new"
    mine.store.delete("run/heads/part.parquet")
    assert not theirs.has(path)
    theirs.fetch(path)
    assert not path.exists()


def test_news_that_were_asked_for_a_moment_ago_are_not_waited_for(
    s3_server: S3Server, readers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, found = read_all(readers), mirror_at(readers)
    assert found is not None
    monkeypatch.setattr(breaker, "SILENCE", 10 * HANG)
    monkeypatch.setattr(mirror, "FRESH", 60.0)
    for key in found.answered:
        found.answered[key] -= 100.0
    with s3_server.silent():
        assert all_at_once(lambda: read_all(readers)) == [before] * READERS
        assert not trouble_at(readers)
        monkeypatch.setattr(breaker, "SILENCE", 0.5)
        until(lambda: read_all(readers) == before and bool(trouble_at(readers)))
