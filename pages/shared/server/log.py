"""The log: one line an event on standard error. What somebody wrote, searched or is called never gets into it.

An event's fields are a closed list, so that a text cannot slip in under a new name.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path

from pages.shared.server.metrics import count

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
EVENTS = {
    "start": logging.INFO,  # the server, with its settings
    "open": logging.WARNING,  # nobody has to sign in
    "setting": logging.WARNING,  # a variable that is none of ours, or a run that is not there
    "closed": logging.ERROR,  # settings or [auth] are wrong: no page is shown
    "session": logging.INFO,  # somebody has come
    "page": logging.INFO,  # a page has run
    "document": logging.INFO,  # a document went through a model
    "build": logging.INFO,  # the demo, begun or ended
    "login": logging.INFO,
    "refused": logging.WARNING,
    "logout": logging.INFO,
    "problem": logging.WARNING,  # a person was shown a sentence instead of what they asked for
    "error": logging.ERROR,  # nobody expected this
}
FIELDS = (
    "version", "cache", "runs", "auth", "domains", "read_only", "device", "upload_mb", "log_level",
    "page", "run", "ms", "outcome", "session", "tokens", "parts", "kind", "at", "sentence",
)  # fmt: skip
"""``sentence`` is for what the operator wrote: the settings. A problem's own sentence may quote its reader."""
_LOGGER = logging.getLogger("headscope")
_BARE = re.compile(r"[\w./:+<-]+", re.ASCII)
_LONGEST = 400
_FRAMES = 3


def event(name: str, **fields: str | int | float | bool | None) -> None:
    """Notes an event; fields that are None are left out."""
    if unknown := set(fields) - set(FIELDS):
        raise TypeError(f"The log has no field {', '.join(sorted(unknown))}.")
    given = {field: fields[field] for field in FIELDS if fields.get(field) is not None}
    _LOGGER.log(EVENTS[name], name, extra={"headscope": given})


def set_up(level: str = "info", style: str = "text") -> None:
    """Once a process, by the server; a second call replaces the first."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(STYLES[style]())
    _LOGGER.handlers[:] = [handler]
    _LOGGER.propagate = False
    _LOGGER.setLevel(level.upper())
    # Streamlit logs what a page did not catch with the error's own words, which may quote a document.
    uncaught = logging.getLogger("streamlit.error_util")
    uncaught.filters[:] = [Uncaught()]
    logging.getLogger("streamlit.runtime.app_session").filters[:] = [LateTimer()]


def place(error: BaseException) -> str:
    """Where in our code an error arose, innermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(PROJECT)]
    return "<".join(
        f"{Path(frame.filename).relative_to(PROJECT).as_posix()}:{frame.lineno}" for frame in ours[::-1][:_FRAMES]
    )


class Uncaught(logging.Filter):
    """Takes what Streamlit says of an uncaught error, and says only its type and place; all of it when debugging."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if error is None:
            return True
        count("headscope_errors_total")
        event("error", kind=type(error).__name__, at=place(error))
        return _LOGGER.isEnabledFor(logging.DEBUG)


class LateTimer(logging.Filter):
    """Leaves out that a fragment is gone: its timer in the browser may tick once more while a run removes it."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "does not exist anymore" not in str(record.msg)


class TextLines(logging.Formatter):
    """``2026-11-16T13:20:15.123Z info page page=head_map ms=41``; what is no plain word is in quotes."""

    def format(self, record: logging.LogRecord) -> str:
        fields = [f"{name}={_word(value)}" for name, value in _fields(record).items()]
        return " ".join([_time(record), record.levelname.lower(), record.getMessage(), *fields])


class JsonLines(logging.Formatter):
    """The same as an object."""

    def format(self, record: logging.LogRecord) -> str:
        head = {"time": _time(record), "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps({**head, **{name: _cut(value) for name, value in _fields(record).items()}})


STYLES: dict[str, type[logging.Formatter]] = {"text": TextLines, "json": JsonLines}


class Stopwatch:
    """Milliseconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    @property
    def ms(self) -> int:
        return round(1000 * self.seconds)


def _fields(record: logging.LogRecord) -> dict[str, str | int | float | bool]:
    found: dict[str, str | int | float | bool] = getattr(record, "headscope", {})
    return found


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _cut(value: str | int | float | bool) -> str | int | float | bool:
    return value[:_LONGEST] if isinstance(value, str) else value


def _word(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(_cut(value))
    return text if _BARE.fullmatch(text) else json.dumps(text)  # a line's end cannot begin a line of its own
