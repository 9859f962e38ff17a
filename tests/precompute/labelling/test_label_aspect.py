"""``label --aspect``: labels beside the topics, from every source, with agreement, checks and nothing else changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.analysis.aspect_values import choose_values, value_lists
from core.errors import Mistake
from core.model.shape import ModelShape
from core.runs.aspects import aspect_labels, aspect_named, aspect_path, aspects_of, read_aspect_labels, stored_aspects
from core.runs.run import Run
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from precompute.labelling.answers import key_of
from precompute.labelling.prompt import messages
from precompute.report import report
from precompute.steps.label import step as label
from precompute.steps.label.config import Asking, LabelConfig
from tests.support.jobs import Outcome
from tests.support.openai_server import OpenAIServer
from tests.support.synthetic import write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
DOCS = 40
GENRES = ("recipe", "report")
TEXTS = (
    "Koira juoksi metsässä koko päivän, ja illalla se nukkui väsyneenä takan edessä lämpimässä tuvassa.",
    "The committee met on Tuesday and decided that the bridge should be repaired before the winter begins.",
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """40 documents in Finnish and English; the corpus has their genre, and no topic but two."""
    vectors = np.random.default_rng(0).normal(size=(DOCS, 32))
    made = write_run(
        tmp_path / "cache",
        "run",
        SHAPE,
        lambda stage, first, count: vectors[first : first + count],
        ["Sports" if doc % 2 else "Cooking" for doc in range(DOCS)],
        texts=[f"{TEXTS[doc % 2]} ({doc}: {GENRES[doc // 20]})" for doc in range(DOCS)],
        extra={"genre": ("string", [GENRES[doc // 20] for doc in range(DOCS)])},
    )
    label.run(LabelConfig(made.cache, "run"))
    return made


def labelled(run: Run, aspect: str, source: str | None = None, **settings: Any) -> label.LabelResult:
    return label.run(LabelConfig(run.cache, run.name, labels=source, aspect=aspect, **settings))


def values_of(run: Run, aspect: str, source: str) -> list[str | None]:
    found: list[str | None] = read_aspect_labels(run, aspect, source)["topic"].to_pylist()
    return found


def write_file(path: Path, header: str, value: Any) -> Path:
    path.write_text("\n".join([header, *(f"d{doc},{value(doc)}" for doc in range(DOCS))]))
    return path


def test_languages_are_detected_offline_and_become_an_aspect(run: Run) -> None:
    before = run.documents_path.read_bytes()
    assert not labelled(run, "language", again=True).skipped
    assert values_of(run, "language", "detected") == ["fi", "en"] * 20
    found = aspect_named(aspects_of(run), "language")
    assert found is not None
    assert (found.source, found.values, found.counts.tolist()) == ("detected", ("en", "fi"), [20, 20])
    assert run.documents_path.read_bytes() == before
    assert labelled(run, "language").skipped
    assert verify(run, part_digest).problems == ()


def test_a_new_run_in_several_languages_has_them_at_once(run: Run) -> None:
    assert run.manifest().steps["label"].options["aspects"] == {"language": "detected"}
    assert run.manifest().steps["label"].state == "done"
    assert labelled(run, "language").skipped
    assert verify(run, part_digest).problems == ()


def test_one_language_is_no_aspect(tmp_path: Path) -> None:
    made = write_run(
        tmp_path, "one", SHAPE, lambda stage, first, count: np.ones((count, 32)), [None] * 24, texts=[TEXTS[1]] * 24
    )
    label.run(LabelConfig(tmp_path, "one"))
    assert "aspects" not in made.manifest().steps["label"].options
    labelled(made, "language")
    assert values_of(made, "language", "detected") == ["en"] * 24
    assert aspect_named(aspects_of(made), "language") is None


def test_two_sources_are_stored_compared_and_the_last_is_active(run: Run, tmp_path: Path) -> None:
    labelled(run, "genre", "column")
    other = write_file(tmp_path / "genres.csv", "id,genre", lambda doc: GENRES[doc // 20] if doc else "report")
    result = labelled(run, "genre", "file", file=other)
    assert stored_aspects(run)["genre"] == ("column", "file")
    assert [each.source for each in aspect_labels(run, "genre")] == ["column", "file"]
    assert result.notes[1].startswith("column and file agree on 97.5\u00a0% of 40 documents")
    found = aspect_named(aspects_of(run), "genre")
    assert found is not None
    assert (found.source, found.codes[0]) == ("file", 1)
    labelled(run, "genre", "column")
    found = aspect_named(aspects_of(run), "genre")
    assert found is not None
    assert (found.source, found.codes[0]) == ("column", 0)
    assert verify(run, part_digest).problems == ()


def test_topics_labelled_later_leave_the_other_aspects_as_they_were(run: Run, tmp_path: Path) -> None:
    fingerprint = run.manifest().steps["label"].fingerprint
    topics = write_file(tmp_path / "topics.csv", "id,topic", lambda doc: "Sports" if doc % 3 else "Cooking")
    label.run(LabelConfig(run.cache, "run", labels="file", file=topics))
    assert run.manifest().steps["label"].fingerprint != fingerprint
    assert run.manifest().steps["label"].options["aspects"] == {"language": "detected"}
    assert aspect_named(aspects_of(run), "language") is not None
    assert verify(run, part_digest).problems == ()


def test_an_aspect_leaves_the_topics_step_as_it_was_but_for_its_time(run: Run) -> None:
    before = run.manifest().steps["label"]
    labelled(run, "genre")
    after = run.manifest().steps["label"]
    assert (after.fingerprint, after.state, after.counts) == (before.fingerprint, before.state, before.counts)
    assert {**after.options, "aspects": None} == {**before.options, "aspects": None}
    assert label.run(LabelConfig(run.cache, "run", labels="column")).skipped


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdefghijklmnop")
    with OpenAIServer(GENRES) as running:
        yield running


def test_a_language_model_is_asked_with_definitions_and_its_answers_are_stored(
    run: Run, server: OpenAIServer, tmp_path: Path
) -> None:
    values = tmp_path / "genres.txt"
    values.write_text("recipe\thow to cook something\nreport\twhat happened\n")
    asking = Asking(base_url=server.url)
    labelled(run, "genre", "openai", topics=str(values), asking=asking)
    assert values_of(run, "genre", "openai") == [GENRES[doc // 20] for doc in range(DOCS)]
    system = server.seen[0].body["messages"][0]["content"]
    assert "by genre" in system
    assert '{"recipe": "how to cook something", "report": "what happened"}' in system
    asked = len(server.seen)
    labelled(run, "genre", "openai", topics=str(values), asking=asking, again=True)
    assert len(server.seen) == asked  # every answer is stored
    assert "language model" not in str(run.manifest().steps["label"].options.get("source"))
    assert run.manifest().steps["label"].options["source"] == "column"


def test_topics_are_asked_for_in_the_same_words_as_before() -> None:
    """Answers that were paid for are found again: neither the words nor the key of a topic's question have changed."""
    system = messages("x", ("a", "b"))[0]["content"]
    assert sha256(system.encode()).hexdigest() == "97fd7c113be1bdf78c24ba55387669449ea22dad070e5a7daf81f5248b5f011d"
    before = key_of("text", ("a", "b"), "gpt-4o", None)
    assert before == "168d3fbff3b258582c9f565c56d0f6224fcbb3a9a7d2d0f89572f5019c6bc264"
    assert key_of("text", ("a", "b"), "gpt-4o", None, ("genre", "", "")) != before


def test_lists_come_with_the_project_and_from_files(tmp_path: Path) -> None:
    assert value_lists() == ("register", "genre")
    registers = choose_values("register", "auto")
    assert {"Narrative", "Opinion", "Lyrical", "Spoken", "Interactive discussion"} <= set(registers)
    assert all(definition and "\n" not in definition for definition in registers.values())
    assert choose_values("kind", "genre") == choose_values("genre", "auto")
    with pytest.raises(Mistake, match="no list of values for the aspect 'mood'"):
        choose_values("mood", "auto")
    short = tmp_path / "short.txt"
    short.write_text("one\n")
    with pytest.raises(Mistake, match="has 1 of them"):
        choose_values("mood", str(short))


@pytest.mark.parametrize(
    ("aspect", "settings", "words"),
    [
        ("../topic", {}, "not a valid aspect name"),
        ("mood", {}, "Choose where the labels of 'mood' come from"),
        ("mood", {"labels": "column"}, "has no column 'mood'"),
        ("mood", {"labels": "detected"}, "detects languages only"),
        ("topic", {"labels": "detected"}, "detects languages, not topics"),
    ],
)
def test_mistakes_are_sentences(run: Run, aspect: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(Mistake, match=words):
        label.run(replace(LabelConfig(run.cache, run.name, aspect=aspect), **settings))


def test_verify_finds_a_damaged_file(run: Run) -> None:
    labelled(run, "genre")
    path = aspect_path(run, "genre", "column")
    table = pq.read_table(path)
    pq.write_table(table.set_column(3, "reason", pa.array(["both"] * DOCS)), path)
    problems = "\n".join(verify(run, part_digest).problems)
    assert "aspects/genre/column.parquet" in problems
    assert "--aspect genre --labels column --again" in problems


def test_the_command_line_labels_an_aspect(run: Run, command: Callable[..., Outcome]) -> None:
    arguments = ["label", "run", "--cache", run.cache, "--aspect", "genre"]
    first, second, third = command(*arguments), command(*arguments), command(*arguments[:-1], "mood")
    assert (first.status, second.status, third.status) == (0, 0, 2)
    assert "40 of 40 documents have a value for genre by column (the corpus's own column)." in first.err
    assert "Nothing to do" in second.err
    assert "Choose where the labels of 'mood' come from" in third.err


def test_a_run_without_such_labels_opens(run: Run) -> None:
    shutil.rmtree(run.folder / "aspects", ignore_errors=True)
    assert [each.name for each in aspects_of(run)] == ["topic", "genre"]


def test_the_report_says_how_two_sources_of_an_aspect_agree(analysed_cache: Path, tmp_path: Path) -> None:
    shutil.copytree(analysed_cache / "demo", tmp_path / "cache" / "demo")
    run = Run(tmp_path / "cache", "demo")
    assert "Do the sources of genre agree?" not in report(run.cache, "demo")
    documents = run.documents(["id", "genre"])
    assert "label" not in run.manifest().steps
    labelled(run, "genre", "column")
    assert run.manifest().steps["label"].options["source"] == "column"
    assert run.manifest().is_done("analyse")  # the topics are the ones that they were
    file = tmp_path / "genres.parquet"
    pq.write_table(documents, file)
    labelled(run, "genre", "file", file=file)
    said = report(run.cache, "demo")
    assert "Do the sources of genre agree? Cohen's kappa, with 95 % CI\n  column and file agree on 100" in said
    pair = json.loads(report(run.cache, "demo", for_machines=True))["aspect_agreement"]["genre"][0]
    assert (pair["first"], pair["second"], pair["documents"]) == ("column", "file", len(documents))
    assert [each.name for each in aspects_of(run)][:2] == ["topic", "genre"]
