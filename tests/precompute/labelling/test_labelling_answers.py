"""The store of paid answers: what is put in is there, adds up, and survives other writers."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.errors import Mistake
from precompute.labelling import answers as module
from precompute.labelling.answers import Answer, AnswerStore

GOOD = Answer("Sports", 0.75, None, "gpt-4o", 100, 12, 0.25)
BAD = Answer(None, None, "no topic", "gpt-4o", 90, 10, 0.5)


def test_an_answer_comes_back_from_a_new_process_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "answers.sqlite"
    odd = Answer('Ä, "天"\n', None, None, "m", 1, 2, None)
    with AnswerStore(path) as answers:
        answers.put("a", GOOD)
        answers.put("b", odd)
        assert answers.get("a") == GOOD
    with AnswerStore(path) as answers:
        assert (answers.get("a"), answers.get("b"), answers.get("c")) == (GOOD, odd, None)
        assert answers.count() == answers.paid() == 2


def test_a_bad_answer_is_kept_and_its_cost_added_to_the_next_ones(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as answers:
        answers.put("k", BAD, final=False)
        assert answers.get("k") is None
        assert (answers.count(), answers.paid(), answers.tries("k")) == (0, 1, 1)
        answers.put("k", GOOD)
        assert answers.get("k") == Answer("Sports", 0.75, None, "gpt-4o", 190, 22, 0.75)
        assert (answers.count(), answers.paid(), answers.tries("k")) == (1, 2, 2)


def test_two_bad_answers_are_a_reason_and_an_unpaid_one_costs_nothing(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as answers:
        answers.put("k", BAD, final=False)
        answers.put("k", Answer(None, None, "refused", "gpt-4o", 90, 10, 0.5))
        assert answers.get("k") == Answer(None, None, "refused", "gpt-4o", 180, 20, 1.0)
        answers.put("free", Answer(None, None, "too long", "gpt-4o", 0, 0, 0.0), paid=False)
        assert (answers.count(), answers.paid(), answers.tries("free")) == (2, 2, 0)


def test_a_label_that_is_there_stays_whoever_comes_later(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as one, AnswerStore(tmp_path / "a.sqlite") as two:
        one.put("k", GOOD)
        two.put("k", Answer("Cooking", 0.5, None, "gpt-4o", 100, 12, None))
        two.put("k", BAD)
        assert one.get("k") == Answer("Sports", 0.75, None, "gpt-4o", 290, 34, None)


def test_several_may_write_at_once(tmp_path: Path) -> None:
    def write(name: str) -> None:
        with AnswerStore(tmp_path / "a.sqlite") as answers:
            for number in range(100):
                answers.put(f"{name}{number}", GOOD)

    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with AnswerStore(tmp_path / "a.sqlite") as answers:
        assert answers.count() == 300


def test_several_may_set_up_the_same_new_file_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def set_up(_: int) -> list[int]:
        counts = []
        for number in range(25):
            together.wait(timeout=60)
            with AnswerStore(tmp_path / f"{number}.sqlite") as answers:
                counts.append(answers.count())
        return counts

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(set_up, range(4))) == [[0] * 25] * 4


def test_an_answer_is_on_the_disk_before_put_returns(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as answers:
        assert answers.connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert answers.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        answers.put("k", GOOD)
        with sqlite3.connect(tmp_path / "a.sqlite") as other:  # no transaction is left open
            assert other.execute("SELECT count(*) FROM answers").fetchone() == (1,)


def test_what_is_written_together_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def fail(answers: AnswerStore) -> None:
        with answers.together():
            answers.put("a", GOOD)
            raise ZeroDivisionError

    with AnswerStore(tmp_path / "a.sqlite") as answers:
        with pytest.raises(ZeroDivisionError):
            fail(answers)
        assert answers.count() == 0
        with answers.together():
            answers.put("a", GOOD)
        assert answers.count() == 1


def test_a_file_that_is_no_database_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"this is not SQLite at all" * 100)
    with pytest.raises(Mistake, match="is damaged"):
        AnswerStore(path)


def test_a_damaged_page_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    with AnswerStore(path) as answers:
        for number in range(500):
            answers.put(f"{number:064d}", GOOD)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x5a" * (len(data) - 4096)
    path.write_bytes(bytes(data))
    with pytest.raises(Mistake, match="is damaged"), AnswerStore(path) as answers:
        answers.get(f"{250:064d}")


def test_another_programs_database_and_a_later_version_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE theirs (x)")
    with pytest.raises(Mistake, match="another program's database"):
        AnswerStore(tmp_path / "other.sqlite")
    with AnswerStore(tmp_path / "later.sqlite") as answers:
        answers.connection.execute("PRAGMA user_version = 99")
    with pytest.raises(Mistake, match="not written by this version"):
        AnswerStore(tmp_path / "later.sqlite")


def test_a_place_that_cannot_be_written_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Mistake, match="--cache"):
        AnswerStore(tmp_path / "file" / "answers.sqlite")
    (tmp_path / "folder").mkdir()
    with pytest.raises(Mistake, match="cannot be opened or created"):
        AnswerStore(tmp_path / "folder")


def test_a_read_only_file_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    with AnswerStore(path) as answers:
        answers.connection.execute("PRAGMA query_only = 1")  # root, who runs tests in containers, may write anything
        with pytest.raises(Mistake, match="cannot be written"):
            answers.put("k", GOOD)


def test_a_file_that_another_process_does_not_let_go_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.sqlite"
    with AnswerStore(path) as holder, holder.together():
        monkeypatch.setattr(module, "PATIENCE", 0.05)
        with AnswerStore(path) as answers, pytest.raises(Mistake, match="locked by another process"):
            answers.put("k", GOOD)
