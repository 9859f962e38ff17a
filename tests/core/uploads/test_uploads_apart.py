"""Uploads beside the app: real parser processes within one budget of processes, memory and time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.errors import Mistake
from core.uploads import apart as apart_module
from core.uploads import read_upload
from core.uploads.apart import AT_ONCE, MEMORY, MOST_WAITING, ParserQueue, apart

pytestmark = pytest.mark.slow
SOON = 60.0
"""Seconds to wait for something that will come; no test asserts a time."""
ROOT = Path(__file__).resolve().parents[3]


def until(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.01)
    return False


def refusal(name: str, data: bytes) -> str:
    with pytest.raises(Mistake) as caught:
        read_upload(name, data)
    return str(caught.value)


class Parsers:
    """Every parser that is started, as it is started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: list[subprocess.Popen[bytes]] = []
        self.options: list[dict[str, Any]] = []
        self.commands: list[list[str]] = []
        self.most = 0
        real = subprocess.Popen

        def popen(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
            process = real(command, **options)
            self.commands.append(command)
            self.options.append(options)
            self.started.append(process)
            self.most = max(self.most, sum(each.poll() is None for each in self.started))
            return process

        monkeypatch.setattr(apart_module.subprocess, "Popen", popen)


@pytest.fixture
def parsers(monkeypatch: pytest.MonkeyPatch) -> Parsers:
    return Parsers(monkeypatch)


# One parser


@pytest.mark.parametrize("suffix", [".txt", ".md", ".json"])
def test_plain_formats_are_parsed_apart_as_well(suffix: str, parsers: Parsers) -> None:
    assert read_upload(f"a{suffix}", b'"words"')[0].text.strip('"') == "words"
    assert len(parsers.started) == 1


def test_the_list_of_processes_shows_no_name(parsers: Parsers) -> None:
    (found,) = read_upload("a patient's report.txt", b"words")
    assert found.name == "a patient's report.txt"
    assert "patient" not in str(parsers.commands)
    assert "patient" not in str(parsers.options)


def test_the_parser_gets_no_secret(parsers: Parsers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not for a parser")
    assert read_upload("a.html", b"<p>x")[0].text == "x"
    assert "OPENAI_API_KEY" not in parsers.options[0]["env"]


def test_a_parser_starts_without_heavy_imports() -> None:
    code = "import sys, core.uploads.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "streamlit", "numpy", "pyarrow", "pypdf", "docx"} & set(done.stdout.split())


def test_a_parser_that_does_not_end_is_ended(parsers: Parsers) -> None:
    with pytest.raises(Mistake, match=r"^a\.html takes longer than 0 seconds to read\."):
        apart("a.html", ".html", b"<p>x", seconds=0.001)
    assert parsers.started[0].returncode == -9


def test_a_parser_that_dies_takes_nothing_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart_module.sys, "executable", "/bin/false")
    for data in (b"<p>x", b"x" * 1_000_000):
        with pytest.raises(Mistake, match=r"^a\.html cannot be read: the parser crashed on this file"):
            apart("a.html", ".html", data)


def test_a_parser_that_dies_in_the_middle_of_its_answer_gives_no_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = tmp_path / "half"
    half.write_text('#!/bin/sh\necho \'{"name": "a", "text": "one", "notes": []}\'\nexit 1\n')
    half.chmod(0o755)
    monkeypatch.setattr(apart_module.sys, "executable", str(half))
    with pytest.raises(Mistake, match="crashed on this file"):
        apart("a.json", ".json", b'["one", "two"]')


def test_a_parser_that_nobody_waits_for_any_more_is_ended(parsers: Parsers) -> None:
    class Gone(Exception):
        """As Streamlit raises it where a browser has been closed."""

    def watch(before: int) -> None:
        assert before == 0
        raise Gone

    with pytest.raises(Gone):  # 20 MB of list take a second or two, and somebody looks twice a second
        read_upload("a.json", ("[" + '"x",' * 4_900_000 + '"x"]').encode(), watch=watch)
    assert parsers.started[0].returncode == -9
    assert read_upload("a.txt", b"words")[0].text == "words"  # its place is free again


# JSON bombs


BOMBS: dict[str, bytes] = {
    "lines": b"{}\n" * 6_600_000,
    "list": b"[" + b"{}," * 6_600_000 + b"{}]",
    "within a text's object": b'{"text": "x", "more": [' + b"{}," * 6_500_000 + b"{}]}",
    "lines after texts": b'"x"\n' * 60 + b"{}\n" * 6_500_000,
}


_PEAKS = """
import pathlib, re, resource, sys
from core.errors import Mistake
from core.uploads import read_upload
try:
    print(*read_upload("a.json", sys.stdin.buffer.read())[-1].notes or ["nothing to note"])
except Mistake as mistake:
    print(mistake)
print(int(re.search("VmHWM:\\\\s*([0-9]+)", pathlib.Path("/proc/self/status").read_text())[1]) // 1024)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc, or needs a limit that others ignore")


@LINUX
@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("lines", "a.json, item 1, has no text"),
        ("list", "a.json, item 1, has no text"),
        ("within a text's object", "nothing to note"),
        ("lines after texts", "Only the first 50 of 6,500,060 texts were read."),
    ],
)
def test_twenty_megabytes_of_nothing_take_little_memory(which: str, said: str) -> None:
    """They took 984 MB in the app, 50 times their size."""
    command = [sys.executable, "-c", _PEAKS]
    done = subprocess.run(command, cwd=ROOT, input=BOMBS[which], capture_output=True, check=True)
    sentence, app, parser = done.stdout.decode().splitlines()
    assert sentence.startswith(said)
    assert max(int(app), int(parser)) < 160  # MB; 20 of them are the file


@LINUX
def test_what_takes_more_memory_than_a_parser_has_gets_a_sentence() -> None:
    nested = b'{"text": "x", "more": [' + b"[[]]," * 3_900_000 + b"[]]}"
    assert refusal("a.json", nested).startswith(f"a.json takes more than {MEMORY / 1e6:.0f} MB of memory to read.")


# All parsers together


def test_forty_files_at_once_are_read_two_at_a_time(parsers: Parsers) -> None:
    bombs = {3, 9, 17, 25, 33}
    files = [(f"{i}.json", BOMBS["lines"]) if i in bombs else (f"{i}.txt", b"words") for i in range(40)]

    def read(file: tuple[str, bytes]) -> str:
        try:
            return read_upload(*file)[0].text
        except Mistake as mistake:
            return str(mistake)

    with ThreadPoolExecutor(40) as sessions:
        found = list(sessions.map(read, files))
    assert parsers.most <= AT_ONCE
    assert len(parsers.started) == 40
    assert [at for at, said in enumerate(found) if "item 1, has no text" in said] == sorted(bombs)
    assert found.count("words") == 35


class Held:
    """A session in the line, until it is let go."""

    def __init__(self, turns: ParserQueue) -> None:
        self.places: list[int] = []
        self.turn, self.go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._wait, args=(turns,))
        self._thread.start()

    def _wait(self, turns: ParserQueue) -> None:
        with turns.place(self.places.append):
            self.turn.set()
            assert self.go.wait(SOON)

    def end(self) -> None:
        self.go.set()
        self._thread.join(SOON)


def test_who_waits_sees_the_place_and_comes_in_order() -> None:
    turns = ParserQueue(at_once=2)
    first, second = Held(turns), Held(turns)
    assert first.turn.wait(SOON)
    assert second.turn.wait(SOON)
    third = Held(turns)
    assert until(lambda: third.places[-1:] == [1])
    fourth = Held(turns)
    assert until(lambda: fourth.places[-1:] == [2])
    second.end()
    assert third.turn.wait(SOON)
    assert until(lambda: fourth.places[-1:] == [1])
    assert not fourth.turn.is_set()
    first.end()
    assert fourth.turn.wait(SOON)
    assert (first.places, second.places) == ([], [])
    third.end()
    fourth.end()


def test_who_leaves_the_line_holds_up_nobody() -> None:
    turns = ParserQueue(at_once=1)
    first = Held(turns)
    assert first.turn.wait(SOON)
    with pytest.raises(ZeroDivisionError), turns.place(lambda before: print(1 // (before - 1))):
        pytest.fail("it was not its turn")
    second = Held(turns)
    assert until(lambda: second.places[-1:] == [1])
    first.end()
    assert second.turn.wait(SOON)
    second.end()


def test_a_line_that_is_full_says_so() -> None:
    turns = ParserQueue(at_once=1)
    held = []
    for place in range(MOST_WAITING + 1):
        held.append(Held(turns))
        assert until(lambda place=place: held[place].turn.is_set() or held[place].places)  # type: ignore[misc]
    with (
        pytest.raises(Mistake, match=r"^40 files are waiting to be read already\. Try again in a minute\."),
        turns.place(lambda _: None),
    ):
        pytest.fail("it was not its turn")
    for one in held:
        one.end()
    with turns.place(lambda _: pytest.fail("nobody is before it")):
        pass


def test_the_answer_is_as_wide_as_its_own_letters() -> None:
    texts = ["plain", "日本語", "😀"]
    assert [each.text for each in read_upload("a.json", json.dumps(texts).encode())] == texts


def test_a_parser_works_on_systems_without_limits() -> None:
    code = (
        "import os, sys; sys.modules['resource'] = None; del os.nice; import core.uploads.__main__ as own; own.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, input=b'[".txt", "a.txt"]\nwords', capture_output=True, check=True
    )
    assert json.loads(done.stdout) == {"name": "a.txt", "text": "words", "notes": []}
