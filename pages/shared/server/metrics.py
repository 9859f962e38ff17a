"""What an operator's monitoring asks for, in Prometheus's text format: counts of this process, and nobody's names.

Where nobody has to sign in it is served to whoever asks, so labels are names of pages and outcomes, and nothing that a
visitor wrote.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.registry import Collector

from core import VERSION
from core.errors import Mistake

__all__ = ["CONTENT_TYPE", "count", "exposition", "observe", "watch"]
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds, to beyond what the longest document takes."""
COUNTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "headscope_page_runs_total": ("Runs of pages.", ("page", "outcome")),
    "headscope_documents_total": ("Documents that went through a model.", ("outcome",)),
    "headscope_logins_total": ("Sessions of people who had signed in.", ("outcome",)),
    "headscope_builds_total": ("Demo builds started with the button.", ("outcome",)),
    "headscope_problems_total": ("Times that a user was shown a message instead of a result.", ()),
    "headscope_errors_total": ("Unexpected errors.", ()),
}
HISTOGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "headscope_page_seconds": ("How long a page ran.", ("page",)),
    "headscope_document_seconds": ("How long a document took, the model's loading excluded.", ()),
}
GAUGES = {
    "headscope_runs": "Runs in the cache.",
    "headscope_sessions": "Browser sessions that are connected.",
    "headscope_queue_length": "Documents that wait for the model, the one at work included.",
    "headscope_upload_bytes": "Uploaded files that are held in memory.",
}
WATCHED: dict[str, Callable[[], float]] = {}
"""By gauge, what it is asked for whenever somebody looks."""


class WatchedGauges(Collector):
    """The gauges; one that cannot be had, because the cache has gone, costs only itself."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for name, value in list(WATCHED.items()):
            with contextlib.suppress(Mistake, OSError):
                yield GaugeMetricFamily(name, GAUGES[name], value=float(value()))


prometheus_client.disable_created_metrics()  # a second series for each, which nobody asks for
_REGISTRY = CollectorRegistry()
_COUNTERS = {name: Counter(name, help, labels, registry=_REGISTRY) for name, (help, labels) in COUNTERS.items()}
_HISTOGRAMS = {
    name: Histogram(name, help, labels, buckets=BUCKETS, registry=_REGISTRY)
    for name, (help, labels) in HISTOGRAMS.items()
}
Gauge("headscope_build_info", "Always 1; the version is in the label.", ["version"], registry=_REGISTRY).labels(
    VERSION
).set(1)
_REGISTRY.register(WatchedGauges())
ProcessCollector(registry=_REGISTRY)


def count(name: str, *labels: str) -> None:
    """One more."""
    counter = _COUNTERS[name]
    (counter.labels(*labels) if labels else counter).inc()


def observe(name: str, seconds: float, *labels: str) -> None:
    """One more that took so long."""
    histogram = _HISTOGRAMS[name]
    (histogram.labels(*labels) if labels else histogram).observe(seconds)


def watch(name: str, value: Callable[[], float]) -> None:
    WATCHED[name] = value


def exposition() -> str:
    """Everything there is, as Prometheus reads it."""
    return generate_latest(_REGISTRY).decode()
