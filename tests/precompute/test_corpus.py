"""Rows to documents: columns, filters, duplicates, limit, sample, and what is said when none is left."""

import datetime
import decimal
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Mistake
from precompute.sources import OnBad, Row, open_source, refuse
from precompute.sources.values import scalar, title_of
from precompute.steps.embed import corpus_columns
from precompute.steps.embed.config import EmbedConfig, inputs_of
from precompute.steps.embed.corpus import Corpus, Counts, Document, Filters, extra_name
from precompute.steps.embed.corpus_columns import Columns


class Rows:
    """A source of given rows that counts how many were taken; a string is a bad record."""

    label = "corpus.jsonl"

    def __init__(self, *rows: dict[str, object] | str) -> None:
        self.given = rows
        self.taken = 0

    def fingerprint(self) -> str:
        return ""

    def rows(self, on_bad: OnBad = refuse) -> Iterator[Row]:
        for number, row in enumerate(self.given, start=1):
            self.taken += 1
            if isinstance(row, str):
                on_bad(row)
            else:
                yield Row(row, f"corpus.jsonl line {number}", f"corpus.jsonl:{number}", number / len(self.given))


def texts(*all_texts: str) -> Rows:
    return Rows(*[{"text": text} for text in all_texts])


def one(row: dict[str, object], columns: Columns = Columns()) -> Document:  # noqa: B008
    return next(Corpus(Rows(row), columns).documents())


def kept(corpus: Corpus) -> list[str]:
    return [document.text for document in corpus.documents()]


def mistake(corpus: Corpus) -> str:
    with pytest.raises(Mistake) as caught:
        list(corpus.documents())
    return str(caught.value)


# Columns


def test_a_document_from_the_default_columns() -> None:
    row = {"id": 7, "title": "T", "text": " body\n", "url": "http://x", "topic": "Art", "n": 1}
    assert one(row) == Document("7", "T", " body\n", "http://x", "Art", {"n": 1}, 1.0)


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("text", ["text", "content", "body", "document", "passage"]),
        ("id", ["id", "_id", "doc_id", "uuid"]),
        ("title", ["title", "headline", "name"]),
        ("url", ["url", "link", "source_url"]),
        ("topic", ["topic", "label", "category"]),
    ],
)
def test_the_first_default_that_is_there_wins(field: str, names: list[str]) -> None:
    for start in range(len(names)):
        present = {name: name for name in reversed(names[start:])}
        document = one(present if field == "text" else {"text": "x", **present})
        assert asdict(document)[field] == names[start]


def test_named_columns_win_and_are_not_taken_twice() -> None:
    row = {"title": "the text\nin full", "text": "not the text", "label": "a", "kind": "b"}
    document = one(row, Columns(text="title", topic="kind"))
    assert (document.text, document.title, document.topic) == ("the text\nin full", "the text", "b")
    assert document.extra == {"corpus_text": "not the text", "label": "a"}


def test_no_text_column_and_a_named_one_that_is_not_there() -> None:
    assert mistake(Corpus(Rows({"a": 1, "b": 2}))) == (
        "corpus.jsonl has no text column: it has 'a', 'b'. Name yours with --text-column."
    )
    assert mistake(Corpus(Rows({"text": "x"}), Columns(title="t"))) == (
        "corpus.jsonl has no column 't': it has 'text'. Name yours with --title-column."
    )
    assert mistake(Corpus(Rows({}))) == (
        "corpus.jsonl has no text column: it has no columns. Name yours with --text-column."
    )
    many = mistake(Corpus(Rows({f"c{n}": n for n in range(40)})))
    assert "'c29', and 10 more." in many
    assert "'c30'" not in many


def test_the_first_row_that_has_a_column_for_a_field_decides_for_all() -> None:
    rows = Rows({"body": "one"}, {"body": "two", "text": "other", "title": "late"}, {"text": "three"}, {"body": 4})
    corpus = Corpus(rows, filters=Filters(skip_bad=True))
    documents = list(corpus.documents())
    assert [(each.text, each.title) for each in documents] == [("one", "one"), ("two", "late")]
    assert documents[1].extra == {"corpus_text": "other"}
    assert corpus.counts == Counts(read=4, bad=2, kept=2, no_title=1)


def test_ids_and_labels_that_the_first_record_lacks_are_not_lost() -> None:
    rows = Rows({"text": "one"}, {"text": "two", "id": "b", "topic": "Art"}, {"text": "three", "id": "c", "topic": ""})
    corpus = Corpus(rows)
    found = [(each.id, each.topic) for each in corpus.documents()]
    assert found == [("corpus.jsonl:1", None), ("b", "Art"), ("c", None)]
    assert corpus.counts == Counts(read=3, kept=3, no_id=1, no_topic=2)


def test_a_first_record_without_text_is_bad_and_not_the_whole_corpus() -> None:
    rows = Rows({"id": "a"}, {"id": "b", "text": "two"})
    assert mistake(Corpus(rows)).startswith("corpus.jsonl line 1 has no 'text'.")
    assert kept(Corpus(rows, filters=Filters(skip_bad=True))) == ["two"]


def test_a_named_column_may_first_come_in_a_later_record() -> None:
    corpus = Corpus(Rows({"text": "one"}, {"text": "two", "kind": "Art"}), Columns(topic="kind"))
    assert [each.topic for each in corpus.documents()] == [None, "Art"]


def test_columns_are_looked_for_in_a_window_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_columns, "WINDOW", 2)
    rows = Rows({"text": "one"}, {"text": "two"}, {"text": "three", "topic": "late"})
    assert [each.topic for each in Corpus(rows).documents()] == [None, None, None]
    assert rows.taken == 2 + 3
    bad = Rows({"text": "one"}, *["A bad line."] * 7, {"text": "two", "topic": "late"})
    assert [each.topic for each in Corpus(bad, filters=Filters(skip_bad=True)).documents()] == [None, None]
    assert bad.taken < 9 + 9


def test_of_a_first_record_with_all_columns_nothing_is_read_twice() -> None:
    row = {"id": "a", "title": "T", "text": "one", "url": "u", "topic": "Art"}
    rows = Rows(row, {**row, "id": "b", "text": "two"})
    assert len(list(Corpus(rows).documents())) == rows.taken == 2


def test_what_is_missing_is_counted_among_those_kept() -> None:
    rows = Rows(*[{"text": str(n), "topic": "Art" if n % 2 else None} for n in range(40)])
    corpus = Corpus(rows, filters=Filters(sample=10))
    found = list(corpus.documents())
    assert corpus.counts.no_topic == sum(each.topic is None for each in found) > 0
    assert corpus.counts.no_id == 0, "a corpus without a column for a field misses nothing"


@pytest.mark.parametrize("value", [None, float("nan"), decimal.Decimal("NaN"), "", " \t\u00a0"])
def test_a_topic_that_is_missing_is_no_topic(value: object) -> None:
    assert one({"text": "x", "topic": value}).topic is None


@pytest.mark.parametrize("value", ["nan", "null", "None", "all"])
def test_a_word_is_a_topic_whatever_it_says(value: str) -> None:
    assert one({"text": "x", "topic": value}).topic == value


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_missing_topics_of_a_file_are_no_topics(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"c.{kind}"
    if kind == "jsonl":
        path.write_text('{"text": "a", "topic": NaN}\n{"text": "b", "topic": null}\n{"text": "c", "topic": "Art"}\n')
    elif kind == "csv":
        path.write_text("text,topic\na,\nb\nc,Art\n")
    else:
        pq.write_table(pa.table({"text": ["a", "b", "c"], "topic": [float("nan"), None, 2.0]}), path)
    expected = [None, None, "2.0" if kind == "parquet" else "Art"]
    corpus = Corpus(open_source(str(path)))
    assert [each.topic for each in corpus.documents()] == expected
    assert corpus.counts.no_topic == 2


# Ids


TWICE = ({"text": "one", "id": "a"}, {"text": "two", "id": "b"}, {"text": "three", "id": "a", "title": "Third"})


def test_an_id_that_comes_twice_is_refused_with_the_remedy() -> None:
    said = mistake(Corpus(Rows(*TWICE)))
    assert said.startswith("corpus.jsonl has more than one document with the id 'a', the second titled 'Third'.")
    assert "--duplicate-ids number" in said
    assert "--id-column" in said


def test_copies_of_an_id_are_numbered_and_counted_if_asked() -> None:
    rows = Rows(*TWICE, {"text": "four", "id": "a#2"}, {"text": "five", "id": "a"}, {"text": "six", "id": 7})
    corpus = Corpus(rows, filters=Filters(duplicate_ids="number"))
    assert [each.id for each in corpus.documents()] == ["a", "b", "a#2", "a#2#2", "a#3", "7"]
    assert corpus.counts == Counts(read=6, kept=6, no_title=5, numbered=3)


def test_a_document_that_is_left_out_takes_no_id() -> None:
    same = Rows({"text": "one", "id": "a"}, {"text": "one ", "id": "a"}, {"text": "", "id": "a"})
    assert kept(Corpus(same)) == ["one"]
    rows = Rows(*[{"text": str(n), "id": n % 30} for n in range(60)])
    one_each = Corpus(rows, filters=Filters(sample=1))
    assert len(list(one_each.documents())) == 1, "copies outside the sample do no harm"


def test_what_is_done_with_copies_of_an_id_must_be_known() -> None:
    with pytest.raises(Mistake, match="--duplicate-ids"):
        Filters(duplicate_ids="last")


def test_fingerprints_are_those_of_before_the_option(tmp_path: Path) -> None:
    """The digest was written down before there was an option: runs that exist are not made again."""
    asked = EmbedConfig(tmp_path, "run", filters=Filters(limit=3, skip_bad=True, duplicate_ids="number"))
    assert inputs_of(asked, "source", "revision") == (
        "203fa5ae9e114ac05f11940e4b3fba6537273e1f646cb9f32467c7047cef44db"
    )


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"body": "x"}, "corpus.jsonl line 2 has no 'text'."),
        ({"text": 4}, "corpus.jsonl line 2 has a 'text' of type int, not a string."),
    ],
)
def test_a_row_without_its_text_is_bad(row: dict[str, object], said: str) -> None:
    corpus = Corpus(Rows({"text": "one"}, row))
    assert mistake(corpus) == f"{said} Fix it, or pass --skip-bad to leave such records out."


def test_bad_records_of_the_source_are_refused_or_counted() -> None:
    rows = Rows("Line 1 is bad.", {"text": "one"}, "Line 3 is bad.")
    assert mistake(Corpus(rows)).startswith("Line 1 is bad. Fix it")
    corpus = Corpus(rows, filters=Filters(skip_bad=True))
    assert kept(corpus) == ["one"]
    assert corpus.counts == Counts(read=3, bad=2, kept=1)


# Fields


def test_missing_ids_and_titles_are_made() -> None:
    rows = Rows(
        {"text": "one", "id": None, "title": " "},
        {"text": "two\nlines"},
        {"text": "three", "id": ""},
        {"text": "x", "id": 0},
    )
    documents = list(Corpus(rows).documents())
    assert [each.id for each in documents] == ["corpus.jsonl:1", "corpus.jsonl:2", "corpus.jsonl:3", "0"]
    assert [each.title for each in documents] == ["one", "two", "three", "x"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("\n  First line \nsecond", "First line"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("x" * 40 + " " + "y" * 38 + " z", "x" * 40 + " " + "y" * 38 + "…"),
        ("x" * 40 + " " + "y" * 39 + " z", "x" * 40 + "…"),
        ("", ""),
    ],
)
def test_a_made_title_is_cut_at_a_word_end(text: str, title: str) -> None:
    assert title_of(text) == title


def test_nul_and_lone_surrogates_are_replaced_and_the_rest_is_kept() -> None:
    document = one({"text": " a\x00b\ud800c\U0001f600\r\n", "id": "\udfff", "n\x00": "\x00"})
    assert document.text == " a\ufffdb\ufffdc\U0001f600\r\n"
    assert document.id == "\ufffd"
    assert document.extra == {"n\ufffd": "\ufffd"}


def test_extra_values_are_scalars() -> None:
    day = datetime.date(2024, 2, 29)
    row = {
        "text": "x", "s": "s", "i": 1, "f": 1.5, "b": True, "none": None, "day": day,
        "time": datetime.datetime(2024, 2, 29, 1, 2, 3), "raw": b"x", "list": [1, "ö", day, b"x"],
        "dict": {"a": {"b": None}},
        "big": 2**63, "price": decimal.Decimal("1.50"), "thing": object(),
    }  # fmt: skip
    assert one(row).extra == {
        "s": "s", "i": 1, "f": 1.5, "b": True, "none": None, "day": "2024-02-29",
        "time": "2024-02-29T01:02:03", "list": '[1,"ö","2024-02-29",null]', "dict": '{"a":{"b":null}}',
        "big": "9223372036854775808", "price": "1.50",
    }  # fmt: skip
    assert scalar(2**63 - 1) == 2**63 - 1


def test_extra_columns_that_would_be_ours_get_a_prefix() -> None:
    row = {
        "text": "x",
        "doc": 1,
        "corpus_doc": 2,
        "tokens": 3,
        "truncated": 4,
        "label_source": 5,
        "label_score": 6,
        "document": 7,
    }
    assert one(row).extra == {
        "corpus_doc": 1, "corpus_corpus_doc": 2, "corpus_tokens": 3, "corpus_truncated": 4,
        "corpus_label_source": 5, "corpus_label_score": 6, "document": 7,
    }  # fmt: skip


words = st.lists(st.sampled_from(["corpus_", "doc", "text", "x"]), max_size=4).map("".join)


@given(names=st.sets(words))
def test_no_two_extra_columns_become_one(names: set[str]) -> None:
    assert len({extra_name(name) for name in names}) == len(names)


def test_at_most_64_extra_columns_over_all_rows() -> None:
    extra = {f"c{n}": n for n in range(64)}
    assert len(one({"text": "x", **extra, "raw": b"not counted"}).extra) == 64
    said = mistake(Corpus(Rows({"text": "x", **extra}, {"text": "y", "more": 1})))
    assert said.startswith("corpus.jsonl line 2 brings the number of extra columns to 65; at most 64 can be stored.")


# Filters


def test_length_is_that_of_the_stripped_text_and_null_is_short() -> None:
    rows = Rows({"text": " abc "}, {"text": "  ab  "}, {"text": None}, {"text": "abcd"})
    corpus = Corpus(rows, filters=Filters(min_chars=3))
    assert kept(corpus) == [" abc ", "abcd"]
    assert corpus.counts == Counts(read=4, short=2, kept=2)
    assert kept(Corpus(rows, filters=Filters(min_chars=0))) == [" abc ", "  ab  ", "abcd"]


def test_duplicates_are_the_same_after_stripping_only() -> None:
    rows = texts("a b", " a b\n", "a  b", "A b", "a b")
    corpus = Corpus(rows)
    assert kept(corpus) == ["a b", "a  b", "A b"]
    assert corpus.counts == Counts(read=5, duplicate=2, kept=3)
    assert len(kept(Corpus(rows, filters=Filters(keep_duplicates=True)))) == 5


def test_after_the_limit_nothing_further_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_columns, "WINDOW", 1)
    rows = texts("one", "", "one", "two", "three")
    corpus = Corpus(rows, filters=Filters(limit=2))
    assert kept(corpus) == ["one", "two"]
    assert rows.taken == 1 + 4
    assert corpus.counts == Counts(read=4, short=1, duplicate=1, kept=2)


def blocks(*topics: str | None) -> Rows:
    """Documents of these topics, each ten times in a row."""
    return Rows(*({"text": f"{number}", "topic": topics[number // 10]} for number in range(10 * len(topics))))


def warnings_of(rows: Rows, **filters: int) -> list[str]:
    found: list[str] = []
    list(Corpus(rows, filters=Filters(**filters), warn=found.append).documents())
    return found


def test_a_limit_on_a_corpus_sorted_by_topic_names_the_sample() -> None:
    assert warnings_of(blocks("a", "b", "c"), limit=20) == [
        "corpus.jsonl is sorted by topic: its first 20 documents have 2 topics in blocks, and more rows follow. "
        "--limit 20 leaves out the topics of those rows. Use --sample 20 to draw documents from the whole corpus."
    ]
    (single,) = warnings_of(blocks("a", None, "b"), limit=12)
    assert "its first 12 documents have 1 topic in blocks" in single
    assert len(warnings_of(blocks("a", "b", "c"), limit=20, sample=5)) == 1  # the corpus is read twice


@pytest.mark.parametrize(
    ("rows", "limit"),
    [
        (blocks("a", "b", "c"), None),
        (blocks("a", "b", "c"), 30),  # nothing follows
        (blocks("a", "b", "a"), 25),  # a topic comes again
        (blocks("a", "b", "c"), 9),  # too few to tell
        (blocks(None, None), 15),
        (Rows(*({"text": f"{number}", "topic": f"{number}"} for number in range(30))), 20),  # a topic each
    ],
)
def test_no_warning_where_the_limit_leaves_out_no_topics_or_that_cannot_be_told(rows: Rows, limit: int | None) -> None:
    assert warnings_of(rows, **({"limit": limit} if limit else {})) == []


def test_a_bad_record_behind_the_limit_is_not_counted() -> None:
    rows = Rows(*blocks("a").given, "corpus.jsonl line 11 is broken.", {"text": "last", "topic": "b"})
    found: list[str] = []
    corpus = Corpus(rows, filters=Filters(limit=10), warn=found.append)
    assert len(list(corpus.documents())) == 10
    assert corpus.counts == Counts(read=10, kept=10)
    assert len(found) == 1


def test_documents_can_be_read_again_with_counts_from_nought() -> None:
    corpus = Corpus(texts("one", "two", "one"), filters=Filters(sample=1, seed=3))
    first = list(corpus.documents())
    assert list(corpus.documents()) == first
    assert corpus.counts == Counts(read=3, duplicate=1, sampled_out=1, kept=1)
    again = Corpus(texts("one", "two"))
    stream = again.documents()
    next(stream)
    assert again.counts == Counts(read=1, kept=1)
    again.documents()
    assert again.counts == Counts()


@pytest.mark.parametrize("name", ["limit", "sample"])
def test_a_limit_or_sample_of_none_is_a_mistake(name: str) -> None:
    with pytest.raises(Mistake, match=f"^--{name} must be at least 1, not 0.$"):
        Filters(**{name: 0})


def test_when_none_is_left_the_sentence_says_what_removed_them() -> None:
    rows = Rows({"text": "a"}, {"text": None}, "bad", {"text": "bb"})
    assert mistake(Corpus(rows, filters=Filters(min_chars=50, skip_bad=True))) == (
        "No document is left of corpus.jsonl: 4 read, 1 bad, 3 shorter than 50 characters. "
        "Fix the bad records or lower --min-chars."
    )
    said = mistake(Corpus(texts("a", "b"), filters=Filters(min_chars=50, sample=1)))
    assert said == "No document is left of corpus.jsonl: 2 read, 2 shorter than 50 characters. Lower --min-chars."


# Samples


def sample(n: int, size: int, seed: int, limit: int | None = None) -> list[int]:
    rows = texts(*[str(index) for index in range(n)])
    corpus = Corpus(rows, filters=Filters(sample=size, seed=seed, limit=limit))
    chosen = [int(text) for text in kept(corpus)]
    passed = min(n, limit or n)
    assert corpus.counts == Counts(read=passed, sampled_out=passed - len(chosen), kept=len(chosen))
    return chosen


@settings(max_examples=80, deadline=None)
@given(n=st.integers(1, 40), size=st.integers(1, 45), seed=st.integers(0, 9))
def test_a_sample_is_an_ordered_subset_of_the_right_size_and_grows_with_it(n: int, size: int, seed: int) -> None:
    chosen = sample(n, size, seed)
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= set(range(n))
    assert len(chosen) == min(size, n)
    assert chosen == sample(n, size, seed)
    assert set(chosen) <= set(sample(n, size + 1, seed))


@settings(max_examples=40, deadline=None)
@given(gaps=st.lists(st.sampled_from(["", "same", None]), min_size=1, max_size=20), size=st.integers(1, 10))
def test_a_sample_does_not_depend_on_what_the_filters_removed(gaps: list[str | None], size: int) -> None:
    clean = [{"text": "same"}, *({"text": f"{index}"} for index in range(20))]
    mixed = [clean[0], *(row for pair in zip(clean[1:], ({"text": gap} for gap in gaps), strict=False) for row in pair)]
    mixed += clean[1 + len(gaps) :]
    filters = Filters(sample=size)
    assert kept(Corpus(Rows(*mixed), filters=filters)) == kept(Corpus(Rows(*clean), filters=filters))


def test_a_sample_is_of_the_documents_within_the_limit() -> None:
    assert sample(100, 200, 1, limit=7) == list(range(7))
    assert sample(100, 3, 1, limit=7) == sample(7, 3, 1)


def test_every_document_is_as_likely_and_seeds_differ() -> None:
    chosen = [index for seed in range(2000) for index in sample(10, 3, seed)]
    # 2000 × 3/10 = 600 expected each; the standard deviation is √(2000 × 0.3 × 0.7) = 20.5.
    assert all(500 < chosen.count(index) < 700 for index in range(10))


# From a real file


@settings(max_examples=30, deadline=None)
@given(all_texts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), min_size=1))
def test_the_texts_of_a_file_arrive_unchanged(all_texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "corpus.jsonl")
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in all_texts))
        corpus = Corpus(open_source(str(path)), filters=Filters(min_chars=0, keep_duplicates=True))
        documents = list(corpus.documents())
    assert [each.text for each in documents] == all_texts
    assert [each.id for each in documents] == [f"corpus.jsonl:{n}" for n in range(1, len(all_texts) + 1)]
