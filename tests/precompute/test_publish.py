"""``publish``, ``unpack`` and ``fetch``: a run leaves as an archive, a folder or a data set, and comes back whole."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import Mistake
from core.runs import verify
from core.runs.run import Run, open_run
from precompute.job.fingerprint import part_digest
from precompute.publish.archive import ArchivedRun, is_plain
from precompute.publish.command import PublishConfig, publish, unpack
from tests.support import ROOT
from tests.support.hub_server import REVISION, HubServer


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def cache(share_cache: Path, tmp_path: Path) -> Path:
    """A cache with the run 'four', and what an interrupted step has left in it."""
    shutil.copytree(share_cache / "four", tmp_path / "cache" / "four")
    left = tmp_path / "cache" / "four" / "analysis" / "ablate-staging" / "layer=1"
    left.mkdir(parents=True)
    (left / "secret.parquet").write_bytes(b"not finished")
    return tmp_path / "cache"


@pytest.mark.slow
class TestArchive:
    def test_a_run_comes_back_to_the_bit_and_whole(self, cache: Path, tmp_path: Path) -> None:
        publish(PublishConfig(cache, "four", to=str(tmp_path / "four.tar.zst")))
        run = unpack(tmp_path / "four.tar.zst", tmp_path / "other")
        before, after = contents(cache / "four"), contents(run.folder)
        assert {name: data for name, data in before.items() if "staging" not in name} == after
        assert run.name == "four"
        assert verify.verify(run, part_digest).problems == ()

    def test_the_same_run_gives_the_same_bytes(self, cache: Path, tmp_path: Path) -> None:
        for name in ("a.tar.zst", "b.tar.zst"):
            publish(PublishConfig(cache, "four", to=str(tmp_path / name)))
        assert (tmp_path / "a.tar.zst").read_bytes() == (tmp_path / "b.tar.zst").read_bytes()

    def test_a_folder_holds_the_same_files_and_opens(self, cache: Path, tmp_path: Path) -> None:
        import headscope

        publish(PublishConfig(cache, "four", to=str(tmp_path / "new" / "copy")))
        assert headscope.open_run(str(tmp_path / "new" / "copy")).vectors(1).shape == (36, 4, 8)
        with pytest.raises(Mistake, match="is not empty"):
            publish(PublishConfig(cache, "four", to=str(tmp_path / "new" / "copy")))

    def test_without_texts_nothing_that_was_written_leaves(self, cache: Path, tmp_path: Path) -> None:
        texts = open_run(cache, "four").documents(["text"])["text"].to_pylist()
        publish(PublishConfig(cache, "four", to=str(tmp_path / "bare.tar"), without_texts=True))
        run = unpack(tmp_path / "bare.tar", tmp_path / "other", "bare")
        assert verify.verify(run, part_digest).problems == ()
        found = run.documents()
        assert found["text"].to_pylist() == [""] * 36
        assert found["title"].to_pylist()[:2] == ["document 1", "document 2"]
        assert found["topic"].to_pylist()[:3] == ["harbour", "violin", "glacier"]
        assert not (run.folder / "search.sqlite").exists()
        for path in run.folder.rglob("*.parquet"):
            for column in pq.read_table(path).columns:
                if pa.types.is_string(column.type):
                    assert not set(texts) & set(column.to_pylist()), path.name

    def test_a_step_that_needs_texts_says_so(self, cache: Path, tmp_path: Path, command: Callable[..., Any]) -> None:
        publish(PublishConfig(cache, "four", to=str(tmp_path / "bare.tar"), without_texts=True))
        unpack(tmp_path / "bare.tar", tmp_path / "other", "bare")
        outcome = command("layers", "bare", "--cache", tmp_path / "other")
        assert outcome.status == 2
        assert "was published without its texts, and this step needs them." in outcome.err

    def test_a_run_that_exists_is_never_replaced(self, cache: Path, tmp_path: Path) -> None:
        publish(PublishConfig(cache, "four", to=str(tmp_path / "four.tar.zst")))
        before = contents(cache / "four")
        with pytest.raises(Mistake, match="There is a run 'four' in the cache already"):
            unpack(tmp_path / "four.tar.zst", cache)
        assert contents(cache / "four") == before
        assert not list(cache.glob(".unpacking-*"))

    def test_an_object_store_gets_every_file(self, cache: Path, tmp_path: Path, here: Path, elsewhere: Path) -> None:
        publish(PublishConfig(cache, "four", to=str(tmp_path / "four.tar.zst")))
        unpack(tmp_path / "four.tar.zst", here)
        assert verify.verify(open_run(elsewhere, "four"), part_digest).problems == ()


@pytest.mark.slow
class TestStrangersArchives:
    """Each differs from a good archive in one thing."""

    @pytest.fixture
    def members(self, cache: Path, tmp_path: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
        publish(PublishConfig(cache, "four", to=str(tmp_path / "good.tar")))
        with tarfile.open(tmp_path / "good.tar") as archive:
            return [(member, archive.extractfile(member).read()) for member in archive]  # type: ignore[union-attr]

    @staticmethod
    def refused(tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]], **options: Any) -> str:
        bad, other = tmp_path / "bad.tar", tmp_path / "other"
        with tarfile.open(bad, "w") as archive:
            for member, data in members:
                archive.addfile(member, io.BytesIO(data))
        with pytest.raises(Mistake) as mistake:
            unpack(bad, other, **options)
        assert [path.name for path in other.iterdir() if not path.name.startswith(".lock")] == []
        assert not (tmp_path / "evil").exists()
        return str(mistake.value)

    @pytest.mark.parametrize(
        "name",
        ["four/../../evil", "/evil", "four//evil", "evil/documents.parquet", "four/analysis/evil.parquet", "four/a\\b",
         "four/heads/stage=1/../../../../evil"],
    )  # fmt: skip
    def test_a_path_that_the_manifest_does_not_name(
        self, name: str, members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path
    ) -> None:
        added = tarfile.TarInfo(name)
        added.size = 4
        assert "does not list" in self.refused(tmp_path, [*members, (added, b"evil")])

    @pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
    def test_a_link_or_a_device_in_the_place_of_a_file(
        self, kind: bytes, members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path
    ) -> None:
        link = tarfile.TarInfo("four/documents.parquet")
        link.type, link.linkname = kind, "/etc/passwd"
        others = [(member, data) for member, data in members if member.name != link.name]
        assert "does not list" in self.refused(tmp_path, [*others, (link, b"")])

    def test_a_file_with_another_content(self, members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path) -> None:
        changed = [(member, data[:-1] + b"\0" if "similarity" in member.name else data) for member, data in members]
        assert "a similarity/stage=1.parquet that does not match its manifest.json" in self.refused(tmp_path, changed)

    def test_a_manifest_that_was_changed(self, members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path) -> None:
        (member, data), *others = members
        data = data.replace(b'"planted"', b'"planted"').replace(b"corpus.jsonl", b"corpus.jsonx")
        assert "was changed after it was written" in self.refused(tmp_path, [(member, data), *others])

    def test_a_file_that_is_missing(self, members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path) -> None:
        fewer = [one for one in members if one[0].name != "four/topics.parquet"]
        assert "topics.parquet is missing" in self.refused(tmp_path, fewer)

    def test_a_file_that_comes_twice(self, members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path) -> None:
        assert "does not list" in self.refused(tmp_path, [*members, members[-1]])

    def test_no_manifest_at_the_beginning(self, members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path) -> None:
        assert "does not begin with the manifest.json" in self.refused(tmp_path, members[1:])

    def test_more_than_the_limit(self, members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path) -> None:
        said = self.refused(tmp_path, members, most_gb=1e-4)
        assert said == (
            "'bad.tar' holds more than 0.0001 GB and was not unpacked. If you trust it, raise the limit with --most-gb."
        )

    def test_a_bomb_of_zeros_ends_at_the_limit(self, tmp_path: Path) -> None:
        """A gigabyte that takes a few kilobytes."""
        path = tmp_path / "bomb.tar.zst"
        with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as stream:
            member = tarfile.TarInfo("four/manifest.json")
            member.size = 2**30
            stream.write(member.tobuf())
            for _ in range(64):
                stream.write(bytes(2**24))
        assert path.stat().st_size < 300_000
        with pytest.raises(Mistake, match=r"does not begin with the manifest.json"):
            unpack(path, tmp_path / "other")

    def test_a_header_that_would_fill_the_memory(self, tmp_path: Path) -> None:
        header = tarfile.TarInfo("four/long")
        header.type, header.size = tarfile.XHDTYPE, 2**33
        (tmp_path / "long.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(2**16))
        with pytest.raises(Mistake, match="is damaged or not an archive of a run"):
            unpack(tmp_path / "long.tar", tmp_path / "other")


@pytest.mark.parametrize(
    ("data", "name"), [(b"", "a.tar.zst"), (b"no archive" * 99, "a.tar.zst"), (b"x" * 99, "a.tar")]
)
def test_what_is_no_archive_is_one_sentence(data: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "out").mkdir()
    with pytest.raises(Mistake, match=f"'{name}' is (damaged or not an archive of a run|empty)"):
        ArchivedRun(tmp_path / name).extract(tmp_path / "out")


def test_names_and_places_that_do_not_exist_are_sentences(planted_cache: Path, tmp_path: Path) -> None:
    for call, said in (
        (lambda: unpack(tmp_path / "none.tar.zst", tmp_path / "c"), "There is no file '"),
        (
            lambda: unpack(tmp_path / "run.zip", tmp_path / "c"),
            "'run.zip' is not an archive of a run: its name must end",
        ),
        (lambda: publish(PublishConfig(planted_cache, "planted")), "Give a destination: --to FILE.tar.zst, "),
        (
            lambda: publish(PublishConfig(planted_cache, "planted", to="run.zip")),
            "'run.zip' is not a known kind of archive",
        ),
        (
            lambda: publish(PublishConfig(planted_cache, "planted", to="hf:x")),
            "'hf:x' is not the name of a dataset on the hub.",
        ),
        (
            lambda: publish(PublishConfig(planted_cache, "planted", html=tmp_path / "x")),
            "An HTML file is made from the",
        ),
    ):
        with pytest.raises(Mistake) as mistake:
            call()
        assert str(mistake.value).startswith(said)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("heads/stage=1/part-00000.parquet", True), ("a/../b", False), ("/a", False), ("a//b", False), ("", False),
     ("a/.b", False), ("a\\b", False), ("a\0b", False), ("C:/a", False), ("aspects/by hand.parquet", True)],
)  # fmt: skip
def test_plain_paths(path: str, expected: bool) -> None:
    assert is_plain(path) is expected


def test_an_older_run_without_checksums_is_published_with_them(planted_cache: Path, tmp_path: Path) -> None:
    assert not open_run(planted_cache, "planted").manifest().files
    publish(PublishConfig(planted_cache, "planted", to=str(tmp_path / "planted.tar.zst")))
    run = unpack(tmp_path / "planted.tar.zst", tmp_path / "other")
    assert set(run.manifest().files) == set(contents(planted_cache / "planted")) - {"manifest.json"}


@pytest.fixture
def hub() -> Iterator[HubServer]:
    server = HubServer()
    yield server
    server.close()


@pytest.fixture
def job(hub: HubServer, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A command of the job, with that hub and its token; the client reads its settings when it is imported."""

    def run(*arguments: object, token: str | None = "hf_test", code: str = "") -> subprocess.CompletedProcess[str]:
        environment = {
            **{name: value for name, value in os.environ.items() if "proxy" not in name.lower() and name != "HF_TOKEN"},
            **({"HF_TOKEN": token} if token else {}),
            "HF_ENDPOINT": hub.address,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HEADSCOPE_CACHE": str(tmp_path / "fetched"),
        }
        command = ["-c", code] if code else ["-m", "precompute", *map(str, arguments)]
        return subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
        )

    return run


class TestHub:
    def test_a_run_goes_to_the_hub_and_comes_back(
        self, cache: Path, hub: HubServer, job: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
    ) -> None:
        sent = job("publish", "four", "--cache", cache, "--to", "hf:owner/my-run", "--licence", "cc-by-4.0")
        assert sent.returncode == 0, sent.stderr
        files = hub.store.files["owner/my-run"]
        assert hub.store.private["owner/my-run"] is True
        card = files.pop("README.md").decode()
        for name in files:
            assert f"- `{name}`\n" in card
        assert 'license: "cc-by-4.0"' in card
        assert 'headscope.open_run("hf:owner/my-run")' in card
        assert "36 documents" in card
        assert "secret.parquet" not in "".join(files)
        brought = job("fetch", "hf:owner/my-run", "--as", "mine", "--cache", tmp_path / "fetched")
        assert brought.returncode == 0, brought.stderr
        assert contents(tmp_path / "fetched" / "mine") == files
        # And by its address, in every command and from Python: once it is there, it is not fetched again.
        status = job("status", "hf:owner/my-run", "--json")
        assert json.loads(status.stdout)[0]["run"] == "my-run"
        asked = len(hub.store.asked)
        code = "import headscope; print(headscope.open_run('hf:owner/my-run').vectors(1).shape)"
        assert job(code=code).stdout == "(36, 4, 8)\n"
        assert len(hub.store.asked) == asked

    def test_a_token_comes_from_the_environment_alone(
        self, cache: Path, hub: HubServer, job: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
    ) -> None:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "token").write_text("hf_test")  # where 'hf auth login' puts it
        sent = job("publish", "four", "--cache", cache, "--to", "hf:owner/my-run", token=None)
        assert (sent.returncode, hub.store.asked) == (2, [])
        assert sent.stderr.startswith("headscope: Publishing to the hub needs a token that may write. Set HF_TOKEN")
        wrong = job("publish", "four", "--cache", cache, "--to", "hf:owner/my-run", token="hf_wrong")
        assert wrong.returncode == 2
        assert wrong.stderr.count("\n") == 1
        assert "hf_wrong" not in wrong.stderr
        assert "could not be published to 'owner/my-run'" in wrong.stderr

    def test_what_the_manifest_does_not_name_is_not_fetched_and_changes_are_refused(
        self, cache: Path, hub: HubServer, job: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
    ) -> None:
        job("publish", "four", "--cache", cache, "--to", "hf:owner/my-run", "--public")
        assert hub.store.private["owner/my-run"] is False
        hub.store.files["owner/my-run"]["evil.py"] = b"import os"
        brought = job("fetch", "hf:owner/my-run", token=None)
        assert brought.returncode == 0, brought.stderr
        assert not (tmp_path / "fetched" / "my-run" / "evil.py").exists()
        assert f"GET /datasets/owner/my-run/resolve/{REVISION}/evil.py" not in hub.store.asked
        hub.store.files["owner/my-run"]["topics.parquet"] += b" "
        refused = job("fetch", "hf:owner/my-run", "--as", "again", token=None)
        assert refused.returncode == 2
        assert "topics.parquet of 'owner/my-run' does not match its manifest.json (SHA-256)" in refused.stderr
        assert not Run(tmp_path / "fetched", "again").exists()

    def test_a_data_set_that_is_none_is_one_sentence(
        self, hub: HubServer, job: Callable[..., subprocess.CompletedProcess[str]]
    ) -> None:
        hub.store.files["owner/other"] = {"README.md": b"# Something else"}
        other = job("fetch", "hf:owner/other")
        assert (other.returncode, other.stderr.count("\n")) == (2, 1)
        assert "'owner/other' is not a run of Headscope: it has no manifest.json." in other.stderr
        missing = job("fetch", "hf:owner/nothing")
        assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
        assert "The run 'hf:owner/nothing' could not be fetched (" in missing.stderr


@pytest.mark.slow
def test_the_card_shows_a_strangers_words_and_obeys_none(hostile_cache: Path) -> None:
    from precompute.publish.card import data_set_card
    from precompute.publish.contents import contents_of
    from tests.support.hostile import MODEL

    with contents_of(open_run(hostile_cache, "hostile")) as found:
        card = data_set_card(found, "owner/name", None, [])
    front, body = card.split("---\n")[1:3]
    assert "onerror" not in front
    assert "<img" not in body.replace("\\<img", "")
    assert "](javascript" not in body
    assert MODEL[:2] in body
