"""The local engine by several processes: the same run, though one of them is killed; parts for many hands."""

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
from precompute.engines import ENGINES, Hands, Task
from precompute.engines.pool import Dead, Word, make_parts
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
    result = embed.run(replace(config, hands=Hands(workers=2)), seen)
    assert killed
    assert [one for one in seen.messages if "has died" in one] == [
        "a worker has died, and is replaced. Its process was ended by signal 9 (SIGKILL)."
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
        embed.run(replace(config, hands=Hands(workers=1)))


# Many hands, without any process


class Scripted:
    """A crew whose members do what is written: ``deaths`` says how often a part kills who makes it."""

    def __init__(self, deaths: dict[int | None, int]) -> None:
        self.deaths = Counter(deaths)
        self.hired: list[Hashable] = []
        self.here: set[Hashable] = set()
        self.given: list[int] = []
        self._words: list[Word] = []

    def hire(self) -> Hashable:
        hand = len(self.hired)
        self.hired.append(hand)
        self.here.add(hand)
        self._say(hand, None, INFO)
        return hand

    def give(self, hand: Hashable, number: int) -> None:
        self.given.append(number)
        self._say(hand, number, PartDone(number, 1, 0, 1, kept=False))

    def hear(self) -> Iterator[Word]:
        words, self._words = self._words, []
        yield from words

    def dismiss(self, hand: Hashable) -> None:
        self.here.remove(hand)

    def _say(self, hand: Hashable, at: int | None, otherwise: Event) -> None:
        dies = self.deaths[at] > 0
        self.deaths[at] -= dies
        self._words.append(Word(hand, Dead("It was killed.") if dies else otherwise))


def made(crew: Scripted, size: int, parts: int = 5) -> list[Event]:
    told: list[Event] = []
    task = cast(Task, SimpleNamespace(reader=SimpleNamespace(numbers=lambda: iter(range(parts)))))
    make_parts(task, told.append, crew, size)
    assert not crew.here, "all are dismissed"
    return told


@pytest.mark.parametrize("deaths", [{}, {2: 1}, {0: 3, 4: 5}, {None: 5}])
@pytest.mark.parametrize("size", [1, 3, 9])
def test_every_part_is_made_once_whoever_dies(size: int, deaths: dict[int | None, int]) -> None:
    crew = Scripted(deaths)
    told = made(crew, size)
    assert told.count(INFO) == 1, "the run is begun once"
    assert sorted(event.part for event in told if isinstance(event, PartDone)) == [0, 1, 2, 3, 4]
    assert len(crew.hired) == size + sum(deaths.values())


@pytest.mark.parametrize(("at", "sentence"), [(3, "at part 4"), (None, "before they had loaded a model")])
def test_what_kills_everybody_ends_the_work(at: int | None, sentence: str) -> None:
    crew = Scripted({at: 99})
    with pytest.raises(Mistake, match=f"6 workers have died {sentence}. It was killed."):
        made(crew, 2)
    assert not crew.here


# Mistakes


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"engine": "spark"}, "There is no engine 'spark'. Choose one of local, ranks, ray."),
        ({"hands": Hands(workers=0)}, "--workers 0 makes no sense. Give 1 or more."),
        ({"hands": Hands(num_gpus=-1)}, "--num-gpus -1 makes no sense. Give 0 or more."),
        ({"max_failures": -1}, "--max-failures -1 makes no sense. Give 0 or more."),
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
        2, "headscope: 'all' is not for --engine ranks. Start 'embed' with it, and then 'all' without.\n"
    )  # fmt: skip
