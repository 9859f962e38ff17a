"""One job at a time on a run in an object store."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, NotSupportedError

from core.errors import Mistake
from core.remote import lease
from core.remote.conditional import ConditionalWrites, Tagged
from core.remote.lease import Lease
from core.remote.mirror import Mirror, cache_at
from core.runs.run import Run
from tests.core.remote.test_remote_faults import mirror_there, planted


def test_two_machines_do_not_work_on_one_run_at_once(here: Path, elsewhere: Path, address: str) -> None:
    with Run(here, "run").lock():
        planted(here)
        assert Run(elsewhere, "run").is_locked()
        said = (
            r"^Another job is working on run 'run': process \d+ on \S+, since [\d: -]+ UTC\. Wait until it has ended;"
        )
        with pytest.raises(Mistake, match=said), Run(elsewhere, "run").lock():
            raise AssertionError
        with Run(elsewhere, "another").lock():
            pass
    assert not Run(elsewhere, "run").is_locked()
    with Run(elsewhere, "run").lock():
        assert Run(here, "run").is_locked()


def test_a_claim_that_a_kill_has_left_ends(here: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = mirror_there(here), mirror_there(elsewhere)
    left = Lease(mine, "run")
    with Run(here, "run").lock():  # the same machine: nobody else of it can be at work, for the lock was free
        pass
    left = Lease(mine, "run")
    with pytest.raises(Mistake, match="Another job is working"):
        Lease(other, "run")
    monkeypatch.setattr(lease, "STALE", 0.2)
    time.sleep(0.3)
    taken = Lease(other, "run")
    with pytest.raises(Mistake, match="Another job has taken over run 'run'"):
        left.check()
    taken.release()


def test_who_has_lost_a_run_writes_no_manifest(here: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = planted(here)
    manifest = run.manifest()
    with run.lock():
        monkeypatch.setattr(lease, "STALE", 0.0)
        Lease(mirror_there(elsewhere), "run")
        with pytest.raises(Mistake, match="Another job has taken over"):
            run.write_manifest(manifest)


def test_of_two_that_begin_at_once_the_second_to_write_is_refused(
    here: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = mirror_there(here), mirror_there(elsewhere)
    read = ConditionalWrites.read
    begun: list[Lease] = []

    def other_comes_between(self: ConditionalWrites, name: str) -> Tagged:
        """The other job claims the run after this one has looked, and before it writes."""
        found = read(self, name)
        monkeypatch.setattr(ConditionalWrites, "read", read)
        begun.append(Lease(other, "run"))
        return found

    monkeypatch.setattr(ConditionalWrites, "read", other_comes_between)
    with pytest.raises(Mistake, match="Another job is working on run 'run'"):
        Lease(mine, "run")
    begun[0].check()
    begun[0].release()


def test_of_many_that_begin_at_once_one_gets_the_run(address: str, tmp_path: Path) -> None:
    mirrors = [mirror_there(cache_at(address, tmp_path / f"machine{number}")) for number in range(8)]
    together = threading.Barrier(len(mirrors))

    def begin(mirror: Mirror) -> Lease | None:
        together.wait()
        try:
            return Lease(mirror, "run")
        except Mistake:
            return None

    with ThreadPoolExecutor(len(mirrors)) as pool:
        held = [lease for lease in pool.map(begin, mirrors) if lease is not None]
    assert len(held) == 1
    held[0].check()
    held[0].release()


def test_a_claim_whose_answer_was_lost_is_this_jobs_own(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = obstore.put

    def answer_lost(store: object, name: str, data: bytes, **options: object) -> object:
        """As after a retry: the first try has written the object, and the second one is refused."""
        put(store, name, data, **options)  # type: ignore[arg-type]
        raise AlreadyExistsError("412 Precondition Failed")

    monkeypatch.setattr(obstore, "put", answer_lost)
    held = Lease(mirror_there(here), "run")
    held.check()
    held.release()


def test_a_claim_is_renewed_until_another_machine_has_taken_it(
    here: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWED", 0.05)
    mine, other = mirror_there(here), mirror_there(elsewhere)
    held = Lease(mine, "run")
    first = mine.store.get(".lease-run.json")
    until = time.monotonic() + 30
    while mine.store.get(".lease-run.json") == first:
        assert time.monotonic() < until, "the claim is not renewed"
    monkeypatch.setattr(lease, "STALE", 0.0)
    taken = Lease(other, "run")
    held._renewing.join(20)
    assert not held._renewing.is_alive(), "it does not write over the other one's claim"
    taken.check()
    taken.release()
    held.release()


@pytest.fixture(params=["refuses", "ignores"])
def without_conditions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that answers conditional writes with an error, or one that does not look at the condition."""
    put = obstore.put

    def odd(store: object, name: str, data: bytes, **options: object) -> object:
        if request.param == "refuses":
            raise NotSupportedError("501 Not Implemented")
        return put(store, name, data)  # type: ignore[arg-type]

    monkeypatch.setattr(obstore, "put", odd)


@pytest.mark.usefixtures("without_conditions")
def test_a_store_without_conditional_writes_has_claims_too(here: Path, elsewhere: Path) -> None:
    mine, other = mirror_there(here), mirror_there(elsewhere)
    held = Lease(mine, "run")
    with pytest.raises(Mistake, match="Another job is working on run 'run'"):
        Lease(other, "run")
    held.check()
    held.release()
    Lease(other, "run").release()


@pytest.mark.usefixtures("without_conditions")
def test_without_conditional_writes_who_was_written_over_is_not_let_in(
    here: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = mirror_there(here), mirror_there(elsewhere)
    put = mine.store.put

    def both(name: str, data: bytes) -> object:
        """The other one looks before this one has written, and writes after it."""
        put(name, data)
        return other.store.put(name, json.dumps({"token": "theirs", "mirror": "theirs", "host": "h"}).encode())

    monkeypatch.setattr(mine.store, "put", both)
    with pytest.raises(Mistake, match="Another job is working on run 'run'"):
        Lease(mine, "run")
