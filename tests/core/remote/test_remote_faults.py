"""A cache in an object store when something goes wrong: each a sentence with a remedy, and nothing half that counts."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.errors import Mistake, RemoteMistake
from core.model.embedder import Embedder, EmbedderConfig
from core.model.shape import ModelShape
from core.remote import lease
from core.remote.errors import sentence
from core.remote.mirror import Mirror, cache_at, is_read_only, mirror_at
from core.remote.objects import PROBE
from core.runs.replace import NewVersion
from core.runs.run import Run, open_run, run_names
from core.settings import read_settings
from precompute.steps.embed import step as embed
from precompute.steps.embed.step import EmbedConfig
from tests.support.jobs import Outcome
from tests.support.s3_server import S3Server
from tests.support.synthetic import write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
SECRET = "a-secret-that-nobody-may-see"


def planted(cache: Path) -> Run:
    return write_run(cache, "run", SHAPE, lambda stage, first, n: np.ones((n, 32)) * stage, [None] * 3)


def mirror_there(cache: Path) -> Mirror:
    found = mirror_at(cache)
    assert found is not None
    return found


# Who may come in


@pytest.mark.parametrize(
    "wrong",
    [f"s3://me:{SECRET}@bucket/x", f"s3://bucket/x?secret_key={SECRET}", f"gs://bucket/#{SECRET}", f"ftp://{SECRET}"],
)
def test_an_address_with_more_in_it_than_a_place_is_refused_and_not_quoted(
    wrong: str, command: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = command("status", "--cache", wrong)
    monkeypatch.setenv("HEADSCOPE_CACHE", wrong)
    for outcome in (told, command("status")):
        assert outcome.status == 2
        assert outcome.err.startswith("headscope: ")
        assert outcome.err.count("\n") == 1
        assert SECRET not in outcome.err + outcome.out


@pytest.mark.parametrize("wrong", ["s3://", "s3:///x", "s3://bucket/../x", "s3://b c/x", "file://host/x", "s3://[x"])
def test_an_address_that_is_none_is_refused(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"Write|Give"):
        cache_at(wrong, tmp_path)


def test_a_file_address_is_a_folder(tmp_path: Path, command: Callable[..., Outcome]) -> None:
    planted(tmp_path / "a folder")
    assert cache_at(f"file://{tmp_path}/a%20folder", tmp_path / "mirror") == tmp_path / "a folder"
    told = command("status", "run", "--cache", f"file://{tmp_path}/a%20folder", "--json")
    assert json.loads(told.out)[0]["documents"] == 3
    assert not (tmp_path / "mirror").exists()


def test_a_bucket_that_is_not_there_is_told(address: str, command: Callable[..., Outcome]) -> None:
    there = "s3://no-such-bucket/x"
    said = f"There is no bucket 'no-such-bucket'. Create it, or correct the cache address ({there})."
    for arguments in (("status",), ("report", "run"), ("embed", "run")):
        told = command(*arguments, "--cache", there)
        assert (told.status, told.out, told.err) == (2, "", f"headscope: {said}\n")


def test_without_credentials_nobody_is_let_in_and_the_sentence_names_the_variables(
    address: str, here: Path, tmp_path: Path, command: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(here)
    monkeypatch.setenv("HEADSCOPE_MIRROR", str(tmp_path / "another"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    told = command("status", "--cache", address)
    assert told.status == 2
    assert told.err == (
        f"headscope: {address} requires credentials, and none are set. Set AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY in the environment.\n"
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", "do not allow this"),
        (f"AWS Error INVALID_ACCESS_KEY_ID during PutObject operation: the key {SECRET}", "wrong or have expired"),
        ("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 28, Timeout was reached", "not answer"),
        ("AWS Error UNKNOWN (HTTP status 301) during HeadBucket operation: No response body.", "AWS_REGION"),
        ("AWS Error SLOW_DOWN during PutObject operation: Please reduce your request rate.", "not answer"),
        (f"AWS Error STRANGE_THING during PutObject operation: {SECRET}", r"failed \(STRANGE_THING\)"),
    ],
)
def test_what_a_store_says_is_told_without_its_own_words(said: str, told: str, here: Path) -> None:
    words = sentence(mirror_there(here).address, said)
    assert re.search(told, words)
    assert SECRET not in words


def test_a_store_that_may_only_be_read_makes_the_app_read_only(
    address: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", address)
    assert not is_read_only(read_settings())
    there = mirror_there(here)
    assert there.store.listing("") == {}  # what was tried has gone
    there._writable = None

    def refused(*_: object) -> None:
        raise RemoteMistake("The credentials may not do this.")

    monkeypatch.setattr(there.store, "put", refused)
    assert is_read_only(read_settings())


# Killed, cut off


def test_an_upload_that_is_dropped_midway_leaves_nothing_and_the_next_start_goes_on(
    s3_server: S3Server,
    here: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    one_thread: None,
) -> None:
    corpus = write_corpus([{"text": word} for word in ("loom", "enzyme", "glacier")])
    config = EmbedConfig(here, "run", str(corpus), EmbedderConfig(model=str(tiny_model)), part_size=1)
    before, embedded = Embedder.embed, []

    def cut(self: Embedder, texts: list[str], **options: object) -> object:
        embedded.append(texts)
        if len(embedded) == 2:
            s3_server.cut_after = 1_500  # of the first part that is uploaded next
        return before(self, texts, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Embedder, "embed", cut)
        with pytest.raises(RemoteMistake, match="does not answer"):
            embed.run(config)
    s3_server.cut_after = None
    store = mirror_there(here).store
    made = [name for name in store.listing("run") if name.startswith(("heads/", "staging/done/"))]
    assert made, "the part before it is there"
    assert not [name for name in made if "00001" in name]
    result = embed.run(config)
    assert (result.parts_kept, result.manifest.corpus["documents"]) == (1, 3)
    assert [path.name for path in Run(here, "run").parts(1)] == [f"part-0000{part}.parquet" for part in range(3)]


_UPLOAD = """
import sys
from pathlib import Path
from core.runs.files import replacing
from core.remote.mirror import cache_at
cache = cache_at(sys.argv[1], Path(sys.argv[2]))
with replacing(cache / "run" / "documents.parquet") as temporary:
    temporary.write_bytes(bytes(30_000_000))
"""


def test_a_process_that_is_killed_while_it_uploads_leaves_no_half_object(
    s3_server: S3Server,
    address: str,
    here: Path,
    tmp_path: Path,
    start_job: Callable[..., subprocess.Popen[str]],
) -> None:
    s3_server.stalled.clear()
    s3_server.stall_after = 15_000_000
    process = start_job(address, tmp_path / "mirror", script=_UPLOAD)
    assert s3_server.stalled.wait(60)
    process.kill()
    process.wait()
    s3_server.stall_after = None
    assert mirror_there(here).store.listing("run") == {}
    assert not (here / "run" / "documents.parquet").exists()


def test_a_new_version_that_one_machine_has_begun_is_gone_on_with_by_another(
    here: Path,
    elsewhere: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    one_thread: None,
) -> None:
    planted(here)
    corpus = write_corpus([{"text": word} for word in ("loom", "enzyme", "glacier")])
    model = EmbedderConfig(model=str(tiny_model))
    config = EmbedConfig(here, "run", str(corpus), model, part_size=1, replace=True)
    before = Embedder.embed

    def killed(self: Embedder, texts: list[str], **options: object) -> object:
        if texts == ["glacier"]:
            raise KeyboardInterrupt
        return before(self, texts, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Embedder, "embed", killed)
        with pytest.raises(KeyboardInterrupt):
            embed.run(config)
    assert NewVersion(here, "run").is_begun()
    assert len(Run(elsewhere, "run").documents()) == 3
    monkeypatch.setattr(lease, "STALE", 0.0)
    result = embed.run(EmbedConfig(elsewhere, "run", str(corpus), model, part_size=1, replace=True))
    assert result.parts_kept == 2
    assert Run(here, "run").documents()["text"].to_pylist() == ["loom", "enzyme", "glacier"]
    assert mirror_there(here).store.folders() == ["run"]


def test_a_store_that_goes_and_comes_back(
    s3_server: S3Server, address: str, elsewhere: Path, here: Path, tmp_path: Path
) -> None:
    planted(here)
    empty = cache_at(address, tmp_path / "empty")
    for cache in (elsewhere, empty):
        mirror_there(cache).store.patience = PROBE  # one try of each request
    assert len(Run(elsewhere, "run").documents()) == 3
    s3_server.shut()
    try:
        assert len(Run(elsewhere, "run").documents()) == 3
        with pytest.raises(RemoteMistake, match=r"does not answer\. Check the network connection and AWS_ENDPOINT_URL"):
            list(Run(elsewhere, "run").vectors(3))
        assert run_names(empty) == []
        with pytest.raises(Mistake, match="does not answer"):
            open_run(empty, "run")
    finally:
        s3_server.open()
    assert run_names(empty) == ["run"]
    assert len(list(Run(elsewhere, "run").vectors(3))) == 1
