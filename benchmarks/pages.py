"""From the address to the first useful picture, page by page: ``python -m benchmarks.pages``.

The demo and 10,000 documents × 32 heads (``benchmarks.app_run``), each with a copy of itself for Compare runs; every
page in a fresh browser context, turn by turn with a Streamlit page that has nothing on it (``benchmarks.app_plain``).
The machine's speed drifts, so each time is divided by those of the empty pages just before and after it; the median of
the rounds counts. Beside it: the processor time of the browser's main thread until the picture, which other work on the
machine hardly changes; the server's until the page is at rest; and the bytes it has sent. Ends with status 1 where a
target is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.app_browser import ROOT, Server, Traffic, chromium, fresh_page, opened, processor, server, settle
from benchmarks.app_run import NAME, add_cache, big_run
from core.runs.run import Run

MOST = 1.6
"""Times the empty page's."""
DEMO, COPY = "demo", "-copy"
PICTURES = {
    "": "seen('.hs-story, .stMarkdown li')",
    "head_map": "map(1)",
    "heat_map": "cells()",
    "head_profile": "figure()",
    "compare_runs": "figure()",
    "stages": "figure()",
    "topics": "figure()",
    "aspects": "seen('.hs-grid .cell')",
    "layers": "figure()",
    "attention": "seen('.hs-grid .cell')",
    "ablation": "seen('.hs-grid .cell')",
    "your_document": "seen('textarea')",
    "retrieval_lab": "seen('.hs-strip')",
}
"""By a page's address, the call of ``benchmarks.app_browser`` that waits for what the page is for."""
MISSING = "seen('[data-testid=stAlert]')"
"""What a page shows of a run without its step."""
STEPS = {"aspects": "aspects", "layers": "layers", "attention": "attention", "ablation": "ablate"}
AGAIN = 4
"""Pages between two empty ones."""


@dataclass
class Opened:
    """What the rounds have measured of a page: its time over the empty page's, and what the server had to do."""

    url: str
    drawn: str
    seconds: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    browser: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    sent: int = 0


def prepare(cache: Path, runs: Sequence[str]) -> None:
    """The runs and their copies, made where they are missing; the demo is copied from the app's own cache."""
    if NAME in runs:
        big_run(cache)
    if DEMO in runs and not Run(cache, DEMO).exists():
        if not Run(ROOT / "cache", DEMO).exists():
            raise SystemExit("The demo is missing: 'make demo' builds it.")
        shutil.copytree(ROOT / "cache" / DEMO, cache / DEMO)
    for name in runs:
        if not (cache / f"{name}{COPY}").exists():
            shutil.copytree(cache / name, cache / f"{name}{COPY}", copy_function=os.link)


def pages(address: str, cache: Path, runs: Sequence[str], only: Sequence[str]) -> dict[tuple[str, str], Opened]:
    found = {}
    for name in runs:
        manifest = Run(cache, name).manifest()
        for page, drawn in PICTURES.items():
            if only and (page or "overview") not in only:
                continue
            there = page not in STEPS or manifest.is_done(STEPS[page])
            beside = f"&beside={name}{COPY}" if page == "compare_runs" else ""
            url = f"{address}/{page}?run={name}{beside}"
            found[page or "overview", name] = Opened(url, drawn if there else MISSING)
    return found


def visit(browser: Browser, on: Server, page: Opened) -> float:
    """Opens a page and waits until it is at rest; seconds until its picture."""
    with fresh_page(browser) as tab:
        traffic, before = Traffic(tab), processor(on.pid)
        inside = tab.context.new_cdp_session(tab)
        inside.send("Performance.enable", {"timeDomain": "threadTicks"})
        seconds = opened(tab, page.url, page.drawn)
        metrics = {each["name"]: each["value"] for each in inside.send("Performance.getMetrics")["metrics"]}
        page.browser.append(metrics["TaskDuration"])
        settle(tab)
        page.cpu.append(processor(on.pid) - before)
        page.sent = traffic.received
    return seconds


def measure(browser: Browser, app: Server, plain: Server, every: dict[tuple[str, str], Opened], rounds: int) -> Opened:
    """Fills in ``every``; returns the empty page."""
    empty = Opened(f"{plain.address}/?page=none", "control()")
    for page in [empty, *every.values()]:  # warms servers and caches up
        visit(browser, plain if page is empty else app, page)
        page.cpu.clear()
        page.browser.clear()
    groups = [list(every.values())[at : at + AGAIN] for at in range(0, len(every), AGAIN)]
    for turn in range(rounds):
        print(f"Round {turn + 1} of {rounds} ...", flush=True)
        before = visit(browser, plain, empty)
        for group in groups if turn % 2 == 0 else groups[::-1]:
            taken = [(page, visit(browser, app, page)) for page in group]
            after = visit(browser, plain, empty)
            for page, seconds in taken:
                page.seconds.append(seconds)
                page.ratios.append(2 * seconds / (before + after))
            empty.seconds += [before]
            before = after
    return empty


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", nargs="*", default=[DEMO, NAME], choices=[DEMO, NAME])
    parser.add_argument("--only", nargs="*", default=[], help="of the pages these, by their addresses")
    add_cache(parser)
    options = parser.parse_args()
    prepare(options.cache, options.runs)
    with (
        server("app.py", options.cache) as app,
        server("benchmarks/app_plain.py", options.cache) as plain,
        chromium() as browser,
    ):
        every = pages(app.address, options.cache, options.runs, options.only)
        empty = measure(browser, app, plain, every, options.rounds)
    seconds, in_browser = statistics.median(empty.seconds), statistics.median(empty.browser)
    print(f"An empty page: {seconds:.2f} s, {1000 * in_browser:.0f} ms in the browser. Load: {os.getloadavg()[0]:.1f}")
    print(f"{'':8}{'page':16}{'run':6}{'ratio':>7}{'seconds':>9}{'browser':>10}{'server':>10}{'sent':>10}  ratios")
    missed = 0
    for (page, run), found in every.items():
        ratio = statistics.median(found.ratios)
        missed += ratio > MOST
        middle = [statistics.median(values) for values in (found.seconds, found.browser, found.cpu)]
        print(
            f"{'reached' if ratio <= MOST else 'MISSED':8}{page:16}{run:6}{ratio:6.2f}×{middle[0]:7.2f} s"
            f"{1000 * middle[1]:7.0f} ms{1000 * middle[2]:7.0f} ms{found.sent / 1000:7,.0f} KB  "
            f"{', '.join(f'{value:.2f}' for value in sorted(found.ratios))}"
            f"{'  (the run has no such step)' if found.drawn == MISSING else ''}"
        )
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
