"""Speed, time left and the three ways to show them, with a clock that stands still until it is moved."""

from __future__ import annotations

import io
import json

import pytest

from precompute.job import progress
from precompute.job.progress import PROGRESS, Bar, JsonProgress, Lines, Meter, Quiet, Report, clock


class Clock:
    """Stands in for the module ``time``."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


class Kept:
    """Keeps every report."""

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def show(self, report: Report) -> None:
        self.reports.append(report)

    def close(self) -> None:
        pass


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    monkeypatch.setattr(progress, "time", stopped)
    return stopped


def report(fraction: float | None, documents: int = 0, message: str = "") -> Report:
    return Report("embed", documents, 0.0, fraction, None, message)


# The meter


def test_reading_is_told_where_nothing_else_was_for_a_while(time: Clock) -> None:
    kept = Kept()
    meter = Meter("embed", kept)
    meter.say("loading the model")
    meter.reading(0, 300_000)
    assert len(kept.reports) == 1
    time.now += 5
    meter.reading(100_000, 300_000)
    meter.reading(200_000, 300_000)
    (_, told) = kept.reports
    assert told.sentence == "reading the corpus: 0.1 of 0.3 MB"
    meter.work(3, 50, 0.5)
    time.now += 1
    meter.reading(250_000, 300_000)
    assert len(kept.reports) == 3


def test_speed_and_time_left(time: Clock) -> None:
    kept = Kept()
    meter = Meter("embed", kept)
    time.now += 10
    meter.work(20, 5_000, 0.25)
    # 5,000 tokens in 10 s; a quarter took 10 s, so three quarters take 30 s
    assert kept.reports == [Report("embed", 20, 500.0, 0.25, 30.0)]
    time.now += 10
    meter.work(30, 1_000, 0.5)
    assert kept.reports[-1] == Report("embed", 50, 300.0, 0.5, 20.0)
    assert meter.seconds == 20


def test_work_from_before_does_not_count_as_speed(time: Clock) -> None:
    kept = Kept()
    meter = Meter("embed", kept)
    time.now += 1
    meter.skip(60, 0.6, "part 1 was finished before")
    assert kept.reports[-1] == Report("embed", 60, 0.0, 0.6, None, "part 1 was finished before")
    time.now += 4
    meter.work(10, 800, 0.7)
    # a tenth took 4 s, three tenths are left
    assert kept.reports[-1].documents == 70
    assert kept.reports[-1].tokens_per_second == 200
    assert kept.reports[-1].seconds_left == pytest.approx(12)


def test_a_skip_between_two_parts_starts_the_count_anew(time: Clock) -> None:
    kept = Kept()
    meter = Meter("embed", kept)
    time.now += 5
    meter.work(1, 100, 0.1)
    meter.skip(4, 0.5, "")
    time.now += 2
    meter.work(1, 50, 0.6)
    assert kept.reports[-1].tokens_per_second == 25
    assert kept.reports[-1].seconds_left == pytest.approx(8)


def test_without_a_known_length_no_time_is_promised(time: Clock) -> None:
    kept = Kept()
    meter = Meter("embed", kept)
    time.now += 2
    meter.work(3, 10, None)
    assert kept.reports == [Report("embed", 3, 5.0, None, None)]


def test_nothing_divides_by_zero(time: Clock) -> None:
    kept = Kept()
    meter = Meter("embed", kept)
    meter.say("loading the model")
    meter.work(1, 10, 0.0)
    assert kept.reports == [Report("embed", 0, 0.0, None, None, "loading the model"), Report("embed", 1, 0, 0.0, None)]


# A report


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (Report("embed", 0, 0.0, None, None), "0 documents"),
        (Report("embed", 1234, 0.0, None, None, "loading"), "1,234 documents · loading"),
        (Report("embed", 50, 1_499.6, 0.5, 65.0), "50 documents · 1,500 tokens/s · 1:05 left"),
    ],
)
def test_sentence(given: Report, sentence: str) -> None:
    assert given.sentence == sentence


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0:00"),
        (9.4, "0:09"),
        (59.6, "1:00"),
        (245, "4:05"),
        (3_599.7, "1:00:00"),
        (3_723, "1:02:03"),
        (90_000, "25:00:00"),
    ],
)
def test_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


# A bar


def test_bar_is_drawn_over_itself(time: Clock) -> None:
    stream = io.StringIO()
    bar = Bar(stream)
    bar.show(report(0.5, 1_000, "a long message"))
    time.now += 1
    bar.show(report(0.75, 2_000))
    bar.close()
    first, second = stream.getvalue().removesuffix("\n").split("\r")[1:]
    assert first == "embed " + "█" * 12 + "░" * 12 + "  50% 1,000 documents · a long message"
    assert second.rstrip() == "embed " + "█" * 18 + "░" * 6 + "  75% 2,000 documents"
    assert len(second) == len(first), "what was longer before is wiped out"
    assert stream.getvalue().endswith("\n")


def test_bar_of_unknown_length(time: Clock) -> None:
    stream = io.StringIO()
    Bar(stream).show(report(None, 7))
    assert stream.getvalue() == "\rembed " + "·" * 24 + " 7 documents"


def test_bar_draws_at_most_ten_times_a_second_but_always_the_end(time: Clock) -> None:
    stream = io.StringIO()
    bar = Bar(stream)
    for _ in range(8):
        time.now += 0.03125  # eight make a quarter of a second
        bar.show(report(0.5))
    assert stream.getvalue().count("\r") == 2
    bar.show(report(1.0))
    assert stream.getvalue().count("\r") == 3
    assert "█" * 24 + " 100%" in stream.getvalue()


def test_bar_that_was_never_drawn_leaves_no_line() -> None:
    stream = io.StringIO()
    Bar(stream).close()
    assert stream.getvalue() == ""


# Lines


def test_lines_come_now_and_then(time: Clock) -> None:
    stream = io.StringIO()
    lines = Lines(stream, every=15)
    for number in range(31):
        lines.show(report(number / 100, number))
        time.now += 1
    lines.close()
    assert stream.getvalue().splitlines() == [
        "embed 0% · 0 documents",
        "embed 15% · 15 documents",
        "embed 30% · 30 documents",
    ]


def test_lines_without_a_fraction(time: Clock) -> None:
    stream = io.StringIO()
    Lines(stream).show(report(None, 3, "loading the model"))
    assert stream.getvalue() == "embed 3 documents · loading the model\n"


def test_lines_show_the_end_at_once(time: Clock) -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    lines.show(report(0.99))
    lines.show(report(1.0, 100))
    assert stream.getvalue().splitlines()[1:] == ["embed 100% · 100 documents"]


def test_lines_do_not_flood_the_log_at_the_end(time: Clock) -> None:
    """A small file is read in one go, so that every batch of it may report a fraction of 1."""
    stream = io.StringIO()
    lines = Lines(stream)
    for number in range(50):
        lines.show(report(1.0, number))
    assert len(stream.getvalue().splitlines()) <= 2


# JSON and nothing


def test_json_is_one_object_a_line() -> None:
    stream = io.StringIO()
    shown = JsonProgress(stream)
    shown.show(Report("embed", 5, 2.5, 0.5, 3.0, "…"))
    shown.show(report(None))
    shown.close()
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first == {
        "step": "embed",
        "documents": 5,
        "tokens_per_second": 2.5,
        "fraction": 0.5,
        "seconds_left": 3.0,
        "message": "…",
        "sentence": "5 documents · 2 tokens/s · 0:03 left · …",
    }
    assert second["fraction"] is None
    assert second["seconds_left"] is None


def test_each_name_gives_its_own_kind(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = {name: type(make()) for name, make in PROGRESS.items()}
    # under a test standard error is no terminal
    assert kinds == {"auto": Lines, "bar": Bar, "lines": Lines, "json": JsonProgress, "quiet": Quiet}
    for name in kinds:
        PROGRESS[name]().show(report(1.0))
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1, "JSON alone goes to standard output"
    assert captured.err.count("100%") == 3


def test_quiet_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    quiet = Quiet()
    quiet.show(report(1.0))
    quiet.close()
    assert capfd.readouterr() == ("", "")
