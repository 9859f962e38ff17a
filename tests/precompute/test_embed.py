"""The step ``embed`` with tiny models on real files: made, killed and gone on with, replaced, refused, verified."""

from __future__ import annotations

import gzip
import json
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import Mistake
from core.model.embedder import Embedder, EmbedderConfig
from core.runs.parts import digest_of, write_part, write_table
from core.runs.run import Run
from core.runs.verify import verify
from precompute.job import progress
from precompute.job.fingerprint import part_digest
from precompute.status import status
from precompute.steps.embed import step as embed
from precompute.steps.embed.corpus import Filters
from precompute.steps.embed.staging import finished_paths
from precompute.steps.embed.step import EmbedConfig, EmbedResult
from tests.support.engine_runs import Seen, break_off

Rows = Callable[..., list[dict[str, Any]]]
Write = Callable[..., Path]
Command = Callable[..., Any]
Start = Callable[..., subprocess.Popen[str]]
Finish = Callable[[subprocess.Popen[str]], Any]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def config(cache: Path, tiny_model: Path, write_corpus: Write, some_rows: Rows) -> EmbedConfig:
    """Ten documents in parts of four."""
    return EmbedConfig(
        cache, "run", str(write_corpus(some_rows(10))), EmbedderConfig(model=str(tiny_model)), part_size=4
    )


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, some_rows: Rows) -> Path:
    """The run that ``config`` makes, made once."""
    folder = tmp_path_factory.mktemp("finished")
    source = folder / "corpus.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in some_rows(10)))
    embed.run(EmbedConfig(folder, "run", str(source), EmbedderConfig(model=str(tiny_model)), part_size=4))
    return folder / "run"


@pytest.fixture
def done(config: EmbedConfig, finished: Path) -> Run:
    """A finished run of ``config``: that its corpus lies in another folder makes no difference."""
    shutil.copytree(finished, config.cache / config.run)
    return Run(config.cache, config.run)


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its content and the time it was written."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def parts(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("heads/*/*"))}


def mistake(config: EmbedConfig) -> str:
    with pytest.raises(Mistake) as caught:
        embed.run(config)
    return str(caught.value)


# A run


def test_the_vectors_are_the_embedder_s_in_float16(config: EmbedConfig, done: Run, some_rows: Rows) -> None:
    rows = some_rows(10)
    embedder = Embedder.load(config.embedder)
    for stage in (1, 2, 3):
        for number, stored in enumerate(done.vectors(stage)):
            texts = [row["text"] for row in rows[4 * number : 4 * number + 4]]
            expected = embedder.embed(texts).stage(stage).astype(np.float16)
            assert stored.dtype == np.float16
            assert np.array_equal(stored, expected)
        assert [len(part) for part in done.vectors(stage)] == [4, 4, 2]


def test_the_documents_are_the_corpus_s(done: Run, some_rows: Rows) -> None:
    table = done.documents()
    rows = some_rows(10)
    assert table["doc"].to_pylist() == list(range(10))
    assert table["id"].to_pylist() == [row["id"] for row in rows]
    assert table["text"].to_pylist() == [row["text"] for row in rows]
    assert table["n"].to_pylist() == list(range(10))
    # [CLS], one digit, six words, [SEP]
    assert table["tokens"].to_pylist() == [9] * 10
    assert set(table["truncated"].to_pylist()) == {False}
    assert set(table["topic"].to_pylist()) == {None}


def test_topics_of_the_corpus_are_labels_by_column(config: EmbedConfig, write_corpus: Write) -> None:
    source = write_corpus([{"text": "loom", "topic": "craft"}, {"text": "violin"}], "labelled.jsonl")
    embed.run(replace(config, source=str(source)))
    table = Run(config.cache, "run").documents(["topic", "label_source", "label_score"])
    assert table.to_pydict() == {
        "topic": ["craft", None],
        "label_source": ["column", None],
        "label_score": [None, None],
    }


def test_nothing_is_left_beside_what_belongs_there(done: Run) -> None:
    assert sorted(snapshot(done.folder)) == [
        "documents.parquet",
        *(f"heads/stage={stage}/part-{number:05d}.parquet" for stage in (1, 2, 3) for number in range(3)),
        "manifest.json",
    ]
    assert not done.staging.exists()


def test_the_manifest(config: EmbedConfig, done: Run, tiny_model: Path, tmp_path: Path) -> None:
    manifest = done.manifest()
    assert manifest.model["name"] == "tiny"
    assert {key: manifest.model[key] for key in ("layers", "heads", "kv_heads", "hidden", "head_dim", "layer")} == {
        "layers": 2,
        "heads": 4,
        "kv_heads": 4,
        "hidden": 32,
        "head_dim": 8,
        "layer": 2,
    }
    assert manifest.vectors == {"dtype": "float16", "stages": [1, 2, 3], "part_size": 4}
    assert manifest.corpus["source"] == "corpus.jsonl"
    assert manifest.corpus["documents"] == 10
    assert manifest.corpus["extra"] == {"n": "integer"}
    assert manifest.steps["embed"].state == "done"
    text = (done.folder / "manifest.json").read_text()
    for path in (tmp_path, tiny_model, tiny_model.parent, Path(config.source).parent, Path.home(), Path.cwd()):
        assert str(path) not in text, "an absolute path"


def test_a_long_stretch_without_documents_is_not_silent(
    config: EmbedConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    path = tmp_path / "blank.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" * 10**6 + b'{"text": "loom"}\n'))
    watched = Seen()
    embed.run(replace(config, source=str(path)), watched)
    size = f"{path.stat().st_size / 1e6:,.1f}"
    assert f"reading the corpus: {size} of {size} MB" in watched.messages


def test_counts(config: EmbedConfig, write_corpus: Write) -> None:
    rows = [
        {"text": "harbour violin"},  # 4 tokens with [CLS] and [SEP]
        "{broken",
        {"text": "loom"},  # 3
        {"text": " loom "},
        {"text": "   "},
        {"text": "x"},
        {"text": "loom " * 200},  # 202, of which the model sees 128
        {"text": "enzyme"},  # 3
    ]
    source = write_corpus(rows, "mixed.jsonl")
    result = embed.run(
        replace(config, source=str(source), filters=Filters(skip_bad=True, min_chars=2), part_size=2),
    )
    assert result.manifest.steps["embed"].counts == {
        "read": 8,
        "bad": 1,
        "short": 2,
        "duplicate": 1,
        "sampled_out": 0,
        "kept": 4,
        **dict.fromkeys(("no_id", "no_title", "no_url", "no_topic", "numbered"), 0),
        "tokens": 4 + 3 + 202 + 3,
        "truncated": 1,
        "parts": 2,
    }
    assert result.manifest.steps["embed"].options == {"min_chars": 2, "skip_bad": True}
    assert result.manifest == Run(config.cache, "run").manifest()
    table = Run(config.cache, "run").documents(["tokens", "truncated"])
    assert table.to_pydict() == {"tokens": [4, 3, 202, 3], "truncated": [False, False, True, False]}


@pytest.mark.slow
def test_a_document_of_two_million_characters(config: EmbedConfig, write_corpus: Write) -> None:
    long = "glacier orchard " * 125_000
    source = write_corpus([{"text": long}, {"text": "loom"}], "long.jsonl")
    result = embed.run(replace(config, source=str(source)))
    table = Run(config.cache, "run").documents(["text", "tokens", "truncated"])
    assert table["truncated"].to_pylist() == [True, False]
    assert table["tokens"].to_pylist() == [250_002, 3]
    assert table["text"][0].as_py() == long
    assert result.manifest.steps["embed"].counts["truncated"] == 1
    assert np.isfinite(Run(config.cache, "run").head_vectors(3, 0)).all()


def test_parts_hold_the_same_whatever_their_batches(config: EmbedConfig, done: Run) -> None:
    other = replace(config, run="other", embedder=replace(config.embedder, token_budget=1, padding="left"))
    embed.run(other)
    for stage in (1, 2, 3):
        ours, theirs = done.head_vectors(stage, 0), Run(config.cache, "other").head_vectors(stage, 0)
        assert np.allclose(ours, theirs, atol=2e-3)
    one, two = done.manifest().steps["embed"], Run(config.cache, "other").manifest().steps["embed"]
    assert one.fingerprint == two.fingerprint


# A second start


def test_a_second_start_is_skipped_and_writes_nothing(config: EmbedConfig, done: Run) -> None:
    before = snapshot(done.folder)
    result = embed.run(config)
    assert result.skipped
    assert result.manifest == done.manifest()
    assert snapshot(done.folder) == before


def test_a_second_start_loads_no_model(config: EmbedConfig, done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Embedder, "load", lambda *_: pytest.fail("loaded"))
    assert embed.run(config).skipped


def test_a_second_start_removes_what_a_kill_at_the_very_end_left(config: EmbedConfig, done: Run) -> None:
    done.staging.mkdir()
    (done.staging / "part-00000.parquet").write_text("")
    assert embed.run(config).skipped
    assert not done.staging.exists()


@pytest.mark.parametrize(
    "change", ["model", "layer", "pooling", "prompt", "max_tokens", "filters", "part_size", "text"]
)
def test_other_inputs_are_refused_and_replaced_only_when_asked(
    config: EmbedConfig, done: Run, other_model: Path, write_corpus: Write, some_rows: Rows, change: str
) -> None:
    before = snapshot(done.folder)
    rows = some_rows(10)
    rows[7]["text"] = "loom"
    use = config.embedder
    changed = {
        "model": lambda: replace(config, embedder=replace(use, model=str(other_model))),
        "layer": lambda: replace(config, embedder=replace(use, layers=(1,))),
        "pooling": lambda: replace(config, embedder=replace(use, pooling="first")),
        "prompt": lambda: replace(config, embedder=replace(use, prompt="loom ")),
        "max_tokens": lambda: replace(config, embedder=replace(use, max_tokens=5)),
        "filters": lambda: replace(config, filters=Filters(limit=9)),
        "part_size": lambda: replace(config, part_size=5),
        "text": lambda: replace(config, source=str(write_corpus(rows))),  # the same file, written over
    }[change]()
    sentence = mistake(changed)
    assert "The run 'run' has vectors from different inputs (model tiny, layer 2, corpus corpus.jsonl" in sentence
    assert "pass --replace" in sentence
    assert snapshot(done.folder) == before

    result = embed.run(replace(changed, replace=True))
    assert not result.skipped
    assert result.parts_kept == 0
    assert verify(done, part_digest).problems == ()
    fresh = replace(changed, run="fresh")
    embed.run(fresh)
    assert parts(done.folder) == parts(config.cache / "fresh"), "nothing of the old run is left"
    assert done.documents().equals(Run(config.cache, "fresh").documents())
    assert parts(done.folder) != {name: content for name, (content, _) in before.items() if name.startswith("heads")}


def test_replace_makes_a_finished_run_of_the_same_inputs_anew(config: EmbedConfig, done: Run) -> None:
    before = snapshot(done.folder)
    result = embed.run(replace(config, replace=True))
    assert not result.skipped
    assert result.parts_kept == 0
    after = snapshot(done.folder)
    assert parts(done.folder) == {name: content for name, (content, _) in before.items() if name.startswith("heads")}
    assert all(after[name][1] > before[name][1] for name in before)


def test_replace_by_a_shorter_corpus_leaves_no_old_part(config: EmbedConfig, done: Run) -> None:
    embed.run(replace(config, filters=Filters(limit=3), replace=True))
    assert [path.name for path in done.parts(1)] == ["part-00000.parquet"]
    assert done.documents().num_rows == 3
    assert verify(done, part_digest).problems == ()


@pytest.mark.parametrize("corpus", ["missing", "empty", "broken", "no text", "nothing left"])
def test_replace_with_a_corpus_that_cannot_be_read_leaves_the_old_run(
    config: EmbedConfig, done: Run, write_corpus: Write, corpus: str
) -> None:
    before = snapshot(done.folder)
    sources = {
        "missing": lambda: "nowhere.jsonl",
        "empty": lambda: write_corpus([], "empty.jsonl"),
        "broken": lambda: write_corpus(["{"], "broken.jsonl"),
        "no text": lambda: write_corpus([{"n": 1}], "none.jsonl"),
        "nothing left": lambda: write_corpus([{"text": ""}], "short.jsonl"),
    }
    mistake(replace(config, source=str(sources[corpus]()), replace=True))
    assert snapshot(done.folder) == before
    assert embed.run(config).skipped


@pytest.mark.parametrize("content", ["", "{", '{"schema_version": 99}', '{"schema_version": 1}', "[1]"])
def test_a_damaged_manifest_is_refused_and_replaced_when_asked(config: EmbedConfig, done: Run, content: str) -> None:
    before = parts(done.folder)
    (done.folder / "manifest.json").write_text(content)
    assert "Rebuild" in mistake(config)
    assert parts(done.folder) == before
    assert not embed.run(replace(config, replace=True)).skipped
    assert verify(done, part_digest).problems == ()


def test_a_manifest_without_the_step_is_no_traceback(config: EmbedConfig, done: Run) -> None:
    done.write_manifest(replace(done.manifest(), steps={}))
    assert "--replace" in mistake(config)
    embed.run(replace(config, replace=True))
    assert verify(done, part_digest).problems == ()


def test_a_new_query_prompt_is_not_passed_over(config: EmbedConfig, done: Run) -> None:
    """It changes no vector of a document, but the app embeds queries by what the manifest says."""
    asked = replace(config, embedder=replace(config.embedder, query_prompt="query: "))
    assert embed.run(asked).manifest.model["query_prompt"] == "query: "
    assert done.manifest().model["query_prompt"] == "query: "


# Interrupted


def test_after_an_interruption_only_what_is_missing_is_made(
    config: EmbedConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(config, 2, monkeypatch)
    run = Run(config.cache, "run")
    (record,) = status(config.cache, "run")
    assert record["steps"]["embed"]["state"] == "stopped"
    assert record["documents"] == 8
    before = snapshot(run.folder)
    embedded: list[int] = []
    embed_ = Embedder.embed

    def counting(self: Embedder, texts: list[str], **options: Any) -> Any:
        embedded.append(len(texts))
        return embed_(self, texts, **options)

    monkeypatch.setattr(Embedder, "embed", counting)
    result = embed.run(config)
    assert result.parts_kept == 2
    assert embedded == [2]
    after = snapshot(run.folder)
    kept = [name for name in before if "part-00000" in name or "part-00001" in name]
    assert all(after[name] == before[name] for name in kept if name.startswith("heads"))
    assert result.manifest.steps["embed"].counts["tokens"] == 90
    assert verify(run, part_digest).problems == ()
    whole = replace(config, run="whole")
    embed.run(whole)
    assert parts(run.folder) == parts(config.cache / "whole")
    assert run.documents().equals(Run(config.cache, "whole").documents())
    same = {"fingerprint", "counts", "options", "state"}
    one, two = (Run(config.cache, name).manifest().steps["embed"] for name in ("run", "whole"))
    assert {key: getattr(one, key) for key in same} == {key: getattr(two, key) for key in same}


@pytest.mark.parametrize("lost", ["heads/stage=2/part-00000.parquet", "staging/done/part-00001.parquet"])
def test_a_part_that_lacks_a_file_is_made_again(
    config: EmbedConfig, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    break_off(config, 2, monkeypatch)
    (config.cache / "run" / lost).unlink()
    assert embed.run(config).parts_kept == 1
    assert verify(Run(config.cache, "run"), part_digest).problems == ()


def test_replace_goes_on_with_an_interrupted_run_of_the_same_inputs(
    config: EmbedConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(config, 1, monkeypatch)
    assert embed.run(replace(config, replace=True)).parts_kept == 1


def test_an_interrupted_run_of_other_inputs_is_replaced_whole(
    config: EmbedConfig, monkeypatch: pytest.MonkeyPatch, write_corpus: Write, some_rows: Rows
) -> None:
    break_off(config, 2, monkeypatch)
    before = snapshot(config.cache / "run")
    rows = some_rows(10)
    rows[9]["text"] = "loom loom"  # not in a part that is there
    changed = replace(config, source=str(write_corpus(rows)))
    assert "pass --replace" in mistake(changed)
    assert snapshot(config.cache / "run") == before
    result = embed.run(replace(changed, replace=True))
    assert result.parts_kept == 0
    assert Run(config.cache, "run").documents()["text"].to_pylist() == [row["text"] for row in rows]
    assert verify(Run(config.cache, "run"), part_digest).problems == ()


def test_what_was_being_written_when_the_job_was_killed_is_removed(
    config: EmbedConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_off(config, 1, monkeypatch)
    half = Run(config.cache, "run").part_path(1, 1).with_name("part-00001.parquet.writing99")
    half.write_bytes(b"PAR1")
    embed.run(config)
    assert not half.exists()


# Killed for real


def wait_for(process: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    while not happened():
        if process.poll() is not None:
            pytest.fail(f"the job ended too early: {process.communicate()}")
        time.sleep(0.002)


def check_refused(command: Command, arguments: tuple[object, ...], first: int) -> None:
    """A second job on the run that process ``first`` is at work on."""
    second = command(*arguments)
    assert second.status == 2
    assert second.err.startswith(f"headscope: Another job is working on run 'run': process {first} on ")
    assert second.err.endswith(" UTC. Wait until it has ended.\n")
    assert second.out == ""
    (record,) = json.loads(command("status", "run", "--cache", arguments[3], "--json").out)
    assert record["at_work"] is True
    assert record["steps"]["embed"]["state"] == "running"


def test_killed_at_random_moments_and_refused_to_a_second_job_a_run_ends_as_if_it_never_had_been(
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Write,
    some_rows: Rows,
    start_job: Start,
    command: Command,
    one_thread: None,
) -> None:
    rows = some_rows(400, words=60)
    source = write_corpus(rows)
    expected = 80
    options = ("--source", source, "--model", tiny_model, "--part-size", 5)
    cache = tmp_path / "killed"
    run = Run(cache, "run")
    chosen = random.Random(20_25)
    for kill in range(2):
        job = start_job("embed", "run", "--cache", cache, *options)
        enough = len(run.parts(3)) + chosen.randint(2, 12)
        wait_for(job, lambda enough=enough: len(run.parts(3)) >= enough)
        time.sleep(chosen.random() * 0.02)  # somewhere within a part
        if kill == 1:
            job.send_signal(signal.SIGSTOP)  # at work for as long as we look
            check_refused(command, ("embed", "run", "--cache", cache, *options), job.pid)
        job.send_signal(signal.SIGKILL)
        job.communicate()
        assert job.returncode == -signal.SIGKILL
        assert 0 < len(run.parts(3)) < expected
        (record,) = json.loads(command("status", "run", "--cache", cache, "--json").out)
        assert record["steps"]["embed"]["state"] == "stopped"
        assert record["at_work"] is False
        assert record["documents"] == 5 * len(finished_paths(run))
        assert command("verify", "run", "--cache", cache).status == 1, "an unfinished run is not whole"
        if kill == 0:
            before = snapshot(run.folder)
            write_corpus([*rows[:390], {**rows[390], "text": "another text"}, *rows[391:]])
            refused = command("embed", "run", "--cache", cache, *options, "--quiet")
            assert refused.status == 2
            assert "has vectors from different inputs" in refused.err
            assert snapshot(run.folder) == before, "nothing is mixed"
            write_corpus(rows)

    staged = [path.name for path in finished_paths(run)]
    kept = {name: found for name, found in snapshot(run.folder).items() if Path(name).name in staged}
    last = command("embed", "run", "--cache", cache, *options)
    assert last.status == 0
    (told,) = re.findall(r"\((\d+) of 80 parts were finished before\)", last.err)
    assert int(told) == len(staged) > 0
    after = snapshot(run.folder)
    assert all(after[name] == found for name, found in kept.items() if name.startswith("heads"))

    assert command("embed", "run", "--cache", tmp_path / "whole", *options, "--quiet").status == 0
    assert parts(run.folder) == parts(tmp_path / "whole" / "run")
    assert len(parts(run.folder)) == 4 * expected
    documents = run.documents()
    assert documents.equals(Run(tmp_path / "whole", "run").documents())
    assert documents["id"].to_pylist() == [row["id"] for row in rows], "each once, in order"
    assert sorted(after) == sorted(snapshot(tmp_path / "whole" / "run"))
    assert command("verify", "run", "--cache", cache).status == 0


# A disk that is full


FULL = {"part-00000.parquet": (100, 4_000), "documents.parquet": (10, 16_000)}
"""What cannot be written, with parts of so many documents, if no file may be larger than so many bytes."""


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_same_command_goes_on_later(
    cache: Path,
    tiny_model: Path,
    write_corpus: Write,
    some_rows: Rows,
    command: Command,
) -> None:
    source = write_corpus(some_rows(300, words=20))
    for unwritten, (part_size, size) in FULL.items():
        options = ("--source", source, "--model", tiny_model, "--part-size", part_size)
        arguments = ("embed", unwritten, "--cache", cache, *options)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            full = command(*arguments, "--quiet")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert full.status == 2
        assert full.out == ""
        assert full.err == (
            f"headscope: There is not enough space to write {unwritten} (File too large). Free some space and start "
            "the same "
            "command again: finished parts are kept.\n"
        )
        run = Run(cache, unwritten)
        assert not list(run.folder.rglob("*.writing*"))
        assert not run.manifest().is_done("embed")
        later = command(*arguments)
        assert later.status == 0
        assert ("(30 of 30 parts were finished before)" in later.err) == (unwritten == "documents.parquet")
        assert verify(run, part_digest).problems == ()


# Beyond float16

HUGE = "huge " * 20


def huge_config(cache: Path, huge_model: Path, write_corpus: Write, some_rows: Rows, at: int) -> EmbedConfig:
    """Twelve documents in parts of three, of which number ``at`` overflows."""
    rows = some_rows(12)
    rows[at]["text"] = HUGE
    source = write_corpus(rows, "huge.jsonl")
    return EmbedConfig(cache, "run", str(source), EmbedderConfig(model=str(huge_model)), part_size=3)


def check_widened(config: EmbedConfig, result: EmbedResult, widened: int) -> None:
    """Everything is float32; the first ``widened`` parts went through float16 before."""
    run = Run(config.cache, config.run)
    assert result.manifest.vectors["dtype"] == run.manifest().vectors["dtype"] == "float32"
    texts = run.documents(["text"])["text"].to_pylist()
    embedder = Embedder.load(config.embedder)
    for stage in (1, 2, 3):
        stored = list(run.vectors(stage))
        assert [part.dtype for part in stored] == [np.float32] * 4
        for number, part in enumerate(stored):
            expected = embedder.embed(texts[3 * number : 3 * number + 3]).stage(stage)
            if number < widened:
                expected = expected.astype(np.float16).astype(np.float32)
                assert np.array_equal(part.astype(np.float16).astype(np.float32), part)
            assert np.allclose(part, expected, rtol=2**-10, atol=1e-4)
    assert verify(run, part_digest).problems == ()


@pytest.mark.parametrize("at", [0, 4, 11])
def test_a_run_whose_vectors_outgrow_float16(
    cache: Path, huge_model: Path, write_corpus: Write, some_rows: Rows, at: int
) -> None:
    config = huge_config(cache, huge_model, write_corpus, some_rows, at)
    result = embed.run(config)
    check_widened(config, result, widened=at // 3)
    largest = np.abs(Run(cache, "run").head_vectors(1, 0)).max(axis=1)
    assert largest[at] > 65_504
    assert (np.delete(largest, at) < 20_000).all(), "only the one is too large"
    assert embed.run(config).skipped


def test_without_that_document_the_same_model_stays_in_float16(
    cache: Path, huge_model: Path, write_corpus: Write, some_rows: Rows
) -> None:
    source = write_corpus(some_rows(6))
    result = embed.run(EmbedConfig(cache, "run", str(source), EmbedderConfig(model=str(huge_model)), part_size=3))
    assert result.manifest.vectors["dtype"] == "float16"


def test_a_widened_run_goes_on_in_float32(
    cache: Path,
    huge_model: Path,
    write_corpus: Write,
    some_rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = huge_config(cache, huge_model, write_corpus, some_rows, at=4)
    break_off(config, 3, monkeypatch)
    result = embed.run(config)
    assert result.parts_kept == 3
    check_widened(config, result, widened=1)


def test_parts_without_a_manifest_are_not_mixed_with_new_ones(
    cache: Path, huge_model: Path, write_corpus: Write, some_rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their precision was in the manifest that is gone."""
    config = huge_config(cache, huge_model, write_corpus, some_rows, at=4)
    break_off(config, 3, monkeypatch)
    (cache / "run" / "manifest.json").unlink()
    embed.run(config)
    assert verify(Run(cache, "run"), part_digest).problems == ()


KILLED_WHILE_WIDENING = """
import os, signal, sys
from core.runs import run as widen
write, written = widen.write_part, []

def write_or_die(path, *rest):
    if len(written) == 2:
        path.with_name(path.name + ".writing1").write_bytes(b"PAR1")
        os.kill(os.getpid(), signal.SIGKILL)
    write(path, *rest)
    written.append(path)

widen.write_part = write_or_die
from precompute.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_killed_in_the_middle_of_widening(
    cache: Path, huge_model: Path, write_corpus: Write, some_rows: Rows, start_job: Start, finish: Finish
) -> None:
    config = huge_config(cache, huge_model, write_corpus, some_rows, at=7)
    arguments = ("--cache", cache, "--source", config.source, "--model", huge_model, "--part-size", 3, "--quiet")
    killed = finish(start_job("embed", "run", *arguments, script=KILLED_WHILE_WIDENING))
    assert killed.status == -signal.SIGKILL
    run = Run(cache, "run")
    assert run.manifest().vectors["dtype"] == "float32"
    kinds = [
        str(pq.read_schema(path).field("vector").type.value_type) for stage in (1, 2, 3) for path in run.parts(stage)
    ]
    assert sorted(kinds) == ["float"] * (3 + 2) + ["halffloat"] * 7, "the part that is too large, and two files"
    result = embed.run(config)
    assert result.parts_kept == 4
    check_widened(config, result, widened=2)
    assert not list(cache.rglob("*.writing*"))


# verify, as a command


def flip_in_part(run: Run) -> None:
    path = run.part_path(1, 1)
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(1)
    data[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 1
    path.write_bytes(data)


def extra_part(run: Run) -> None:
    path = run.part_path(1, 2)
    shutil.copy(path, run.part_path(1, 3))


def truncate_documents(run: Run) -> None:
    run.documents_path.write_bytes(run.documents_path.read_bytes()[:-100])


def change_text(run: Run) -> None:
    table = run.documents()
    texts = table["text"].to_pylist()
    texts[5] += "!"
    column = pa.array(texts)
    changed = table.set_column(table.column_names.index("text"), table.schema.field("text"), column)
    write_table(run.documents_path, changed, digest_of(run.documents_path) or "")


def not_a_number(run: Run) -> None:
    path = run.part_path(2, 0)
    vectors = next(run.vectors(2)).copy()
    vectors[3, 5] = np.nan
    write_part(path, np.arange(4), vectors, "float16", digest_of(path) or "")


DAMAGE: dict[str, tuple[Callable[[Run], object], str]] = {
    "a byte flipped": (flip_in_part, "stage=1/part-00001.parquet is damaged"),
    "a part deleted": (lambda run: run.part_path(3, 1).unlink(), "heads/stage=3 has 2 parts, not 3"),
    "a part too many": (extra_part, "heads/stage=1 has 4 parts, not 3"),
    "documents truncated": (truncate_documents, "documents.parquet cannot be read: it is damaged"),
    "documents deleted": (lambda run: run.documents_path.unlink(), "documents.parquet is missing"),
    "a text changed": (change_text, "heads/stage=1/part-00001.parquet was made from different texts or settings"),
    "not a number": (not_a_number, "part-00000.parquet holds a number that is not finite, in document 3"),
}


def test_verify_of_a_whole_run(config: EmbedConfig, done: Run, command: Command) -> None:
    outcome = command("verify", "run", "--cache", config.cache)
    assert (outcome.status, outcome.out, outcome.err) == (0, "run: no problems found (11 files checked).\n", "")


@pytest.mark.parametrize("damage", DAMAGE)
def test_verify_finds(config: EmbedConfig, done: Run, command: Command, damage: str) -> None:
    make, sentence = DAMAGE[damage]
    make(done)
    outcome = command("verify", "run", "--cache", config.cache)
    assert outcome.status == 1
    assert outcome.err == ""
    (found,) = [line for line in outcome.out.splitlines() if sentence in line]
    assert done.rebuild in found
    assert outcome.out.splitlines()[-1].endswith("checked files have problems.")
    assert command("embed", "run", "--cache", config.cache, "--source", config.source, "--model", config.embedder.model,
                   "--part-size", 4, "--replace", "--quiet").status == 0  # fmt: skip
    assert command("verify", "run", "--cache", config.cache).status == 0, "the command that it names mends it"
