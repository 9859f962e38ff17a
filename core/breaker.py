"""Nobody who reads waits for an object store that says nothing.

Those who want the same thing share one call. In the app (``hurried``) a call has a thread of its own: its readers leave
it once the store has said nothing for ``SILENCE`` seconds, and from then on nobody asks the store but a probe in the
background. A call that bytes arrive for is waited for, however long it takes; one that was left goes on without its
readers, and what it brings is there for the next ones. A job calls in its own thread and waits as long as retries last.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from typing import Any

from core.errors import Mistake
from core.remote_address import Address
from core.remote_errors import NoAnswer, RemoteMistake

SILENCE, PROBED = 1.5, 2.0
"""Seconds of silence that a reader waits for, and between two probes."""
_GLANCE = 0.2
"""Seconds after which a reader looks again whether the store is what keeps a call."""


class Call(Future[Any]):
    since: float | None = None
    """When the store was asked what it has not answered yet; None while the call is busy on this machine."""

    def silent_for(self) -> float:
        since = self.since
        return 0.0 if since is None else time.monotonic() - since


class Breaker:
    """``probe`` asks the store for something small."""

    def __init__(self, address: Address, probe: Callable[[], object]) -> None:
        self._address, self._probe = address, probe
        self.hurried = False
        self.heard = 0.0
        """When the store last answered, in seconds since the epoch; 0 before it has."""
        self.silent_since = 0.0
        """Since when it does not answer readers; 0 while it does."""
        self._running: dict[Hashable, Call] = {}
        self._guard = threading.Lock()
        self._mine = threading.local()

    @property
    def trouble(self) -> str:
        """That the store is silent, in a sentence with a remedy; '' while it is not."""
        since = self.silent_since
        return self._said(since) if since else ""

    def _said(self, since: float) -> str:
        return (
            f"{self._address} has not answered since {clock(since)}. The server asks again by itself: load the page "
            "again in a moment. If that lasts, check the network connection and AWS_ENDPOINT_URL."
        )

    def is_running(self, key: Hashable) -> bool:
        return key in self._running

    def share(self, key: Hashable, work: Callable[[], Any], awaited: bool = True) -> Any:
        """What ``work`` returns, done once for all who ask for ``key`` at the same time."""
        if getattr(self._mine, "call", None) is not None:  # it is part of a call
            return work()
        if self.hurried and (trouble := self.trouble):
            raise NoAnswer(trouble)
        with self._guard:
            call = self._running.get(key)
            # The store has answered others since a call like this one was begun: it is lost.
            begun = call is None or (self.hurried and call.silent_for() >= SILENCE)
            if call is None or begun:
                call = self._running[key] = Call()
        if begun and self.hurried:
            threading.Thread(target=self._run, args=(call, key, work), daemon=True).start()
        elif begun:
            self._run(call, key, work)
        return self._result(call) if awaited else None

    def _result(self, call: Call) -> Any:
        while self.hurried and not call.done():
            if (silent := call.silent_for()) >= SILENCE:
                self._open(silent)
                raise NoAnswer(self._said(time.time() - silent))
            wait([call], min(_GLANCE, SILENCE - silent))
        return call.result()

    def _run(self, call: Call, key: Hashable, work: Callable[[], Any]) -> None:
        self._mine.call = call
        found, failed = None, None
        try:
            found = work()
        except BaseException as error:
            failed = error
        self._mine.call = None
        with self._guard:  # before it is answered: whoever comes after that begins anew
            if self._running.get(key) is call:
                del self._running[key]
        call.set_exception(failed) if failed is not None else call.set_result(found)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Around each request: what the store says, even that it refuses, ends its silence."""
        call, since = getattr(self._mine, "call", None), time.monotonic()
        before = self.heard
        if call is not None:
            call.since = since
        try:
            yield
        except NoAnswer:
            if self.heard == before:  # otherwise it has answered others meanwhile
                self._open(time.monotonic() - since)
            raise
        except (FileNotFoundError, RemoteMistake):
            self._hear()
            raise
        else:
            self._hear()
        finally:
            if call is not None:
                call.since = None

    def _hear(self) -> None:
        self.heard, self.silent_since = time.time(), 0.0

    def _open(self, silent_for: float) -> None:
        with self._guard:
            if not self.hurried or self.silent_since:
                return
            self.silent_since = since = time.time() - silent_for
        threading.Thread(target=self._ask_on, args=(since,), daemon=True).start()

    def _ask_on(self, since: float) -> None:
        while self.silent_since == since:
            with contextlib.suppress(Mistake):
                self._probe()
            time.sleep(PROBED)


def clock(moment: float) -> str:
    """A moment in seconds since the epoch, as people read it."""
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S} UTC"
