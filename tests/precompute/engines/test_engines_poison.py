"""Documents that cannot be embedded: found among the others, told, left out when asked for, nothing else lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from core.errors import Mistake
from core.model.embedder import Embedded, Embedder, EmbedderConfig
from core.model.shape import ModelShape
from core.model.tokens import Tokens
from core.runs.run import Run
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from precompute.status import as_text, status
from precompute.steps.embed import finishing
from precompute.steps.embed import step as embed
from precompute.steps.embed.command import summary
from precompute.steps.embed.staging import begin, finished_paths, forgive, stage_documents
from precompute.steps.embed.step import EmbedConfig
from precompute.steps.embed.surviving import Died, embed_surviving
from tests.support.engine_runs import files

POISON = "poison"
AT = (1, 6, 7, 8, 19)
"""A single one, all of a part (of three), and the last."""


@pytest.fixture
def rows(some_rows: Callable[..., list[dict[str, Any]]]) -> list[dict[str, Any]]:
    found = some_rows(20)
    return [{**row, "text": f"{POISON} {row['text']}"} if number in AT else row for number, row in enumerate(found)]


@pytest.fixture
def config(
    tmp_path: Path, tiny_model: Path, write_corpus: Callable[..., Path], rows: list[dict[str, Any]], one_thread: None
) -> EmbedConfig:
    source = write_corpus([row for number, row in enumerate(rows) if number not in (6, 7)])
    return EmbedConfig(tmp_path / "cache", "run", str(source), EmbedderConfig(model=str(tiny_model)), part_size=3)


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tokenizer that cannot take some texts."""
    encode = Tokens.encode

    def refuse(self: Tokens, texts: list[str], prompt: str) -> Any:
        if any(POISON in text for text in texts):
            raise ValueError("a byte that has no token\nand a second line")
        return encode(self, texts, prompt)

    monkeypatch.setattr(Tokens, "encode", refuse)


def sentence(config: EmbedConfig) -> str:
    with pytest.raises(Mistake) as caught:
        embed.run(config)
    return str(caught.value)


def check(config: EmbedConfig, write_corpus: Callable[..., Path], rows: list[dict[str, Any]]) -> None:
    """The run is as if the corpus had never had the poisoned ones."""
    run, clean = Run(config.cache, config.run), Run(config.cache, "clean")
    source = write_corpus([row for row in rows if POISON not in row["text"]], "clean.jsonl")
    embed.run(replace(config, run="clean", source=str(source)))
    assert run.documents().equals(clean.documents())
    for stage in (1, 2, 3):
        ours, theirs = list(run.vectors(stage)), list(clean.vectors(stage))
        assert [len(part) for part in ours] == [len(part) for part in theirs] == [3, 3, 3, 3, 3]
        assert np.allclose(np.concatenate(ours), np.concatenate(theirs), atol=2e-3)
    assert sorted(set(files(run)) - set(files(clean))) == ["failed.parquet"]
    assert verify(run, part_digest).problems == ()


@pytest.mark.usefixtures("poisoned")
def test_the_others_are_embedded_and_the_poisoned_left_out_only_when_asked(
    config: EmbedConfig, write_corpus: Callable[..., Path], rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "ValueError: a byte that has no token"
    said = sentence(config)
    assert said == (
        f"3 documents could not be embedded: among them number 2, 'd1' ({reason}). All others are embedded and "
        "kept: start the same command with --max-failures 3 to leave these out."
    )
    run = Run(config.cache, "run")
    assert len(finished_paths(run)) == 6, "no part was given up"
    assert sentence(replace(config, max_failures=2)) == said
    with monkeypatch.context() as patch:
        patch.setattr(Embedder, "embed", lambda *_, **__: pytest.fail("embedded again"))
        result = embed.run(replace(config, max_failures=3))
    assert result.parts_kept == 6
    counts = result.manifest.steps["embed"].counts
    assert (counts["failed"], counts["kept"], counts["parts"]) == (3, 18, 5)
    assert result.manifest.corpus["documents"] == 15
    assert pq.read_table(run.failed_path).to_pylist() == [
        {"place": 1, "id": "d1", "reason": reason},
        {"place": 6, "id": "d8", "reason": reason},  # the corpus lacks d6 and d7
        {"place": 17, "id": "d19", "reason": reason},
    ]
    assert "3 could not be embedded (listed in failed.parquet)" in summary("run", result)
    assert "3 documents could not be embedded: see failed.parquet" in as_text(status(config.cache, "run"))
    check(config, write_corpus, rows)


@pytest.mark.usefixtures("poisoned")
def test_leaving_out_may_be_interrupted_anywhere(
    config: EmbedConfig, write_corpus: Callable[..., Path], rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(config, max_failures=3)
    write, written = finishing.write_table, 0

    def stop(*arguments: Any, **options: Any) -> None:
        nonlocal written
        written += 1
        if written % 4 == 0:
            raise KeyboardInterrupt
        write(*arguments, **options)

    monkeypatch.setattr(finishing, "write_table", stop)
    for _ in range(5):  # five parts at three stages and the list of the failed, three at a time
        with pytest.raises(KeyboardInterrupt):
            embed.run(config)
        monkeypatch.setattr(Embedder, "load", lambda *_: pytest.fail("loaded"))
    assert embed.run(config).parts_kept == 6
    monkeypatch.undo()
    check(config, write_corpus, rows)


@pytest.mark.usefixtures("poisoned")
def test_where_nothing_can_be_embedded_it_is_not_the_documents(
    config: EmbedConfig, write_corpus: Callable[..., Path], rows: list[dict[str, Any]]
) -> None:
    poison = [row for row in rows if POISON in row["text"]]
    config = replace(config, source=str(write_corpus(poison)), max_failures=9)
    assert sentence(config).startswith("No document of a part of 3 could be embedded. ValueError: a byte")
    alone = replace(config, run="alone", source=str(write_corpus(poison[:1], "one.jsonl")))
    assert sentence(alone).startswith("No document could be embedded. The first: number 1, 'd1' (ValueError: a byte")


# Halving, by itself


def some(texts: list[str]) -> Embedded:
    rows = np.zeros((len(texts), 2), np.float32)
    return Embedded(rows[None], rows[None], rows, np.asarray([len(text) for text in texts]), np.zeros(len(texts), bool))


def test_halving_finds_each_and_embeds_no_other_alone() -> None:
    asked: list[str] = []

    def embed_(texts: list[str]) -> Embedded:
        asked.append("".join(texts))
        if "x" in asked[-1]:
            raise ValueError("x")
        return some(texts)

    found = embed_surviving(embed_, list("abcdefgx"), 0)
    assert asked == ["abcdefgx", "abcd", "efgx", "ef", "gx", "g", "x"]
    assert found.failed == {7: "ValueError: x"}
    assert len(found.joined(ModelShape(1, 1, 1, 2, 2)).tokens) == 7


def test_a_death_that_was_not_the_document_s_fault_is_forgiven() -> None:
    deaths = iter([True, True, False, False])  # together, then the first alone, once

    def embed_(texts: list[str]) -> Embedded:
        if next(deaths):
            raise Died("It was killed.")
        return some(texts)

    assert embed_surviving(embed_, ["a", "b"], 0).failed == {}


def test_more_than_are_looked_for() -> None:
    def embed_(texts: list[str]) -> Embedded:
        if len(texts) > 1 or texts[0].startswith("x"):
            raise Mistake("It does not fit.")
        return some(texts)

    texts = ["a"] + ["x"] * 60
    with pytest.raises(Mistake, match="More than 32 documents of one part could not be embedded"):
        embed_surviving(embed_, texts, 3)
    assert len(embed_surviving(embed_, texts, 60).failed) == 60


# A process that dies

CRASH = f"""
import os, signal, sys
if "precompute.job.child" in " ".join(sys.orig_argv):
    from core.model.tokens import Tokens
    encode = Tokens.encode

    def crash(self, texts, prompt):
        if any("{POISON}" in text for text in texts):
            os.kill(os.getpid(), signal.SIGSEGV)
        return encode(self, texts, prompt)

    Tokens.encode = crash
"""


def test_deaths_are_counted_and_stops_forgiven(tmp_path: Path) -> None:
    run = Run(tmp_path, "run")
    assert [begin(run, 0, "digest") for _ in range(3)] == [0, 1, 2]
    forgive(run, 0, "digest", 2)
    assert begin(run, 0, "digest") == 2
    assert begin(run, 0, "another") == 0
    assert begin(run, 1, "digest") == 0


@pytest.mark.slow
def test_a_document_that_crashes_the_process_is_isolated(
    tmp_path: Path,
    config: EmbedConfig,
    write_corpus: Callable[..., Path],
    rows: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two workers have died of the part; from then on it is made in a process apart."""
    (tmp_path / "crash").mkdir()
    (tmp_path / "crash" / "sitecustomize.py").write_text(CRASH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "crash"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    chosen = [rows[0], rows[2], rows[3], rows[1]]  # the other one first: the process that makes it goes on to this one
    config = replace(config, source=str(write_corpus(chosen)), part_size=2)
    staged: list[tuple[Run, int, str]] = []

    def after_two_deaths(run: Run, number: int, first: int, part: Any, digest: str) -> None:
        stage_documents(run, number, first, part, digest)
        if number == 1:
            begin(run, number, digest)
            begin(run, number, digest)
            staged.append((run, number, digest))

    monkeypatch.setattr("precompute.steps.embed.reading.stage_documents", after_two_deaths)
    result = embed.run(replace(config, max_failures=1))
    assert staged
    run = Run(config.cache, "run")
    assert pq.read_table(run.failed_path).to_pylist() == [
        {"place": 3, "id": "d1", "reason": "The process was ended by signal 11 (SIGSEGV)."}
    ]
    assert run.documents(["id"])["id"].to_pylist() == ["d0", "d2", "d3"]
    assert result.manifest.steps["embed"].counts["failed"] == 1
    texts = [row["text"] for row in chosen[:3]]
    expected = np.concatenate([Embedder.load(config.embedder).embed([text]).output for text in texts])
    assert np.allclose(np.concatenate(list(run.vectors(3))), expected, atol=2e-3)
    assert verify(run, part_digest).problems == ()
