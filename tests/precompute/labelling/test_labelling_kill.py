"""Killed, interrupted, started again: what was paid for is there; and memory does not grow with the corpus."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from precompute.labelling.answers import AnswerStore
from precompute.labelling.ask import AskConfig, ask
from tests.support.openai_server import TOPICS, OpenAIServer

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
ASKING = """
import sys
from pathlib import Path
from precompute.labelling.answers import AnswerStore
from precompute.labelling.ask import AskConfig, ask
from tests.support.openai_server import TOPICS
url, store, count, concurrency = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
texts = (f"Document {number}: all about {TOPICS[number % 3]}." for number in range(count))
with AnswerStore(store) as answers:
    config = AskConfig(TOPICS, base_url=url, concurrency=concurrency, backoff=0.01)
    tally = ask(texts, count, config, answers, lambda tally: None)
    print(tally.done, tally.labelled, tally.reused)
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "sk-test-Qm4Wz7Ty9Pk2Xd6B"}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_until(true: Callable[[], bool], job: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


def test_killed_in_the_middle_no_document_is_paid_twice_beyond_those_under_way(tmp_path: Path) -> None:
    store, concurrency = tmp_path / "answers.sqlite", 8
    with OpenAIServer(delay=0.03, faults={"500": 0.05, "dropped": 0.05}) as server:
        for paid in (60, 140):  # twice: a restart may be killed too
            job = start(ASKING, server.url, store, 250, concurrency)
            wait_until(lambda paid=paid: server.paid.total() >= paid, job)
            job.send_signal(signal.SIGKILL)
            job.communicate()
            assert job.returncode == -signal.SIGKILL
            with AnswerStore(store) as answers:  # the file is whole, and all but those under way are in it
                assert answers.paid() >= server.paid.total() - concurrency * (1 if paid == 60 else 2)
                assert answers.count() < 250
        before = server.paid.total()
        job = start(ASKING, server.url, store, 250, concurrency)
        out, err = job.communicate(timeout=120)
    assert job.returncode == 0, err
    done, labelled, reused = map(int, out.split())
    assert (done, labelled) == (250, 250)
    assert reused >= before - 2 * concurrency
    assert len(server.paid) == 250
    assert max(server.paid.values()) <= 3
    assert server.paid.total() - 250 <= 2 * concurrency  # two kills
    with AnswerStore(store) as answers:
        assert answers.count() == 250


def test_after_ctrl_c_what_was_under_way_is_kept(tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    with OpenAIServer(delay=0.4) as server:
        job = start(ASKING, server.url, store, 500, 6)
        wait_until(lambda: server.paid.total() >= 6 and server.under_way == 6, job)
        job.send_signal(signal.SIGINT)
        _, err = job.communicate(timeout=60)
    assert job.returncode not in (0, None)
    assert "KeyboardInterrupt" in err.splitlines()[-1]
    assert "CancelledError" not in err.splitlines()[-1]
    with AnswerStore(store) as answers:
        assert 12 <= server.paid.total() == answers.paid() == answers.count()
        assert server.paid.total() < 100  # and nothing new was begun


def test_ctrl_c_does_not_wait_for_ever(tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    with OpenAIServer(faults={"hang": 0.5, "429": 0.2}, retry_after="500") as server:
        job = start(ASKING, server.url, store, 60, 60)
        wait_until(lambda: len(server.seen) == 60, job)
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=30)
    assert job.returncode not in (0, None)
    with AnswerStore(store) as answers:
        assert answers.count() == server.paid.total() > 0


MEASURED = """
import resource, sys
from pathlib import Path
from precompute.labelling.answers import AnswerStore
from precompute.labelling.ask import AskConfig, ask, estimate
url, store, count, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
def texts():
    for number in range(count):
        yield f"{number:08d} Sports" + f"{number:08d}" * (size // 8)
with AnswerStore(store) as answers:
    config = AskConfig(("Sports", "Cooking"), base_url=url)
    if len(sys.argv) > 5:  # everything is in the store
        from precompute.labelling.answers import Answer
        from precompute.labelling.request import question
        with answers.together():
            for text in texts():
                answers.put(question(text, config).key, Answer("Sports", 1.0, None, "m", 1, 1, None))
    estimate(texts(), config, answers)
    assert ask(texts(), count, config, answers, lambda tally: None).labelled == count
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize(
    ("few", "many", "size", "stored"),
    [
        (100, 900, 80_000, ()),  # who keeps all texts keeps 64 MB more, who keeps all requests 6
        (1_000, 20_000, 4_000, ("stored",)),  # 76 MB; all keys alone 2 MB
    ],
)
def test_memory_does_not_grow_with_the_documents(
    few: int, many: int, size: int, stored: tuple[str, ...], tmp_path: Path
) -> None:
    peaks = []
    with OpenAIServer(("Sports", "Cooking")) as server:
        for count in (few, many):
            job = start(MEASURED, server.url, tmp_path / f"{count}.sqlite", count, size, *stored)
            out, err = job.communicate(timeout=120)
            assert job.returncode == 0, err
            peaks.append(int(out))
            server.seen.clear()
    assert peaks[1] <= 1.08 * peaks[0]


def test_two_starts_at_once_share_the_store(tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    with OpenAIServer(delay=0.005) as server:
        jobs = [start(ASKING, server.url, store, 80, 4) for _ in range(2)]
        outs = [job.communicate(timeout=60) for job in jobs]
        assert [job.returncode for job in jobs] == [0, 0], outs
        with AnswerStore(store) as answers:
            assert answers.count() == 80
            assert answers.paid() == server.paid.total() <= 160
            config = AskConfig(TOPICS, base_url=server.url)
            texts = [f"Document {number}: all about {TOPICS[number % 3]}." for number in range(80)]
            assert ask(texts, 80, config, answers, lambda tally: None).reused == 80
