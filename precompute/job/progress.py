"""How a long step tells how far it is: a bar for a person, lines for a log, JSON for the app, or nothing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Protocol, TextIO

from core.terminal import printable

_WIDTH = 24
SILENCE = 2.0
"""Seconds without a report after which a step that only reads says how far it is."""


@dataclass(frozen=True)
class Report:
    """One moment of a step."""

    step: str
    documents: int
    tokens_per_second: float
    fraction: float | None
    """How much is done, 0 to 1; None where the corpus does not say how long it is."""
    seconds_left: float | None
    message: str = ""

    @property
    def sentence(self) -> str:
        parts = [] if self.message and not self.documents else [f"{self.documents:,} documents"]
        if self.tokens_per_second:
            parts.append(f"{self.tokens_per_second:,.0f} tokens/s")
        if self.seconds_left is not None:
            parts.append(f"{clock(self.seconds_left)} left")
        return " · ".join([*parts, self.message] if self.message else parts)


OnProgress = Callable[[float, str], None]
"""Called with the fraction of some work that is done, 0 to 1, and what is being done."""


class Progress(Protocol):
    def show(self, report: Report) -> None: ...
    def close(self) -> None: ...


class Bar:
    """One line that is drawn over itself, at most ten times a second."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._last, self._drawn = stream, 0.0, 0

    def show(self, report: Report) -> None:
        now = time.monotonic()
        if now - self._last < 0.1 and report.fraction != 1.0:
            return
        self._last = now
        if report.fraction is None:
            bar = "·" * _WIDTH
        else:
            full = round(report.fraction * _WIDTH)
            bar = "█" * full + "░" * (_WIDTH - full) + f" {report.fraction:4.0%}"
        line = f"{report.step} {bar} {printable(report.sentence)}"
        self._stream.write("\r" + line.ljust(self._drawn))
        self._stream.flush()
        self._drawn = len(line)

    def close(self) -> None:
        if self._drawn:
            self._stream.write("\n")
            self._stream.flush()


class Lines:
    """A line now and then, for a log that nobody watches."""

    def __init__(self, stream: TextIO, every: float = 15.0) -> None:
        self._stream, self._every, self._last, self._ended = stream, every, -float("inf"), False

    def show(self, report: Report) -> None:
        now = time.monotonic()
        if now - self._last < self._every and (report.fraction != 1.0 or self._ended):
            return
        self._last, self._ended = now, report.fraction == 1.0
        done = "" if report.fraction is None else f"{report.fraction:.0%} · "
        print(f"{report.step} {done}{printable(report.sentence)}", file=self._stream, flush=True)

    def close(self) -> None:
        pass


class JsonProgress:
    """A JSON object a line, for a program that reads along: the app's build button."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, report: Report) -> None:
        print(json.dumps({**asdict(report), "sentence": report.sentence}), file=self._stream, flush=True)

    def close(self) -> None:
        pass


class Quiet:
    def show(self, report: Report) -> None:
        pass

    def close(self) -> None:
        pass


PROGRESS: dict[str, Callable[[], Progress]] = {
    "auto": lambda: Bar(sys.stderr) if sys.stderr.isatty() else Lines(sys.stderr),
    "bar": lambda: Bar(sys.stderr),
    "lines": lambda: Lines(sys.stderr),
    "json": lambda: JsonProgress(sys.stdout),
    "quiet": Quiet,
}


class Meter:
    """Counts what a step has done and turns it into reports; work found done from before does not count as speed."""

    def __init__(self, step: str, progress: Progress) -> None:
        self._step, self._progress = step, progress
        self._started = time.monotonic()
        self._documents = self._tokens = 0
        self._fraction: float | None = None
        self._first_fraction = 0.0
        self._begun_at: float | None = None
        self._shown_at = -SILENCE

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def restart(self) -> None:
        """Time that has passed does not count as work."""
        self._started = time.monotonic()
        self._begun_at = None

    def skip(self, documents: int, fraction: float | None, message: str) -> None:
        """``documents`` were there already."""
        self._documents += documents
        self._fraction = fraction
        self._first_fraction = fraction or 0.0
        self._tokens = 0
        self.restart()
        self._show(message)

    def work(self, documents: int, tokens: int, fraction: float | None) -> None:
        """``documents`` with ``tokens`` in all were embedded just now."""
        self._documents += documents
        self._tokens += tokens
        self._fraction = fraction
        self._show()

    def say(self, message: str) -> None:
        self._show(message)

    def reading(self, done: int, total: int) -> None:
        """``done`` of ``total`` bytes of the corpus were read; told where nothing else has been for a while."""
        if time.monotonic() - self._shown_at >= SILENCE:
            self._show(f"reading the corpus: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB")

    def at(self, fraction: float, message: str) -> None:
        """``fraction`` of the step is done; for work that is not counted in documents."""
        if self._begun_at is None:
            self._begun_at = fraction  # what was there from before does not count as speed
        done = fraction - self._begun_at
        left = self.seconds * (1 - fraction) / done if done > 0.02 else None
        self._progress.show(Report(self._step, 0, 0.0, fraction, left, message))

    def _show(self, message: str = "") -> None:
        elapsed, fraction = self.seconds, self._fraction
        left = None
        if fraction is not None and fraction > self._first_fraction and self._tokens:
            left = elapsed * (1 - fraction) / (fraction - self._first_fraction)
        speed = self._tokens / elapsed if elapsed > 0 else 0.0
        self._shown_at = time.monotonic()
        self._progress.show(Report(self._step, self._documents, speed, fraction, left, message))


def silence_transformers() -> None:
    """No progress bars of its own in the middle of ours."""
    from transformers.utils import logging

    logging.disable_progress_bar()


def clock(seconds: float) -> str:
    """``1:02:03`` or ``4:05``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
