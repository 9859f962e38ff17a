"""One job at a time on a run in an object store: an object that says who is at work, and is renewed while that is so.

The claim is written on condition that nobody else has written it since it was read, so only one of two jobs that begin
at once gets it. Where a store makes no conditional writes, both write, and the one that was written over notices: after
a moment's wait, and again before each manifest. A job that is cut off for longer than ``STALE`` may lose the run to
another one, and then stops before it publishes anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

from core.errors import Mistake, RemoteMistake
from core.remote.conditional import Unconditional
from core.remote.objects import Store

RENEWED, STALE = 30.0, 180.0
"""Seconds between renewals, and after which a holder that is not heard of is dead; clocks must agree that far."""
SETTLED = 0.5
"""Seconds after which two that began at once see each other."""


class Holder(Protocol):
    """A mirror: the store it is of, and what tells it from other mirrors of the same store."""

    store: Store
    identity: str


class Lease:
    """Taken by making it; ``release`` gives it back. Of a run, or of one ``rank`` of those that make it together."""

    def __init__(self, mirror: Holder, name: str, rank: int | None = None) -> None:
        self._mirror, self._token, self._object = mirror, uuid.uuid4().hex, _object(name, rank)
        self._name = name if rank is None else f"{name}' as rank '{rank}"
        self._since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
        self._tag: dict[str, str] | None = None
        """Of the claim as it was last written; None where the store makes no conditional writes."""
        try:
            self._claim_once()
        except Unconditional:
            self._claim_and_look()
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, daemon=True)
        self._renewing.start()

    def _claim_once(self) -> None:
        there = self._mirror.store.conditional.read(self._object)
        self._refuse_if_held(_parsed(there.data))
        self._tag = self._written(there.tag)
        if self._tag is None:
            raise self._taken(_read(self._mirror, self._object) or {})

    def _written(self, tag: dict[str, str] | None) -> dict[str, str] | None:
        """The claim written over version ``tag``: its new tag, or None if it is another job's by now."""
        conditional = self._mirror.store.conditional
        written = conditional.write(self._object, self._claim(), tag)
        if written is None:  # a write whose answer was lost, or one without a condition, was this job's own
            there = conditional.read(self._object)
            if there.tag is None:  # refused for another reason, such as a missing bucket
                raise Unconditional
            written = there.tag if (_parsed(there.data) or {}).get("token") == self._token else None
        return written

    def _claim_and_look(self) -> None:
        self._refuse_if_held(_read(self._mirror, self._object))
        self._mirror.store.put(self._object, self._claim())
        time.sleep(SETTLED)
        found = _read(self._mirror, self._object)
        if found is None or found.get("token") != self._token:
            raise self._taken(found or {})

    def _refuse_if_held(self, found: dict[str, Any] | None) -> None:
        # This process has the mirror's own lock: what another one of the same mirror has left is left over.
        if found is not None and found.get("mirror") != self._mirror.identity and _age(found) < STALE:
            raise self._taken(found)

    def check(self) -> None:
        """Refuses to go on once another machine has taken the run over."""
        found = _read(self._mirror, self._object)
        if found is None or found.get("token") != self._token:
            raise Mistake(
                f"Another job has taken over run '{self._name}'{_holder(found or {})}, because this one had not "
                f"reported for {STALE / 60:.0f} minutes. Wait until it has ended, then start the same command again."
            )

    def release(self) -> None:
        self._ended.set()
        self._renewing.join()
        try:
            found = _read(self._mirror, self._object)
            if found is not None and found.get("token") == self._token:
                self._mirror.store.delete(self._object)
        except RemoteMistake:  # it runs out by itself
            pass

    def _renew(self) -> None:
        while not self._ended.wait(RENEWED):
            try:
                if not self._renewed():
                    return  # reported where it matters: before the next manifest
            except RemoteMistake:  # the next time, perhaps
                continue
            except Mistake:
                return

    def _renewed(self) -> bool:
        """Whether the claim was this job's and is renewed."""
        if self._tag is not None:
            with contextlib.suppress(Unconditional):
                self._tag = self._written(self._tag)
                return self._tag is not None
        self.check()
        self._mirror.store.put(self._object, self._claim())
        return True

    def _claim(self) -> bytes:
        claim = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "since": self._since,
            "renewed": time.time(),
            "mirror": self._mirror.identity,
            "token": self._token,
        }
        return json.dumps(claim).encode()

    def _taken(self, found: dict[str, Any]) -> Mistake:
        return Mistake(
            f"Another job is working on run '{self._name}'{_holder(found)}. Wait until it has ended; if it was killed, "
            f"its claim ends {STALE / 60:.0f} minutes after it was last heard from."
        )


@contextlib.contextmanager
def rank_leased(mirror: Holder, name: str, rank: int) -> Iterator[None]:
    """Holds the lease of one rank, by which the others know that it lives."""
    lease = Lease(mirror, name, rank)
    try:
        yield
    finally:
        lease.release()


def outwait(mirror: Holder, name: str, rank: int | None = None) -> None:
    """Waits until a claim of another machine has run out; not if its holder lives, which is seen when it renews it."""
    first = found = _read(mirror, _object(name, rank))
    while first is not None and found == first and first.get("mirror") != mirror.identity and _age(first) < STALE:
        time.sleep(SETTLED)
        found = _read(mirror, _object(name, rank))


def is_held(mirror: Holder, name: str, rank: int | None = None) -> bool:
    found = _read(mirror, _object(name, rank))
    return found is not None and _age(found) < STALE


def _object(name: str, rank: int | None) -> str:
    return f".lease-{name}.json" if rank is None else f".rank{rank}-{name}.json"


def _read(mirror: Holder, name: str) -> dict[str, Any] | None:
    return _parsed(mirror.store.get(name))


def _parsed(data: bytes | None) -> dict[str, Any] | None:
    try:
        found = json.loads(data) if data is not None else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _age(found: dict[str, Any]) -> float:
    try:
        return time.time() - float(found["renewed"])
    except (KeyError, TypeError, ValueError):
        return STALE


def _holder(found: dict[str, Any]) -> str:
    words = f"process {found.get('process')} on {found.get('host')}, since {found.get('since')} UTC" if found else ""
    return f": {''.join(letter for letter in words if letter.isprintable())[:300]}" if words else ""
