"""The Python side of every page's rerun on 10,000 documents × 32 heads: ``python -m benchmarks.reruns``.

Timed inside the script runner, within one process: the script from its first line to its last, and then the hashing and
serialising of what goes to the browser. A case goes to and fro between its views, so that every rerun changes
something; each view's first time, which reads files and fills caches, is reported by itself. Ends with status 1 where a
median is over the target.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.app_run import NAME, add_cache, big_run
from core.analysis.topics import merged

ROOT = Path(__file__).resolve().parent.parent
MOST_MS = 150
EVERY_TOPIC = ",".join(str(topic) for topic in range(25))
CORNERS = [(0, 0), (9_999, 0), *((9_999 - 130 * step, 5_000 + 60 * (step % 2)) for step in range(77)), (0, 5_000)]
HALF = "_".join(["1", *(f"{x}.{y}" for x, y in CORNERS)])
"""An area: the lower half of the map, two of its four rows of islands, with as many corners as a lasso may have."""
View = Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """A page's file, and the addresses between which the reruns go to and fro."""

    page: str
    views: tuple[View, ...] = ({},)


CASES = {
    "Overview": Case("explore/overview"),
    "Overview: another document": Case("explore/overview", ({"doc": "7"}, {"doc": "888"})),
    "Head map": Case("explore/head_map"),
    "Head map: another stage": Case("explore/head_map", ({"stage": "1"}, {"stage": "2"})),
    "Head map: another document": Case("explore/head_map", ({"doc": "7"}, {"doc": "8888"})),
    "Head map: half of all points": Case("explore/head_map", ({"area": HALF}, {"area": HALF, "heads": "2-32"})),
    "Topic heat map": Case("explore/heat_map"),
    "Topic heat map: another stage": Case("explore/heat_map", ({"stage": "1"}, {"stage": "2"})),
    "Topic heat map: 33 × 10,000": Case(
        "explore/heat_map", ({"t": EVERY_TOPIC, "size": "2500"}, {"t": EVERY_TOPIC, "size": "2500", "sort": "3"})
    ),
    "Topic heat map: another cell": Case("explore/heat_map", ({"doc": "7", "head": "3"}, {"doc": "8888", "head": "4"})),
    "Topic heat map: a cell of the full embedding": Case("explore/heat_map", ({"doc": "7"}, {"doc": "8888"})),
    "Topic heat map: another topic": Case("explore/heat_map", ({"block": "1"}, {"block": "2"})),
    "Head profile": Case("explore/head_profile"),
    "Head profile: another head": Case("explore/head_profile", ({"head": "3"}, {"head": "4"})),
    "Head profile: another stage": Case("explore/head_profile", ({"stage": "1"}, {"stage": "3"})),
    "Head profile: the gallery": Case("explore/head_profile", ({"view": "gallery"},)),
    "Stages": Case("understand/stages"),
    "Stages: another document": Case("understand/stages", ({"doc": "7"}, {"doc": "88"})),
    "Topics": Case("understand/topics"),
    "Topics: another stage": Case("understand/topics", ({"stage": "1"}, {"stage": "3"})),
    "Retrieval lab: a head is switched": Case("use/retrieval_lab", ({"mix": "1-30"}, {"mix": "1-31"})),
    "Retrieval lab: another document": Case("use/retrieval_lab", ({"query": "7"}, {"query": "88"})),
    "Topics: another label": Case("understand/topics", tuple({"label": topic} for topic in list(merged())[:2])),
}


@dataclass
class Clock:
    """Adds up what script runs have taken since ``clear``, in milliseconds; CPU time is the whole process's."""

    wall: float = 0.0
    cpu: float = 0.0
    sent: int = 0

    def clear(self) -> None:
        self.wall, self.cpu, self.sent = 0.0, 0.0, 0

    def install(self) -> None:
        """Puts itself around the one method through which Streamlit runs a script."""
        from streamlit.runtime.forward_msg_cache import populate_hash_if_needed
        from streamlit.testing.v1.local_script_runner import LocalScriptRunner

        plain = LocalScriptRunner._run_script

        def timed(runner: LocalScriptRunner, data: Any) -> None:
            wall, cpu = time.perf_counter(), time.process_time()
            plain(runner, data)
            for message in runner.forward_msgs():  # a server does this when it sends them
                populate_hash_if_needed(message)
                self.sent += len(message.SerializeToString())
            self.wall += 1000 * (time.perf_counter() - wall)
            self.cpu += 1000 * (time.process_time() - cpu)

        LocalScriptRunner._run_script = timed  # type: ignore[assignment]


@dataclass(frozen=True)
class Timed:
    """Milliseconds: of each view's first run, and the median of the later ones; ``sent`` is in bytes."""

    first: list[float]
    wall: float
    cpu: float
    sent: int

    @property
    def reached(self) -> bool:
        return self.wall <= MOST_MS


def measure(case: Case, reruns: int, clock: Clock) -> Timed:
    import streamlit as st
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120).run()
    st.cache_resource.clear()  # the app begins with the Overview: every page's first time is to be its own
    app.switch_page(f"pages/{case.page}/page.py")
    first, walls, cpus = [], [], []
    for turn in range(len(case.views) + reruns):
        for name in list(app.query_params):
            del app.query_params[name]
        for name, value in ({"run": NAME} | dict(case.views[turn % len(case.views)])).items():
            app.query_params[name] = value
        clock.clear()
        app.run()
        if app.exception or app.error:
            raise SystemExit(f"{case.page} has an error: {(app.exception or app.error)[0].value}")
        if turn < len(case.views):
            first.append(clock.wall)
        else:
            walls.append(clock.wall)
            cpus.append(clock.cpu)
    return Timed(first, statistics.median(walls), statistics.median(cpus), clock.sent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--reruns", type=int, default=10)
    parser.add_argument("--only", default="", help="cases whose name begins so")
    add_cache(parser)
    options = parser.parse_args()
    big_run(options.cache)
    os.environ["HEADSCOPE_CACHE"] = str(options.cache)
    clock, missed = Clock(), 0
    clock.install()
    print(f"{'':8}{'':46}{'rerun':>9}{'CPU':>9}{'sent':>10}  first time")
    for name, case in CASES.items():
        if not name.startswith(options.only):
            continue
        found = measure(case, options.reruns, clock)
        missed += not found.reached
        first = ", ".join(f"{value:.0f}" for value in found.first)
        print(
            f"{'reached' if found.reached else 'MISSED':8}{name:46}{found.wall:6.0f} ms{found.cpu:6.0f} ms"
            f"{found.sent / 1000:7,.0f} KB  {first} ms",
            flush=True,
        )
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
