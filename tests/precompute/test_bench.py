"""``bench``: a task in BEIR's layout, read and measured by hand; and what is wrong with one that cannot be read."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.errors import Mistake
from core.model.embedder import EmbedderConfig
from core.retrieval.beir import BeirTask, read_beir
from core.retrieval.small_rivals import Contender, bench_rows, ndcg_of, smaller
from precompute.mteb_tasks import tasks_named
from precompute.steps.embed.step import EmbedConfig
from precompute.steps.embed.step import run as embed

pytestmark = pytest.mark.usefixtures("one_thread")


def write_task(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Every third document is a query for itself and the one after it."""
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": row["id"], "title": "", "text": row["text"]} for row in rows]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    asked = [{"_id": f"q{at}", "text": rows[at]["text"]} for at in range(0, len(rows) - 1, 3)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    lines = [f"q{at}\t{rows[at + more]['id']}\t1" for at in range(0, len(rows) - 1, 3) for more in (0, 1)]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines) + "\nq0\td5\t0\n")
    return folder


def test_a_task_is_read_as_it_is_written(tmp_path: Path, some_rows: Any) -> None:
    task = read_beir(write_task(tmp_path / "task", some_rows(7)))
    assert task.name == "task"
    assert len(task.documents) == 7
    assert task.queries == (task.documents[0], task.documents[3])
    assert task.relevant == ((0, 1), (3, 4))  # a score of 0 is not relevant


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("corpus.jsonl", "{", "Line 1 of corpus.jsonl is not JSON"),
        ("corpus.jsonl", '{"text": "a"}', "Line 1 of corpus.jsonl has no _id"),
        ("corpus.jsonl", '{"_id": "a"}\n{"_id": "a"}', "has the id 'a' a second time"),
        ("qrels/test.tsv", "q0\td0\tyes\nq0 d0", "Line 2 of qrels/test.tsv is not a query"),
        ("qrels/test.tsv", "q0\tnone\t1", "names the document 'none'"),
        ("qrels/test.tsv", "q9\td0\t1", "names the query 'q9'"),
        ("qrels/test.tsv", "q0\td0\t0", "no query with a relevant document"),
    ],
)
def test_a_task_that_cannot_be_read_is_refused(
    tmp_path: Path, some_rows: Any, file: str, text: str, sentence: str
) -> None:
    folder = write_task(tmp_path / "task", some_rows(4))
    (folder / file).write_text(text)
    with pytest.raises(Mistake, match=sentence):
        read_beir(folder)


def test_ndcg_of_a_ranking_by_hand() -> None:
    docs = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    one = Contender("x", 8, docs, np.array([[1.0, 0.0], [0.0, 1.0]]))
    found = ndcg_of(one, [(1,), (2, 0)])  # ranked 0, 1, 2 and 2, 1, 0
    best = 1 + 1 / np.log2(3)
    assert found == pytest.approx([1 / np.log2(3), (1 + 1 / np.log2(4)) / best])


def test_rivals_have_the_bytes_that_they_say_and_differences_are_paired() -> None:
    chance = np.random.default_rng(0)
    docs, queries = chance.normal(size=(50, 16)), chance.normal(size=(9, 16))
    rivals = {one.name: one for one in smaller(docs, queries)}
    assert {name: one.bytes for name, one in rivals.items()} == {
        "int8": 20,
        **{f"first {size} dimensions": 4 * size for size in (8, 4, 2)},
        **{f"{size} random dimensions": 4 * size for size in (8, 4, 2)},
        **{f"PCA to {size}": 4 * size for size in (8, 4, 2)},
    }
    assert np.abs(rivals["int8"].docs - docs).max() <= np.abs(docs).max() / 127
    variance = rivals["PCA to 8"].docs.var(axis=0).sum() / docs.var(axis=0).sum()
    assert variance > rivals["first 8 dimensions"].docs.var(axis=0).sum() / docs.var(axis=0).sum()
    rows = bench_rows([("all heads", 64), ("worse", 32)], np.array([[1.0, 0.5, 0.6], [0.9, 0.4, 0.5]]))
    assert rows[1].difference.value == pytest.approx(-0.1, abs=1e-6)
    assert (rows[1].difference.low, rows[1].difference.high) == pytest.approx((-0.1, -0.1), abs=1e-6)


def test_the_command_compares_the_pruned_model_with_its_rivals(
    tiny_model: Path, tmp_path: Path, write_corpus: Callable[..., Path], some_rows: Any, command: Callable[..., Any]
) -> None:
    rows = some_rows(20)
    embed(EmbedConfig(tmp_path, "tiny", source=str(write_corpus(rows)), embedder=EmbedderConfig(model=str(tiny_model))))
    task = write_task(tmp_path / "task", rows)
    heads = tmp_path / "heads.json"
    heads.write_text('{"model": "tiny", "off": [[1, 1], [2, 2]]}')
    asked = ("bench", "tiny", "--cache", tmp_path, "--model", tiny_model, "--tasks", task, "--heads", heads)
    done = command(*asked, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)["tasks"]["task"]
    assert [row["name"] for row in found[:4]] == ["all heads", "without 2 heads", "without 2 random heads", "int8"]
    assert found[0]["ndcg"]["value"] > 0.6  # a query's own text is always first
    assert found[0]["difference"]["value"] == 0
    assert abs(found[3]["difference"]["value"]) < 0.05
    text = command(*asked)
    assert "task: nDCG@10" in text.out
    assert "128 bytes" in text.out
    refused = command(*asked[:-4], "--tasks", tmp_path / "nowhere")
    assert (refused.status, "There is no folder" in refused.err) == (2, True)


class OneTask:
    """A task as mteb 2 has it, of three documents and three queries, one of them without an answer."""

    def __init__(self, kind: str = "Retrieval", error: Exception | None = None) -> None:
        self.metadata = SimpleNamespace(name="NanoThree", type=kind)
        self._error = error

    def load_data(self) -> None:
        if self._error is not None:
            raise self._error
        split = {
            "corpus": [
                {"id": "a", "title": "Tides", "text": "rise."},
                {"id": "b", "text": "Bread."},
                {"id": "c", "text": ""},
            ],
            "queries": [{"id": "x", "text": "loaf"}, {"id": "y", "text": "sea"}, {"id": "z", "text": "moon"}],
            "relevant_docs": {"x": {"b": 1, "a": 0}, "y": {"a": 2, "gone": 1}, "z": {"c": 0}},
        }
        self.dataset = {"default": {"train": split}}

    def convert_v1_dataset_format_to_v2(self, num_proc: int | None) -> None:
        pass


def named(monkeypatch: pytest.MonkeyPatch, task: OneTask) -> None:
    def get(known: dict[str, Any]) -> Callable[[str], Any]:
        return lambda name: known[name]

    benchmarks = {"NanoBEIR": SimpleNamespace(tasks=[task, task])}
    module = SimpleNamespace(get_task=get({"NanoThree": task}), get_benchmark=get(benchmarks))
    monkeypatch.setitem(sys.modules, "mteb", module)


def test_a_task_or_a_benchmark_by_name_comes_from_mteb(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, OneTask())
    (task,) = tasks_named("NanoThree")
    assert task == BeirTask("NanoThree", ("Tides rise.", "Bread.", ""), ("loaf", "sea"), ((1,), (0,)))
    assert [one.name for one in tasks_named("NanoBEIR")] == ["NanoThree"] * 2


@pytest.mark.parametrize(
    ("task", "name", "sentence"),
    [
        (None, "NanoThree", "tasks by name need the package mteb. Install it with"),
        (OneTask(), "Nothing", "'Nothing' is neither a folder nor a task or benchmark of mteb"),
        (OneTask("STS"), "NanoThree", "'NanoThree' is not a retrieval task"),
        (OneTask(error=ConnectionError("no hub")), "NanoThree", "could not be loaded: no hub. Check the network"),
    ],
)
def test_what_mteb_does_not_have_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, task: OneTask | None, name: str, sentence: str
) -> None:
    if task is None:
        monkeypatch.setitem(sys.modules, "mteb", None)
    else:
        named(monkeypatch, task)
    with pytest.raises(Mistake, match=sentence):
        tasks_named(name)
