"""Untrusted text where it is made harmless: Markdown, HTML, Plotly, tables, CSV, terminals; and names that lead out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Mistake
from core.runs.parquet import read_columns
from core.runs.run import Run, open_run, run_names
from core.runs.schema import heads_schema
from core.terminal import printable, printable_json
from pages.shared.show import cells, defused
from pages.shared.text import drawn, plain, safe, shortened
from tests.support.hostile import HACK, MODEL, TEXTS

TITLE = pa.schema([pa.field("title", pa.string(), nullable=False)])


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(Mistake) as caught:
        call()
    return str(caught.value)


# Texts


def test_plain_leaves_markdown_nothing_to_act_on() -> None:
    assert plain("a_b *c* [d](e)\n<f>") == r"a\_b \*c\* \[d\]\(e\) \<f\>"
    assert plain("59\u00a0% \u2003\n of 2") == "59\u00a0% of 2"  # a number and its sign stay on one line
    assert plain("a\u00a0\u00a0\u00a0b") == "a b"
    assert shortened("41\u00a0%\tof it", 60) == "41\u00a0% of it"
    # In finished text Streamlit looks for these again: a mark of no width keeps them apart.
    assert plain("http://x") == "http\u2060\\://x"
    assert plain(":material/home:") == "\\:\u2060material/home\\:"
    assert plain("a@b") == "a@\u2060b"


@pytest.mark.parametrize("show", [plain, safe, drawn, lambda text: shortened(text, 60)])
def test_what_turns_a_line_or_cannot_be_seen_is_left_out(show: Callable[[str], str]) -> None:
    assert show("a\u202eb\x00c\x1bd\u2066e") == "abcde"


def test_safe_keeps_lines_and_escapes_quotes() -> None:
    assert safe("<a href='x'>\n\"") == "&lt;a href=&#x27;x&#x27;&gt;\n&quot;"


def test_a_name_of_a_hundred_thousand_letters_is_short_wherever_it_is_drawn() -> None:
    assert len(drawn(TEXTS[-1])) <= 202
    assert [len(text or "") for text in cells([TEXTS[-1], None])] == [302, 0]


def test_cells_of_tables_and_csv_begin_no_formula() -> None:
    risky = ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "1=", ""]
    assert cells(risky) == ["'=1", "'+1", "'-1", "'@x", "'=1", "'=1", "1=", ""]
    found = defused(pa.table({"=name": risky}))
    assert found.column_names == ["'=name"]
    assert found.column(0).to_pylist() == ["'=1", "'+1", "'-1", "'@x", "'\t=1", "'\r=1", "1=", ""]


def test_a_terminal_gets_no_escape() -> None:
    assert printable("a\x1b[31mb\x9b2J\u202ec\nd\te") == "a\\x1b[31mb\\x9b2J\\u202ec\nd\te"


@given(st.text())
def test_json_for_a_terminal_is_the_same_json(text: str) -> None:
    said = printable_json(json.dumps({"a": text}, ensure_ascii=False))
    assert json.loads(said) == {"a": text}
    assert printable(said) == said


def test_no_command_sends_an_escape_of_a_hostile_run_to_the_terminal(
    hostile_cache: Path, command: Callable[..., object]
) -> None:
    for arguments in (("report",), ("report", "--json"), ("status",), ("status", "--json"), ("verify",)):
        said = command(arguments[0], "hostile", "--cache", hostile_cache, *arguments[1:])
        whole = said.out + said.err  # type: ignore[attr-defined]
        assert printable(whole) == whole
        assert "Traceback" not in whole
    assert json.loads(command("status", "hostile", "--cache", hostile_cache, "--json").out)[0]["model"]["name"] == MODEL  # type: ignore[attr-defined]


# Names and links


@pytest.mark.parametrize(
    "name", ["..", "../x", "/etc", "a/b", "a\x00b", "a" * 65, "ｒｕｎ", "run\n", ".", "", "a\\b", "~"]
)
def test_no_name_leaves_the_cache(tmp_path: Path, name: str) -> None:
    assert "cannot name a run" in refused(lambda: Run(tmp_path, name))


def test_a_run_that_is_a_link_to_elsewhere_is_refused_and_not_listed(hostile_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "etc").symlink_to("/etc")
    (tmp_path / "cache" / "away").symlink_to(hostile_cache / "hostile")
    (tmp_path / "cache" / "round").symlink_to(tmp_path / "cache" / "round")
    assert run_names(tmp_path / "cache") == []
    for name in ("etc", "away", "round"):
        sentence = f"The run '{name}' lies outside the cache folder. Choose another run."
        assert refused(lambda name=name: open_run(tmp_path / "cache", name)) == sentence


@pytest.mark.parametrize("file", ["manifest.json", "documents.parquet", "heads/stage=1/part-00000.parquet", "heads"])
def test_a_file_of_a_run_that_is_a_link_to_elsewhere_is_not_read(
    hostile_cache: Path, tmp_path: Path, file: str
) -> None:
    import shutil

    shutil.copytree(hostile_cache / "hostile", tmp_path / "cache" / "run")
    place = tmp_path / "cache" / "run" / file
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    place.symlink_to(hostile_cache / "hostile" / file)
    run = Run(tmp_path / "cache", "run")
    said = refused(lambda: (run.documents(), run.head_vectors(1, 1)))
    assert "of run 'run' points outside the cache folder through a symbolic link. Put the file itself there." in said
    assert refused(lambda: run.lock().__enter__()).startswith(file.split("/part")[0])  # no job writes there either


def test_a_lock_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "cache" / "run").mkdir(parents=True)
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "cache" / ".lock-run").symlink_to(tmp_path / "precious")
    assert "cannot be written" in refused(lambda: Run(tmp_path / "cache", "run").lock().__enter__())
    assert (tmp_path / "precious").read_text() == "precious"


# Files of a stranger


def test_a_small_file_that_says_one_text_very_often_is_not_unpacked(tmp_path: Path) -> None:
    often = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"title": often}), tmp_path / "t.parquet", store_schema=False)
    assert os.path.getsize(tmp_path / "t.parquet") < 100_000  # and 20 GB in memory
    said = refused(lambda: read_columns(tmp_path / "t.parquet", TITLE, "make it"))
    assert said == (
        "t.parquet would take 18.6 GB in memory, far more than such a file should, and is not read. Rebuild it with "
        "'make it'."
    )


@pytest.mark.slow
def test_a_file_of_many_equal_rows_is_refused_by_its_counts(tmp_path: Path) -> None:
    schema = heads_schema(400, "float32")
    nothing = pa.FixedSizeListArray.from_arrays(
        pa.array(np.zeros(100_000 * 400, dtype=np.float32)), type=schema.field("vector").type
    )
    rows = pa.table([pa.array(np.zeros(100_000, dtype=np.int32)), nothing], schema=schema)
    path = tmp_path / "n.parquet"
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for _ in range(2):
            writer.write_table(rows)
    assert os.path.getsize(path) < 50_000  # and 320 MB in memory
    assert "would take 0.3 GB" in refused(lambda: read_columns(path, schema, "make it"))
    said = refused(lambda: read_columns(path, schema, "make it", rows=5))
    assert said == "n.parquet has 200,000 rows, not 5. Rebuild it with 'make it'."


def test_texts_that_are_no_texts_and_values_that_are_missing_are_refused(tmp_path: Path) -> None:
    bad = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    pq.write_table(pa.table([bad], schema=TITLE), tmp_path / "t.parquet")
    assert (
        refused(lambda: read_columns(tmp_path / "t.parquet", TITLE, "x"))
        == "t.parquet is damaged. Rebuild it with 'x'."
    )
    pq.write_table(pa.table({"title": pa.array([None], pa.string())}), tmp_path / "t.parquet")
    assert refused(lambda: read_columns(tmp_path / "t.parquet", TITLE, "x")).startswith(
        "t.parquet is missing values in 'title'."
    )


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.parquet")
    assert refused(lambda: read_columns(tmp_path / "t.parquet", TITLE, "x")).startswith("t.parquet is missing.")


@pytest.mark.parametrize(
    ("part", "key", "value", "said"),
    [
        ("model", "heads", 0, "'model.heads' must be a whole number from 1 to 1,024"),
        ("model", "heads", 10**12, "'model.heads' must be a whole number from 1 to 1,024"),
        ("model", "kv_heads", 3, "'model.kv_heads' must divide 'model.heads'"),
        ("model", "pooling", f"<img src=x onerror={HACK}>", "'model.pooling' must be one of last, mean, first"),
        ("vectors", "stages", [3, 1], "'vectors.stages' must be some of 1, 2, 3, 4, in order"),
        ("corpus", "documents", 10**12, "'corpus.documents' must be a whole number from 0 to 2,147,483,647"),
        ("corpus", "extra", {"title": "string"}, "'corpus.extra' must name columns of the corpus's own"),
        ("corpus", "source", "\ud800", "it is too deeply nested, too long, or contains invalid text"),
        ("steps", "embed", [], "'steps.embed' is not an object"),
    ],
)
def test_a_manifest_with_a_value_out_of_bounds(
    hostile_cache: Path, tmp_path: Path, part: str, key: str, value: object, said: str
) -> None:
    found = json.loads((hostile_cache / "hostile" / "manifest.json").read_text())
    found[part][key] = value
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(found))
    assert f"is missing what this program needs ({said})." in refused(Run(tmp_path, "run").manifest)


def test_a_manifest_that_is_too_large_or_too_deep(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "manifest.json"
    path.write_text("[" * 100_000)
    assert "is damaged" in refused(Run(tmp_path, "run").manifest)
    path.write_bytes(b" " * (17 * 2**20))
    assert "is larger than 16 MB, and is not read." in refused(Run(tmp_path, "run").manifest)
