"""The step ``analyse`` and the report, on planted runs whose answers are known, and on the demo with real weights."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_limits

from core.analysis.heat_map import heat_map
from core.errors import Mistake
from core.model.embedder import Embedder
from core.model.shape import ModelShape
from core.runs import verify
from core.runs.labels import labels_of
from core.runs.manifest import Manifest
from core.runs.parts import write_part
from core.runs.results import read_analysis, read_own_similarity, read_similarity, read_topics
from core.runs.run import Run
from precompute.job.fingerprint import part_digest
from precompute.job.progress import Report
from precompute.job.step import StepResult
from precompute.job.topic_vectors import TopicModel
from precompute.report import report
from precompute.steps.analyse import stage as analyse_stage
from precompute.steps.analyse import step as analyse
from precompute.steps.analyse.step import AnalyseConfig
from precompute.steps.retrieve import step as retrieve
from precompute.steps.retrieve.step import RetrieveConfig
from tests.support.synthetic import PlantedTopics, write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
TOPICS = ("rivers", "engines", "poems", "proofs", "spices", "planets")
LABELS = [TOPICS[doc % 6] for doc in range(120)]
FOLLOWER, FOLLOWED = 3, "poems"
"""The planted head (from 1) and the topic that it alone follows."""


def planted_topics() -> dict[int, dict[str, np.ndarray]]:
    chance = np.random.default_rng(5)
    return {stage: {topic: chance.normal(size=32).astype(np.float32) for topic in TOPICS} for stage in (1, 2, 3)}


PLANTED = planted_topics()
MODEL = PlantedTopics(SHAPE, PLANTED)


def vectors(stage: int, first: int, count: int) -> np.ndarray:
    """Noise around a mean of each head's own; head 3 carries the vector of the topic 'poems' in its documents."""
    chance = np.random.default_rng([stage, 77])
    rows = chance.normal(size=(120, 4, 8)) + np.arange(4)[:, None] * 0.3
    for doc in range(120):
        if LABELS[doc] == FOLLOWED:
            rows[doc, FOLLOWER - 1] = PLANTED[stage][FOLLOWED].reshape(4, 8)[FOLLOWER - 1]
    return rows.reshape(120, 32)[first : first + count]


@pytest.fixture
def planted(tmp_path: Path) -> Run:
    return write_run(tmp_path, "planted", SHAPE, vectors, LABELS, part_size=50)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same, analysed; tests that change it copy it."""
    run = write_run(tmp_path_factory.mktemp("analysed"), "planted", SHAPE, vectors, LABELS, part_size=50)
    assert not analysed(run).skipped
    return run


@pytest.fixture
def copied(made: Run, tmp_path: Path) -> Run:
    shutil.copytree(made.folder, tmp_path / made.name)
    return Run(tmp_path, made.name)


def analysed(run: Run, **settings: Any) -> StepResult:
    return analyse.run(AnalyseConfig(run.cache, run.name, **{"model": MODEL, **settings}))


def rows(run: Run, table: str, **wanted: Any) -> list[dict[str, Any]]:
    found = read_analysis(run, table).to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def files(run: Run) -> dict[str, bytes]:
    """Everything but the manifest, which has times, and the lock."""
    paths = [path for path in sorted(run.folder.rglob("*.parquet")) if path.is_file()]
    return {str(path.relative_to(run.folder)): path.read_bytes() for path in paths}


def test_similarity_is_the_cosine_within_each_heads_slice(made: Run) -> None:
    topics = read_topics(made).names
    found = np.concatenate(list(read_similarity(made, 2, len(topics)))).astype(np.float32)
    rows_, own = vectors(2, 0, 120).astype(np.float16).astype(np.float32), PLANTED[2]
    for doc, head, topic in ((0, 1, 0), (64, 4, 5), (119, 3, 2)):
        a, b = rows_[doc].reshape(4, 8)[head - 1], own[topics[topic]].reshape(4, 8)[head - 1]
        assert found[doc, head, topic] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-3)
    a, b = rows_[7], own[topics[3]]
    assert found[7, 0, 3] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-3)
    assert found.shape == (120, 5, 6)


def test_the_planted_head_is_selective_for_its_topic_and_no_other_is(made: Run) -> None:
    for stage in (1, 2, 3):
        roles = {row["head"]: row for row in rows(made, "profiles", stage=stage, slicing="heads")}
        assert roles[FOLLOWER]["role"] == "selective"
        assert roles[FOLLOWER]["topic"] == FOLLOWED
        assert FOLLOWED in roles[FOLLOWER]["because"]
        assert roles[FOLLOWER]["auc"] > 0.95
        assert [head for head, row in roles.items() if row["role"] == "selective"] == [FOLLOWER]
        assert roles[0]["role"] is None  # the full embedding is no head


def test_the_probe_parts_the_heads_and_chance_stands_beside_it(made: Run) -> None:
    for split in ("sample", "document"):
        (overall,) = rows(made, "probe", stage=1, slicing="heads", split=split, head=0)
        assert overall["chance"] == 0.25
        assert overall["low"] <= overall["value"] <= overall["high"]
        assert overall["train"] + overall["test"] == 480
        counts = rows(made, "confusion", stage=1, slicing="heads", split=split)
        right = sum(row["samples"] for row in counts if row["head"] == row["predicted"])
        assert overall["value"] == pytest.approx(right / overall["test"])
        recall = rows(made, "probe", stage=1, slicing="heads", split=split, head=2)[0]["value"]
        own = [row["samples"] for row in counts if row["head"] == 2]
        assert recall == pytest.approx(own[1] / sum(own))


def test_topic_match_has_every_method_and_its_baselines(made: Run) -> None:
    found = rows(made, "topic_match", stage=1, slicing="heads", within=5)
    assert [row["method"] for row in found] == [
        "full",
        *["head"] * 4,
        "mean of vectors",
        "mean of cosines",
        "max of cosines",
    ]
    assert {row["chance"] for row in found} == {5 / 6}
    assert {row["majority"] for row in found} == {5 / 6}  # every topic has 20 of the 120
    assert {row["documents"] for row in found} == {120}
    # With six topics the nearest ten are all: certain, whatever the method.
    assert {row["rate"] for row in rows(made, "topic_match", within=10)} == {1.0}


def test_mismatches_are_the_documents_whose_label_is_not_the_nearest(made: Run) -> None:
    topics = read_topics(made).names
    values = np.concatenate(list(read_similarity(made, 3, 6)))[:, 0].astype(np.float32)
    found = {row["doc"]: row for row in rows(made, "mismatches", stage=3)}
    wrong = [doc for doc in range(120) if topics[int(values[doc].argmax())] != LABELS[doc]]
    assert sorted(found) == wrong
    doc = wrong[0]
    assert found[doc]["label"] == LABELS[doc]
    assert found[doc]["nearest"] == topics[int(values[doc].argmax())]
    own = values[doc, topics.index(LABELS[doc])]
    assert found[doc]["margin"] == pytest.approx(values[doc].max() - own, abs=2e-3)
    assert found[doc]["rank"] == 1 + (values[doc] > own).sum()


def test_the_control_finds_nothing_in_random_data(tmp_path: Path) -> None:
    """Pure noise: neither heads nor random slices are selective, and neither matches topics beyond chance."""
    noise = np.random.default_rng(3).normal(size=(3, 300, 32))
    labels = [TOPICS[doc % 6] for doc in range(300)]
    run = write_run(
        tmp_path, "noise", SHAPE, lambda stage, first, count: noise[stage - 1, first : first + count], labels
    )
    analysed(run)
    for row in rows(run, "control"):
        if row["measure"].startswith("selectivity"):
            assert max(row["heads_high"], row["random_high"]) < 0.12
        if row["measure"] in ("topic match within 1, mean of slices", "probe by document"):
            for slicing in ("heads", "random"):
                margin = row[f"{slicing}_high"] - row[f"{slicing}_low"]
                assert abs(row[slicing] - row["chance"]) < margin
    assert not [row for row in rows(run, "profiles") if row["role"] in ("selective", "aligned", "avoiding", "general")]


def test_heads_that_share_a_key_value_head_are_compared(made: Run) -> None:
    groups = rows(made, "groups")
    assert [(row["stage"], row["pairs_within"], row["pairs_between"]) for row in groups] == [
        (s, 2, 4) for s in (1, 2, 3)
    ]


def test_the_same_inputs_give_the_same_bytes(made: Run, planted: Run) -> None:
    analysed(planted)
    assert files(planted) == files(made)


@pytest.mark.slow
def test_the_size_of_a_part_changes_no_figure(tmp_path: Path) -> None:
    found = []
    for size in (7, 120):
        run = write_run(tmp_path / str(size), "planted", SHAPE, vectors, LABELS, part_size=size)
        analysed(run)
        found.append([row["value"] for row in rows(run, "probe")] + [row["rate"] for row in rows(run, "topic_match")])
    assert found[0] == pytest.approx(found[1])


@pytest.mark.slow
def test_a_finished_analysis_is_skipped_and_another_setting_is_not(copied: Run) -> None:
    before = files(copied)
    assert analysed(copied).skipped
    assert not analysed(copied, again=True).skipped
    assert files(copied) == before
    assert not analysed(copied, centre=True).skipped
    assert files(copied) != before
    assert copied.manifest().steps["analyse"].options["centre"] is True


def test_a_file_that_has_gone_is_made_again(copied: Run) -> None:
    before = files(copied)
    copied.analysis_path("probe").unlink()
    assert not analysed(copied).skipped
    assert files(copied) == before


def test_interrupted_it_goes_on_with_the_stages_that_are_missing(
    planted: Run, made: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = analyse_stage.analyse_stage, []

    def dies_at_two(run: Run, inputs: analyse_stage.StageInputs, tell: Any) -> Any:
        seen.append(inputs.stage)
        if seen == [1, 2]:
            raise KeyboardInterrupt
        return real(run, inputs, tell)

    monkeypatch.setattr(analyse, "analyse_stage", dies_at_two)
    with pytest.raises(KeyboardInterrupt):
        analysed(planted)
    assert not planted.manifest().is_done("analyse")
    analysed(planted)
    assert seen == [1, 2, 2, 3]
    assert files(planted) == files(made)


def test_killed_at_any_moment_it_ends_with_the_same_bytes(
    tmp_path: Path, start_job: Callable[..., Any], finish: Callable[..., Any]
) -> None:
    script = """
import sys
from pathlib import Path
from tests.precompute.test_analyse import MODEL
from precompute.steps.analyse import step as analyse
analyse.run(analyse.AnalyseConfig(Path(sys.argv[1]), "planted", model=MODEL))
"""
    whole = write_run(tmp_path / "whole", "planted", SHAPE, vectors, LABELS, part_size=50)
    undisturbed = start_job(whole.cache, script=script)  # as many threads as the others, and beside them
    run = write_run(tmp_path / "killed", "planted", SHAPE, vectors, LABELS, part_size=50)
    job = start_job(run.cache, script=script)
    while job.poll() is None:
        if any(run.folder.glob("analysis/staging/stage=1/*.parquet")):
            job.kill()
        time.sleep(0.005)
    job.wait()
    assert not run.manifest().is_done("analyse")
    with threadpool_limits(1):  # as many threads as the killed one had
        analyse.run(analyse.AnalyseConfig(run.cache, "planted", model=MODEL))
    assert finish(undisturbed).status == 0
    assert files(run) == files(whole)
    assert verify.verify(run, part_digest).problems == ()


# Bad input


def test_without_labels_what_needs_none_is_there_and_the_report_says_what_is_missing(
    tmp_path: Path, command: Callable[..., Any]
) -> None:
    run = write_run(tmp_path, "bare", SHAPE, vectors, [None] * 120)
    result = analysed(run)
    assert result.manifest.steps["analyse"].counts["labelled"] == 0
    assert rows(run, "probe", head=0)
    assert rows(run, "redundancy")
    assert not rows(run, "topic_match")
    profile = rows(run, "profiles", stage=1, slicing="heads", head=1)[0]
    assert profile["activation"] > 0
    assert profile["role"] is None
    assert profile["mean"] is None
    assert len(read_topics(run).names) == 25  # the study's, for there are no labels to go by
    said = command("report", "bare", "--cache", tmp_path)
    assert said.status == 0
    assert "no document has a topic" in said.out
    assert verify.verify(run, part_digest).problems == ()


def test_a_topic_with_one_document_and_one_with_none(tmp_path: Path) -> None:
    topics = tmp_path / "topics.txt"
    topics.write_text("\n".join([*TOPICS, "rare", "empty"]))
    run = write_run(tmp_path, "rare", SHAPE, vectors, ["rare", *LABELS[1:]])
    analysed(run, topics=str(topics))
    counts = dict(zip(read_topics(run).names, read_topics(run).documents, strict=True))
    assert counts["rare"] == 1
    assert counts["empty"] == 0
    assert "rare" not in {row["topic"] for row in rows(run, "profiles")}  # one document is no evidence
    assert rows(run, "topic_match", within=1)[0]["chance"] == 1 / 8


def test_labels_beyond_the_list_count_as_none_and_are_told(tmp_path: Path) -> None:
    topics = tmp_path / "topics.txt"
    topics.write_text("rivers\nengines\n")
    run = write_run(tmp_path, "few", SHAPE, vectors, LABELS)
    counts = analysed(run, topics=str(topics)).manifest.steps["analyse"].counts
    assert counts == {"topics": 2, "labelled": 40, "unlabelled": 0, "label_not_a_topic": 80}


def test_constant_vectors_give_chance_and_no_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    run = write_run(tmp_path, "flat", SHAPE, lambda stage, first, count: np.ones((count, 32)), LABELS)
    analysed(run)
    (overall,) = rows(run, "probe", stage=1, slicing="heads", split="document", head=0)
    assert overall["value"] == pytest.approx(0.25, abs=0.15)
    assert {row["role"] for row in rows(run, "profiles", slicing="heads") if row["head"]} <= {
        "uniform",
        "general",
        "avoiding",
        None,
    }
    assert not [warning for warning in recwarn if issubclass(warning.category, RuntimeWarning)]


def test_a_vector_that_is_not_finite_is_refused_with_document_and_head(planted: Run) -> None:
    docs = np.arange(50, 100, dtype=np.int32)
    broken = vectors(2, 50, 50).copy()
    broken[13, 2 * 8 + 1] = np.nan
    write_part(planted.part_path(2, 1), docs, broken, "float16", "x")
    with pytest.raises(Mistake, match=r"Head 3 of document 63 .* at stage 2"):
        analysed(planted)


@pytest.mark.parametrize("count", [1, 3, 9])
def test_very_few_documents(tmp_path: Path, count: int, command: Callable[..., Any]) -> None:
    run = write_run(tmp_path, "few", SHAPE, lambda stage, first, n: vectors(stage, first, n), LABELS[:count])
    analysed(run)
    assert not rows(run, "probe")
    said = command("report", "few", "--cache", tmp_path)
    assert said.status == 0
    assert "the probe needs at least 10 documents" in said.out


def test_the_report_shows_no_share_that_is_100_percent_by_construction(made: Run, command: Callable[..., Any]) -> None:
    """Six topics: the labelled one is always among the nearest ten, beside the study's 79.1 %."""
    lines = command("report", "planted", "--cache", made.cache).out.splitlines()
    (full,) = [line for line in lines if line.startswith("  stage 3, full ")]
    assert full.endswith("– (all 6 topics)        ")
    assert full.count("%") == 4  # the nearest and the nearest five, each with its interval
    for name in ("chance ", "always the most frequent"):
        (line,) = [line for line in lines if line.startswith(f"  {name}")]
        assert line.split()[-1] == "–"
        assert line.count("%") == 2


def test_the_head_of_a_file_sorted_by_topic_gives_no_recommendation(
    tmp_path: Path, command: Callable[..., Any]
) -> None:
    """All documents have one topic: head 3, planted for another one, must not be recommended for anything."""
    run = write_run(tmp_path, "sorted", SHAPE, vectors, ["rivers"] * 120)
    analysed(run, topics=str(topics_file(tmp_path)))
    assert retrieve.run(RetrieveConfig(tmp_path, "sorted", limit=40)).manifest.is_done("retrieve")
    found = json.loads(command("report", "sorted", "--cache", tmp_path, "--json").out)["findings"]
    assert found[0]["about"] == "caution"
    assert found[0]["sentence"].startswith("All labelled documents have the same topic, so nothing can be concluded")
    assert found[0]["evidence"] == "120 of 120 labelled documents: rivers"
    assert not {"specialisation", "heads", "stage", "selectivity", "pooling", "roles", "voting"} & {
        finding["about"] for finding in found
    }
    said = " ".join(command("report", "sorted", "--cache", tmp_path).out.split())
    assert "of 4 heads:" not in said
    assert said.count("no heads are recommended: see 'Findings'") == 6  # two tasks at three stages
    assert "extract at stage" not in said


def topics_file(folder: Path) -> Path:
    path = folder / "topics.txt"
    path.write_text("\n".join(TOPICS), encoding="utf-8")
    return path


def test_an_unfinished_run_is_refused_in_a_sentence(planted: Run) -> None:
    manifest = planted.manifest()
    planted.write_manifest(manifest.with_step("embed", replace(manifest.steps["embed"], state="running")))
    with pytest.raises(Mistake, match="is not completely embedded yet"):
        analysed(planted)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("analyse", "nothing"), "There is no run 'nothing'"),
        (("report", "nothing"), "There is no run 'nothing'"),
        (("report", "planted"), "no finished step 'analyse'"),
        (("analyse", "planted", "--topics", "no-such-file"), "There is no list of topics 'no-such-file'"),
        (("analyse", "planted", "--probe-samples", "3"), "--probe-samples 3 is too few"),
        (("analyse", "planted"), "give --model"),
    ],
)
def test_mistakes_are_one_sentence(
    planted: Run, command: Callable[..., Any], arguments: Sequence[str], sentence: str
) -> None:
    said = command(*arguments, "--cache", planted.cache)
    assert said.status == 2
    *progress, last = said.err.splitlines()
    assert last.startswith("headscope: ")
    assert sentence in last
    assert not any(line.startswith("headscope") for line in progress)


def test_other_weights_are_refused(
    tmp_path: Path, tiny_model: Path, other_model: Path, write_corpus: Any, some_rows: Any
) -> None:
    from core.model.embedder import EmbedderConfig
    from precompute.steps.embed.step import EmbedConfig
    from precompute.steps.embed.step import run as embed

    source = str(write_corpus(some_rows(6)))
    embed(EmbedConfig(tmp_path, "tiny", source, EmbedderConfig(model=str(tiny_model))))
    with pytest.raises(Mistake, match="its weights differ"):
        analyse.run(AnalyseConfig(tmp_path, "tiny", model=TopicModel(str(other_model))))
    analyse.run(AnalyseConfig(tmp_path, "tiny", model=TopicModel(str(tiny_model))))
    # The topics are there now: the model is not needed again.
    analyse.run(AnalyseConfig(tmp_path, "tiny", again=True, model=TopicModel("no/such-model")))


def test_damage_is_found_by_verify(copied: Run) -> None:
    assert verify.verify(copied, part_digest).problems == ()
    path = copied.similarity_path(2)
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 100), path)
    copied.analysis_path("probe").write_bytes(b"not Parquet")
    copied.topics_path.unlink()
    problems = verify.verify(copied, part_digest).problems
    assert len(problems) == 3
    assert any("100 rows, not 120" in problem for problem in problems)
    assert any("probe.parquet cannot be read" in problem for problem in problems)
    assert any("topics.parquet is missing" in problem for problem in problems)
    assert all("analyse planted --again" in problem for problem in problems)


def test_progress_ends_at_one_and_never_goes_back(planted: Run) -> None:
    class Kept:
        def __init__(self) -> None:
            self.reports: list[Report] = []

        def show(self, report: Report) -> None:
            self.reports.append(report)

        def close(self) -> None:
            pass

    kept = Kept()
    analyse.run(AnalyseConfig(planted.cache, planted.name, model=MODEL), kept)
    fractions = [report.fraction for report in kept.reports]
    assert fractions == sorted(fractions, key=float)  # type: ignore[arg-type]
    assert fractions[-1] == 1
    assert "stage 3: head profiles" in kept.reports[-2].sentence


# Real weights


@pytest.fixture
def demo(analysed_cache: Path) -> Run:
    """The demo run by the real default model, analysed."""
    return Run(analysed_cache, "demo")


def test_stage_3_similarities_are_those_of_sentence_transformers(demo: Run) -> None:
    from sentence_transformers import SentenceTransformer

    from core.model.locate import default_models_dir, locate

    model = SentenceTransformer(str(locate("all-MiniLM-L6-v2", default_models_dir()).folder), device="cpu")
    topics = read_topics(demo)
    texts = demo.documents(["text"])["text"].to_pylist()[:40]
    expected = (
        model.encode(texts, normalize_embeddings=True) @ model.encode(list(topics.names), normalize_embeddings=True).T
    )
    found = next(read_similarity(demo, 3, len(topics.names)))[:40, 0]
    assert np.abs(found.astype(np.float32) - expected).max() < 1e-3


def test_on_the_demo_topics_are_found_far_beyond_chance_and_pooling_blurs(demo: Run) -> None:
    for stage in (1, 2, 3):
        by = {row["method"]: row for row in rows(demo, "topic_match", stage=stage, slicing="heads", within=1)}
        assert by["full"]["low"] > 0.5
        assert by["full"]["chance"] == 0.04
        assert by["mean of vectors"]["high"] < by["full"]["low"]


def test_the_heat_map_of_the_demo(demo: Run) -> None:
    topics = read_topics(demo).names
    labels = labels_of(demo.documents(["topic"])["topic"].to_pylist(), topics)
    own = read_own_similarity(demo, 3, labels, len(topics))
    found = heat_map(own, labels, per_topic=10)
    assert found.values.shape == (13, 80)
    assert len(found.starts) == 8
    assert (np.diff(found.values[0].reshape(8, 10), axis=1) <= 0).all()


def test_the_report_for_a_person_and_for_a_machine(demo: Run, command: Callable[..., Any]) -> None:
    said = command("report", "demo", "--cache", demo.cache)
    assert said.status == 0
    for figure in (
        "0.964",
        "1.000",
        "0.999",
        "30.6\u00a0%",
        "64.8\u00a0%",
        "79.1\u00a0%",
        "chance",
        "by document",
        "random slices",
    ):
        assert figure in said.out
    found = json.loads(command("report", "demo", "--cache", demo.cache, "--json").out)
    assert set(found["probe"]) == {"1", "2", "3"}
    assert found["probe"]["1"]["document"]["chance"] == pytest.approx(1 / 12)
    assert found["topic_match"]["3"]["full"]["1"]["rate"] == pytest.approx(
        rows(demo, "topic_match", stage=3, slicing="heads", method="full", within=1)[0]["rate"]
    )
    assert [row["head"] for row in found["heads"]["2"]] == list(range(1, 13))
    assert all(any(letter.isdigit() for letter in finding["evidence"]) for finding in found["findings"])


class TooLargeModel(PlantedTopics):
    """A model of two billion parameters, as far as a second copy is concerned."""

    def untrained(self, manifest: Manifest, seed: int, check: Callable[[int, str], None]) -> Embedder:
        check(2_000_000_000, "cpu")
        raise AssertionError("It should have been refused.")


def test_a_twin_that_would_take_too_long_is_left_out_and_the_report_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path, "large", SHAPE, vectors, LABELS)
    analyse.run(AnalyseConfig(tmp_path, "large", model=TooLargeModel(SHAPE, PLANTED)))
    assert read_analysis(run, "untrained").num_rows == 0
    found = [one for one in json.loads(report(tmp_path, "large", True))["findings"] if one["about"] == "untrained"]
    assert [one["evidence"] for one in found] == [
        "Its 2,000,000,000 parameters take too long on a CPU; run 'analyse' on a GPU."
    ]


@pytest.mark.slow
def test_the_report_compares_the_runs_of_one_model(tmp_path: Path) -> None:
    """Head 3 carries the topic in both runs, the other heads noise: no random slice has all of head 3's dimensions."""

    def carried(stage: int, first: int, count: int) -> np.ndarray:
        rows = np.random.default_rng([stage, 78]).normal(size=(120, 4, 8))
        rows[:, 2] += 2 * np.stack([PLANTED[stage][label].reshape(4, 8)[2] for label in LABELS])
        return rows.reshape(120, 32)[first : first + count]

    for name in ("first", "second"):
        write_run(tmp_path, name, SHAPE, carried, LABELS)
        analyse.run(AnalyseConfig(tmp_path, name, model=MODEL))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{", encoding="utf-8")
    found = [one for one in json.loads(report(tmp_path, "first", True))["findings"] if one["about"] == "runs"]
    assert len(found) == 1
    assert found[0]["sentence"].startswith("Head 3 at stage ")
    assert found[0]["sentence"].endswith(" is the best single head in 2 of 2 runs of this model.")
