"""The step ``label``, source by source: what is kept, what is active, what is refused, what figures say then."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.analysis.agreement import all_compared
from core.analysis.topics import merged
from core.errors import Mistake
from core.model.shape import ModelShape
from core.runs.labels import CIRCULAR_NOTE, LABEL_SOURCES, label_facts
from core.runs.results import all_labels, kept_labels, kept_sources, read_labels, read_tables
from core.runs.run import Run
from core.runs.schema import DIGEST, LABELS
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from precompute.job.step import StepResult
from precompute.steps.analyse import step as analyse
from precompute.steps.analyse.step import AnalyseConfig
from precompute.steps.label import step as label
from precompute.steps.label.config import LabelConfig
from precompute.steps.label.sources import NO_TOPIC, SOURCES
from tests.support.synthetic import PlantedTopics, write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
TOPICS = ("rivers", "engines", "poems, short", "naïve “quotes” and 'marks'")
DOCS = 40
OWN: list[str | None] = [None if doc % 10 == 9 else TOPICS[doc % 4] for doc in range(DOCS)]
PLANTED = {
    stage: dict(zip(TOPICS, np.random.default_rng(stage).normal(size=(4, 32)).astype(np.float32), strict=True))
    for stage in (1, 2, 3)
}


def nearest(doc: int) -> str:
    """At stage 3 every fourth document lies at the next topic, not at its own."""
    return TOPICS[(doc + (doc % 4 == 0)) % 4]


def vectors(stage: int, first: int, count: int) -> np.ndarray:
    rows = np.random.default_rng([stage, 5]).normal(size=(DOCS, 32)) * 0.05
    for doc in range(DOCS):
        rows[doc] += PLANTED[stage][nearest(doc) if stage == 3 else TOPICS[doc % 4]]
    return rows[first : first + count]


@pytest.fixture
def planted(tmp_path: Path) -> Run:
    return write_run(tmp_path / "cache", "run", SHAPE, vectors, OWN, part_size=16)


@pytest.fixture
def topics_file(tmp_path: Path) -> Path:
    path = tmp_path / "topics.txt"
    path.write_text("\n".join(TOPICS) + "\n", encoding="utf-8")
    return path


def labelled(run: Run, source: str | None, **settings: Any) -> label.LabelResult:
    return label.run(LabelConfig(run.cache, run.name, source, model=PlantedTopics(SHAPE, PLANTED), **settings))


def analysed(run: Run, **settings: Any) -> StepResult:
    return analyse.run(AnalyseConfig(run.cache, run.name, model=PlantedTopics(SHAPE, PLANTED), **settings))


def topics_of(run: Run) -> list[str | None]:
    return run.documents(["topic"])["topic"].to_pylist()


def sources_of(run: Run) -> set[str | None]:
    return set(run.documents(["label_source"])["label_source"].to_pylist())


def problems(run: Run) -> tuple[str, ...]:
    return verify(run, part_digest).problems


def write_labels(path: Path, rows: Sequence[tuple[Any, ...]], header: tuple[str, ...] = ("id", "topic")) -> Path:
    """In the format of the file's name."""
    records = [dict(zip(header, row, strict=True)) for row in rows]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writerows([header, *rows])
    return path


# What every source has in common


def test_one_table_of_sources_for_the_words_the_choices_and_the_work() -> None:
    assert list(SOURCES) == list(LABEL_SOURCES) == ["column", "openai", "zero-shot", "file"]


def test_the_corpuss_own_labels_are_the_default_and_nothing_is_rewritten(planted: Run) -> None:
    before = planted.documents_path.read_bytes()
    result = labelled(planted, None)
    assert planted.documents_path.read_bytes() == before
    step = result.manifest.steps["label"]
    assert step.state == "done"
    assert step.options == {"source": "column"}
    assert step.counts == {"labelled": 36, "unlabelled": 4}
    assert read_labels(planted, "column").to_pylist()[8:10] == [
        {"doc": 8, "topic": "rivers", "score": None, "reason": None},
        {"doc": 9, "topic": None, "score": None, "reason": NO_TOPIC},
    ]
    assert labelled(planted, None).skipped
    assert labelled(planted, "column").skipped
    assert problems(planted) == ()


def test_a_corpus_without_topics_goes_on_unlabelled(tmp_path: Path) -> None:
    bare = write_run(tmp_path, "bare", SHAPE, vectors, [None] * DOCS)
    assert labelled(bare, None).manifest.steps["label"].counts == {"labelled": 0, "unlabelled": DOCS}
    analysed(bare)
    assert label_facts(bare.manifest()).source is None
    assert all_compared(all_labels(bare)) == []
    assert problems(bare) == ()


def test_labels_stay_where_the_corpus_or_a_file_has_none_to_put_in_their_place(tmp_path: Path) -> None:
    bare = write_run(tmp_path, "bare", SHAPE, vectors, [None] * DOCS)
    labelled(bare, "file", file=write_labels(tmp_path / "some.csv", [("d0", "rivers"), ("d1", "poems")]))
    kept = topics_of(bare)
    assert kept[:3] == ["rivers", "poems", None]
    with pytest.raises(Mistake, match=f"for 40 of 40 documents: {NO_TOPIC}"):
        labelled(bare, "column")
    with pytest.raises(Mistake, match=r"for 39 of 40 documents: its id is not in none\.csv"):
        labelled(bare, "file", file=write_labels(tmp_path / "none.csv", [("d0", "")]))
    assert topics_of(bare) == kept
    assert kept_labels(bare, "file").labelled == 2
    assert bare.manifest().steps["label"].options["source"] == "file"


def test_two_sources_are_kept_the_last_is_active_and_column_comes_back(planted: Run, topics_file: Path) -> None:
    extra = planted.documents().drop_columns(["topic", "label_source", "label_score"])
    metadata = pq.read_schema(planted.documents_path).metadata[DIGEST]
    result = labelled(planted, "zero-shot", topics=str(topics_file))
    assert topics_of(planted) == [nearest(doc) for doc in range(DOCS)]
    assert sources_of(planted) == {"zero-shot"}
    assert kept_sources(planted) == ["column", "zero-shot"]
    assert planted.documents().drop_columns(["topic", "label_source", "label_score"]).equals(extra)
    assert pq.read_schema(planted.documents_path).metadata[DIGEST] == metadata
    assert problems(planted) == ()
    # Of 36 documents that both have labelled, those of every fourth differ: 0, 4, …, 36 are ten.
    assert any("agree on 72.2\u00a0% of 36 documents" in note for note in result.notes)
    labelled(planted, "column")
    assert topics_of(planted) == OWN
    assert sources_of(planted) == {"column", None}
    assert kept_sources(planted) == ["column", "zero-shot"]
    assert problems(planted) == ()
    # Unasked, the labels stay as they are.
    labelled(planted, "zero-shot", topics=str(topics_file))
    assert labelled(planted, None).skipped
    assert sources_of(planted) == {"zero-shot"}


def test_row_groups_and_parts_do_not_matter(planted: Run, topics_file: Path) -> None:
    pq.write_table(planted.documents(), planted.documents_path, row_group_size=7)
    labelled(planted, "zero-shot", topics=str(topics_file))
    assert topics_of(planted) == [nearest(doc) for doc in range(DOCS)]
    assert pq.read_metadata(planted.documents_path).num_row_groups == 6


def test_killed_while_documents_are_written_the_old_labels_are_whole_and_a_second_start_ends_it(
    planted: Run, topics_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysed(planted)

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(label, "relabel", dies)
        with pytest.raises(KeyboardInterrupt):
            labelled(planted, "zero-shot", topics=str(topics_file))
    assert topics_of(planted) == OWN
    assert "label" not in planted.manifest().steps
    assert planted.manifest().is_done("analyse"), "readers keep the figures of the labels that they see"
    labelled(planted, "zero-shot", topics=str(topics_file))
    assert topics_of(planted) == [nearest(doc) for doc in range(DOCS)]
    assert problems(planted) == ()


def test_own_labels_that_were_lost_are_told(planted: Run, topics_file: Path) -> None:
    labelled(planted, "zero-shot", topics=str(topics_file))
    planted.labels_path("column").unlink()
    with pytest.raises(Mistake, match=r"labels/column.parquet is missing or damaged.*--replace"):
        labelled(planted, "column")


def test_own_labels_that_are_damaged_are_taken_from_the_documents_while_they_have_them(planted: Run) -> None:
    labelled(planted, "column")
    planted.labels_path("column").write_bytes(b"nothing")
    assert "labels column --again" in problems(planted)[0]
    labelled(planted, "column", again=True)
    assert problems(planted) == ()
    assert read_labels(planted, "column")["topic"].to_pylist() == OWN


@pytest.mark.slow
def test_other_labels_make_the_figures_outdated_until_they_are_made_again(
    planted: Run, topics_file: Path, command: Callable[..., Any]
) -> None:
    labelled(planted, "column")
    analysed(planted)
    assert label_facts(planted.manifest()).source == "column"
    labelled(planted, "zero-shot", topics=str(topics_file))
    assert planted.manifest().steps["analyse"].state == "outdated"
    said = command("status", "run", "--cache", planted.cache).out
    assert "analyse    outdated" in said
    assert "label      done" in said
    assert "zero-shot, 40 labelled" in said
    refused = command("report", "run", "--cache", planted.cache)
    assert refused.status == 2
    assert "no finished step 'analyse'" in refused.err
    assert not analysed(planted).skipped
    assert label_facts(planted.manifest()).source == "zero-shot"
    assert planted.manifest().steps["analyse"].state == "done"
    assert problems(planted) == ()


def test_labels_that_came_and_went_leave_the_figures_as_they_were(planted: Run, topics_file: Path) -> None:
    labelled(planted, "column")
    analysed(planted)
    before = {path: path.stat().st_mtime_ns for path in planted.folder.glob("analysis/*.parquet")}
    labelled(planted, "zero-shot", topics=str(topics_file))
    labelled(planted, "column")
    assert planted.manifest().steps["analyse"].state == "outdated"
    assert analysed(planted).skipped
    assert planted.manifest().steps["analyse"].state == "done"
    assert {path: path.stat().st_mtime_ns for path in planted.folder.glob("analysis/*.parquet")} == before


@pytest.mark.slow
def test_the_same_topics_from_another_source_are_other_figures(planted: Run, tmp_path: Path) -> None:
    """Nothing differs but who said it, and the report must not name the wrong one."""
    labelled(planted, "column")
    analysed(planted)
    rows = [(f"d{doc}", topic) for doc, topic in enumerate(OWN) if topic is not None]
    labelled(planted, "file", file=write_labels(tmp_path / "labels.csv", rows))
    assert topics_of(planted) == OWN
    assert not analysed(planted).skipped
    assert label_facts(planted.manifest()).source == "file"


def test_analysis_compares_with_all_topics_that_could_be_chosen(planted: Run, tmp_path: Path) -> None:
    """Also with one that no document got; the list is that of the labels, in its order."""
    path = tmp_path / "five.txt"
    path.write_text("\n".join((*TOPICS, "nobody's")), encoding="utf-8")
    labelled(planted, "zero-shot", topics=str(path))
    assert analysed(planted).manifest.steps["analyse"].counts["topics"] == 5


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda table: table.slice(0, 39), "has 39 rows, not 40"),
        (lambda table: table.set_column(1, LABELS.field(1), pa.array(["x"] * 40)), "either a topic or a reason"),
        (lambda table: table.drop_columns(["reason"]), "no column 'reason'"),
        (lambda table: table.take(pa.array(range(39, -1, -1))), "does not hold documents 0 to 39"),
    ],
)
def test_verify_finds_labels_that_are_not_whole(planted: Run, damage: Callable[..., pa.Table], words: str) -> None:
    labelled(planted, "column")
    table = read_labels(planted, "column")
    pq.write_table(damage(table), planted.labels_path("column"))
    (problem,) = problems(planted)
    assert words in problem
    assert "label run --labels column --again" in problem


def test_verify_finds_labels_of_other_inputs_and_other_documents(planted: Run, topics_file: Path) -> None:
    labelled(planted, "zero-shot", topics=str(topics_file))
    path = planted.labels_path("zero-shot")
    pq.write_table(pq.read_table(path).replace_schema_metadata({DIGEST: "another"}), path)
    assert "made from inputs other than" in problems(planted)[0]
    path.unlink()
    assert "missing" in problems(planted)[0]
    labelled(planted, "zero-shot", topics=str(topics_file))
    assert problems(planted) == ()
    documents = planted.documents()
    place = documents.schema.get_field_index("topic")
    others = pa.array(["rivers"] * DOCS)
    pq.write_table(documents.set_column(place, documents.schema.field(place), others), planted.documents_path)
    assert "topics that differ from those in documents.parquet" in problems(planted)[0]


# Zero-shot


def test_zero_shot_is_the_nearest_topic_of_the_last_stage_with_its_cosine(planted: Run, topics_file: Path) -> None:
    labelled(planted, "zero-shot", topics=str(topics_file))
    table = read_labels(planted, "zero-shot")
    names = np.stack([PLANTED[3][topic] for topic in TOPICS]).astype(np.float64)
    rows = np.concatenate(list(planted.vectors(3))).astype(np.float64)
    for doc, (row, found) in enumerate(zip(rows, table.to_pylist(), strict=True)):
        cosines = names @ row / np.linalg.norm(names, axis=1) / np.linalg.norm(row)
        assert found["topic"] == TOPICS[int(cosines.argmax())] == nearest(doc)
        assert found["score"] == pytest.approx(cosines.max(), abs=1e-5)
    assert planted.documents(["label_score"])["label_score"].equals(table["score"])


@pytest.mark.parametrize(
    ("asked", "topics"), [("auto", set(TOPICS)), ("labels", set(TOPICS)), ("merged", set(merged()))]
)
def test_zero_shot_chooses_among_the_corpuss_own_topics_unless_asked_for_others(
    planted: Run, asked: str, topics: set[str]
) -> None:
    step = labelled(planted, "zero-shot", topics=asked).manifest.steps["label"]
    assert set(step.options["topics"]) == topics


def test_the_corpuss_own_topics_stay_the_choice_once_other_labels_are_active(planted: Run, tmp_path: Path) -> None:
    labelled(planted, "file", file=write_labels(tmp_path / "some.csv", [("d0", "knitting")]))
    step = labelled(planted, "zero-shot").manifest.steps["label"]
    assert set(step.options["topics"]) == set(TOPICS)


@pytest.mark.parametrize("own", [[None] * DOCS, [merged()[doc % 3] for doc in range(DOCS)]])
def test_without_topics_beyond_the_studys_zero_shot_chooses_among_its_25(tmp_path: Path, own: list[str | None]) -> None:
    bare = write_run(tmp_path, "bare", SHAPE, vectors, own)
    assert tuple(labelled(bare, "zero-shot").manifest.steps["label"].options["topics"]) == merged()


def test_zero_shot_of_a_vector_without_length_is_unlabelled(tmp_path: Path, topics_file: Path) -> None:
    run = write_run(tmp_path, "run", SHAPE, lambda *at: vectors(*at) * (np.arange(at[2]) != 3)[:, None], OWN)
    result = labelled(run, "zero-shot", topics=str(topics_file))
    assert kept_labels(run, "zero-shot").why_not == {"its embedding has no length": 1}
    assert read_labels(run, "zero-shot").to_pylist()[3]["score"] is None
    assert any("1 because its embedding has no length" in note for note in result.notes)


@pytest.mark.slow
def test_zero_shot_is_called_circular_wherever_topic_match_is_told(
    planted: Run, topics_file: Path, command: Callable[..., Any]
) -> None:
    labelled(planted, "column")
    analysed(planted)
    plain = command("report", "run", "--cache", planted.cache).out
    assert "ircular" not in plain
    assert "Labels: column: the corpus's own topics" in plain
    labelled(planted, "zero-shot", topics=str(topics_file))
    analysed(planted)
    assert read_tables(planted).one("topic_match", stage=3, slicing="heads", method="full", within=1)["rate"] == 1
    said = " ".join(command("report", "run", "--cache", planted.cache).out.split())
    assert CIRCULAR_NOTE in said
    assert "Labels: zero-shot: the nearest topic embedding – CIRCULAR" in said
    assert "column and zero-shot agree on 72.2 % of 36 documents" in said
    assert "by zero-shot alone 4" in said
    found = json.loads(command("report", "run", "--cache", planted.cache, "--json").out)
    assert found["labels"] == {
        "source": "zero-shot",
        "model": None,
        "circular": True,
        "labelled": 40,
        "unlabelled": 0,
    }
    about = {finding["about"]: finding["sentence"] for finding in found["findings"]}
    assert "Circular" in about["stage"]
    assert "Circular" in about["pooling"]
    assert CIRCULAR_NOTE in about["circular"]
    assert "Circular" not in about["redundancy"]
    (pair,) = found["agreement"]
    assert (pair["first"], pair["second"], pair["documents"], pair["only_second"]) == ("column", "zero-shot", 36, 4)
    assert pair["share"] == pytest.approx(26 / 36)
    assert sum(map(sum, pair["confusion"])) == 36


# A file


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.jsonl", "labels.parquet"])
def test_a_file_of_any_kind_and_names_in_any_script(planted: Run, tmp_path: Path, name: str) -> None:
    strange = ('a "quoted", name', "日本の歴史", "наука\u00a0и техника", "café; |pipe| \\back", "علوم", "🦊, fox")
    rows = [(f"d{doc}", strange[doc % len(strange)]) for doc in range(DOCS)]
    labelled(planted, "file", file=write_labels(tmp_path / name, rows))
    assert topics_of(planted) == [topic for _, topic in rows]
    assert sources_of(planted) == {"file"}
    assert set(analysed(planted).manifest.steps["label"].options) == {"source", "file"}
    assert planted.manifest().steps["label"].options["file"] == name
    assert problems(planted) == ()


def test_ids_that_are_missing_unknown_or_without_a_topic_are_counted_and_told(planted: Run, tmp_path: Path) -> None:
    rows = [("d0", "rivers"), ("d1", ""), ("x7", "engines"), ("x8", "rivers"), ("d2", "engines"), ("d2", "engines")]
    result = labelled(planted, "file", file=write_labels(tmp_path / "some.csv", rows))
    assert result.manifest.steps["label"].counts == {"labelled": 2, "unlabelled": 38, "unknown_ids": 2}
    assert kept_labels(planted, "file").why_not == {"its id is not in some.csv": 37, "no topic in some.csv": 1}
    assert "2 ids in some.csv are not in this run, such as 'x7'." in result.notes
    assert topics_of(planted)[:3] == ["rivers", None, "engines"]


def test_a_first_record_without_a_topic_and_topics_that_are_not_a_number(planted: Run, tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text('{"id": "d0"}\n{"id": "d1", "topic": "rivers"}\n{"id": "d2", "topic": NaN}\n', encoding="utf-8")
    labelled(planted, "file", file=path)
    assert topics_of(planted)[:3] == [None, "rivers", None]
    assert kept_labels(planted, "file").why_not["no topic in some.jsonl"] == 2


def test_a_topic_beyond_the_list_that_was_given_is_unlabelled(planted: Run, tmp_path: Path, topics_file: Path) -> None:
    path = write_labels(tmp_path / "some.csv", [("d0", "rivers"), ("d1", "knitting")])
    labelled(planted, "file", file=path, topics=str(topics_file))
    assert topics_of(planted)[:2] == ["rivers", None]
    assert "not on the list of topics" in str(read_labels(planted, "file")["reason"][1])


def test_a_file_that_has_changed_is_read_again(planted: Run, tmp_path: Path) -> None:
    path = write_labels(tmp_path / "some.csv", [("d0", "rivers")])
    labelled(planted, "file", file=path)
    assert labelled(planted, "file", file=path).skipped
    write_labels(path, [("d0", "engines")])
    assert not labelled(planted, "file", file=path).skipped
    assert topics_of(planted)[0] == "engines"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bad.csv", "id,words\nd0,rivers\n", ("no column 'topic'", "id, words")),
        ("bad.csv", "number,topic\nd0,rivers\n", ("no column 'id'",)),
        ("bad.csv", "id,topic\nd0,rivers\nd0,engines\n", ("line 3", "'d0'", "'engines'", "'rivers'")),
        ("bad.csv", "id,topic\nq0,rivers\n", ("No id in bad.csv", "'q0'", "'d0'")),
        ("bad.csv", "", ("bad.csv is empty",)),
        ("bad.csv", 'id,topic\nd0,"riv\n', ("line 2",)),
        ("bad.csv", "id,topic\n,rivers\n", ("line 2 has no 'id'",)),
        ("bad.jsonl", "{nonsense\n", ("line 1",)),
        ("bad.txt", "d0 rivers\n", ("bad.txt", ".csv")),
        ("bad.parquet", "not Parquet", ("not a whole Parquet file",)),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(
    planted: Run, tmp_path: Path, command: Callable[..., Any], name: str, content: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    before = planted.documents_path.read_bytes()
    found = command("label", "run", "--cache", planted.cache, "--labels", "file", "--label-file", path)
    assert (found.status, found.out) == (2, "")
    (line,) = found.err.splitlines()
    assert line.startswith("headscope: ")
    assert all(word in line for word in words), line
    assert "--skip-bad" not in line
    assert planted.documents_path.read_bytes() == before
    assert "label" not in planted.manifest().steps


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--labels", "file"), "--label-file"),
        (("--labels", "file", "--label-file", "nowhere.csv"), "nowhere.csv"),
        (("--labels", "zero-shot", "--topics", "nowhere.txt"), "There is no list of topics 'nowhere.txt'"),
        (("--labels", "openai", "--topics", "nowhere.txt"), "There is no list of topics 'nowhere.txt'"),
        (("--labels", "crystal-ball"), "invalid choice"),
        (("--labels", "openai", "--concurrency", "0"), "--concurrency must be at least 1, not 0"),
        (("--labels", "openai", "--max-cost", "-1"), "--max-cost must be at least 0, not -1.0"),
        (("--labels", "openai", "--max-cost", "nan"), "--max-cost must be at least 0, not nan"),
        (("--labels", "openai", "--base-url", "ftp://user:secret@host/v1"), "--base-url"),
        (("--labels", "openai", "--base-url", "user:secret@host"), "--base-url"),
    ],
)
def test_mistakes_are_one_sentence(
    planted: Run, command: Callable[..., Any], arguments: tuple[str, ...], words: str
) -> None:
    found = command("label", "run", "--cache", planted.cache, *arguments)
    assert (found.status, found.out) == (2, "")
    (line,) = found.err.splitlines()
    assert words in line
    assert "secret" not in line
    assert "label" not in planted.manifest().steps


def test_a_dry_run_of_a_source_that_costs_nothing_says_so_and_does_nothing(
    planted: Run, command: Callable[..., Any]
) -> None:
    found = command("label", "run", "--cache", planted.cache, "--labels", "zero-shot", "--dry-run")
    assert found.status == 0
    assert "costs nothing" in found.out
    assert kept_sources(planted) == []
