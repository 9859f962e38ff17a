"""The Batch API: the same questions at half the price, collected once, found again after a kill."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import Mistake
from precompute.labelling import batch as module
from precompute.labelling import batch_files, endpoint, guarded
from precompute.labelling.answers import AnswerStore
from precompute.labelling.ask import AskConfig, Tally, answer_of, ask
from precompute.labelling.batch import ask_batch, waiting
from precompute.labelling.batch_client import BatchClient
from precompute.labelling.batch_records import BatchRecords
from precompute.labelling.request import question
from tests.support.openai_server import COMPLETION_TOKENS, TOPICS, OpenAIServer, Response, error_response

ROOT = Path(__file__).resolve().parents[3]
KEY = "sk-test-Qm4Wz7Ty9Pk2Xd6B"


def nothing(tally: Tally) -> None:
    pass


def documents(count: int) -> list[str]:
    return [f"Document {number}: all about {TOPICS[number % 3]}." for number in range(count)]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[AnswerStore]:
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        yield store


@pytest.fixture
def config_for(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AskConfig]:
    """A config for a server that passes for OpenAI's own, so that its models have prices."""

    def make(server: OpenAIServer, **changes: Any) -> AskConfig:
        monkeypatch.setattr(endpoint, "OPENAI", server.url)
        return AskConfig(TOPICS, backoff=0.01, timeout=10.0, **changes)

    return make


def run(texts: list[str], config: AskConfig, answers: AnswerStore, show: Callable[[Tally], None] = nothing) -> Tally:
    return ask_batch(lambda: iter(texts), len(texts), config, answers, show, poll_seconds=0.01)


def test_a_batch_asks_the_same_at_half_the_price(answers: AnswerStore, config_for: Callable[..., AskConfig]) -> None:
    texts, shown = [*documents(40), "Document 0: all about Cooking.", ""], list[Tally]()
    with OpenAIServer(batch_polls=3) as server:
        config = config_for(server)
        tally = run(texts, config, answers, shown.append)
        assert server.calls["POST chat"] == 0
        asked = [json.loads(line) for line in server.files["file-0"].splitlines()]
        # What is in the batch's file is what a single request would have sent.
        server.paid.clear()
        ask(texts[:1], 1, replace(config, model="gpt-4o-2024-08-06"), answers, nothing)
    assert server.seen[-1].body == {**asked[0]["body"], "model": "gpt-4o-2024-08-06"}
    assert [line["custom_id"] for line in asked] == [question(text, config).key for text in texts[:40]]
    assert len(server.batches) == 1
    assert (tally.done, tally.labelled, tally.failed, tally.stopped) == (42, 41, 1, None)
    tokens = sum(len(line["body"]["messages"][-1]["content"]) // 4 + 1 for line in asked)
    assert (tally.prompt_tokens, tally.completion_tokens) == (tokens, 40 * COMPLETION_TOKENS)
    assert tally.spent == pytest.approx((tokens * 1.25 + 40 * COMPLETION_TOKENS * 5) / 1e6)
    assert shown[-1] == tally
    for number, text in enumerate(texts[:40]):
        answer = answer_of(text, config, answers)
        assert answer is not None
        assert answer.topic == TOPICS[number % 3]


def test_what_is_answered_is_not_submitted_again(answers: AnswerStore, config_for: Callable[..., AskConfig]) -> None:
    with OpenAIServer() as server:
        config = config_for(server)
        ask(documents(10), 10, config, answers, nothing)
        tally = run(documents(15), config, answers)
        again = run(documents(15), config, answers)
    assert server.files["file-0"].count(b"\n") == 5
    assert (tally.labelled, tally.reused) == (15, 10)
    assert (again.labelled, again.reused, again.spent) == (15, 15, 0.0)
    assert len(server.batches) == 1


def test_what_a_batch_under_way_will_answer_is_known(
    answers: AnswerStore, config_for: Callable[..., AskConfig]
) -> None:
    texts = documents(6)

    def stop(tally: Tally) -> None:
        raise KeyboardInterrupt

    with OpenAIServer(batch_polls=10**9) as server:
        config = config_for(server)
        assert waiting(texts, config, answers) == 0
        with pytest.raises(KeyboardInterrupt):
            run(texts[:4], config, answers, stop)
        assert waiting(texts, config, answers) == 4
        assert waiting(texts, replace(config, model="gpt-4o-mini"), answers) == 0
        server.batch_polls = 1
        run(texts[:4], config, answers)
        assert waiting(texts, config, answers) == 0
    assert len(server.batches) == 1


def test_large_corpora_go_in_several_batches(
    answers: AnswerStore, config_for: Callable[..., AskConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_files, "MOST_REQUESTS", 10)
    with OpenAIServer() as server:
        tally = run(documents(25), config_for(server), answers)
        inputs = [server.files[made["input_file_id"]] for made in server.batches.values()]
        assert [file.count(b"\n") for file in inputs] == [10, 10, 5]
        monkeypatch.setattr(batch_files, "MOST_BYTES", 2 * len(inputs[0].splitlines()[0]) + 50)
        run([f"{text} Again." for text in documents(5)], config_for(server), answers)
    sizes = [len(server.files[made["input_file_id"]]) for made in list(server.batches.values())[3:]]
    assert len(sizes) == 3
    assert max(sizes) <= batch_files.MOST_BYTES
    assert tally.labelled == 25


@pytest.mark.parametrize("end", ["expired", "cancelled", "failed"])
def test_of_a_batch_that_ends_early_what_is_finished_is_kept_and_the_rest_submitted_once_more(
    end: str, answers: AnswerStore, config_for: Callable[..., AskConfig]
) -> None:
    with OpenAIServer(batch_ends=[end]) as server:
        tally = run(documents(20), config_for(server), answers)
    first, second = (server.files[made["input_file_id"]].count(b"\n") for made in server.batches.values())
    assert (first, second) == (20, 20 if end == "failed" else 10)
    assert (tally.labelled, tally.stopped) == (20, None)
    assert max(server.paid.values()) == 1
    assert answers.paid() == server.paid.total() == 20


def test_twice_in_vain_is_failed_and_a_later_start_tries_again(
    answers: AnswerStore, config_for: Callable[..., AskConfig]
) -> None:
    with OpenAIServer(batch_ends=["expired", "expired"]) as server:
        config = config_for(server)
        tally = run(documents(20), config, answers)
        assert (tally.labelled, tally.failed) == (15, 5)
        assert tally.stopped is not None
        assert "batch_1 was expired" in tally.stopped
        again = run(documents(20), config, answers)
    assert (again.labelled, again.failed, again.reused, again.stopped) == (20, 0, 15, None)
    assert max(server.paid.values()) == 1


def test_a_batch_that_fails_as_a_whole_says_why(answers: AnswerStore, config_for: Callable[..., AskConfig]) -> None:
    with OpenAIServer(batch_ends=["failed", "failed"]) as server, pytest.raises(Mistake, match="Too many are queued"):
        run(documents(5), config_for(server), answers)


def test_bad_answers_and_errors_of_single_requests(answers: AnswerStore, config_for: Callable[..., AskConfig]) -> None:
    faults = {"500": 0.1, "policy": 0.1, "refusal": 0.1, "truncated": 0.1}
    with OpenAIServer(faults=faults) as server:
        config = config_for(server)
        tally = run(documents(150), config, answers)
    assert tally.done == 150
    found = [answer_of(text, config, answers) for text in documents(150)]
    refused = [answer for answer in found if answer and answer.reason and "content policy" in answer.reason]
    assert len(refused) == sum(seen.fault == "policy" for seen in server.seen) > 5
    assert 0.0 in {answer.cost for answer in refused}  # others had a bad answer before, which was paid for
    # A bad answer has its second chance singly, and both are paid for; a 500 goes into the second batch.
    assert answers.paid() == server.paid.total()
    assert tally.completion_tokens == server.paid.total() * COMPLETION_TOKENS
    assert max(server.paid.values()) == 2
    assert server.calls["POST chat"] >= 20
    assert KEY[8:16] not in str(found)
    assert tally.spent is not None
    assert tally.labelled == sum(1 for answer in found if answer and answer.topic)


def test_a_server_without_schemas_has_the_second_batch_without(
    answers: AnswerStore, config_for: Callable[..., AskConfig]
) -> None:
    with OpenAIServer(unknown=("response_format",), plain=True) as server:
        tally = run(documents(6), config_for(server), answers)
    assert tally.labelled == 6
    assert len(server.batches) == 2


def test_max_cost_holds_for_batches(answers: AnswerStore, config_for: Callable[..., AskConfig]) -> None:
    with OpenAIServer() as server:
        config = config_for(server, max_cost=0.03)
        tally = run(documents(60), config, answers)
        assert tally.stopped is not None
        assert 0 < tally.done == server.files["file-0"].count(b"\n") < 60
        assert (tally.spent or 0) <= 0.03
        assert run(documents(60), replace(config, max_cost=None), answers).labelled == 60
    assert max(server.paid.values()) == 1


def test_a_file_that_is_read_twice_is_counted_once(
    answers: AnswerStore, config_for: Callable[..., AskConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies when half of the answers are stored; the next one reads the file from the beginning."""
    monkeypatch.setattr(module, "TOGETHER", 5)
    with OpenAIServer() as server:
        config = config_for(server)
        real, taken = BatchRecords.answered, []

        def dying(self: BatchRecords, key: str, *rest: Any, **more: Any) -> None:
            if len(taken) == 12:
                raise KeyboardInterrupt
            taken.append(key)
            real(self, key, *rest, **more)

        monkeypatch.setattr(BatchRecords, "answered", dying)
        with pytest.raises(KeyboardInterrupt):
            run(documents(20), config, answers)
        assert answers.count() == 10  # whole groups
        monkeypatch.setattr(BatchRecords, "answered", real)
        tally = run(documents(20), config, answers)
    assert (tally.labelled, tally.reused) == (20, 10)
    assert answers.paid() == server.paid.total() == 20
    assert len(server.batches) == 1


def test_a_batch_whose_creation_was_not_heard_of_is_found_by_our_name(
    answers: AnswerStore, config_for: Callable[..., AskConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer() as server:
        config = config_for(server)
        real = BatchClient.create

        def dies_after(self: BatchClient, file_id: str, submission: str) -> str:
            real(self, file_id, submission)
            raise KeyboardInterrupt

        monkeypatch.setattr(BatchClient, "create", dies_after)
        with pytest.raises(KeyboardInterrupt):
            run(documents(5), config, answers)
        monkeypatch.setattr(BatchClient, "create", real)
        assert run(documents(5), config, answers).labelled == 5
        assert len(server.batches) == 1

        def dies_before(self: BatchClient, file_id: str, submission: str) -> str:
            raise KeyboardInterrupt

        monkeypatch.setattr(BatchClient, "create", dies_before)
        with pytest.raises(KeyboardInterrupt):
            run(documents(8), config, answers)
        monkeypatch.setattr(BatchClient, "create", real)
        assert run(documents(8), config, answers).labelled == 8
    assert len(server.batches) == 2
    assert server.paid.total() == 8


SUBMITTING = """
import sys
import time
from pathlib import Path
from precompute.labelling.answers import AnswerStore
from precompute.labelling.ask import AskConfig
from precompute.labelling.batch import ask_batch
from tests.support.openai_server import TOPICS
url, store = sys.argv[1], Path(sys.argv[2])
texts = [f"Document {number}: all about {TOPICS[number % 3]}." for number in range(30)]
with AnswerStore(store) as answers:
    config = AskConfig(TOPICS, base_url=url)
    print(ask_batch(lambda: iter(texts), 30, config, answers, lambda tally: None, poll_seconds=0.02).labelled)
"""


@pytest.mark.slow
def test_killed_while_it_waits_a_batch_is_found_again_by_its_id(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SUBMITTING]
    with OpenAIServer(batch_polls=10**9) as server:
        arguments = [*command, server.url, str(tmp_path / "answers.sqlite")]
        with subprocess.Popen(arguments, cwd=ROOT, env=environment) as job:
            while server.calls["GET batches"] < 3:
                assert job.poll() is None
                time.sleep(0.005)
            job.send_signal(signal.SIGKILL)
        server.batch_polls = 1
        done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "30", done.stderr
    assert (len(server.batches), server.calls["POST files"]) == (1, 1)
    assert server.paid.total() == 30


def test_a_server_that_has_no_batches_is_a_mistake(
    answers: AnswerStore, config_for: Callable[..., AskConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenAIServer, "_upload", lambda self, data, kind: error_response(404, "Not Found"))
    with OpenAIServer() as server, pytest.raises(Mistake, match="HTTP 404"):
        run(documents(5), config_for(server), answers)


def test_a_batchs_file_has_a_largest_size(
    answers: AnswerStore, config_for: Callable[..., AskConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "MOST_OF_A_FILE", 10**6)
    route = OpenAIServer._route

    def endless_files(server: OpenAIServer, method: str, target: str, *rest: Any) -> Response:
        return Response(endless=True) if target.endswith("/content") else route(server, method, target, *rest)

    monkeypatch.setattr(OpenAIServer, "_route", endless_files)
    with OpenAIServer() as server, pytest.raises(Mistake, match="more than 1 MB"):
        run(documents(5), config_for(server), answers)
    assert server.calls["GET files"] == 0
    assert 0 < server.streamed < 16 * 2**20


def test_a_line_of_a_batchs_file_that_no_answer_can_have_is_passed_over() -> None:
    good = json.dumps({"custom_id": "a", "response": {"status_code": 200, "body": {"choices": []}}})
    longest, nested = "x" * (guarded.MOST_OF_AN_ANSWER + 1), "[" * 100_000
    lines = io.StringIO("\n".join([good, longest + good, nested, good]))
    assert [line.key for line in batch_files.read_lines(lines)] == ["a", "a"]
