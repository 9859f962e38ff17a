"""Forty uploads at once, five of them JSON bombs of 20 MB, while somebody else reads: ``python -m benchmarks.uploads``.

First one reader sees all pages and embeds a document, so that all that the app keeps is kept; the server's resident
memory then is what later memory is compared with, and the longest of the reader's own waits what later waits are. Then
forty sessions upload a file each at the same moment. Ends with status 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.app_browser import Server, server
from benchmarks.app_run import add_cache
from benchmarks.load import DEMO, demo_run, resident
from benchmarks.result import Result
from core.uploads.apart import AT_ONCE
from tests.support.session_client import SessionClient
from tests.support.session_walk import Walker, own_document, tour

MOST_RATIO, MOST_SECONDS = 1.5, 2.0
FILES = 40
BOMBS: tuple[bytes, ...] = (
    b"{}\n" * 6_600_000,
    b"[" + b"{}," * 6_600_000 + b"{}]",
    b'{"text": "x"}\n' * 60 + b"{}\n" * 6_500_000,
    b'{"text": "x", "more": [' + b"{}," * 6_600_000 + b"{}]}",
    b"[" * 19_000_000,
)
ORDINARY: tuple[tuple[str, bytes], ...] = (
    ("txt", b"The night ferry left the harbour an hour late. " * 2_000),
    ("html", b"<div><p>The night ferry left the harbour an hour late.</p></div>" * 2_000),
    ("json", b'{"text": "The night ferry left the harbour an hour late."}\n' * 10),
)
PAGES = ("", "head_map", "heat_map", "head_profile", "stages", "topics", "retrieval_lab", "your_document")


@dataclass
class Watched:
    """Megabytes and counts while the files are read."""

    server: float = 0.0
    together: float = 0.0
    """The server and its parsers."""
    parsers: int = 0
    waits: list[float] = field(default_factory=list)
    """Seconds that the other reader waited for a page."""


def children(pid: int) -> list[int]:
    """The server's parsers; one that is just being started shares the server's memory and name, and is none yet."""
    found = [child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]
    return [int(child) for child in found if b"core.uploads" in Path(f"/proc/{child}/cmdline").read_bytes()]


def look(on: Server, seen: Watched) -> None:
    parsers = []
    for child in children(on.pid):
        try:
            parsers.append(resident(child))
        except (OSError, IndexError):  # it has ended between the two looks
            continue
    own = resident(on.pid)
    seen.server, seen.together = max(seen.server, own), max(seen.together, own + sum(parsers))
    seen.parsers = max(seen.parsers, len(parsers))


async def watch(on: Server, seen: Watched) -> None:
    while True:
        with suppress(OSError):  # a thread of the server has ended between two looks
            look(on, seen)
        await asyncio.sleep(0.1)


async def read(on: Server, seen: Watched) -> None:
    """Somebody who turns pages all the time."""
    reader = await SessionClient(on.address).open(run=DEMO)
    while True:
        for page in PAGES:
            began = time.perf_counter()
            await reader.show(page, run=DEMO)
            seen.waits.append(time.perf_counter() - began)
            await asyncio.sleep(0.1)


async def ready(on: Server) -> SessionClient:
    reader = await SessionClient(on.address).open(run=DEMO)
    await reader.show("your_document", run=DEMO)
    return reader


async def bring(reader: SessionClient, number: int) -> str:
    """What became of a file: "taken", or the sentence that refuses it."""
    bomb = number % (FILES // len(BOMBS)) == 0
    name, data = ("json", BOMBS[number // (FILES // len(BOMBS))]) if bomb else ORDINARY[number % len(ORDINARY)]
    label = next(label for label in (shown.label for shown in reader.widgets.values()) if label.startswith("Upload"))
    await reader.upload(label, f"file-{number}.{name}", data)
    said = reader.alerts[-1] if reader.alerts else "taken" if f"file-{number}".encode() in reader.text else "lost"
    await reader.close()
    return f"{'bomb' if bomb else 'file'}: {said.partition('json')[2][:60] or said}"


async def measure(cache: Path) -> list[Result]:
    with server("app.py", cache) as on:
        first = await SessionClient(on.address).open(run=DEMO)
        await tour(walker := Walker(first, "zqbench", random.Random(0), DEMO))
        await own_document(walker)
        await first.close()
        readers = [await ready(on) for _ in range(FILES)]
        quiet = Watched()
        reading = asyncio.create_task(read(on, quiet))
        await asyncio.sleep(10)
        reading.cancel()
        look(on, quiet)
        before, busy = quiet.server, Watched()
        tasks = [asyncio.create_task(watch(on, busy)), asyncio.create_task(read(on, busy))]
        await asyncio.sleep(1)
        began = time.perf_counter()
        ends = await asyncio.gather(*(bring(reader, number) for number, reader in enumerate(readers)))
        took = time.perf_counter() - began
        for task in tasks:
            task.cancel()
        for end in sorted(set(ends)):
            print(f"{ends.count(end):4} × {end}")
        longest, usual = max(busy.waits), max(quiet.waits)
        print(
            f"All files in {took:.1f} s; {len(busy.waits)} pages read meanwhile; before, the slowest took {usual:.2f} s"
        )
        print(f"Memory before {before:,.0f} MB, after {resident(on.pid):,.0f} MB")
        lost = sum(end.endswith(("lost", "already")) for end in ends) + sum(
            len(reader.seen.errors) for reader in readers
        )
        return [
            Result("parsers at once", str(busy.parsers), f"≤ {AT_ONCE}", busy.parsers <= AT_ONCE),
            Result("files without an answer, errors", str(lost), "0", not lost),
            _ratio("server's memory against before", busy.server, before),
            _ratio("the same with its parsers", busy.together, before),
            Result("longest wait of a reader", f"{longest:.2f} s", f"≤ {MOST_SECONDS:g} s", longest <= MOST_SECONDS),
        ]


def _ratio(what: str, most: float, before: float) -> Result:
    ratio = most / before
    return Result(what, f"{ratio:.2f} × ({most:,.0f} MB)", f"≤ {MOST_RATIO} ×", ratio <= MOST_RATIO)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add_cache(parser)
    options = parser.parse_args()
    demo_run(options.cache)
    results = asyncio.run(measure(options.cache))
    for result in results:
        print(f"{'reached' if result.reached else 'MISSED':8}{result.what:40}{result.measured:24}{result.target}")
    print("PASS" if all(result.reached for result in results) else "MISSED")
    sys.exit(0 if all(result.reached for result in results) else 1)


if __name__ == "__main__":
    main()
