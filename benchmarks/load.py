"""Fifty readers at once on 10,000 documents × 32 heads: ``python -m benchmarks.load [--minutes 5]``.

One reader first sees everything, and the server's resident memory is noted. Then fifty walk through all pages: most
speak Streamlit's protocol over a websocket, some are Chromium tabs. Then sessions are opened and closed, two hundred
of them. At last everybody brings one document of their own, through a real model, to the demo run; that phase ends
when all have been answered, or when its time is up. In every phase an exception, a red box, a lost connection or a word
of somebody else's is an error. Ends with status 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from websockets.exceptions import ConnectionClosed

from benchmarks.app_browser import Server, processor, server
from benchmarks.app_run import NAME, add_cache, big_run
from benchmarks.load_tabs import Tabs
from benchmarks.result import Result
from core.runs.run import Run
from pages.shared.queue import MOST_WAITING
from tests.support.session_client import SessionClient, SessionRecord
from tests.support.session_walk import DOCUMENT, WITH_MODEL, WITHOUT_MODEL, Step, Walker, step, tour, words_for

MOST_RATIO, MOST_MB, MOST_GROWTH = 1.5, 2_000, 0.05
"""Memory with all readers against one's; without the model; and how much the last half of a phase may add."""
DEMO = "demo"
EVERY = 1.0
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class Phase:
    """What a crowd's walk came to; ``memory`` are megabytes, a sample each ``EVERY`` seconds."""

    sessions: int
    seen: Sequence[SessionRecord]
    memory: Sequence[float]
    cpu: float
    """Seconds of the server's processor."""

    @property
    def growth(self) -> float:
        """By how much of itself memory grew over the last half, as a line through the samples has it."""
        half = np.asarray(self.memory[len(self.memory) // 2 :])
        slope = np.polyfit(np.arange(len(half)), half, 1)[0] if len(half) > 1 else 0.0
        return float(slope * len(half) / half.mean())

    @property
    def slope(self) -> float:
        """Megabytes a minute over the last half."""
        half = len(self.memory) - len(self.memory) // 2
        return self.growth * float(np.mean(self.memory[-half:])) / (half * EVERY / 60)

    @property
    def last(self) -> float:
        """Memory at the end: the median of the last tenth."""
        return statistics.median(self.memory[-max(1, len(self.memory) // 10) :])

    def tell(self, what: str) -> list[Result]:
        runs = sorted(value for seen in self.seen for value in seen.runs)
        errors = [error for seen in self.seen for error in seen.errors]
        for error in errors[:20]:
            print(f"  {error}", flush=True)
        late = runs[int(0.95 * len(runs))] if runs else 0.0
        median = statistics.median(runs) if runs else 0.0
        said = f"{len(runs)} page runs, median {median:.0f} ms, 95 % within {late:.0f} ms, "
        growth = f"{self.growth:+.1%} of {self.last:,.0f} MB"
        cost = f"{1000 * self.cpu / max(1, len(runs)):.0f} ms of processor a run"
        print(f"{what}: {self.sessions} sessions, {said}{cost}; memory over the last half {growth}", flush=True)
        return [
            Result(f"{what}: errors", str(len(errors)), "0", not errors),
            Result(f"{what}: the last half adds", growth, f"≤ {MOST_GROWTH:.0%}", self.growth <= MOST_GROWTH),
        ]


def resident(pid: int) -> float:
    """Megabytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@dataclass(frozen=True)
class Plan:
    """When a phase ends (of time.monotonic), and the mean seconds between two steps of a reader."""

    until: float
    think: float


async def walk(at: str, run: str, word: str, words: Sequence[str], steps: dict[str, Step], plan: Plan) -> SessionRecord:
    """One reader until the time is up; a lost connection is an error and the end."""
    others = [other.encode() for other in words if other != word]
    reader, chance = SessionClient(at, foreign=lambda: others), random.Random(word)
    walker = Walker(reader, word, chance, run)
    try:
        await reader.open(run=run)
        while time.monotonic() < plan.until:
            await step(walker, chance.choice(list(steps)), steps)
            await asyncio.sleep(chance.uniform(0.5, 1.5) * plan.think)
        await reader.close()
    except (ConnectionClosed, TimeoutError, OSError) as error:
        reader.seen.errors.append(f"the connection was lost: {type(error).__name__}")
    return reader.seen


async def crowd(on: Server, run: str, steps: dict[str, Step], options: argparse.Namespace, minutes: float) -> Phase:
    words = words_for(options.sessions)
    known = [word.encode() for word in words]
    tabs = Tabs(on.address, run, known[: options.tabs], known)
    await asyncio.to_thread(tabs.start)
    before, memory = processor(on.pid), list[float]()
    plan = Plan(time.monotonic() + 60 * minutes, options.think)

    async def watch() -> None:
        while True:
            memory.append(resident(on.pid))
            await asyncio.sleep(EVERY)

    watching = asyncio.create_task(watch())
    mine = words[options.tabs :]
    seen = await asyncio.gather(*(walk(on.address, run, word, words, steps, plan) for word in mine))
    watching.cancel()
    phase = Phase(len(words), [*seen, tabs.seen], memory, processor(on.pid) - before)
    print(f"Memory after {minutes:g} minutes: {phase.last:,.0f} MB, {phase.slope:+.2f} MB a minute", flush=True)
    await asyncio.to_thread(tabs.stop)
    return phase


async def bring(reader: SessionClient, word: str, places: asyncio.Semaphore) -> None:
    """One reader with one document, who comes when the queue has a place, reads the answer and goes."""
    try:
        async with places:
            await reader.open(run=DEMO)
            await step(Walker(reader, word, random.Random(word), DEMO), DOCUMENT, WITH_MODEL)
        reader.seen.answered = not reader.seen.errors
        await reader.close()
    except (ConnectionClosed, TimeoutError, OSError) as error:
        reader.seen.errors.append(f"the connection was lost: {type(error).__name__}")


async def documents(on: Server, sessions: int, minutes: float) -> list[Result]:
    """Everybody's document at once; who has no answer when the time is up is counted, and waited for no longer.

    Nobody walks meanwhile: on two cores the pages of all readers leave the model's thread next to no time.
    """
    before, words, places = processor(on.pid), words_for(sessions), asyncio.Semaphore(MOST_WAITING)
    known = [word.encode() for word in words]
    readers = {word: SessionClient(on.address, foreign=partial(_others, known, word.encode())) for word in words}
    tasks = [asyncio.create_task(bring(reader, word, places)) for word, reader in readers.items()]
    _, late = await asyncio.wait(tasks, timeout=60 * minutes)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    seen = [reader.seen for reader in readers.values()]
    answered = sum(one.answered for one in seen)
    phase = Phase(sessions, seen, [resident(on.pid)], processor(on.pid) - before)
    return [
        *phase.tell("with documents")[:1],
        Result("documents that were answered", f"{answered} of {sessions}", "all", answered == sessions),
    ]


def _others(words: Sequence[bytes], own: bytes) -> list[bytes]:
    return [word for word in words if word != own]


async def churn(on: Server, sessions: int) -> Phase:
    """Readers who open the first page and go; Streamlit keeps the last 128 of them for two minutes."""
    before, seen, memory = processor(on.pid), list[SessionRecord](), list[float]()
    for _ in range(sessions):
        reader = await SessionClient(on.address).open(run=NAME)
        await reader.close()
        seen.append(reader.seen)
        memory.append(resident(on.pid))
    return Phase(sessions, seen, memory, processor(on.pid) - before)


async def measure(cache: Path, options: argparse.Namespace) -> list[Result]:
    with server("app.py", cache) as on:
        first = await SessionClient(on.address).open(run=NAME)
        await tour(Walker(first, "", random.Random(0), NAME))
        alone = resident(on.pid)
        print(f"One session that has seen all pages: {alone:,.0f} MB", flush=True)
        await first.close()
        plain = await crowd(on, NAME, WITHOUT_MODEL, options, options.minutes)
        results = plain.tell("all pages")
        ratio = plain.last / alone
        results += [
            Result("memory against one session's", f"{ratio:.2f} ×", f"≤ {MOST_RATIO} ×", ratio <= MOST_RATIO),
            Result("memory without the model", f"{plain.last:,.0f} MB", f"≤ {MOST_MB:,} MB", plain.last <= MOST_MB),
        ]
        if options.churn:
            results += (await churn(on, options.churn)).tell("opened and closed")
        if options.model_minutes:
            results += await documents(on, options.sessions, options.model_minutes)
        return results


def demo_run(cache: Path) -> None:
    """The demo with its figures and quickly made maps, where it is not there: two minutes, then it is kept."""
    from precompute.steps.analyse import step as analyse
    from precompute.steps.embed import step as embed
    from precompute.steps.project import step as project
    from precompute.steps.project.config import ProjectConfig

    run = Run(cache, DEMO)
    if run.exists() and run.manifest().is_done("project"):
        return
    embed.run(embed.EmbedConfig(cache, DEMO))
    analyse.run(analyse.AnalyseConfig(cache, DEMO))
    project.run(ProjectConfig(cache, DEMO, iterations=90))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=5.0, help="of walking through all pages")
    parser.add_argument("--model-minutes", type=float, default=5.0, help="that documents may take; 0 for no such phase")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--tabs", type=int, default=5, help="how many of the sessions are Chromium tabs")
    parser.add_argument("--think", type=float, default=6.0, help="mean seconds between two steps of a reader")
    parser.add_argument("--churn", type=int, default=200, help="sessions that are opened and closed; 0 for none")
    add_cache(parser)
    options = parser.parse_args()
    big_run(options.cache)
    demo_run(options.cache)
    results = asyncio.run(measure(options.cache, options))
    for result in results:
        print(f"{'reached' if result.reached else 'MISSED':8}{result.what:40}{result.measured:24}{result.target}")
    print("PASS" if all(result.reached for result in results) else "MISSED")
    sys.exit(0 if all(result.reached for result in results) else 1)


if __name__ == "__main__":
    main()
