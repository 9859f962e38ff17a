"""The step ``label`` with a language model, by a real server on loopback: prices, limits, kills, what is kept."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from core.analysis.agreement import all_compared
from core.model.shape import ModelShape
from core.runs.results import all_labels, kept_labels, kept_sources, read_labels
from core.runs.run import Run
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from precompute.labelling import endpoint
from precompute.labelling.config import AskConfig
from precompute.steps.label import command
from precompute.steps.label import openai as label_openai
from precompute.steps.label import step as label
from precompute.steps.label.config import Asking, LabelConfig
from tests.support.openai_server import TOPICS, OpenAIServer
from tests.support.synthetic import write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
DOCS = 30
KEY = "sk-test-0123456789abcdefghijklmnop"
Command = Callable[..., Any]


def topic(doc: int) -> str:
    return TOPICS[doc % 3]


def make_run(cache: Path, name: str = "run", docs: int = DOCS) -> Run:
    """Every document names its topic; the corpus itself has labelled each second one."""
    vectors = np.random.default_rng(0).normal(size=(docs, 32))
    texts = [f"Text {doc} is about {topic(doc)}." for doc in range(docs)]
    labels = [topic(doc) if doc % 2 else None for doc in range(docs)]
    return write_run(
        cache, name, SHAPE, lambda stage, first, count: vectors[first : first + count], labels, texts=texts
    )


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key and no server of whoever runs the tests."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    secrets = tmp_path / "secrets.toml"
    secrets.write_text("")
    monkeypatch.setenv("HEADSCOPE_SECRETS", str(secrets))


@pytest.fixture
def planted(tmp_path: Path) -> Run:
    return make_run(tmp_path / "cache")


@pytest.fixture
def topics_file(tmp_path: Path) -> Path:
    path = tmp_path / "topics.txt"
    path.write_text("\n".join(TOPICS), encoding="utf-8")
    return path


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as found:
        yield found


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch, server: OpenAIServer) -> OpenAIServer:
    """The server as if it were OpenAI's own: its models have prices, and it wants a key."""
    monkeypatch.setattr(endpoint, "OWN_HOST", "127.0.0.1")
    monkeypatch.setattr(endpoint, "OPENAI", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return server


@pytest.fixture
def ask(command: Command, planted: Run, topics_file: Path, server: OpenAIServer) -> Command:
    """``label run --labels openai`` at the server, with more options."""

    def call(*more: object, run: Run = planted) -> Any:
        where = ("--cache", run.cache, "--topics", topics_file, "--base-url", server.url)
        return command("label", run.name, "--labels", "openai", *where, *more)

    return call


def config(run: Run, topics: Path, server: OpenAIServer, **settings: Any) -> LabelConfig:
    asking = Asking(base_url=server.url)
    return LabelConfig(run.cache, run.name, "openai", topics=str(topics), asking=asking, **settings)


def topics_of(run: Run) -> list[str | None]:
    return run.documents(["topic"])["topic"].to_pylist()


def paid(server: OpenAIServer) -> int:
    return sum(server.paid.values())


def problems(run: Run) -> tuple[str, ...]:
    return verify(run, part_digest).problems


def test_every_document_is_asked_about_once_and_labelled(ask: Command, planted: Run, server: OpenAIServer) -> None:
    found = ask()
    assert found.status == 0, found.err
    assert "30 documents; about" in found.err
    assert "price of gpt-4o unknown" in found.err
    assert "30 of 30 documents labelled by openai" in found.err
    assert "column and openai agree on 100.0\u00a0% of 15 documents" in found.err
    assert topics_of(planted) == [topic(doc) for doc in range(DOCS)]
    assert set(planted.documents(["label_source"])["label_source"].to_pylist()) == {"openai"}
    assert planted.documents(["label_score"])["label_score"].to_pylist() == [0.75] * DOCS
    assert paid(server) == DOCS
    step = planted.manifest().steps["label"]
    assert step.state == "done"
    assert step.counts["labelled"] == DOCS
    assert step.counts["prompt_tokens"] == server.prompt_tokens
    assert step.options == {
        "model": "gpt-4o",
        "server": server.url,
        "excerpt_tokens": 1500,
        "dollars": None,
        "source": "openai",
        "topics": list(TOPICS),
    }
    assert problems(planted) == ()


def test_nothing_is_paid_twice_by_a_second_start_or_another_run(
    ask: Command, planted: Run, server: OpenAIServer
) -> None:
    ask()
    assert "Nothing to do" in ask().err
    assert "nothing to ask, nothing to pay" in ask("--dry-run").out
    again = ask("--again")
    assert "nothing to ask, nothing to pay" in again.err
    other = make_run(planted.cache, "other")
    assert ask(run=other).status == 0
    assert topics_of(other) == topics_of(planted)
    assert paid(server) == DOCS


def test_a_dry_run_says_what_it_costs_and_asks_nobody(
    ask: Command, planted: Run, priced: OpenAIServer, tmp_path: Path
) -> None:
    before = planted.documents_path.read_bytes()
    found = ask("--dry-run")
    assert found.status == 0
    assert "30 documents; about" in found.out
    assert "with gpt-4o (prices of 20" in found.out
    halved = ask("--dry-run", "--batch").out
    assert "as a batch" in halved
    assert priced.seen == []
    assert planted.documents_path.read_bytes() == before
    assert kept_sources(planted) == []
    assert "label" not in planted.manifest().steps


def test_without_a_key_it_says_where_to_put_one_before_anything_is_asked(
    command: Command, planted: Run, topics_file: Path
) -> None:
    found = command("label", "run", "--cache", planted.cache, "--labels", "openai", "--topics", topics_file, "--quiet")
    assert (found.status, found.out) == (2, "")
    (line,) = found.err.splitlines()
    assert "OPENAI_API_KEY" in line
    assert "secrets.toml" in line
    assert kept_sources(planted) == []


def test_the_key_is_in_no_file_and_no_output(
    ask: Command, planted: Run, priced: OpenAIServer, command: Command
) -> None:
    priced.faults = {"refusal": 0.3, "500": 0.1}
    outputs = [ask("--yes"), command("status", "run", "--json", "--cache", planted.cache)]
    assert any(seen.authorization == f"Bearer {KEY}" for seen in priced.seen)
    for outcome in outputs:
        assert KEY[3:] not in outcome.out + outcome.err
    for path in planted.cache.rglob("*"):
        if path.is_file():
            assert KEY[3:].encode() not in path.read_bytes(), path


def test_what_is_no_topic_is_unlabelled_with_the_reason_and_listed(
    planted: Run, topics_file: Path, command: Command
) -> None:
    with OpenAIServer(faults={"wrong enum": 0.3, "refusal": 0.3}) as server:
        result = label.run(config(planted, topics_file, server))
        labels = kept_labels(planted, "openai")
        assert 0 < labels.labelled < DOCS
        assert sum(labels.why_not.values()) == DOCS - labels.labelled
        table = read_labels(planted, "openai")
        assert all((row["topic"] is None) == (row["reason"] is not None) for row in table.to_pylist())
        step = result.manifest.steps["label"]
        assert step.state == "done"  # they were asked about, and paid
        assert step.counts["unlabelled"] == DOCS - labels.labelled
        assert any(note.startswith("Unlabelled: ") for note in result.notes)
        before = paid(server)
        assert label.run(config(planted, topics_file, server)).skipped
        assert paid(server) == before
    assert problems(planted) == ()


def test_a_limit_on_the_cost_stops_cleanly_and_a_second_start_goes_on(
    ask: Command, planted: Run, priced: OpenAIServer, command: Command
) -> None:
    found = ask("--max-cost", "0.008", "--concurrency", "2")
    assert found.status == 0, found.err
    assert "--max-cost" in found.err
    assert "Start the same command again to continue" in found.err
    some = paid(priced)
    assert 0 < some < DOCS
    labels = kept_labels(planted, "openai")
    assert labels.labelled == some
    (reason,) = labels.why_not
    assert reason.startswith("not asked: ")
    assert sum(name is not None for name in topics_of(planted)) == some
    step = planted.manifest().steps["label"]
    assert step.counts["not_asked"] == DOCS - some
    assert 0 < step.options["dollars"] <= 0.008
    assert "label      stopped" in command("status", "run", "--cache", planted.cache).out
    assert problems(planted) == ()
    assert ask().status == 0
    assert paid(priced) == DOCS
    assert topics_of(planted) == [topic(doc) for doc in range(DOCS)]
    assert planted.manifest().steps["label"].state == "done"
    assert planted.manifest().steps["label"].counts["not_asked"] == 0


def test_stopped_before_the_first_answer_the_corpuss_own_labels_are_not_lost(
    ask: Command, planted: Run, priced: OpenAIServer, command: Command
) -> None:
    own = topics_of(planted)
    refused = ask("--max-cost", "0.0000001")
    assert refused.status == 2
    assert (
        "'openai' gave no document a topic; the most frequent reason, for 30 of 30 documents: not asked: "
        in refused.err
    )
    assert "Start the same command again to continue." in refused.err
    assert paid(priced) == 0
    assert topics_of(planted) == own


def test_a_labelling_in_which_every_document_failed_takes_no_other_labels_place(
    ask: Command, planted: Run, server: OpenAIServer, command: Command
) -> None:
    """Neither the run's labels nor what the same source said before is lost; whoever waits for the job learns of it."""
    assert ask().status == 0
    before = topics_of(planted), read_labels(planted, "openai"), planted.manifest()
    assert any(before[0])
    server.faults = {"refusal": 1.0}
    refused = ask("--label-model", "another", "--excerpt-tokens", "50")
    assert refused.status == 2
    (sentence,) = [line for line in refused.err.splitlines() if "gave no document a topic" in line]
    assert sentence.startswith(
        "headscope: 'openai' gave no document a topic; the most frequent reason, for 30 of 30 documents: "
    )
    assert "refus" in sentence
    assert sentence.endswith("The run keeps the labels it had. Check --topics, or use other --labels.")
    assert (topics_of(planted), read_labels(planted, "openai"), planted.manifest()) == before
    assert problems(planted) == ()


def test_a_server_that_fails_leaves_the_step_unfinished_and_the_next_start_tries_again(
    planted: Run, topics_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_openai, "AskConfig", functools.partial(AskConfig, tries=1, backoff=0))
    with OpenAIServer(faults={"500": 0.3}) as server:
        step = label.run(config(planted, topics_file, server)).manifest.steps["label"]
        assert step.state == "running"
        assert 0 < step.counts["not_asked"] < DOCS
        assert set(kept_labels(planted, "openai").why_not) == {"not answered: the server failed each time"}
        server.faults = {}
        step = label.run(config(planted, topics_file, server)).manifest.steps["label"]
        assert (step.state, step.counts["not_asked"]) == ("done", 0)
        assert paid(server) == DOCS


@pytest.mark.parametrize(("answer", "asked"), [("y\n", DOCS), ("\n", 0), ("no\n", 0), ("", 0)])
def test_a_person_at_a_terminal_is_asked_before_a_larger_sum(
    ask: Command, priced: OpenAIServer, monkeypatch: pytest.MonkeyPatch, answer: str, asked: int
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr(command, "ASK_ABOVE", 0.0)
    found = ask()
    assert "Spend about $" in found.err
    assert found.status == (0 if asked else 2)
    assert paid(priced) == asked
    if not asked:
        assert "nothing was spent" in found.err
        assert ask("--yes").status == 0
        assert paid(priced) == DOCS


def test_a_small_sum_and_a_script_are_not_asked(
    ask: Command, priced: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command.ASK_ABOVE == 1
    monkeypatch.setattr(command, "ASK_ABOVE", 0.0)
    found = ask()  # standard input is no terminal
    assert found.status == 0
    assert "Spend" not in found.err
    assert paid(priced) == DOCS


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def test_killed_in_the_middle_nothing_is_lost_and_little_is_paid_twice(
    tmp_path: Path, topics_file: Path, start_job: Command
) -> None:
    run = make_run(tmp_path / "cache", docs=60)
    before = run.documents_path.read_bytes()
    with OpenAIServer(delay=0.05) as server:
        where = ("--cache", run.cache, "--topics", topics_file, "--base-url", server.url, "--concurrency", 4)
        process = start_job("label", "run", "--labels", "openai", *where)
        wait_until(lambda: paid(server) >= 12, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert paid(server) < 60
        assert run.documents_path.read_bytes() == before
        assert "label" not in run.manifest().steps
        label.run(config(run, topics_file, server))
        assert 60 <= paid(server) <= 60 + 4
    assert topics_of(run) == [topic(doc) for doc in range(60)]
    assert problems(run) == ()


def test_ctrl_c_ends_tidily_and_says_how_to_go_on(
    tmp_path: Path, topics_file: Path, start_job: Command, finish: Command
) -> None:
    run = make_run(tmp_path / "cache", docs=60)
    before = run.documents_path.read_bytes()
    with OpenAIServer(delay=0.05) as server:
        where = ("--cache", run.cache, "--topics", topics_file, "--base-url", server.url, "--concurrency", 4)
        process = start_job("label", "run", "--labels", "openai", *where)
        wait_until(lambda: paid(server) >= 8, process)
        process.send_signal(signal.SIGINT)
        found = finish(process)
        kept = paid(server)
        assert found.status == 1
        assert "Traceback" not in found.err
        assert "answers are paid for and kept in answers.sqlite" in found.err
        assert "Start the same command again to continue." in found.err
        assert run.documents_path.read_bytes() == before
        assert not run.is_locked()
        label.run(config(run, topics_file, server))
        assert 60 <= paid(server) <= 60 + 4
        assert kept < 60


def test_a_batch_is_submitted_polled_and_collected(planted: Run, topics_file: Path, server: OpenAIServer) -> None:
    step = label.run(config(planted, topics_file, server, batch=True, poll_seconds=0.01)).manifest.steps["label"]
    assert step.state == "done"
    assert step.options["batch"] is True
    assert topics_of(planted) == [topic(doc) for doc in range(DOCS)]
    assert len(server.batches) == 1
    assert paid(server) == DOCS


def test_names_in_any_script_survive_from_the_list_to_the_file(tmp_path: Path) -> None:
    names = ('crafts, "fine" and plain', "日本の歴史", "наука и техника", "it's; |so| \\n", "علوم", "🦊")
    run = write_run(
        tmp_path / "cache",
        "run",
        SHAPE,
        lambda stage, first, count: np.ones((count, 32)),
        [None] * 12,
        texts=[f"No. {doc}: {json.dumps(names[doc % 6], ensure_ascii=False)[1:-1]}" for doc in range(12)],
    )
    path = tmp_path / "topics.txt"
    path.write_text("\n".join(names), encoding="utf-8")
    with OpenAIServer(names) as server:
        label.run(config(run, path, server))
        enums = {
            tuple(seen.body["response_format"]["json_schema"]["schema"]["properties"]["topic"]["enum"])
            for seen in server.seen
        }
    assert enums == {names}
    found = pq.read_table(run.labels_path("openai"))["topic"].to_pylist()
    asked = [server.topic_of(seen.document) for seen in server.seen]
    assert set(found) == set(asked) <= set(names)
    assert len(set(found)) >= 5
    assert topics_of(run) == found
    assert run.manifest().steps["label"].options["topics"] == list(names)


@pytest.mark.slow
def test_all_keeps_what_a_language_model_has_said_and_pays_nobody_unasked(
    tmp_path: Path, tiny_model: Path, topics_file: Path, server: OpenAIServer, command: Command, write_corpus: Command
) -> None:
    rows = [{"id": f"d{doc}", "text": f"{doc} harbour {topic(doc)} violin", "topic": "own"} for doc in range(12)]
    source = write_corpus(rows)
    every = ("all", "run", "--cache", tmp_path / "cache", "--source", source, "--model", tiny_model)
    every = (*every, "--iterations", 30, "--topics", topics_file, "--probe-samples", 40)
    assert command(*every).status == 0
    run = Run(tmp_path / "cache", "run")
    assert topics_of(run) == ["own"] * 12
    assert server.seen == []
    found = command(*every, "--labels", "openai", "--base-url", server.url)
    assert found.status == 0, found.err
    assert topics_of(run) == [topic(doc) for doc in range(12)]
    assert run.manifest().steps["analyse"].options["label_source"] == "openai"
    assert run.manifest().steps["analyse"].counts["labelled"] == 12
    calls = len(server.seen)
    found = command(*every)
    assert found.status == 0
    assert "12 of 12 documents labelled by openai" in found.err
    assert "analyse is up to date" in found.err
    assert topics_of(run) == [topic(doc) for doc in range(12)]
    assert len(server.seen) == calls
    said = command("report", "run", "--cache", run.cache).out
    assert "Labels: openai: a language model's answers (gpt-4o)" in said
    assert [(pair.first, pair.second) for pair in all_compared(all_labels(run))] == [("column", "openai")]
    assert problems(run) == ()
