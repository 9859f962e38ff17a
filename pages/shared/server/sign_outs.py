"""Logins that were ended: Streamlit's cookie is valid by itself, so a copy of it would still open the app.

A file remembers them across restarts, and for all servers that share its folder: a line each, with the day it may be
forgotten and a digest that opens nothing. Where it cannot be written they are remembered by this process alone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from core.settings import MOST_LOGIN_HOURS

KEPT_SECONDS = (MOST_LOGIN_HOURS + 48) * 3600
"""Longer than any cookie is valid, whatever lifetime is set later on."""
NAME = "signed-out"


class SignOuts:
    """All that have ended, of this server and of those that share ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}
        self._seen: tuple[int, int, int] | None = None

    def add(self, parts: Iterable[bytes]) -> None:
        """Ends a login, by the parts of its cookie."""
        until = time.time() + KEPT_SECONDS
        keys = {_key(part): until for part in parts}
        with self._lock:
            self._until |= keys
        if self.is_kept():
            with self.path.open("ab", buffering=0) as file:
                # At once, so that servers do not mix lines.
                file.write("".join(f"{until:.0f} {key}\n" for key in keys).encode())

    def has(self, parts: Iterable[bytes]) -> bool:
        """Whether one of them is of a login that has ended."""
        now = time.time()
        with self._lock:
            self._read()
            return any(self._until.get(_key(part), 0.0) > now for part in parts)

    def is_kept(self) -> bool:
        """Whether a restart will know of them."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(0o600)
        except OSError:
            return False
        return os.access(self.path, os.R_OK | os.W_OK)

    def _read(self) -> None:
        """What others have added since; a line that is not one of ours is left out."""
        try:
            found = self.path.stat()
            seen = (found.st_ino, found.st_size, found.st_mtime_ns)
            if seen == self._seen:
                return
            lines = self.path.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            return
        for line in lines:
            until, _, key = line.partition(" ")
            if until.isdecimal() and len(key) == 64:
                self._until[key] = float(until)
        self._seen = seen


def _key(part: bytes) -> str:
    return sha256(part).hexdigest()
