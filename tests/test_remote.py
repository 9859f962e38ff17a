"""A cache in an object store, on a real S3 server: built there, read from another machine, replaced under its readers."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import Outcome, page_at
from s3_server import S3Server, serving

from benchmarks.synthetic import PlantedTopics, write_run
from core import lease, mirror
from core.draft import copied, publish
from core.errors import Mistake
from core.mirrors import cache_at, mirror_at
from core.report import read_tables
from core.shape import ModelShape
from core.store import Run, open_run, run_names
from precompute import analyse

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
TOPICS = ("rivers", "engines")
MODEL = PlantedTopics(SHAPE, {})


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with serving() as found:
        yield found


@pytest.fixture
def address(server: S3Server, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty bucket's, and nothing is believed for longer than it takes."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HEADSCOPE_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setattr(mirror, "FRESH", 0.0)
    monkeypatch.setattr(lease, "SETTLED", 0.05)
    bucket = f"bucket-{abs(hash(request.node.name)) % 10**9}"
    server.make_bucket(bucket)
    return f"s3://{bucket}/some/where"


@pytest.fixture
def here(address: str, tmp_path: Path) -> Path:
    """The cache as the machine that builds it has it."""
    return cache_at(address, tmp_path / "mirror")


@pytest.fixture
def elsewhere(address: str, tmp_path: Path) -> Path:
    """The same as another machine has it, that has fetched nothing yet."""
    return cache_at(address, tmp_path / "another")


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def in_store(cache: Path, run: str) -> dict[str, bytes]:
    found = mirror_at(cache)
    assert found is not None
    return {rest: found.store.get(f"{run}/{rest}") or b"" for rest in found.store.listing(run)}


def planted(cache: Path, documents: int = 12, seed: int = 0) -> Run:
    vectors = np.random.default_rng(seed).normal(size=(documents, 32))
    labels = [TOPICS[doc % 2] for doc in range(documents)]
    return write_run(cache, "run", SHAPE, lambda stage, first, n: vectors[first : first + n], labels, part_size=5)


def test_a_run_built_there_is_the_one_built_here(
    address: str,
    here: Path,
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    command: Callable[..., Outcome],
    one_thread: None,
) -> None:
    rows = [{"id": f"d{n}", "text": f"{n} {word}", "topic": word} for n, word in enumerate(("harbour", "violin") * 6)]
    common = ("--source", write_corpus(rows), "--model", tiny_model, "--part-size", 5, "--quiet")
    steps = ("--topics", "labels", "--iterations", 30, "--without", "layers", "attention")
    for cache in (address, tmp_path / "plain"):
        made = command("all", "run", "--cache", cache, *common, *steps)
        assert (made.status, made.err) == (0, "")
    plain, there = files(tmp_path / "plain" / "run"), in_store(here, "run")
    listed = json.loads(there.pop("files.json"))["files"]
    assert there.keys() == plain.keys()
    for name in plain.keys() - {"manifest.json"}:  # which has times in it
        same = there[name] == plain[name]
        assert same or pq.read_table(tmp_path / "plain/run" / name).equals(pq.read_table(here / "run" / name)), name
    assert listed == {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in there.items()
    }
    assert sorted(json.loads(there["manifest.json"])["steps"]) == sorted(json.loads(plain["manifest.json"])["steps"])
    shutil.rmtree(here)  # it may be deleted at any time
    again = command("all", "run", "--cache", address, *common, *steps)
    assert again.status == 0
    assert in_store(here, "run")["documents.parquet"] == there["documents.parquet"]
    whole = command("verify", "run", "--cache", address)
    assert (whole.status, whole.out.strip()) == (0, f"run: whole ({len(there)} files checked).")
    assert '"at_work": false' in command("status", "--cache", address, "--json").out
    assert command("report", "run", "--cache", address).status == 0
