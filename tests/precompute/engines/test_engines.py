"""The local engine by several processes: the same run, though one of them is killed; parts for several workers."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.errors import Mistake
from core.model.embedder import EmbedderConfig, ModelInfo
from core.model.shape import ModelShape
from core.runs.run import Run
from core.runs.verify import verify
from precompute.engines import ENGINES, EmbedTask, Resources
from precompute.engines.pool import WorkerDied, WorkerMessage, make_parts
from precompute.job.fingerprint import part_digest
from precompute.steps.embed import step as embed
from precompute.steps.embed.part_spec import Event, PartDone
from precompute.steps.embed.step import EmbedConfig
from tests.support.engine_runs import Seen, assert_same, break_off, children, command_of, twenty_in_parts_of_three

INFO = ModelInfo("m", "r", ModelShape(1, 1, 1, 1, 1), (1,), "mean", "", "", 1, "float32")


@pytest.fixture
def config(
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    some_rows: Callable[..., list[dict[str, Any]]],
    one_thread: None,
) -> EmbedConfig:
    """Twenty documents in parts of three."""
    return twenty_in_parts_of_three(tmp_path / "cache", tiny_model, write_corpus(some_rows(20)))


@pytest.mark.slow
def test_several_processes_make_the_same_run_though_one_is_killed(
    config: EmbedConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that a single process has begun, too."""
    whole = replace(config, run="whole")
    embed.run(whole)
    break_off(config, 2, monkeypatch)
    monkeypatch.setattr("precompute.engines.local.cores", lambda: 2)  # a thread each, as the other had
    killed: list[int] = []

    def kill() -> None:
        victim = next(child for child in children(os.getpid()) if "precompute.job.child" in command_of(child))
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    seen = Seen(kill)
    result = embed.run(replace(config, resources=Resources(workers=2)), seen)
    assert killed
    assert [one for one in seen.messages if "died" in one] == [
        "a worker died and is being replaced. The process was ended by signal 9 (SIGKILL)."
    ]
    assert result.parts_kept == 2
    assert_same(Run(config.cache, "run"), Run(config.cache, "whole"))
    assert verify(Run(config.cache, "run"), part_digest).problems == ()
    assert not [child for child in children(os.getpid()) if "precompute.job.child" in command_of(child)]


@pytest.mark.slow
def test_what_a_worker_refuses_is_said_once(
    config: EmbedConfig, other_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker elsewhere, with other weights under the same name."""
    from core.model.locate import ModelFiles

    monkeypatch.setattr(
        EmbedderConfig, "locate", lambda self: ModelFiles(Path(self.model), "tiny", "another revision", None)
    )
    with pytest.raises(Mistake, match="Put the same files on all machines"):
        embed.run(replace(config, resources=Resources(workers=1)))


# A pool, without any process


class Scripted:
    """A pool whose workers do what is written: ``deaths`` says how often a part kills who makes it."""

    def __init__(self, deaths: dict[int | None, int]) -> None:
        self.deaths = Counter(deaths)
        self.hired: list[Hashable] = []
        self.here: set[Hashable] = set()
        self.given: list[int] = []
        self._messages: list[WorkerMessage] = []

    def start(self) -> Hashable:
        worker = len(self.hired)
        self.hired.append(worker)
        self.here.add(worker)
        self._say(worker, None, INFO)
        return worker

    def assign(self, worker: Hashable, number: int) -> None:
        self.given.append(number)
        self._say(worker, number, PartDone(number, 1, 0, 1, kept=False))

    def receive(self) -> Iterator[WorkerMessage]:
        messages, self._messages = self._messages, []
        yield from messages

    def stop(self, worker: Hashable) -> None:
        self.here.remove(worker)

    def _say(self, worker: Hashable, at: int | None, otherwise: Event | ModelInfo) -> None:
        dies = self.deaths[at] > 0
        self.deaths[at] -= dies
        self._messages.append(WorkerMessage(worker, WorkerDied("It was killed.") if dies else otherwise))


def made(pool: Scripted, size: int, parts: int = 5) -> list[Event | ModelInfo]:
    events: list[Event | ModelInfo] = []
    task = cast(
        EmbedTask, SimpleNamespace(reader=SimpleNamespace(numbers=lambda: iter(range(parts))), begin=events.append)
    )
    make_parts(task, events.append, pool, size)
    assert not pool.here, "all are stopped"
    return events


@pytest.mark.parametrize("deaths", [{}, {2: 1}, {0: 3, 4: 5}, {None: 5}])
@pytest.mark.parametrize("size", [1, 3, 9])
def test_every_part_is_made_once_whoever_dies(size: int, deaths: dict[int | None, int]) -> None:
    pool = Scripted(deaths)
    events = made(pool, size)
    assert events.count(INFO) == 1, "the run is begun once"
    assert sorted(event.part for event in events if isinstance(event, PartDone)) == [0, 1, 2, 3, 4]
    assert len(pool.hired) == size + sum(deaths.values())


@pytest.mark.parametrize(("at", "sentence"), [(3, "at part 4"), (None, "before they had loaded a model")])
def test_what_kills_everybody_ends_the_work(at: int | None, sentence: str) -> None:
    pool = Scripted({at: 99})
    with pytest.raises(Mistake, match=f"6 workers have died {sentence}. It was killed."):
        made(pool, 2)
    assert not pool.here


# Mistakes


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"engine": "spark"}, "There is no engine 'spark'. Choose one of local, ranks, ray."),
        ({"resources": Resources(workers=0)}, "--workers must be at least 1, not 0."),
        ({"resources": Resources(num_gpus=-1)}, "--num-gpus must be at least 0, not -1."),
        ({"max_failures": -1}, "--max-failures must be at least 0, not -1."),
    ],
)
def test_refused(config: EmbedConfig, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Mistake) as caught:
        embed.run(replace(config, **change))
    assert str(caught.value) == sentence


def test_the_command_line_offers_the_table(command: Callable[..., Any]) -> None:
    said = command("embed", "--help").out
    assert all(name in said for name in ENGINES)
    refused = command("all", "run", "--engine", "ranks")
    assert (refused.status, refused.err) == (
        2, "headscope: 'all' cannot run with --engine ranks. Run 'embed' with it, then 'all' without it.\n"
    )  # fmt: skip
