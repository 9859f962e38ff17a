"""From a gesture to its picture, on 10,000 documents × 32 heads: ``python -m benchmarks.clicks``.

A head's chip and a stage that was seen before on the head map, where the browser has all it needs; a cell of the heat
map and the next head of Head profile, where the server is asked. Each gesture is made ``--times`` times after two that
do not count; from the press of the mouse until the picture is on the screen, by the browser's own clock. Ends with
status 1 where a median is over its target.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator

from playwright.sync_api import Browser, Page

from benchmarks.app import STAGES
from benchmarks.app_browser import chromium, fresh_page, opened, pressed, served, settle
from benchmarks.app_gestures import cell_spot
from benchmarks.app_run import HEADS, NAME, add_cache, big_run
from core.runs.run import Run

HERE, ASKED = 150, 400
"""Milliseconds: where the browser has all it needs, and where the server is asked."""
WARM_UP = 2


def chips(page: Page, app: str, times: int) -> Iterator[float]:
    opened(page, f"{app}/head_map?run={NAME}", "map(1)")
    settle(page)
    chip = page.get_by_role("button", name="head 2", exact=True)
    for turn in range(times):
        yield pressed(page, chip, f"heads('{'all' if turn % 2 else f'1,3-{HEADS}'}')")


def seen_stages(page: Page, app: str, times: int) -> Iterator[float]:
    opened(page, f"{app}/head_map?run={NAME}", "map(1)")
    settle(page)
    for turn in range(times):
        stage = 2 - turn % 2
        button = page.get_by_test_id("stButtonGroup").get_by_text(STAGES[stage], exact=True)
        yield pressed(page, button, f"map({stage})")


def cells(page: Page, app: str, run: Run, times: int) -> Iterator[float]:
    every = ",".join(str(topic) for topic in range(25))
    opened(page, f"{app}/heat_map?run={NAME}&size=2500&t={every}", "cells()")
    settle(page)
    canvas = page.locator(".hs-heat-map canvas").first
    for turn in range(times):
        row, column = 1 + turn % HEADS, 37 + 431 * turn
        canvas.scroll_into_view_if_needed()
        page.evaluate("(end) => { bench.awaited = bench.heading(end); }", f" in head {row}")
        canvas.click(position=cell_spot(canvas, run, row, column))
        yield float(page.evaluate("bench.awaited.then((at) => at - bench.pressed)")) / 1000
        settle(page)


def next_heads(page: Page, app: str, times: int) -> Iterator[float]:
    opened(page, f"{app}/head_profile?run={NAME}&head=1", "figure()")
    settle(page)
    for turn in range(times):
        yield pressed(page, page.get_by_role("button", name="Next"), f"redrawn('Head {turn + 2} follows')")


def measure(browser: Browser, app: str, run: Run, times: int, only: str) -> int:
    """Prints the table; returns how many targets are missed."""
    gestures = {
        "Head map: a head's chip": (HERE, lambda page, times: chips(page, app, times)),
        "Head map: a stage seen before": (HERE, lambda page, times: seen_stages(page, app, times)),
        "Topic heat map: another cell": (ASKED, lambda page, times: cells(page, app, run, times)),
        "Head profile: the next head": (ASKED, lambda page, times: next_heads(page, app, times)),
    }
    missed = 0
    for name, (most, gesture) in gestures.items():
        if not name.startswith(only):
            continue
        with fresh_page(browser) as page:
            found = sorted(1000 * seconds for seconds in list(gesture(page, WARM_UP + times))[WARM_UP:])
        median = statistics.median(found)
        missed += median > most
        print(
            f"{'reached' if median <= most else 'MISSED':8}{name:34}{median:6.0f} ms  ≤ {most} ms  "
            f"(fastest {found[0]:.0f}, slowest {found[-1]:.0f}; load {os.getloadavg()[0]:.1f})",
            flush=True,
        )
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", default="", help="gestures whose name begins so")
    add_cache(parser)
    options = parser.parse_args()
    run = big_run(options.cache)
    with served("app.py", run.cache) as app, chromium() as browser:
        missed = measure(browser, app, run, options.times, options.only)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
