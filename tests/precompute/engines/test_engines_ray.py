"""The engine 'ray' on a real Ray of this machine: begun by another engine, a replica killed, nothing in its store."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import Mistake
from core.model.embedder import ModelInfo
from core.runs.run import Run
from precompute.engines import Resources
from precompute.steps.embed import step as embed
from precompute.steps.embed.part_spec import PartDone
from precompute.steps.embed.step import EmbedConfig
from tests.support.engine_runs import Seen, assert_same, break_off, children, command_of, twenty_in_parts_of_three

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def config(
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    some_rows: Callable[..., list[dict[str, Any]]],
    one_thread: None,
) -> EmbedConfig:
    """Twenty documents in seven parts."""
    return twenty_in_parts_of_three(tmp_path / "cache", tiny_model, write_corpus(some_rows(20)), "ray")


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Ray with two processors and the smallest object store that it takes."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # it would write a token into the home folder
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    ray.init(
        address="local",
        num_cpus=2,
        object_store_memory=80 * 2**20,
        include_dashboard=False,
        logging_level="error",
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}},
    )
    yield ray
    ray.shutdown()


def replicas() -> list[int]:
    """The actors of the Ray that this process has started."""
    raylets = [child for child in children(os.getpid()) if "raylet" in command_of(child)]
    return [actor for raylet in raylets for actor in children(raylet) if "ray::Replica" in command_of(actor)]


def test_the_same_run_though_a_replica_is_killed(
    config: EmbedConfig, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = replace(config, run="whole", engine="local")
    embed.run(whole)
    break_off(replace(config, engine="local"), 2, monkeypatch)
    killed: list[int] = []

    def kill() -> None:
        killed.append(replicas()[0])
        os.kill(killed[0], signal.SIGKILL)

    filling = [cluster.put(bytes(8 * 2**20)) for _ in range(9)]  # and held: the object store is full
    sizes: dict[type, list[int]] = {}
    get = cluster.get

    def weigh(answer: Any) -> Any:
        found = get(answer)
        sizes.setdefault(type(found), []).append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(cluster, "get", weigh)
    seen = Seen(kill)
    result = embed.run(replace(config, resources=Resources(workers=2)), seen)
    assert killed
    assert len([message for message in seen.messages if message.startswith("a worker died")]) == 1
    assert result.parts_kept == 2
    assert_same(Run(config.cache, "run"), Run(config.cache, "whole"))
    # Texts and vectors never enter the store; what does is answered in the message itself, as all below 100 kB is.
    assert set(sizes) == {PartDone, ModelInfo}
    assert len(sizes[PartDone]) == 7
    assert max(size for found in sizes.values() for size in found) < 1_000
    assert len(filling) == 9


def test_without_ray_it_is_said_how_to_install_it(config: EmbedConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Mistake, match=r"Install it with 'pip install -r requirements-ray\.txt'"):
        embed.run(config)
