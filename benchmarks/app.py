"""The app in a browser against plain Plotly pages with the same points: ``python -m benchmarks.app``.

A run of 10,000 documents × 32 heads (``benchmarks.app_run``), the app and the plain pages (``benchmarks.app_plain``)
each on a server of its own that has served its pages before, headless Chromium, turn by turn; the ratio of the medians
is what counts, for the machine's speed drifts. Ends with status 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from contextlib import suppress
from dataclasses import dataclass

from playwright.sync_api import Browser, Page, TimeoutError

from benchmarks.app_browser import Traffic, chromium, fresh_page, opened, pressed, served, settle, share_painted
from benchmarks.app_gestures import cell_spot, draw_lasso, sheet
from benchmarks.app_run import DOCUMENTS, HEADS, NAME, add_cache, around_six, big_run
from benchmarks.result import Result
from core.runs.run import Run

LASSO_BYTES = 40_000
STAGES = {1: "1 attention", 2: "2 projected"}


@dataclass(frozen=True)
class Sight:
    """A picture to wait for: its address, the call that says when it is drawn, and the element it is in, if any.

    Without a picture: what Streamlit itself takes, which no page can go below.
    """

    url: str
    drawn: str
    element: str


def sights(app: str, plain: str) -> dict[str, Sight]:
    every = ",".join(str(topic) for topic in range(25))
    return {
        "map": Sight(f"{app}/head_map?run={NAME}", "map(1)", ".head-map .box"),
        "one trace": Sight(f"{plain}/?page=one-trace", "plotly(1)", ".js-plotly-plot"),
        "a trace a head": Sight(f"{plain}/?page=a-trace-a-head", "plotly(1)", ".js-plotly-plot"),
        "heat map": Sight(f"{app}/heat_map?run={NAME}&size=2500&t={every}", "cells()", ".hs-heat-map canvas"),
        "go.Heatmap": Sight(f"{plain}/?page=heat", "plotly(1)", ".js-plotly-plot"),
        "go.Heatmap with names": Sight(f"{plain}/?page=heat-with-names", "plotly(1)", ".js-plotly-plot"),
        "no picture": Sight(f"{plain}/?page=none", "control()", ""),
    }


def first_drawn(browser: Browser, seen: dict[str, Sight], rounds: int) -> dict[str, float]:
    """Median seconds from a fresh browser context to each picture, after a round that only warms the servers up."""
    found: dict[str, list[float]] = {name: [] for name in seen}
    for turn in range(1 + rounds):
        for name in list(seen) if turn % 2 else list(seen)[::-1]:
            sight = seen[name]
            with fresh_page(browser) as page:
                seconds = opened(page, sight.url, sight.drawn)
                if turn:
                    found[name].append(seconds)
                    continue
                settle(page)
                if sight.element and (share := share_painted(page.locator(sight.element).first)) < 0.05:
                    raise SystemExit(
                        f"The picture '{name}' is empty ({share:.1%} painted): there is nothing to measure."
                    )
    for name, times in found.items():
        print(f"  {name}: {', '.join(f'{value:.2f}' for value in times)} s", flush=True)
    return {name: statistics.median(times) for name, times in found.items()}


def switches(browser: Browser, seen: dict[str, Sight], rounds: int) -> dict[str, float]:
    """Median seconds for a switch between two stages that have both been seen, in the app and on the plain page."""
    found: dict[str, list[float]] = {"map": [], "one trace": []}
    labels = {"map": STAGES, "one trace": {stage: str(stage) for stage in STAGES}}
    with fresh_page(browser) as ours, fresh_page(browser) as theirs:
        pages: dict[str, Page] = {"map": ours, "one trace": theirs}
        for name, page in pages.items():
            opened(page, seen[name].url, seen[name].drawn)
            settle(page)
        for turn in range(2 + rounds):  # the first two are there and back: then both stages have been seen
            stage = 2 - turn % 2
            for name, page in pages.items():
                button = page.get_by_test_id("stButtonGroup").get_by_text(labels[name][stage], exact=True)
                seconds = pressed(page, button, seen[name].drawn.replace("1", str(stage)))
                if turn > 1:
                    found[name].append(seconds)
    for name, times in found.items():
        print(f"  {name}: {', '.join(f'{value:.3f}' for value in times)} s", flush=True)
    return {name: statistics.median(times) for name, times in found.items()}


def head_filter(browser: Browser, sight: Sight) -> Result:
    """Bytes over the websocket while a head is taken out and put back."""
    with fresh_page(browser) as page:
        traffic = Traffic(page)
        opened(page, sight.url, sight.drawn)
        settle(page)
        page.wait_for_timeout(1_000)
        traffic.clear()
        chip = page.get_by_role("button", name="head 2", exact=True)
        seconds = [pressed(page, chip, f"heads('{heads}')") for heads in (f"1,3-{HEADS}", "all")]
        page.wait_for_timeout(2_000)  # longer than anything that the map puts off
        count = traffic.sent + traffic.received
    return Result("head filter", f"{count} bytes, {statistics.mean(seconds):.2f} s", "0 bytes", count == 0)


def lasso(browser: Browser, sight: Sight, run: Run) -> Result:
    """Bytes that the browser sends for a lasso around six heads' points, until the table has them."""
    points = 6 * DOCUMENTS
    with fresh_page(browser) as page:
        traffic = Traffic(page)
        opened(page, sight.url, sight.drawn)
        settle(page)
        page.get_by_role("button", name="Lasso").click()
        traffic.clear()
        draw_lasso(page, run, around_six())
        heading = f"{points:,} points of {DOCUMENTS:,} documents"
        page.get_by_role("heading", name=heading, exact=True).wait_for()
        page.get_by_test_id("stDataFrame").wait_for()
        settle(page)
        sent = traffic.sent
    return Result(f"lasso of {points:,} points", f"{sent:,} bytes, table shown", "≤ 40 KB", sent <= LASSO_BYTES)


def clicks(browser: Browser, sight: Sight, run: Run) -> Result:
    """Cells all over the sheet are clicked, ten to a pixel; each must open exactly its document in its head."""
    cells = [(0, 0), (1, 4_321), (17, 9_999), (HEADS, 5_000), (8, 77)]
    right = 0
    with fresh_page(browser) as page:
        opened(page, sight.url, sight.drawn)
        settle(page)
        canvas = page.locator(sight.element).first
        for row, column in cells:
            canvas.scroll_into_view_if_needed()
            canvas.click(position=cell_spot(canvas, run, row, column))
            where = f"head {row}" if row else "the full embedding"
            name = f"Document {sheet(run).docs[column] + 1} in {where}"
            with suppress(TimeoutError):
                page.get_by_role("heading", name=name, exact=True).wait_for(timeout=20_000)
                right += 1
            settle(page)
    return Result("clicked cells open their document", f"{right} of {len(cells)}", "all", right == len(cells))


def ratio(what: str, times: dict[str, float], ours: str, theirs: str, least: float) -> Result:
    found = times[theirs] / times[ours]
    return Result(
        f"{what}, against {theirs}",
        f"{found:.1f}× ({times[ours]:.2f} / {times[theirs]:.2f} s)",
        f"≥ {least:g}×",
        found >= least,
    )


def measure(run: Run, rounds: int) -> list[Result]:
    plain_pages = "benchmarks/app_plain.py"
    with served("app.py", run.cache) as app, served(plain_pages, run.cache) as plain, chromium() as browser:
        seen = sights(app, plain)
        with fresh_page(browser) as page:  # until somebody has seen the first page, Streamlit knows no other
            page.goto(app)
            page.get_by_role("heading", level=1).wait_for()
            settle(page)
        print("First drawn, a fresh browser context each time", flush=True)
        first = first_drawn(browser, seen, rounds)
        print("A switch to a stage that was seen before", flush=True)
        again = switches(browser, seen, 2 * rounds)
        return [
            ratio("first drawn map", first, "map", "one trace", 3),
            ratio("first drawn map", first, "map", "a trace a head", 2),
            ratio("stage seen before", again, "map", "one trace", 8),
            head_filter(browser, seen["map"]),
            lasso(browser, seen["map"], run),
            # Bare cells, and cells that say under the pointer what ours do. A third of the first may be less than what
            # Streamlit takes for a page without any picture: then no page at all can reach it.
            ratio(f"heat map {HEADS + 1} × {DOCUMENTS:,}", first, "heat map", "go.Heatmap", 3),
            ratio(f"heat map {HEADS + 1} × {DOCUMENTS:,}", first, "heat map", "go.Heatmap with names", 3),
            clicks(browser, seen["heat map"], run),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    add_cache(parser)
    options = parser.parse_args()
    results = measure(big_run(options.cache), options.rounds)
    for result in results:
        print(f"{'reached' if result.reached else 'MISSED ':8}{result.what:48}{result.measured:34}{result.target}")
    sys.exit(0 if all(result.reached for result in results) else 1)


if __name__ == "__main__":
    main()
