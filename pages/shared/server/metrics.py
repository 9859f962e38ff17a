"""What an operator's monitoring asks for, in Prometheus's text format: counts of this process, and nobody's names.

Where nobody has to sign in it is served to whoever asks, so labels are names of pages and outcomes, and nothing that a
visitor wrote.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from core.errors import Mistake

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds, to beyond what the longest document takes; above the last one is a bucket of its own."""
_STARTED = time.time()


@dataclass(frozen=True)
class Metric:
    kind: str
    help: str
    labels: tuple[str, ...] = ()


METRICS: dict[str, Metric] = {
    "headscope_build_info": Metric("gauge", "Always 1; the version is in the label.", ("version",)),
    "headscope_runs": Metric("gauge", "Runs in the cache."),
    "headscope_sessions": Metric("gauge", "Browser sessions that are connected."),
    "headscope_queue_length": Metric("gauge", "Documents that wait for the model, the one at work included."),
    "headscope_upload_bytes": Metric("gauge", "Uploaded files that are held in memory."),
    "headscope_page_runs_total": Metric("counter", "Runs of pages.", ("page", "outcome")),
    "headscope_page_seconds": Metric("histogram", "How long a page ran.", ("page",)),
    "headscope_documents_total": Metric("counter", "Documents that went through a model.", ("outcome",)),
    "headscope_document_seconds": Metric("histogram", "How long a document took, the model's loading excluded."),
    "headscope_logins_total": Metric("counter", "Sessions of people who had signed in.", ("outcome",)),
    "headscope_builds_total": Metric("counter", "Builds of the demo by the button.", ("outcome",)),
    "headscope_problems_total": Metric("counter", "Times that somebody was shown a sentence instead of a result."),
    "headscope_errors_total": Metric("counter", "Errors that nobody expected."),
    "process_resident_memory_bytes": Metric("gauge", "Resident memory."),
    "process_start_time_seconds": Metric("gauge", "When the process began, in seconds since 1970."),
}

_lock = threading.Lock()
_counts: dict[tuple[str, tuple[str, ...]], float] = defaultdict(float)
_seconds: dict[tuple[str, tuple[str, ...]], list[float]] = {}
"""By histogram and labels: how many in each bucket, then the sum."""
_gauges: dict[str, Callable[[], float]] = {}


def count(name: str, *labels: str) -> None:
    """One more."""
    with _lock:
        _counts[name, labels] += 1


def observe(name: str, seconds: float, *labels: str) -> None:
    """One more that took so long."""
    bucket = sum(seconds > edge for edge in BUCKETS)
    with _lock:
        kept = _seconds.setdefault((name, labels), [0.0] * (len(BUCKETS) + 2))
        kept[bucket] += 1
        kept[-1] += seconds


def watch(name: str, value: Callable[[], float]) -> None:
    """A gauge that is asked whenever somebody looks."""
    _gauges[name] = value


def exposition(version: str) -> str:
    """Everything there is, as Prometheus reads it."""
    now: dict[tuple[str, tuple[str, ...]], float] = {
        ("headscope_build_info", (version,)): 1.0,
        ("process_resident_memory_bytes", ()): float(_resident()),
        ("process_start_time_seconds", ()): _STARTED,
    }
    for name, value in list(_gauges.items()):
        with contextlib.suppress(Mistake, OSError):  # the cache has gone: one number less, not none
            now[name, ()] = float(value())
    with _lock:
        values = _counts | now
        histograms = {key: list(kept) for key, kept in _seconds.items()}
    lines = []
    for name, metric in METRICS.items():
        rows = [line for key, kept in sorted(histograms.items()) if key[0] == name for line in _histogram(*key, kept)]
        rows += [_line(name, metric.labels, key[1], value) for key, value in sorted(values.items()) if key[0] == name]
        if not rows and metric.kind == "counter" and not metric.labels:
            rows = [_line(name, (), (), 0.0)]  # a counter that is not there yet cannot be seen to rise
        if rows:
            lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}", *rows]
    return "\n".join(lines) + "\n"


def _histogram(name: str, labels: tuple[str, ...], kept: list[float]) -> list[str]:
    names, lines, below = METRICS[name].labels, [], 0.0
    for edge, number in zip((*BUCKETS, float("inf")), kept[:-1], strict=True):
        below += number
        shown = "+Inf" if edge == float("inf") else f"{edge:g}"
        lines.append(_line(f"{name}_bucket", (*names, "le"), (*labels, shown), below))
    return [*lines, _line(f"{name}_sum", names, labels, kept[-1]), _line(f"{name}_count", names, labels, below)]


def _line(name: str, names: tuple[str, ...], labels: tuple[str, ...], value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(label)}"' for key, label in zip(names, labels, strict=True))
    return f"{name}{{{pairs}}} {value!r}" if pairs else f"{name} {value!r}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # no Linux: the peak is the nearest that the standard library knows
        import resource
        import sys

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
