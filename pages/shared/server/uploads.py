"""Uploaded files that the server holds: how many and how large they may be, and when they are let go.

Streamlit keeps a file in memory from its upload until its session is over, and looks for sessions that are over when
the next visitor comes. Here a timer looks, and a file goes as soon as a page has read it.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.settings import Settings
from pages.shared.server.log import event, place

MOST_FILES_OF_A_SESSION = 50
MOST_FILES = 1000
TOO_MANY = "Some files were not accepted because you uploaded too many at once. Upload them again."
TOO_MANY_OF_ALL = "Some files were not accepted because the server is holding too many. Try again in a few minutes."
EVERY = 10.0
"""Seconds between two looks for sessions that are over."""
_refusals: dict[str, str] = {}
"""By session: the browser drops the uploader with its errors as soon as one of several files has been read."""


@dataclass(frozen=True)
class Upload:
    session: str
    size: int


class UploadsUnderWay:
    """Uploads that are under way; with those that are held already they must fit into the limits."""

    def __init__(self) -> None:
        self._now: list[Upload] = []

    @contextmanager
    def room(self, upload: Upload, settings: Settings) -> Iterator[str | None]:
        """Keeps room for one more while it comes in; a sentence where there is none."""
        sentence = self._refusal(upload, settings)
        if sentence is not None:
            if runtime.get_instance().is_active_session(upload.session):
                _refusals[upload.session] = sentence
            yield sentence
            return
        self._now.append(upload)
        try:
            yield None
        finally:
            self._now.remove(upload)

    def _refusal(self, upload: Upload, settings: Settings) -> str | None:
        everybody = [*self._now, *held()]
        own = [each for each in everybody if each.session == upload.session]
        most = settings.uploads_mb * 2**20
        most_of_one = max(most // 4, settings.upload_mb * 2**20)
        if len(own) >= MOST_FILES_OF_A_SESSION or _bytes(own) + upload.size > most_of_one:
            return TOO_MANY
        if len(everybody) >= MOST_FILES or _bytes(everybody) + upload.size > most:
            return TOO_MANY_OF_ALL
        return None


def held() -> list[Upload]:
    """Every file that Streamlit holds now."""
    files: dict[str, dict[str, Any]] = _manager().file_storage
    return [
        Upload(session, len(file.data)) for session in list(files) for file in list(files.get(session, {}).values())
    ]


def held_bytes() -> float:
    return float(_bytes(held()))


def let_go(file_ids: Iterable[str]) -> None:
    """Files of this session that a page has read."""
    context = get_script_run_ctx()
    if context is not None and runtime.exists():
        for file_id in file_ids:
            _manager().remove_file(context.session_id, file_id)


def refusal() -> str | None:
    """Why a file of this session was not taken since this was last asked."""
    context = get_script_run_ctx()
    return _refusals.pop(context.session_id, None) if context is not None else None


async def keep_letting_go() -> None:
    """Looks again and again, as long as the server lives."""
    while True:
        await asyncio.sleep(EVERY)
        try:
            let_go_of_the_gone()
        except Exception as error:
            event("error", kind=type(error).__name__, at=place(error))


def let_go_of_the_gone() -> None:
    """Ends sessions that have been disconnected for too long, and drops files whose session is over."""
    sessions: Any = runtime.get_instance()._session_mgr
    kept = sessions._session_storage._cache
    with sessions._storage_lock:
        over = kept.expire()
    for _, found in over:
        found.session.shutdown()
    for session in list(_manager().file_storage):
        if session not in kept and not sessions.is_active_session(session):
            _manager().remove_session_files(session)
    for session in list(_refusals):
        if not sessions.is_active_session(session):
            _refusals.pop(session, None)
    if over:
        del over
        gc.collect()  # a session's objects point at each other, and an idle server collects nothing by itself


def _bytes(uploads: Iterable[Upload]) -> int:
    return sum(upload.size for upload in uploads)


def _manager() -> Any:
    return runtime.get_instance().uploaded_file_mgr
