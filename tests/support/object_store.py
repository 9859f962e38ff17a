"""An object store on loopback, and a cache in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.s3_server import S3Server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A real S3 server on loopback."""
    from tests.support.s3_server import S3Server

    server = S3Server()
    yield server
    server.close()


@pytest.fixture
def address(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Of an empty cache in a bucket of its own; what the store says is believed for no time at all."""
    from core.remote import breaker, lease, mirror

    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HEADSCOPE_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setattr(mirror, "FRESH", 0.0)
    monkeypatch.setattr(mirror, "AGAIN", 0.0)
    monkeypatch.setattr(breaker, "SILENCE", 30.0)  # a busy machine is not a silent store
    monkeypatch.setattr(lease, "SETTLED", 0.05)
    bucket = f"bucket-{uuid.uuid4().hex[:12]}"
    s3_server.make_bucket(bucket)
    return f"s3://{bucket}/some/where"


@pytest.fixture
def here(address: str, tmp_path: Path) -> Path:
    """That cache as the machine that builds it has it."""
    from core.remote.mirror import cache_at

    return cache_at(address, tmp_path / "mirror")


@pytest.fixture
def elsewhere(address: str, tmp_path: Path) -> Path:
    """The same as another machine has it, that has fetched nothing yet."""
    from core.remote.mirror import cache_at

    return cache_at(address, tmp_path / "another")
