"""A cache in an object store, on a real S3 server: built there, read elsewhere, replaced under its readers."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from core.errors import Mistake
from core.model.shape import ModelShape
from core.remote import mirror
from core.remote.mirror import cache_at, mirror_at
from core.runs.replace import begin_copy, publish
from core.runs.results import read_tables
from core.runs.run import Run, open_run, run_names
from precompute.labelling.answers import Answer
from precompute.labelling.answers_there import answers_at
from precompute.steps.analyse import step as analyse
from tests.support.apps import page_at
from tests.support.jobs import Outcome
from tests.support.s3_server import S3Server
from tests.support.synthetic import PlantedTopics, write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
TOPICS = ("rivers", "engines")
MODEL = PlantedTopics(SHAPE, {})


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


def test_several_workers_make_one_run_there(
    address: str,
    here: Path,
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    command: Callable[..., Outcome],
    one_thread: None,
) -> None:
    rows = [{"id": f"d{n}", "text": f"{n} {word}"} for n, word in enumerate(("harbour", "violin") * 6)]
    common = ("--source", write_corpus(rows), "--model", tiny_model, "--part-size", 5, "--quiet")
    made = command("embed", "run", "--cache", address, *common, "--workers", 2)
    assert (made.status, made.err) == (0, "")
    assert command("embed", "run", "--cache", tmp_path / "plain", *common).status == 0
    for stage in (1, 2, 3):
        plain = np.concatenate(list(Run(tmp_path / "plain", "run").vectors(stage)))
        assert np.allclose(np.concatenate(list(Run(here, "run").vectors(stage))), plain, atol=1e-3)
    assert not [name for name in in_store(here, "run") if name.startswith("staging/")]
    whole = command("verify", "run", "--cache", address)
    assert whole.status == 0


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
    steps = ("--topics", "labels", "--iterations", 30, "--without", "retrieve", "layers", "aspects", "attention")
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
    for made_there in (there, plain):
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in made_there.items()}
        del digests["manifest.json"]
        assert json.loads(made_there["manifest.json"])["files"] == digests
    shutil.rmtree(here)  # it may be deleted at any time
    again = command("all", "run", "--cache", address, *common, *steps)
    assert again.status == 0
    assert in_store(here, "run")["documents.parquet"] == there["documents.parquet"]
    whole = command("verify", "run", "--cache", address)
    assert (whole.status, whole.out.strip()) == (0, f"run: no problems found ({len(there)} files checked).")
    data = bytearray((here / "run" / "search.sqlite").read_bytes())
    data[-1] ^= 1  # of what was fetched
    (here / "run" / "search.sqlite").write_bytes(data)
    assert "search.sqlite" in command("verify", "run", "--cache", address).out
    assert '"at_work": false' in command("status", "--cache", address, "--json").out
    assert command("report", "run", "--cache", address).status == 0


def test_the_app_reads_from_another_machine_only_what_its_page_needs(
    address: str, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(here)
    analyse.run(analyse.AnalyseConfig(here, "run", model=MODEL))
    monkeypatch.setenv("HEADSCOPE_MIRROR", str(tmp_path / "another"))
    monkeypatch.setattr(mirror, "FRESH", 60.0)
    mirrored = cache_at(address, tmp_path / "another") / "run"
    for page, stage, stages in (
        ("understand/topics", "1", set()),
        ("explore/overview", "1", {"stage=1"}),
        ("explore/overview", "2", {"stage=1", "stage=2"}),
    ):
        app = page_at(address, f"pages/{page}/page.py", monkeypatch, stage=stage)  # type: ignore[arg-type]
        assert app.sidebar.selectbox(key="run").options == ["run"]
        assert not app.error
        assert {path.name for path in (mirrored / "heads").glob("*")} == stages


def test_a_page_that_is_drawn_again_asks_the_store_nothing_for_a_while(
    s3_server: S3Server, address: str, here: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(here)
    monkeypatch.setattr(mirror, "FRESH", 60.0)
    run = Run(elsewhere, "run")
    run.documents()
    list(run.vectors(1))
    before = len(s3_server.requests)
    assert run_names(elsewhere) == ["run"]
    asked = len(s3_server.requests) - before
    for _ in range(10):
        assert run_names(elsewhere) == ["run"]
        run.documents()
        list(run.vectors(1))
    assert asked <= 2
    assert len(s3_server.requests) - before == asked


def test_a_run_that_was_copied_there_by_other_means_is_read(here: Path, elsewhere: Path, tmp_path: Path) -> None:
    run, there = planted(tmp_path / "plain"), mirror_at(here)
    assert there is not None
    for name, data in files(run.folder).items():
        there.store.put(f"run/{name}", data)
    assert run_names(elsewhere) == ["run"]
    assert Run(elsewhere, "run").documents().equals(run.documents())
    assert (Run(elsewhere, "run").head_vectors(3, 0) == run.head_vectors(3, 0)).all()
    assert Run(elsewhere, "run").bytes() == run.bytes()


def test_a_run_that_was_removed_there_goes_from_the_mirror(here: Path, elsewhere: Path) -> None:
    planted(here)
    assert len(Run(elsewhere, "run").documents()) == 12
    Run(here, "run").remove()
    assert in_store(here, "run") == {}
    assert run_names(elsewhere) == []
    assert not (elsewhere / "run").exists()
    with pytest.raises(Mistake, match="There is no run 'run' in the cache"):
        open_run(elsewhere, "run")


def test_verify_looks_at_the_store_as_well_as_at_the_mirror(
    address: str, here: Path, command: Callable[..., Outcome]
) -> None:
    planted(here)
    assert command("verify", "run", "--cache", address).status == 0
    there = mirror_at(here)
    assert there is not None
    there.store.delete("run/heads/stage=1/part-00001.parquet")
    there.store.put("run/documents.parquet", b"PAR1")
    told = command("verify", "run", "--cache", address)
    assert told.status == 1
    assert told.out.splitlines()[:2] == [
        f"documents.parquet at {address} does not match files.json. Rebuild it with '{Run(here, 'run').rebuild}'.",
        f"heads/stage=1/part-00001.parquet is missing at {address}. Rebuild it with '{Run(here, 'run').rebuild}'.",
    ]


# Replaced under its readers


def test_readers_have_the_old_run_or_the_new_one_never_half_of_each(
    here: Path, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(here)
    analyse.run(analyse.AnalyseConfig(here, "run", model=MODEL))
    there = mirror_at(here)
    assert there is not None
    third = cache_at(str(there.address), tmp_path / "third")
    reader, late, before = Run(elsewhere, "run"), Run(third, "run"), read_tables(Run(here, "run"))
    assert read_tables(reader) == before
    late.manifest()  # of which it has no table yet
    copy, taken = there.store.copy, list[str]()

    def killed(name: str, to: str, size: int) -> None:
        if len(taken) == 4:
            raise KeyboardInterrupt
        taken.append(to)
        copy(name, to, size)

    with monkeypatch.context() as patched:
        patched.setattr(there.store, "copy", killed)
        patched.setattr("core.remote.versions.AT_ONCE", 1)
        with pytest.raises(KeyboardInterrupt):
            analyse.run(analyse.AnalyseConfig(here, "run", model=MODEL, seed=7, centre=True))
    assert len(taken) == 4
    assert read_tables(reader) == before
    with pytest.raises(Mistake, match=r"^The run 'run' is being replaced at s3://.*run the command .* again\.$"):
        read_tables(late)
    with reader.lock():  # any job that begins on the run, on any machine
        assert reader.manifest().steps["analyse"].options["centre"] is True
    after = read_tables(reader)
    assert after != before
    assert read_tables(late) == after
    assert not [name for name in there.store.folders() if name.startswith(".")]
    shutil.rmtree(here)
    assert read_tables(Run(here, "run")) == after


def test_a_file_that_a_new_version_lacks_goes_and_the_others_stay(here: Path, elsewhere: Path) -> None:
    run, reader = planted(here), Run(elsewhere, "run")
    reader.documents()
    list(reader.vectors(1))
    kept = (elsewhere / "run/heads/stage=1/part-00000.parquet").stat().st_ino
    with run.lock():
        draft = begin_copy(run, "label")
        from core.runs.files import remove_folder

        remove_folder(draft.part_path(3, 0).parent)
        assert draft.parts(3) == []
        assert len(run.parts(3)) == 3
        draft.write_manifest(draft.manifest())
        publish(draft)
        # The same manifest would not be a new version.
        run.write_manifest(run.manifest().with_step("embed", run.manifest().steps["embed"]))
    there = in_store(here, "run")
    assert not any(name.startswith("heads/stage=3/") for name in there)
    assert json.loads(there["files.json"])["files"].keys() == there.keys() - {"files.json"}
    assert (elsewhere / "run/heads/stage=1/part-00000.parquet").stat().st_ino == kept


# Paid answers


def paid(topic: str | None, reason: str | None = None) -> Answer:
    return Answer(topic, None, reason, "gpt-4o", 100, 10, 0.5)


def _asked_in_vain(cache: Path) -> None:
    with answers_at(cache) as answers:
        answers.put("two", paid("Sports"))
        raise Mistake("The account is out of money.")


def test_answers_that_one_machine_has_paid_for_are_not_paid_for_by_another(here: Path, elsewhere: Path) -> None:
    with answers_at(here) as answers:
        answers.put("one", paid("Cooking"))
    shutil.rmtree(here)
    with answers_at(elsewhere) as answers:
        assert answers.get("one") == paid("Cooking")
        with pytest.raises(Mistake, match="out of money"):
            _asked_in_vain(here)
        answers.put("three", paid(None, "it said nothing"), final=False)
    with answers_at(here) as answers:
        assert (answers.count(), answers.paid(), answers.tries("three")) == (2, 3, 1)
    assert [name for name in elsewhere.iterdir() if name.is_dir()] == []


def test_answers_of_which_nothing_is_new_are_not_put_again(s3_server: S3Server, here: Path, elsewhere: Path) -> None:
    with answers_at(here) as answers:
        answers.put("one", paid("Cooking"))
    before = len(s3_server.requests)
    with answers_at(elsewhere) as answers:
        assert answers.count() == 1
    assert not [line for line in s3_server.requests[before:] if line.startswith("PUT")]
