"""The cache folder: names, runs and files made by hand, what is read back, and what is refused in which words."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cache_address import check_run_name
from core.errors import Mistake
from core.model.shape import ModelShape
from core.remote.mirror import default_cache
from core.runs.files import remove_leftovers, replacing
from core.runs.manifest import Manifest, Step
from core.runs.number_formats import fits_float16
from core.runs.parts import digest_of, read_part, write_part, write_table
from core.runs.run import Run, open_run, run_names
from core.runs.schema import DIGEST, documents_schema, heads_schema
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest

SHAPE = ModelShape(layers=3, heads=2, kv_heads=1, hidden=6, head_dim=2)  # stage 1 is 4 wide, stages 2 and 3 are 6
PART_SIZE = 3
TEXTS = ("alpha", "beta", "gamma", "delta", "epsilon")


def manifest_of(documents: int = len(TEXTS), dtype: str = "float16") -> Manifest:
    return Manifest(
        model={
            "name": "m",
            "revision": "r",
            "layers": 3,
            "heads": 2,
            "kv_heads": 1,
            "hidden": 6,
            "head_dim": 2,
            "layer": 3,
            "pooling": "mean",
            "prompt": "",
            "query_prompt": "",
            "max_tokens": 8,
            "dtype": "float32",
            "notes": [],
        },
        vectors={"dtype": dtype, "stages": [1, 2, 3], "part_size": PART_SIZE},
        corpus={"source": "corpus.jsonl", "fingerprint": "f", "documents": documents, "extra": {"year": "integer"}},
        versions={},
        steps={"embed": Step("inputs", "done", "2025-01-01", "2025-01-01")},
    )


def vectors_of(stage: int, first: int, count: int) -> np.ndarray:
    """Each number says where it stands: hundreds the stage, tens the document, ones the dimension."""
    width = SHAPE.width(stage)
    docs = np.arange(first, first + count)
    return (100 * stage + 10 * docs[:, None] + np.arange(width)).astype(np.float32)


def documents_table(texts: tuple[str, ...] = TEXTS) -> pa.Table:
    count = len(texts)
    columns = {
        "doc": range(count),
        "id": [f"d{number}" for number in range(count)],
        "title": [f"title of {text}" for text in texts],
        "text": texts,
        "url": [None] * count,
        "tokens": [3] * count,
        "truncated": [False] * count,
        "topic": [None] * count,
        "label_source": [None] * count,
        "label_score": [None] * count,
        "year": [1990 + number for number in range(count)],
    }
    return pa.table(
        {name: list(values) for name, values in columns.items()}, schema=documents_schema({"year": "integer"})
    )


def make_run(cache: Path, name: str = "run", dtype: str = "float16") -> Run:
    run = Run(cache, name)
    run.write_manifest(manifest_of(dtype=dtype))
    write_table(run.documents_path, documents_table(), "inputs")
    for number, first in enumerate(range(0, len(TEXTS), PART_SIZE)):
        part = TEXTS[first : first + PART_SIZE]
        digest = part_digest("inputs", [(f"d{first + index}", text) for index, text in enumerate(part)])
        for stage in (1, 2, 3):
            docs = np.arange(first, first + len(part), dtype=np.int32)
            write_part(run.part_path(stage, number), docs, vectors_of(stage, first, len(part)), dtype, digest)
    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path / "cache")


def mistake(call: Callable[[], object]) -> str:
    with pytest.raises(Mistake) as caught:
        call()
    return str(caught.value)


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def middle_of(path: Path, column: str) -> int:
    """A position in the middle of what a column holds."""
    group = pq.read_metadata(path).row_group(0)
    (chunk,) = [
        group.column(index)
        for index in range(group.num_columns)
        if group.column(index).path_in_schema.split(".")[0] == column
    ]
    start = min(offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset is not None)
    return start + chunk.total_compressed_size - 2


# Names

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
GOOD_NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?", fullmatch=True).filter(
    lambda name: ".." not in name
)


@given(GOOD_NAMES)
def test_good_names_are_given_back(name: str) -> None:
    assert check_run_name(name) == name


@given(
    st.text(max_size=30),
    st.sampled_from(["/", "\\", "..", "\0", "\n", " ", "ä", ":", "~", "*", "%"]),
    st.text(max_size=30),
)
def test_names_with_anything_that_leads_elsewhere_are_refused(before: str, bad: str, after: str) -> None:
    with pytest.raises(Mistake, match="cannot name a run"):
        check_run_name(before + bad + after)


@given(st.sampled_from(".-_"), st.text(LETTERS + "._-", max_size=30))
def test_names_that_begin_with_a_sign_are_refused(first: str, rest: str) -> None:
    with pytest.raises(Mistake):
        check_run_name(first + rest)


@given(st.text(LETTERS, min_size=65, max_size=200))
def test_names_that_are_too_long_are_refused(name: str) -> None:
    assert check_run_name(name[:64]) == name[:64]
    for longer in (name[:65], name):
        with pytest.raises(Mistake):
            check_run_name(longer)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/../b", "/etc", ".hidden", "a.", "a\n", "C:\\x", "a" * 65])
def test_these_names_are_refused(name: str, tmp_path: Path) -> None:
    for call in (lambda: Run(tmp_path, name), lambda: open_run(tmp_path, name)):
        assert "Use 1–64 letters, digits, dots, dashes and underscores" in mistake(call)


def test_the_sentence_about_a_name_is_one_line() -> None:
    assert len(mistake(lambda: check_run_name("a\nb")).splitlines()) == 1


# Runs in the cache


def test_run_names_are_sorted_and_only_those_of_runs(tmp_path: Path) -> None:
    for name in ("b", "a", "c.1"):
        Run(tmp_path, name).write_manifest(manifest_of())
    (tmp_path / "no-manifest").mkdir()
    (tmp_path / "file").write_text("")
    assert run_names(tmp_path) == ["a", "b", "c.1"]
    assert run_names(tmp_path / "nowhere") == []


@pytest.mark.parametrize("name", [".hidden", "has space"])
def test_a_folder_that_cannot_be_a_run_is_not_listed(tmp_path: Path, name: str) -> None:
    """Else whoever opens all that is listed stumbles over it."""
    (tmp_path / name).mkdir()
    manifest_of().write(tmp_path / name / "manifest.json")
    assert run_names(tmp_path) == []


def test_a_symlink_out_of_the_cache_is_refused_and_not_listed(tmp_path: Path) -> None:
    cache, outside = tmp_path / "cache", tmp_path / "outside"
    make_run(cache, "inside")
    make_run(outside, "secret")
    (cache / "link").symlink_to(outside / "secret")
    assert run_names(cache) == ["inside"]
    sentence = mistake(lambda: open_run(cache, "link"))
    assert "'link' lies outside the cache" in sentence
    assert str(outside) not in sentence


def test_a_symlinked_cache_is_a_cache(tmp_path: Path) -> None:
    make_run(tmp_path / "real")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    assert run_names(tmp_path / "alias") == ["run"]
    assert open_run(tmp_path / "alias", "run").documents().num_rows == len(TEXTS)


def test_an_unknown_run_lists_the_known_ones(tmp_path: Path) -> None:
    assert mistake(lambda: open_run(tmp_path, "x")).startswith("There is no run 'x' in the cache. The cache is empty")
    for name in ("two", "one"):
        make_run(tmp_path, name)
    assert mistake(lambda: open_run(tmp_path, "x")) == "There is no run 'x' in the cache. There are: one, two."


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.setenv("HEADSCOPE_CACHE", "")
    assert default_cache() == Path(__file__).resolve().parents[3] / "cache"


def test_remove_takes_the_manifest_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed halfway, the run must not look finished: a second start would skip it."""
    entries = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(sorted(entries(path), key=lambda each: each.is_file())))
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: pytest.fail("killed") if run.exists() else None)
    run.remove()
    assert not run.exists()


def test_remove_leaves_the_lock_alone(run: Run) -> None:
    with run.lock():
        run.remove()
        assert run.is_locked()
    assert [path.name for path in run.cache.iterdir()] == [".lock-run"]


def test_the_size_of_a_run_that_is_at_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be renamed between being listed and being measured."""
    whole = run.bytes()
    vanishing = run.folder / "part.writing1"
    vanishing.write_text("x")
    is_file = Path.is_file

    def then_gone(path: Path) -> bool:
        found = is_file(path)
        if path == vanishing:
            path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "is_file", then_gone)
    assert whole > 0
    assert run.bytes() in (whole, whole + 1)


# What is read back


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_part_is_read_back_to_the_bit(tmp_path: Path, dtype: str) -> None:
    vectors = np.random.default_rng(0).normal(scale=100, size=(7, 12)).astype(dtype)
    vectors[0, :4] = [0.0, -0.0, np.finfo(dtype).max, np.finfo(dtype).tiny]
    path = tmp_path / "heads" / "stage=1" / "part-00000.parquet"
    write_part(path, np.arange(7), vectors, dtype, "made from this")
    found = read_part(path, heads_schema(12, dtype), "rebuild")
    assert found.dtype == dtype
    assert found.tobytes() == vectors.tobytes()
    assert digest_of(path) == "made from this"


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_vectors_come_by_part_in_order(tmp_path: Path, dtype: str, stage: int) -> None:
    parts = list(make_run(tmp_path, dtype=dtype).vectors(stage))
    assert [part.shape for part in parts] == [(3, SHAPE.width(stage)), (2, SHAPE.width(stage))]
    assert all(part.dtype == dtype for part in parts)
    assert np.array_equal(np.concatenate(parts), vectors_of(stage, 0, 5))


@pytest.mark.parametrize(
    ("stage", "head", "dims"), [(1, 1, [0, 1]), (1, 2, [2, 3]), (2, 1, [0, 1, 2]), (3, 2, [3, 4, 5])]
)
def test_head_vectors_are_the_slices_counted_from_one(run: Run, stage: int, head: int, dims: list[int]) -> None:
    expected = [[100 * stage + 10 * doc + dim for dim in dims] for doc in range(5)]
    found = run.head_vectors(stage, head)
    assert found.dtype == np.float32
    assert found.tolist() == expected


def test_head_zero_is_the_whole_row(run: Run) -> None:
    assert np.array_equal(run.head_vectors(3, 0), vectors_of(3, 0, 5))


@pytest.mark.parametrize("head", [3, -1])
def test_a_head_that_does_not_exist(run: Run, head: int) -> None:
    assert f"Head {head} does not exist (this model has heads 1–2)" in mistake(lambda: run.head_vectors(1, head))


def test_a_stage_that_does_not_exist(run: Run) -> None:
    assert "Stage 4 is not available here. Choose one of 1, 2, 3." in mistake(lambda: run.head_vectors(4, 1))


def test_a_run_without_vectors_yet(tmp_path: Path) -> None:
    run = Run(tmp_path, "run")
    manifest = manifest_of(documents=0)
    run.write_manifest(manifest.with_step("embed", replace(manifest.steps["embed"], state="running")))
    assert "has no head vectors at stage 2 yet" in mistake(lambda: run.head_vectors(2, 1))


def test_a_missing_part_is_not_passed_over(run: Run) -> None:
    """Else every later row would stand for another document."""
    run.part_path(2, 0).unlink()
    assert run.rebuild in mistake(lambda: run.head_vectors(2, 1))


def test_documents_and_only_the_columns_asked_for(run: Run) -> None:
    assert run.documents().equals(documents_table())
    assert run.documents(["text", "year"]).to_pydict() == {"text": list(TEXTS), "year": [1990, 1991, 1992, 1993, 1994]}


def test_the_manifest_is_read_back(run: Run) -> None:
    assert run.manifest() == manifest_of()
    assert run.manifest().shape == SHAPE
    assert run.manifest().stages == (1, 2, 3)


def test_a_step_is_done_by_state_and_fingerprint() -> None:
    manifest = manifest_of()
    assert manifest.is_done("embed")
    assert manifest.is_done("embed", "inputs")
    assert not manifest.is_done("embed", "others")
    assert not manifest.is_done("label")
    assert not manifest.with_step("embed", replace(manifest.steps["embed"], state="running")).is_done("embed")


# What is refused: the file, the column, the command


def test_a_part_without_its_column(run: Run) -> None:
    path = run.part_path(1, 1)
    pq.write_table(pq.read_table(path).drop_columns(["vector"]), path)
    sentence = mistake(lambda: run.head_vectors(1, 1))
    assert sentence == (
        "heads/stage=1/part-00001.parquet has no column 'vector'. "
        "Rebuild it with 'python -m precompute embed run --source … --replace'."
    )


@pytest.mark.parametrize(("width", "dtype"), [(4, "float32"), (5, "float16")])
def test_a_part_of_another_type_or_width(run: Run, width: int, dtype: str) -> None:
    write_part(run.part_path(1, 0), np.arange(3), np.zeros((3, width)), dtype, "")
    sentence = mistake(lambda: run.head_vectors(1, 1))
    assert "heads/stage=1/part-00000.parquet has the column 'vector' as fixed_size_list" in sentence
    assert run.rebuild in sentence


def test_a_documents_file_without_a_column(run: Run) -> None:
    write_table(run.documents_path, documents_table().drop_columns(["truncated"]), "")
    assert mistake(run.documents) == f"documents.parquet has no column 'truncated'. Rebuild it with '{run.rebuild}'."


def test_a_documents_file_without_the_corpus_s_own_column(run: Run) -> None:
    write_table(run.documents_path, documents_table().drop_columns(["year"]), "")
    assert "documents.parquet has no column 'year'" in mistake(run.documents)


def test_a_documents_file_with_a_column_of_another_type(run: Run) -> None:
    table = documents_table()
    index = table.column_names.index("tokens")
    write_table(run.documents_path, table.set_column(index, "tokens", pa.array(["3"] * 5)), "")
    sentence = mistake(run.documents)
    assert "documents.parquet has the column 'tokens' as string, not int32." in sentence
    assert run.rebuild in sentence


def test_a_further_column_is_no_harm(run: Run) -> None:
    write_table(run.documents_path, documents_table().append_column("more", pa.array(range(5))), "")
    assert run.documents().num_rows == 5


def test_a_missing_documents_file(run: Run) -> None:
    run.documents_path.unlink()
    assert mistake(run.documents) == f"documents.parquet is missing. Rebuild it with '{run.rebuild}'."


@pytest.mark.parametrize("content", [b"", b"PAR1", b"nonsense" * 100])
def test_files_that_are_no_parquet(run: Run, content: bytes) -> None:
    for path, read in ((run.documents_path, run.documents), (run.part_path(1, 0), lambda: run.head_vectors(1, 1))):
        path.write_bytes(content)
        sentence = mistake(read)
        assert path.name in sentence
        assert "damaged" in sentence
        assert run.rebuild in sentence


def test_files_that_are_cut_short(run: Run) -> None:
    for path, read in ((run.documents_path, run.documents), (run.part_path(3, 1), lambda: run.head_vectors(3, 1))):
        path.write_bytes(path.read_bytes()[:-10])
        assert f"{path.name} cannot be read: it is damaged. Rebuild it" in mistake(read)


def test_a_part_with_one_wrong_byte(run: Run) -> None:
    path = run.part_path(2, 1)
    flip(path, middle_of(path, "vector"))
    assert mistake(lambda: run.head_vectors(2, 1)) == (
        f"heads/stage=2/part-00001.parquet is damaged. Rebuild it with '{run.rebuild}'."
    )


def test_documents_with_one_wrong_byte(run: Run) -> None:
    flip(run.documents_path, middle_of(run.documents_path, "text"))
    sentence = mistake(run.documents)
    assert "documents.parquet" in sentence
    assert run.rebuild in sentence


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "{}", '"text"', "\x00"])
def test_a_damaged_manifest(run: Run, content: str) -> None:
    (run.folder / "manifest.json").write_text(content)
    sentence = mistake(run.manifest)
    assert "The manifest.json of run 'run' is damaged" in sentence
    assert run.rebuild in sentence


def test_a_manifest_that_is_no_text(run: Run) -> None:
    (run.folder / "manifest.json").write_bytes(b"\xff\xfe\xff")
    assert "damaged" in mistake(run.manifest)


def test_a_missing_manifest(tmp_path: Path) -> None:
    assert "The run 'run' has no manifest.json" in mistake(Run(tmp_path, "run").manifest)


def test_another_schema_version(run: Run) -> None:
    replace(manifest_of(), schema_version=99).write(run.folder / "manifest.json")
    for read in (run.manifest, run.documents, lambda: run.head_vectors(1, 1)):
        assert mistake(read) == (
            "The run 'run' was written with schema version 99, this program reads 1. "
            "Rebuild it with 'python -m precompute embed run --source … --replace'."
        )


@pytest.mark.parametrize("key", ["model", "vectors", "corpus", "versions", "steps"])
def test_a_manifest_that_lacks_something(run: Run, key: str) -> None:
    path = run.folder / "manifest.json"
    found = json.loads(path.read_text())
    del found[key]
    path.write_text(json.dumps(found))
    sentence = mistake(run.manifest)
    assert "is missing what this program needs" in sentence
    assert key in sentence
    assert run.rebuild in sentence


# Writes


@pytest.mark.parametrize("exception", [RuntimeError, KeyboardInterrupt, OSError])
def test_an_exception_while_writing_leaves_nothing(tmp_path: Path, exception: type[BaseException]) -> None:
    path = tmp_path / "folder" / "file.txt"

    def write() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise exception

    with pytest.raises(Mistake if exception is OSError else exception):
        write()
    assert list(path.parent.iterdir()) == []


def test_an_exception_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            assert path.read_text() == "old"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(table: pa.Table, where: Path, **_: object) -> None:
        where.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", half)
    sentence = mistake(lambda: write_table(tmp_path / "x" / "t.parquet", documents_table(), ""))
    assert sentence.startswith(
        "There is not enough space to write t.parquet (No space left on device). Free some space"
    )
    assert list((tmp_path / "x").iterdir()) == []


def test_what_a_killed_job_was_writing_is_removed_and_nothing_else(run: Run) -> None:
    before = sorted(run.folder.rglob("*"))
    for folder in (run.folder, run.part_path(1, 0).parent):
        (folder / "part-00009.parquet.writing4711").write_text("half")
    remove_leftovers(run.folder)
    assert sorted(run.folder.rglob("*")) == before


def test_a_half_part_has_no_digest(run: Run) -> None:
    path = run.part_path(1, 0)
    assert digest_of(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert digest_of(path) is None
    assert digest_of(path.with_name("none.parquet")) is None
    pq.write_table(pa.table({"doc": [1]}), path)
    assert digest_of(path) is None, "a foreign file"


# One job at a time

HOLD = """
import sys
from pathlib import Path
from core.runs.run import Run
with Run(Path(sys.argv[1]), "run").lock():
    print("locked", flush=True)
    sys.stdin.readline()
"""


def test_a_lock_held_by_another_process(run: Run, start_job: Callable[..., subprocess.Popen[str]]) -> None:
    assert not run.is_locked()
    holder = start_job(run.cache, script=HOLD)
    assert holder.stdout.readline() == "locked\n"
    assert run.is_locked()
    # A process that is not ours: its number, its host and its start, to the second.
    said = mistake(lambda: run.lock().__enter__())
    since = r"since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    who = f"process {holder.pid} on {re.escape(socket.gethostname())}, {since}"
    assert re.fullmatch(f"Another job is working on run 'run': {who}\\. Wait until it has ended\\.", said)
    assert run.is_locked(), "asking does not free it"
    holder.kill()
    holder.wait()
    assert not run.is_locked()
    with run.lock():
        assert run.is_locked()
    assert not run.is_locked()


def test_a_run_that_never_was_is_not_locked(tmp_path: Path) -> None:
    assert not Run(tmp_path, "none").is_locked()


def test_a_lock_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sentence = mistake(lambda: Run(tmp_path / "file", "run").lock().__enter__())
    assert "cannot be written" in sentence
    assert "--cache or HEADSCOPE_CACHE" in sentence


# float16 or float32


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        ([0, 0, 0, 0], True),
        ([1.5, -2, 0.333, 1e3], True),
        ([65_504, 0, 1, 1], True),
        ([65_519, 0, 1, 1], True),  # rounds to 65504
        ([65_520, 0, 1, 1], False),  # rounds to infinity
        ([1, 1, -1e6, 0], False),
        ([1e-4, 2e-4, 1, 1], True),
        ([1e-7, 0, 1, 1], False),  # 1.19e-7 is the nearest there is
        ([1e-9, 1e-9, 1, 1], False),  # to nothing
        ([1e-30, 1e-30, 1, 1], False),
        ([1, 1e-9, 1, 1], True),  # lost beside a 1
        ([0, 0, 1, 1e-9], True),
    ],
)
def test_fits_float16_looks_at_each_head(row: list[float], fits: bool) -> None:
    others = np.ones((2, 4))
    vectors = np.vstack([others, row, others]).astype(np.float32)
    assert fits_float16(vectors, heads=2) is fits


def test_fits_float16_does_not_let_a_large_head_hide_a_small_one() -> None:
    row = np.array([[1e-9, 1e-9, 100, 100]], dtype=np.float32)
    assert fits_float16(row, heads=1)
    assert not fits_float16(row, heads=2)


def test_ordinary_vectors_fit() -> None:
    vectors = np.random.default_rng(0).normal(size=(100, 64)).astype(np.float32)
    for scale in (1e-2, 1, 1e4):
        assert fits_float16(vectors * scale, heads=8)
    for scale in (1e-8, 1e5):
        assert not fits_float16(vectors * np.float32(scale), heads=8)


def test_widening_keeps_values_documents_and_digests(run: Run) -> None:
    digests = {path: digest_of(path) for stage in (1, 2, 3) for path in run.parts(stage)}
    run.to_float32(SHAPE)
    run.write_manifest(manifest_of(dtype="float32"))
    assert {path: digest_of(path) for path in digests} == digests
    for stage in (1, 2, 3):
        parts = list(run.vectors(stage))
        assert all(part.dtype == np.float32 for part in parts)
        assert np.array_equal(np.concatenate(parts), vectors_of(stage, 0, 5))
    assert verify(run, part_digest).problems == ()


def test_widening_again_rewrites_nothing(run: Run) -> None:
    run.to_float32(SHAPE)
    times = [path.stat().st_mtime_ns for stage in (1, 2, 3) for path in run.parts(stage)]
    run.to_float32(SHAPE)
    assert [path.stat().st_mtime_ns for stage in (1, 2, 3) for path in run.parts(stage)] == times


# Is it whole?


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_whole_run(tmp_path: Path, dtype: str) -> None:
    verdict = verify(make_run(tmp_path, dtype=dtype), part_digest)
    assert verdict.problems == ()
    assert verdict.checked == 8  # manifest, documents, three stages of two parts


def only_problem(run: Run) -> str:
    (problem,) = verify(run, part_digest).problems
    assert run.rebuild in problem
    return problem


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_part_is_one_problem(run: Run, number: int) -> None:
    """The parts after it are right, and are not blamed."""
    run.part_path(2, number).unlink()
    assert "heads/stage=2 has 1 parts, not 2" in only_problem(run)


def test_a_part_that_should_not_be_there(run: Run) -> None:
    write_part(run.part_path(2, 2), np.arange(6, 8), vectors_of(2, 6, 2), "float16", "")
    assert any("heads/stage=2 has 3 parts, not 2" in problem for problem in verify(run, part_digest).problems)


def test_a_file_that_is_no_part_of_ours(run: Run) -> None:
    path = run.part_path(2, 0)
    path.with_name("part-copy.parquet").write_bytes(path.read_bytes())
    assert any("heads/stage=2" in problem for problem in verify(run, part_digest).problems)


def test_parts_that_changed_places(run: Run) -> None:
    """Each is whole in itself."""
    first, second = run.part_path(3, 0), run.part_path(3, 1)
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    problems = verify(run, part_digest).problems
    assert len(problems) == 2
    assert "heads/stage=3/part-00000.parquet does not hold documents 0 to 2" in problems[0]
    assert "heads/stage=3/part-00001.parquet does not hold documents 3 to 4" in problems[1]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_not_finite(run: Run, value: float) -> None:
    path = run.part_path(1, 1)
    vectors = vectors_of(1, 3, 2)
    vectors[1, 2] = value
    write_part(path, np.arange(3, 5), vectors, "float16", digest_of(path) or "")
    assert "heads/stage=1/part-00001.parquet holds a number that is not finite, in document 4" in only_problem(run)


def test_a_part_of_other_inputs(run: Run) -> None:
    write_part(run.part_path(1, 0), np.arange(3), vectors_of(1, 0, 3), "float16", "other")
    assert "heads/stage=1/part-00000.parquet was made from different texts or settings" in only_problem(run)


def test_a_part_in_the_other_precision(run: Run) -> None:
    path = run.part_path(1, 0)
    write_part(path, np.arange(3), vectors_of(1, 0, 3), "float32", digest_of(path) or "")
    assert "heads/stage=1/part-00000.parquet has the column 'vector' as" in only_problem(run)


@pytest.mark.parametrize("column", ["vector", "doc"])
def test_a_wrong_byte_in_a_part(run: Run, column: str) -> None:
    path = run.part_path(2, 1)
    flip(path, middle_of(path, column))
    assert "part-00001.parquet" in only_problem(run)


def test_a_wrong_byte_anywhere_in_a_part_s_documents_is_told_in_a_sentence(run: Run) -> None:
    """The column ``doc`` is the first of the file, its header included."""
    path = run.part_path(2, 1)
    whole = path.read_bytes()
    for position in range(4, middle_of(path, "doc") + 2):
        flip(path, position)
        for problem in verify(run, part_digest).problems:  # a bit that nobody reads may go unnoticed
            assert "part-00001.parquet" in problem
        path.write_bytes(whole)


@pytest.mark.parametrize("column", ["doc", "id", "text", "title", "year"])
def test_a_wrong_byte_in_the_documents(run: Run, column: str) -> None:
    flip(run.documents_path, middle_of(run.documents_path, column))
    assert "documents.parquet" in verify(run, part_digest).problems[0]


def test_a_changed_text(run: Run) -> None:
    write_table(run.documents_path, documents_table((*TEXTS[:4], "EPSILON")), "inputs")
    problems = verify(run, part_digest).problems
    assert [problem.split()[0] for problem in problems] == [f"heads/stage={s}/part-00001.parquet" for s in (1, 2, 3)]


def test_documents_in_another_order(run: Run) -> None:
    write_table(run.documents_path, documents_table().take([1, 0, 2, 3, 4]), "inputs")
    assert "documents.parquet is not in order of 'doc'" in only_problem(run)


def test_too_few_documents(run: Run) -> None:
    write_table(run.documents_path, documents_table().slice(0, 4), "inputs")
    assert "documents.parquet has 4 documents, the manifest says 5" in " ".join(verify(run, part_digest).problems)


def test_an_unfinished_run(run: Run) -> None:
    manifest = manifest_of()
    run.write_manifest(manifest.with_step("embed", replace(manifest.steps["embed"], state="running")))
    (problem,) = verify(run, part_digest).problems
    assert "is not finished. Start the same 'embed' command again" in problem


def test_a_damaged_manifest_is_a_problem(run: Run) -> None:
    (run.folder / "manifest.json").write_text("{")
    assert "manifest.json of run 'run' is damaged" in only_problem(run)


def test_the_digest_is_in_the_file_s_own_metadata(run: Run) -> None:
    assert pq.read_metadata(run.documents_path).metadata[DIGEST] == b"inputs"


@pytest.mark.parametrize("read", ["documents", "document_lookup", "vector_docs", "head_vectors", "document_vectors"])
def test_what_is_read_goes_by_one_manifest(run: Run, monkeypatch: pytest.MonkeyPatch, read: str) -> None:
    """Between two reads of the manifest the run may have been replaced by one of other sizes."""
    found, count = run.manifest(), 0

    def manifest(self: Run) -> Manifest:
        nonlocal count
        count += 1
        return found

    monkeypatch.setattr(Run, "manifest", manifest)
    getattr(run, read)(*{"head_vectors": (1, 1), "document_vectors": (1, 0)}.get(read, ()))
    assert count == 1
