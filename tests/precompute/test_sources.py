"""Every kind of source: what its rows are, and the sentence for everything that can be wrong with it."""

import codecs
import csv
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Mistake
from precompute.sources import READERS, demo, files, hub, json_array, local, open_source
from precompute.sources.files import UnpackedReader
from precompute.sources.text import heading

RANDOM = random.Random(0)
A, B = {"text": "one"}, {"text": "two"}


def zstd(content: bytes) -> bytes:
    """One frame."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


Pack = Callable[[bytes], bytes]
PACKERS: dict[str, Pack] = {"": lambda content: content, ".gz": gzip.compress, ".zst": zstd}


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def write(path: Path, content: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return str(path)


def columns(name: str) -> list[dict[str, object]]:
    return [row.columns for row in open_source(name).rows()]


def read_bad(name: str) -> tuple[list[dict[str, object]], list[str]]:
    """The rows that can be read, and the sentences about the others."""
    bad: list[str] = []
    rows = [row.columns for row in open_source(name).rows(bad.append)]
    return rows, bad


def mistake(name: str) -> str:
    with pytest.raises(Mistake) as caught:
        list(open_source(name).rows())
    return str(caught.value)


# JSON lines


def test_jsonl_rows_say_where_they_are_and_blank_lines_count_as_lines(tmp_path: Path) -> None:
    name = write(tmp_path / "corpus.jsonl", b'{"text": "one"}\n\n  \n{"text": "two", "n": [1]}')
    rows = list(open_source(name).rows())
    assert [(row.columns, row.where, row.key) for row in rows] == [
        ({"text": "one"}, "corpus.jsonl line 1", "corpus.jsonl:1"),
        ({"text": "two", "n": [1]}, "corpus.jsonl line 4", "corpus.jsonl:4"),
    ]
    assert rows[-1].progress == 1.0


BLANKS = b"\n" * 150_000 + b" \t\r\n" * 50_000


@pytest.mark.parametrize(("suffix", "pack"), PACKERS.items())
def test_blank_lines_are_passed_over_in_one_go_and_counted(
    tmp_path: Path, suffix: str, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 MB of them in a .gz took minutes, line by line."""
    taken = 0
    readline = UnpackedReader.readline

    def counted(stream: UnpackedReader, *size: int) -> bytes:
        nonlocal taken
        taken += 1
        return readline(stream, *size)

    monkeypatch.setattr(UnpackedReader, "readline", counted)
    content = b"\n" + lines(A) + BLANKS + b"  " + lines(B) + BLANKS + b"{bad\n"
    source = open_source(write(tmp_path / f"a.jsonl{suffix}", pack(content)))
    bad: list[str] = []
    found = [(row.columns, int(row.where.rpartition(" ")[2])) for row in source.rows(bad.append)]
    assert found == [(A, 2), (B, 200_003)]
    assert len(bad) == 1
    assert "line 400004 " in bad[0]
    assert taken < 500


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "pack"), PACKERS.items())
def test_how_much_was_read_is_told_where_there_are_no_rows(tmp_path: Path, suffix: str, pack: Pack) -> None:
    for name, content in (
        ("a.jsonl", lines(A) + BLANKS),
        ("b.csv", b"text\none\n" + BLANKS),
        ("c.json", b"[" + BLANKS),
    ):
        write(tmp_path / "d" / f"{name}{suffix}", pack(content))
    told: list[tuple[int, int]] = []
    source = open_source(str(tmp_path / "d"), lambda done, total: told.append((done, total)))
    with pytest.raises(Mistake, match=r"c\.json"):
        list(source.rows())
    total = sum(path.stat().st_size for path in (tmp_path / "d").iterdir())
    assert told == sorted(told)
    assert told[-1] == (total, total)
    assert len({done for done, _ in told}) >= 3
    assert len(told) < 200, "once for every block, not for every line"


def test_a_source_can_be_read_again_and_while_it_is_being_read(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "corpus.jsonl", lines(A, B)))
    first = source.rows()
    next(first)
    assert [row.columns for row in source.rows()] == [A, B]
    assert [row.columns for row in first] == [B]
    assert [row.columns for row in source.rows()] == [A, B]


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    assert columns(write(tmp_path / "a.jsonl", codecs.BOM_UTF8 + lines(A, B))) == [A, B]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"text": }', "corpus.jsonl line 2 is not valid JSON (Expecting value at column 10)."),
        (b'["text"]', "corpus.jsonl line 2 is JSON but not an object (list)."),
        (b"3", "corpus.jsonl line 2 is JSON but not an object (int)."),
        (b'{"text": "\xff"}', "corpus.jsonl line 2 is not valid UTF-8."),
    ],
)
def test_a_bad_line_is_told_with_its_number_and_the_next_ones_are_read(tmp_path: Path, line: bytes, said: str) -> None:
    name = write(tmp_path / "corpus.jsonl", lines(A) + line + b"\n" + lines(B))
    assert read_bad(name) == ([A, B], [said])
    assert mistake(name) == f"{said} Fix it, or pass --skip-bad to leave such records out."


@pytest.mark.parametrize("line", [b'{"text": ' + b"9" * 5000 + b"}", b"[" * 100_000])
def test_a_number_or_a_nesting_beyond_python_is_a_bad_line(tmp_path: Path, line: bytes) -> None:
    rows, bad = read_bad(write(tmp_path / "a.jsonl", line + b"\n" + lines(A)))
    assert rows == [A]
    assert bad[0].startswith("a.jsonl line 1 is not JSON that can be read (")


def test_a_line_over_64_mb_is_a_bad_record(tmp_path: Path) -> None:
    long = b'{"text": "' + b"x" * (64 * 2**20) + b'"}\n'
    name = write(tmp_path / "a.jsonl.gz", gzip.compress(lines(A) + long + lines(B), compresslevel=1))
    assert read_bad(name) == ([A, B], ["a.jsonl.gz line 2 is longer than 67,108,864 bytes."])


def test_the_longest_line_allowed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_RECORD", len(lines(A)))
    longer = {"text": "ones"}
    name = write(tmp_path / "a.jsonl", lines(A, longer, B, longer))
    assert read_bad(name) == (
        [A, B],
        ["a.jsonl line 2 is longer than 16 bytes.", "a.jsonl line 4 is longer than 16 bytes."],
    )


# Packed files


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstd)])
def test_every_member_of_a_packed_file_is_read(tmp_path: Path, suffix: str, pack: Pack) -> None:
    many = [{"text": f"document {n}", "n": n} for n in range(5000)]
    content = pack(lines(*many[:2000])) + pack(b"") + pack(lines(*many[2000:2001])) + pack(lines(*many[2001:]))
    rows = list(open_source(write(tmp_path / f"a.jsonl{suffix}", content)).rows())
    assert [row.columns for row in rows] == many
    assert rows[-1].where == f"a.jsonl{suffix} line 5000"
    assert rows[-1].progress == 1.0


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstd)])
@pytest.mark.parametrize("cut", [1, 10, 2000])
def test_a_packed_file_that_is_cut_short_is_told_by_name(tmp_path: Path, suffix: str, pack: Pack, cut: int) -> None:
    packed = pack(lines(*[{"text": RANDOM.randbytes(20).hex()} for _ in range(200)]))
    said = mistake(write(tmp_path / f"a.jsonl{suffix}", packed[:-cut]))
    assert said.startswith(f"a.jsonl{suffix} is cut short or damaged (")
    assert said.endswith("Fetch or pack it again.")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_plain_file_with_a_packed_name_is_told_by_name(tmp_path: Path, suffix: str) -> None:
    assert mistake(write(tmp_path / f"a.csv{suffix}", b"text\none\n")).startswith(
        f"a.csv{suffix} is cut short or damaged"
    )


texts = st.dictionaries(
    st.text(max_size=5), st.none() | st.integers() | st.text() | st.lists(st.text(), max_size=2), max_size=3
)


@settings(max_examples=60, deadline=None)
@given(records=st.lists(texts, min_size=1, max_size=8))
def test_json_comes_back_the_same_however_it_is_packed(records: list[dict[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for suffix, pack in PACKERS.items():
            assert columns(write(Path(folder, f"a.jsonl{suffix}"), pack(lines(*records)))) == records
            array = json.dumps(records, indent=1, ensure_ascii=True).encode()
            assert columns(write(Path(folder, f"a.json{suffix}"), pack(array))) == records


# One JSON array


def test_an_array_is_read_item_by_item_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_array, "CHUNK", 3)
    name = write(
        tmp_path / "a.json", '\ufeff [ {"text": "öne"} ,\n{"text": "two"}, 1234567 , {"text": "three"}]\n'.encode()
    )
    rows, bad = read_bad(name)
    assert rows == [{"text": "öne"}, {"text": "two"}, {"text": "three"}]
    assert bad == ["a.json item 3 is JSON but not an object (int)."]
    assert [row.key for row in open_source(name).rows(bad.append)] == ["a.json:1", "a.json:2", "a.json:4"]


def test_a_json_file_may_hold_json_lines(tmp_path: Path) -> None:
    assert columns(write(tmp_path / "a.json", lines(A, B))) == [A, B]


def test_broken_utf8_in_an_array_is_one_bad_record(tmp_path: Path) -> None:
    name = write(tmp_path / "a.json", b'[{"text": "one"}, {"text": "\xff"}, {"text": "two"}]')
    assert read_bad(name) == ([A, B], ["a.json item 2 is not valid UTF-8."])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'[{"text": "one"}, {"text": "tw', "a.json item 2 is not valid JSON"),
        (b'[{"text": "one"}, {"text": two}]', "a.json item 2 is not valid JSON (Expecting value)."),
        (
            b'[{"text": "one"} {"text": "two"}]',
            "a.json item 1 is not valid JSON (no comma or closing bracket after it).",
        ),
        (b'[{"text": "one"}', "a.json item 1 is not valid JSON (no comma or closing bracket after it)."),
        (b'[{"text": "one"},]', "a.json item 2 is not valid JSON (Expecting value)."),
        (b'[{"text": "one"}] 2', "a.json is not valid JSON (it goes on after the array's closing bracket)."),
        (b"[]", "a.json is empty."),
    ],
)
def test_a_broken_array_is_a_mistake_even_where_bad_records_are_skipped(
    tmp_path: Path, content: bytes, said: str
) -> None:
    with pytest.raises(Mistake) as caught:
        read_bad(write(tmp_path / "a.json", content))
    assert str(caught.value).startswith(said)


def test_an_endless_item_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_RECORD", 1000)
    monkeypatch.setattr(json_array, "CHUNK", 100)
    assert "longer than 1,000 characters" in mistake(
        write(tmp_path / "a.json", b'[{"text": "' + b"x" * 10_000 + b'"}]')
    )


# Comma- and tab-separated values


def test_csv_quotes_line_breaks_and_short_records(tmp_path: Path) -> None:
    name = write(tmp_path / "a.csv", codecs.BOM_UTF8 + b'text, title\r\n"one, ""1""\nmore",T\r\n\r\ntwo\r\n')
    rows = list(open_source(name).rows())
    assert [row.columns for row in rows] == [{"text": 'one, "1"\nmore', "title": "T"}, {"text": "two", "title": None}]
    assert [row.where for row in rows] == ["a.csv line 2", "a.csv line 5"]


def test_tsv_and_packed_csv(tmp_path: Path) -> None:
    assert columns(write(tmp_path / "a.tsv", b"text\tn\na, b\t1\n")) == [{"text": "a, b", "n": "1"}]
    assert columns(write(tmp_path / "a.csv.zst", zstd(b"text,n\none,") + zstd(b"1\n"))) == [{"text": "one", "n": "1"}]


def test_a_csv_field_may_be_longer_than_the_modules_default(tmp_path: Path) -> None:
    csv.field_size_limit(131_072)
    assert columns(write(tmp_path / "a.csv", b"text\n" + b"x" * 300_000 + b"\n")) == [{"text": "x" * 300_000}]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (b"a,b,c", "a.csv line 3 has 3 fields, but the header has 2."),
        (b"\xff,b", "a.csv line 3 is not valid UTF-8."),
        (b'"a"x,b', "a.csv line 3 begins a record that cannot be read (',' expected after '\"')."),
    ],
)
def test_a_bad_csv_record_is_told_with_its_line(tmp_path: Path, record: bytes, said: str) -> None:
    name = write(tmp_path / "a.csv", b"text,n\none,1\n" + record + b"\ntwo,2\n")
    assert read_bad(name) == ([{"text": "one", "n": "1"}, {"text": "two", "n": "2"}], [said])
    assert mistake(name).startswith(said)


def test_a_quote_that_is_never_closed_does_not_swallow_the_rest_in_silence(tmp_path: Path) -> None:
    rows, bad = read_bad(write(tmp_path / "a.csv", b'text\none\n"two\nthree\n'))
    assert rows == [A]
    assert bad == ["a.csv line 3 begins a record that cannot be read (unexpected end of data)."]


def test_a_csv_line_that_is_too_long_spoils_its_own_record_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_RECORD", 20)
    long = b"x" * 50
    rows, bad = read_bad(write(tmp_path / "a.csv", b'text\none\n%s\n"a\n%s\nb"\ntwo\n' % (long, long)))
    assert rows == [A, B]
    assert bad == [f"a.csv line {n} begins a record with a line longer than 20 characters." for n in (3, 4)]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"text,a,text", "two columns are named 'text'"),
        (b"text,,a", "column 2 has no name"),
        (b"\xff\xfet", "not valid UTF-8"),
    ],
)
def test_a_header_that_cannot_be_used(tmp_path: Path, header: bytes, problem: str) -> None:
    said = mistake(write(tmp_path / "a.csv", header + b"\n1,2,3\n"))
    assert said == f"The header line of a.csv cannot be used ({problem}). Give each column a name."


# Parquet


def test_parquet_rows_nested_values_and_progress_by_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["one", "two"] * 150, "n": [[1], None] * 150}), tmp_path / "a.parquet")
    rows = list(open_source(str(tmp_path / "a.parquet")).rows())
    assert [row.columns for row in rows[:2]] == [{"text": "one", "n": [1]}, {"text": "two", "n": None}]
    assert (len(rows), rows[299].where, rows[299].key) == (300, "a.parquet row 300", "a.parquet:300")
    assert rows[74].progress == pytest.approx(0.25)


def test_damaged_parquet_is_told_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["one", "two"]}), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    for damaged in (whole[:-10], b"text\none\n", whole[:10] + b"\xff" * 30 + whole[40:]):
        assert mistake(write(tmp_path / "b.parquet", damaged)).startswith("b.parquet is not a whole Parquet file (")


def test_broken_utf8_in_parquet_is_one_bad_record(tmp_path: Path) -> None:
    offsets = pa.array([b"one", b"?", b"two"], pa.binary()).buffers()[1]
    pq.write_table(
        pa.table({"text": pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"one\xfftwo"))}), tmp_path / "a.parquet"
    )
    rows, bad = read_bad(str(tmp_path / "a.parquet"))
    assert rows == [A, B]
    assert bad[0].startswith("a.parquet row 2 holds a value that cannot be read (")


def test_parquet_with_two_columns_of_one_name_or_no_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), tmp_path / "a.parquet")
    assert mistake(str(tmp_path / "a.parquet")) == "a.parquet has two columns named 'text'. Rename one."
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "b.parquet")
    assert mistake(str(tmp_path / "b.parquet")).startswith("b.parquet is empty.")


# Text and Markdown


def test_text_files_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "notes/b/two.md", b"intro\n\n# The *second* #\n\n# Third\n")
    write(tmp_path / "notes/a.txt", codecs.BOM_UTF8 + "öne\r\n".encode())
    write(tmp_path / "notes/b/none.markdown", b"## only a smaller one")
    write(tmp_path / "notes/c.txt.gz", gzip.compress(b"three"))
    write(tmp_path / "notes/empty.txt", b"")
    assert [tuple(row.values()) for row in columns(str(tmp_path / "notes"))] == [
        ("öne\r\n", "a", "a.txt", ""),
        ("## only a smaller one", "none", "b/none.markdown", "b"),
        ("intro\n\n# The *second* #\n\n# Third\n", "The *second*", "b/two.md", "b"),
        ("three", "c", "c.txt.gz", ""),
        ("", "empty", "empty.txt", ""),
    ]
    assert list(columns(str(tmp_path / "notes/a.txt"))[0]) == ["text", "title", "id", "folder"]


@pytest.mark.parametrize(
    ("markdown", "title"),
    [
        ("```sh\n# comment\n```\n# Title", "Title"),
        ("~~~\n```\n# no\n~~~\n# Yes", "Yes"),
        ("#tag\n#\n", None),
        ("", None),
    ],
)
def test_the_first_heading_outside_code(markdown: str, title: str | None) -> None:
    assert heading(markdown) == title


def test_bad_text_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_RECORD", 5)
    write(tmp_path / "a/broken.txt", b"\xff")
    write(tmp_path / "a/long.md", b"123456")
    write(tmp_path / "a/right.txt", b"12345")
    rows, bad = read_bad(str(tmp_path / "a"))
    assert [row["text"] for row in rows] == ["12345"]
    assert bad == ["broken.txt is not valid UTF-8.", "long.md is longer than 5 bytes."]


# Which files


def test_a_folder_is_read_sorted_recursively_without_hidden_or_unknown_files(tmp_path: Path) -> None:
    for name in (
        "b.jsonl",
        "a/z.JSONL",
        "a/a/y.jsonl",
        ".hidden.jsonl",
        ".git/x.jsonl",
        "a/.h/x.jsonl",
        "a.py",
        "c.jsonl.zip",
    ):
        write(tmp_path / "data" / name, lines({"text": name}))
    source = open_source(str(tmp_path / "data"))
    assert [row.columns["text"] for row in source.rows()] == ["a/a/y.jsonl", "a/z.JSONL", "b.jsonl"]
    assert next(row.where for row in source.rows()) == "a/a/y.jsonl line 1"
    assert source.label == "data"


def test_a_glob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.jsonl", "a.jsonl", "c.csv", "deep/d.jsonl", "deep/.e.jsonl"):
        write(tmp_path / "data" / name, lines({"text": name}))
    source = open_source(str(tmp_path / "data/*.jsonl"))
    assert source.label == "data/*.jsonl"
    assert [(row.columns["text"], row.key) for row in source.rows()] == [
        ("a.jsonl", "a.jsonl:1"),
        ("b.jsonl", "b.jsonl:1"),
    ]
    monkeypatch.chdir(tmp_path)
    deep = open_source("data/**/*.jsonl")
    assert deep.label == "data/**/*.jsonl"
    assert [row.columns["text"] for row in deep.rows()] == ["a.jsonl", "b.jsonl", "deep/d.jsonl"]


def test_a_file_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    assert columns(write(tmp_path / "a[1].jsonl", lines(A))) == [A]


def test_names_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bare").mkdir()
    write(tmp_path / "a.docx", b"x")
    write(tmp_path / "a.parquet.gz", b"x")
    known = (
        "Supported: .jsonl, .ndjson, .json, .csv, .tsv, .parquet, .txt, .md, .markdown; "
        "all but .parquet also with .gz or .zst."
    )
    assert mistake("nosuch.jsonl").startswith("There is no file or folder 'nosuch.jsonl'.")
    assert mistake("no*.jsonl").startswith("No file matches 'no*.jsonl'.")
    assert mistake("a.docx") == f"a.docx is not of a supported type. {known}"
    assert mistake("a.parquet.gz") == f"a.parquet.gz is not of a supported type. {known}"
    assert mistake("bare") == f"'bare' contains no file of a supported type. {known}"
    assert mistake("*.docx") == f"'*.docx' contains no file of a supported type. {known}"


@pytest.mark.parametrize("name", [f"a{kind}" for kind in READERS] + ["a.txt.gz", "a.jsonl.zst"])
def test_an_empty_file_is_told_when_it_is_opened(tmp_path: Path, name: str) -> None:
    content = PACKERS[Path(name).suffix](b"") if Path(name).suffix in PACKERS else b""
    with pytest.raises(Mistake, match=f"^{name} is empty. Name a source with at least one document in it.$"):
        open_source(write(tmp_path / name, content))


@pytest.mark.parametrize(("name", "content"), [("a.jsonl", b"\n \n"), ("a.csv", b"text,title\n")])
def test_a_file_without_a_record_is_empty_too(tmp_path: Path, name: str, content: bytes) -> None:
    assert mistake(write(tmp_path / name, content)).startswith(f"{name} is empty.")


def test_a_file_of_bad_records_only_is_not_called_empty(tmp_path: Path) -> None:
    assert read_bad(write(tmp_path / "a.jsonl", b"{\n"))[0] == []


def test_progress_goes_by_the_bytes_of_all_files(tmp_path: Path) -> None:
    write(tmp_path / "d/a.txt", b"x" * 25)
    write(tmp_path / "d/b.txt", b"x" * 75)
    assert [row.progress for row in open_source(str(tmp_path / "d")).rows()] == [0.25, 1.0]


def test_progress_within_a_large_file_rises_to_one(tmp_path: Path) -> None:
    many = lines(*[{"text": RANDOM.randbytes(500).hex()} for _ in range(1000)])
    for suffix, pack in PACKERS.items():
        progress = [row.progress for row in open_source(write(tmp_path / f"a.jsonl{suffix}", pack(many))).rows()]
        assert progress == sorted(progress)
        assert progress[0] < 0.3 < progress[500] < 0.8 < progress[-1] == 1.0


# Fingerprints


def test_the_fingerprint_follows_names_and_contents_but_not_the_place_or_the_time(tmp_path: Path) -> None:
    def of(folder: str, **contents: bytes) -> str:
        for name, content in contents.items():
            write(tmp_path / folder / "d" / f"{name}.txt", content)
        return open_source(str(tmp_path / folder / "d")).fingerprint()

    first = of("1", a=b"one", b=b"two")
    os.utime(tmp_path / "1/d/a.txt", ns=(1, 1))
    assert of("1") == of("2", a=b"one", b=b"two") == first
    others = [
        of("3", a=b"onE", b=b"two"),
        of("4", a=b"one", c=b"two"),
        of("5", a=b"onet", b=b"wo"),
        of("6", a=b"oneb.txttwo"),
    ]
    assert len({first, *others}) == 5


def test_of_a_large_file_three_blocks_and_the_time_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "WHOLE", 99)
    monkeypatch.setattr(local, "BLOCK", 10)
    path = tmp_path / "a.txt"

    def of(changed: int | None = None, time: int = 7) -> str:
        content = bytearray(b"." * 100)
        if changed is not None:
            content[changed] = 65
        path.write_bytes(content)
        os.utime(path, ns=(time, time))
        return open_source(str(path)).fingerprint()

    seen = {index for index in range(100) if of(index) != of()}
    assert seen == {*range(10), *range(45, 55), *range(90, 100)}
    assert of(time=8) != of(time=7)


# The demo


def test_the_demo_is_the_sorted_jsonl_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "b.jsonl", lines(B))
    write(tmp_path / "a.jsonl", lines(A))
    write(tmp_path / "README.md", b"not this")
    monkeypatch.setattr(demo, "FOLDER", tmp_path)
    source = open_source("demo")
    assert [row.columns for row in source.rows()] == [A, B]
    assert source.label == "demo"
    monkeypatch.setattr(demo, "FOLDER", tmp_path / "none")
    assert mistake("demo").startswith("The demo corpus is missing")


# The hub


@pytest.mark.parametrize(
    ("name", "dataset", "config", "split"),
    [
        ("hf:HuggingFaceFW/fineweb/sample-10BT:train", "HuggingFaceFW/fineweb", "sample-10BT", "train"),
        ("hf:HuggingFaceFW/fineweb/sample-10BT", "HuggingFaceFW/fineweb", "sample-10BT", "train"),
        ("hf:HuggingFaceFW/fineweb:test", "HuggingFaceFW/fineweb", None, "test"),
        ("hf:ag_news:test", "ag_news", None, "test"),
        ("hf:ag_news", "ag_news", None, "train"),
        ("hf:a/b:train[:10]", "a/b", None, "train[:10]"),
    ],
)
def test_hub_names(name: str, dataset: str, config: str | None, split: str) -> None:
    source = open_source(name)
    assert source == hub.HubSource(dataset, config, split)
    assert source.label == f"hf:{dataset}{'/' + config if config else ''}:{split}"


@pytest.mark.parametrize("name", ["hf:", "hf:/a", "hf:a/", "hf:a/b/c/d", "hf:a/b:", "hf:a b", "hf:/etc/passwd"])
def test_hub_names_that_are_none(name: str) -> None:
    assert mistake(name).startswith(f"{name!r} names no dataset. Write hf:OWNER/NAME")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets
    import huggingface_hub

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def hub_mistake(source: hub.HubSource) -> str:
    with pytest.raises(Mistake) as caught:
        list(source.rows())
    return str(caught.value)


@pytest.mark.usefixtures("offline")
def test_the_hub_reader_streams_a_local_folder_through_the_real_library(tmp_path: Path) -> None:
    from datasets import ClassLabel, Dataset, Features, Value

    features = Features({"text": Value("string"), "label": ClassLabel(names=["World", "Sports"])})
    table = Dataset.from_dict({"text": ["one", "two", "three"], "label": [1, 0, -1]}, features=features)
    table.to_parquet(tmp_path / "train.parquet")
    source = hub.HubSource(str(tmp_path), None, "train")
    rows = list(source.rows())
    assert [row.columns for row in rows] == [
        {"text": "one", "label": "Sports"},
        {"text": "two", "label": "World"},
        {"text": "three", "label": None},
    ]
    assert [(row.key, row.progress) for row in rows] == [("1", None), ("2", None), ("3", None)]
    assert list(source.rows()) == rows
    assert hub_mistake(hub.HubSource(str(tmp_path), None, "test")).endswith(
        "has no split 'test': it has train. Name one, as in hf:OWNER/NAME:SPLIT."
    )
    assert "has no split 'train[:1]': it has train." in hub_mistake(hub.HubSource(str(tmp_path), None, "train[:1]"))
    assert "needs one of its configs: default." in hub_mistake(hub.HubSource(str(tmp_path), "other", "train"))


@pytest.mark.usefixtures("offline")
def test_the_hub_reader_reads_json_lines_and_tells_of_broken_ones(tmp_path: Path) -> None:
    write(tmp_path / "whole/train.jsonl", lines(A, B))
    assert [row.columns for row in hub.HubSource(str(tmp_path / "whole"), None, "train").rows()] == [A, B]
    write(tmp_path / "broken/train.jsonl", b'{"text": \n')
    assert "could not be read (" in hub_mistake(hub.HubSource(str(tmp_path / "broken"), None, "train"))


@pytest.mark.usefixtures("offline")
def test_without_a_network_the_hub_is_told_to_be_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = hub.HubSource("nobody/nothing", None, "train")
    assert (
        hub_mistake(source) == "hf:nobody/nothing:train could not be reached. Check the network, or name local files."
    )
    assert source.revision is None


def test_hub_errors_that_need_a_network_to_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def failing(error: Exception) -> str:
        def load(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(datasets, "load_dataset", load)
        monkeypatch.setattr(hub.HubSource, "revision", None)
        return hub_mistake(hub.HubSource("a/delegated", None, "train"))

    missing = datasets.exceptions.DatasetNotFoundError
    assert "is not on the Hugging Face Hub, or is private" in failing(missing("Dataset 'a/delegated' doesn't exist"))
    gated = failing(missing("Dataset 'a/delegated' is a gated dataset on the Hub."))
    assert gated == "hf:a/delegated:train is gated. Accept its terms on its page, then log in with 'hf auth login'."
    names = "Config name is missing.\nPlease pick one among the available configs: ['x', 'y']\nExample of usage:\n\t`z`"
    assert "needs one of its configs: x, y." in failing(ValueError(names))
    assert "could not be read (first)." in failing(RuntimeError("first\nsecond"))


def test_the_hub_fingerprint_follows_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [("a/b", None, "train"), ("a/b", "c", "train"), ("a/b", None, "test"), ("a/c", None, "train")]
    prints = set()
    for revision in (None, "123"):
        monkeypatch.setattr(hub.HubSource, "revision", revision)
        prints |= {hub.HubSource(*each).fingerprint() for each in parts}
    assert len(prints) == 8


@pytest.mark.slow
def test_opening_a_source_does_not_import_datasets() -> None:
    code = (
        "import sys, precompute.steps.embed.corpus; sys.exit(bool({'datasets', 'torch', 'pyarrow'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
