"""What the tests of the engines share: a corpus, a run to compare with, a run that was broken off."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.model.embedder import EmbedderConfig
from core.runs.run import Run
from precompute.job.progress import Report
from precompute.job.storage import Storage
from precompute.steps.embed import part as parts_work
from precompute.steps.embed import step as embed
from precompute.steps.embed.staging import write_done
from precompute.steps.embed.step import EmbedConfig

LONGEST = 120.0
"""Seconds that are waited for something in the same process."""


class Seen:
    """A progress that keeps what it is shown, and does something the first time that documents are done."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.messages: list[str] = []
        self._then: Callable[[], object] | None = then

    def show(self, report: Report) -> None:
        self.messages.append(report.message)
        if report.documents and self._then is not None:
            then, self._then = self._then, None
            then()

    def close(self) -> None:
        pass


def files(run: Run) -> dict[str, bytes]:
    """Every file but the manifest, whose times differ."""
    found = {str(path.relative_to(run.folder)): path for path in run.folder.rglob("*") if path.is_file()}
    del found["manifest.json"]
    return {name: path.read_bytes() for name, path in found.items()}


def assert_same(one: Run, other: Run) -> None:
    """The same run, byte by byte, whoever made it."""
    assert files(one) == files(other)
    manifests = [run.manifest() for run in (one, other)]
    for name in ("model", "vectors", "corpus", "versions"):
        assert getattr(manifests[0], name) == getattr(manifests[1], name)
    steps = [manifest.steps["embed"] for manifest in manifests]
    assert (steps[0].fingerprint, steps[0].counts, steps[0].options) == (
        steps[1].fingerprint, steps[1].counts, steps[1].options
    )  # fmt: skip


def break_off(
    config: EmbedConfig,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    once: Callable[[Run], bool] = lambda _: True,
) -> None:
    """Embeds until ``count`` parts are finished, and stops in the middle of the next, ``once`` that is so.

    Ranks read the corpus beside the work: how far they have come by then is a matter of luck, unless it is waited for.
    """
    written = 0

    def write(run: Run, *arguments: Any) -> Any:
        nonlocal written
        if written == count:
            late = time.monotonic() + LONGEST
            while not once(run):
                assert time.monotonic() < late, "what the test waits for does not happen"
                time.sleep(0.01)
            raise KeyboardInterrupt
        written += 1
        return write_done(run, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(parts_work, "write_done", write)
        with pytest.raises(KeyboardInterrupt):
            embed.run(config)


def children(parent: int) -> list[int]:
    """The processes that a process has started."""
    found: list[int] = []
    for path in Path(f"/proc/{parent}/task").glob("*/children"):
        found += map(int, path.read_text().split())
    return found


def command_of(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")


def twenty_in_parts_of_three(cache: Path, model: Path, source: Path, engine: str = "local") -> EmbedConfig:
    """A run of twenty documents in seven parts, to be made by an engine."""
    return EmbedConfig(
        cache,
        "run",
        str(source),
        EmbedderConfig(model=str(model)),
        part_size=3,
        storage=Storage(shares=True),
        engine=engine,
    )
