"""The engine 'ranks': whose rank is whose, one after the other in any order, at the same time, and with nobody else."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import Mistake
from core.runs.run import Run
from precompute.engines.place import RankPlace, place_of
from precompute.status import status
from precompute.steps.embed import step as embed
from precompute.steps.embed.command import summary
from precompute.steps.embed.corpus import Filters
from precompute.steps.embed.staging import documents_path, read_record
from precompute.steps.embed.step import EmbedConfig
from tests.support.engine_runs import assert_same, break_off, twenty_in_parts_of_three

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_ID")


def slurm(**numbers: int) -> dict[str, str]:
    return {f"SLURM_{name}": str(number) for name, number in numbers.items()}


def array(id_: int, low: int, high: int, count: int, step: int = 1) -> dict[str, str]:
    names = ("ARRAY_TASK_ID", "ARRAY_TASK_MIN", "ARRAY_TASK_MAX", "ARRAY_TASK_COUNT", "ARRAY_TASK_STEP")
    return slurm(**dict(zip(names, (id_, low, high, count, step), strict=True)))


PLACES: dict[str, tuple[dict[str, str], RankPlace]] = {
    "torchrun": ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, RankPlace(5, 8, 1)),
    "torchrun within srun": ({"RANK": "5", "WORLD_SIZE": "8", **slurm(PROCID=1, NTASKS=2)}, RankPlace(5, 8)),
    "srun": (slurm(PROCID=3, NTASKS=4, LOCALID=1, JOB_ID=7, STEP_ID=0), RankPlace(3, 4, 1)),
    "sbatch --array=0-3": (array(2, 0, 3, 4), RankPlace(2, 4)),
    "sbatch --array=1-4": (array(4, 1, 4, 4), RankPlace(3, 4)),
    "sbatch --array=10-30:10": (array(20, 10, 30, 3, 10), RankPlace(1, 3)),
    "sbatch --array=7": (array(7, 7, 7, 1), RankPlace(0, 1)),
    "an array of two tasks each": (
        {**array(2, 1, 3, 3), **slurm(PROCID=1, NTASKS=2, JOB_ID=7, STEP_ID=0)}, RankPlace(3, 6)
    ),
    "a job of one task, without srun": (slurm(PROCID=0, NTASKS=1, JOB_ID=7), RankPlace(0, 1)),
}  # fmt: skip

NO_PLACES: dict[str, tuple[dict[str, str], str]] = {
    "nothing": ({}, "does not know which rank this is. Start it with torchrun, srun or sbatch --array"),
    "half": ({"RANK": "1"}, "WORLD_SIZE is None, and must be a whole number"),
    "no number": ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK is 'x', and must be a whole number"),
    "beyond": ({"RANK": "2", "WORLD_SIZE": "2"}, "Rank 2 of 2 does not exist: ranks count from 0"),
    "a list": (array(5, 1, 9, 3, 1), "The array's numbers are not a plain range (3 from 1 to 9)"),
    "tasks without srun": (slurm(PROCID=0, NTASKS=4, JOB_ID=7), "The job has 4 tasks, and this command is started"),
}


@pytest.mark.parametrize("case", PLACES)
def test_place(case: str) -> None:
    environment, place = PLACES[case]
    assert place_of(environment) == place


@pytest.mark.parametrize("case", NO_PLACES)
def test_no_place(case: str) -> None:
    environment, sentence = NO_PLACES[case]
    with pytest.raises(Mistake) as caught:
        place_of(environment)
    assert sentence in str(caught.value)


@pytest.fixture
def config(
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    some_rows: Callable[..., list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    one_thread: None,
) -> EmbedConfig:
    """Twenty documents in seven parts."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("precompute.engines.ranks.PATIENCE", 0.01)
    return twenty_in_parts_of_three(tmp_path / "cache", tiny_model, write_corpus(some_rows(20)), "ranks")


@pytest.fixture
def rank(config: EmbedConfig, monkeypatch: pytest.MonkeyPatch) -> Callable[..., embed.EmbedResult]:
    def start(number: int, world: int, **changes: Any) -> embed.EmbedResult:
        monkeypatch.setenv("RANK", str(number))
        monkeypatch.setenv("WORLD_SIZE", str(world))
        return embed.run(replace(config, **changes))

    return start


def whole(config: EmbedConfig) -> Run:
    embed.run(replace(config, run="whole", engine="local"))
    return Run(config.cache, "whole")


def test_one_after_the_other_in_any_order(config: EmbedConfig, rank: Callable[..., embed.EmbedResult]) -> None:
    run = Run(config.cache, "run")
    last = rank(2, 3)  # parts 2 and 5
    assert last.left == 5
    assert "this rank's parts are done; 5 are left to the others" in summary("run", last)
    (record,) = status(config.cache, "run")
    assert (record["documents"], record["steps"]["embed"]["state"]) == (6, "stopped")
    assert read_record(run, last.manifest.steps["embed"].fingerprint) is not None, "it has read for all"
    assert rank(0, 3).left == 2  # 0, 3, 6
    again = rank(0, 3)
    assert (again.left, again.parts_kept) == (2, 3)
    ended = rank(1, 3)
    assert (ended.left, ended.parts_kept, ended.manifest.is_done("embed")) == (0, 0, True)
    assert_same(run, whole(config))
    assert rank(2, 3).skipped
    assert rank(2, 3, replace=True).skipped, "who comes after the last has nothing to replace"


def test_going_on_with_another_engine_and_another_world(
    config: EmbedConfig, rank: Callable[..., embed.EmbedResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that died in the middle of the corpus is replaced by whoever comes."""
    break_off(replace(config, engine="local"), 2, monkeypatch)
    assert not documents_path(Run(config.cache, "run"), 3).exists()
    assert rank(1, 2).left == 3  # of 2, 3, 4, 5, 6 the ranks 3 and 5 are its; 1 was there
    result = embed.run(replace(config, engine="local"))
    assert result.parts_kept == 4
    assert_same(Run(config.cache, "run"), whole(config))


def test_a_lost_part_of_the_corpus_is_read_again(config: EmbedConfig, rank: Callable[..., embed.EmbedResult]) -> None:
    rank(0, 2)
    documents_path(Run(config.cache, "run"), 5).unlink()
    assert rank(1, 2).left == 0
    assert_same(Run(config.cache, "run"), whole(config))


def test_a_finished_run_is_replaced_by_all_together(
    config: EmbedConfig, rank: Callable[..., embed.EmbedResult]
) -> None:
    embed.run(replace(config, engine="local", filters=Filters(limit=2)))
    run = Run(config.cache, "run")
    with pytest.raises(Mistake, match="has vectors from different inputs"):
        rank(0, 2)
    assert rank(0, 2, replace=True).left == 3
    assert run.documents().num_rows == 2, "readers have the old one"
    assert rank(1, 2, replace=True).left == 0
    assert_same(run, whole(config))
    assert not list(config.cache.glob(".building*"))


@pytest.mark.slow
def test_who_may_be_at_work_together(config: EmbedConfig, rank: Callable[..., embed.EmbedResult]) -> None:
    run = Run(config.cache, "run")
    rank(1, 2)
    mark = run.manifest().steps["embed"].fingerprint[:12]
    with run.lock(shared=True), run.rank(1, mark):
        assert status(config.cache, "run")[0]["at_work"]
        with pytest.raises(Mistake, match=r"Another job is working on run 'run'\. Wait"):
            embed.run(replace(config, engine="local"))
        with pytest.raises(Mistake, match="working on run 'run' as rank '1': process"):
            rank(1, 2)
        with pytest.raises(Mistake, match="Other processes are building the run 'run' from different inputs"):
            rank(0, 2, part_size=4)
        assert rank(0, 2).left == 0
    assert not status(config.cache, "run")[0]["at_work"]
    with run.lock(), pytest.raises(Mistake, match="Another job is working"):
        rank(0, 2)


def test_two_real_processes_at_once(
    config: EmbedConfig,
    start_job: Callable[..., subprocess.Popen[str]],
    finish: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = []
    for number in range(2):
        monkeypatch.setenv("SLURM_PROCID", str(number))
        monkeypatch.setenv("SLURM_NTASKS", "2")
        options = ("--source", config.source, "--model", config.embedder.model, "--part-size", 3, "--engine", "ranks")
        jobs.append(start_job("embed", "run", "--cache", config.cache, *options))
    ended = [finish(job) for job in jobs]
    assert [one.status for one in ended] == [0, 0], ended
    assert_same(Run(config.cache, "run"), whole(config))
    assert not list(config.cache.glob(".rank*"))
