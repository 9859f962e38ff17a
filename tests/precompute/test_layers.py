"""The layer sweep: its figures on planted layers whose answers are known, and its rows by the real default model."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.analysis.embedding_parts import GROUP_KINDS
from core.analysis.group_gaps import group_gaps
from core.analysis.head_measures import LAYER_MEASURES
from core.analysis.layer_findings import (
    best_heads,
    depth_finding,
    difference_to_slices,
    held_against,
    peak,
    probe_difference,
    specialising,
    topic_structure,
)
from core.analysis.layer_measures import MEASURES
from core.analysis.redundancy import Redundancy
from core.analysis.roles import BEYOND
from core.analysis.wording import percent
from core.errors import Mistake
from core.model.ledger import KINDS
from core.model.same_model import run_model
from core.model.shape import ModelShape
from core.runs import verify
from core.runs.aspects import Aspect
from core.runs.parts import write_table
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.steps import STEPS
from core.runs.table_checks import Sizes, check_rows
from core.runs.vocabulary import LAYER_NULL_MEASURES, PART_KINDS
from precompute.job.fingerprint import part_digest
from precompute.job.step import Rows, StepResult
from precompute.steps.analyse import step as analyse
from precompute.steps.analyse.step import AnalyseConfig
from precompute.steps.aspects.sample import AspectSample, sampled
from precompute.steps.label import step as label
from precompute.steps.label.config import LabelConfig
from precompute.steps.layers import step as layers
from precompute.steps.layers.aspects import add_layer_aspects
from precompute.steps.layers.rows import embed_layers
from precompute.steps.layers.step import LayersConfig
from tests.support.jobs import Outcome
from tests.support.synthetic import PlantedLayers, PlantedTopics, write_run

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE = ModelShape(layers=4, heads=4, kv_heads=2, hidden=32, head_dim=8)
TOPICS = ("rivers", "engines", "poems", "proofs", "spices", "planets")
LABELS = [TOPICS[doc % 6] for doc in range(60)]
DEEP, FOLLOWER = 2, 3
"""The layer (from 1) that alone has topics, and the head (from 1) that has them there."""


def noise(text: str, stage: int) -> np.ndarray:
    """``[layer, head, dim]``, the same for the same text, and such that float16 holds it."""
    seed = int.from_bytes(hashlib.sha256(f"{text} {stage}".encode()).digest()[:4], "little")
    return np.random.default_rng(seed).normal(size=(SHAPE.layers, 4, 8)).astype(np.float16).astype(np.float32)


def planted(texts: Sequence[str]) -> dict[int, np.ndarray]:
    """Noise, and at layer 2 head 3 carries three times the vector of the document's topic's name."""
    found = {}
    for stage in (1, 2, 3):
        rows = np.stack([noise(text, stage) for text in texts])
        for at, text in enumerate(texts):
            if text.startswith("Document "):
                topic = LABELS[int(text.removeprefix("Document ").rstrip("."))]
                rows[at, DEEP - 1, FOLLOWER - 1] += 3 * noise(topic, stage)[DEEP - 1, FOLLOWER - 1]
        found[stage] = rows.reshape(len(texts), SHAPE.layers, 32).transpose(1, 0, 2)
    return found


MODEL = PlantedLayers(planted)
TEXTS = [f"Document {doc}." for doc in range(60)]


def last_layer(stage: int, first: int, count: int) -> np.ndarray:
    return planted(TEXTS)[stage][-1, first : first + count]


def swept(run: Run, **settings: Any) -> StepResult:
    return layers.run(LayersConfig(run.cache, run.name, **{"model": MODEL, **settings}))


def rows(run: Run, table: str, **wanted: Any) -> list[dict[str, Any]]:
    found = read_analysis(run, table).to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A planted run, swept; tests that change it copy it."""
    run = write_run(tmp_path_factory.mktemp("layers"), "planted", SHAPE, last_layer, LABELS)
    swept(run)
    return run


@pytest.fixture
def copied(made: Run, tmp_path: Path) -> Run:
    shutil.copytree(made.folder, tmp_path / made.name)
    return Run(tmp_path, made.name)


# What the figures say


def test_topics_are_found_at_the_layer_and_head_that_have_them(made: Run) -> None:
    grid = rows(made, "layers", stage=1, measure="topic_match")
    assert len(grid) == 4 * 5
    best = max((row for row in grid if row["head"]), key=lambda row: row["value"])
    assert (best["layer"], best["head"]) == (DEEP, FOLLOWER)
    assert best["low"] > 0.8
    others = [row for row in grid if row["head"] and (row["layer"], row["head"]) != (DEEP, FOLLOWER)]
    assert max(row["value"] for row in others) < 0.4  # chance is 1/6
    found = topic_structure(rows(made, "layer_curves"), 1, 4)
    assert found is not None
    full = next(row for row in grid if (row["layer"], row["head"]) == (DEEP, 0))
    said = f"The full embedding's topic structure at stage 1 peaks at layer 2 of 4: {percent(full['value'], 1)} ("
    assert found.sentence.startswith(said)
    assert found.sentence.endswith("No other layer reaches that.")
    assert "guessing (by chance, or always the most frequent topic) 16.7\u00a0%" in found.evidence


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_carrier_at_one_layer_is_beyond_random_slices_there_and_nowhere_else(made: Run, stage: int) -> None:
    heads = rows(made, "layer_null", stage=stage, measure="names")
    assert len(heads) == 4 * 4
    beyond = [row for row in heads if row["verdict"] != "within"]
    assert [(row["layer"], row["head"]) for row in beyond if row["verdict"] == "above"] == [(DEEP, FOLLOWER)]
    assert {row["layer"] for row in beyond} == {DEEP}  # there, slices have parts of the carrier: noise lies below them
    summary = rows(made, "layer_null_summary", stage=stage)
    found = specialising(summary, stage)
    assert found is not None
    assert found.layers("names") == [DEEP]
    assert set(found.layers("examples")) <= {DEEP}
    assert found.false_alarms <= 0.05 * found.slicings == 10
    (row,) = (row for row in summary if (row["layer"], row["measure"]) == (DEEP, "names"))
    assert row["best_head"] == FOLLOWER
    assert row["best"] > row["best_slice"]
    assert len(row["slices_spreads"]) == len(row["best_slices"]) == row["slicings"] == 200
    said = depth_finding(summary, stage, 4)
    assert said is not None
    assert said.sentence.startswith(f"At stage {stage} heads specialise at layer 2 by topic names: ")
    noise_alone = [row for row in summary if row["layer"] != DEEP]
    said = depth_finding(noise_alone, stage, 4)
    assert said is not None
    assert said.sentence == f"At stage {stage} heads are not shown to specialise in topics at any layer."


def test_the_summary_is_of_the_heads_and_of_the_full_embedding(made: Run) -> None:
    grid = {(row["layer"], row["head"]): row["value"] for row in rows(made, "layers", stage=1, measure="topic_match")}
    for row in rows(made, "layer_null_summary", stage=1, measure="names"):
        values = [grid[row["layer"], head] for head in (1, 2, 3, 4)]
        assert row["full"] == pytest.approx(grid[row["layer"], 0])
        assert row["heads"] == pytest.approx(np.mean(values))
        assert row["spread"] == pytest.approx(np.std(values), abs=1e-6)
        assert row["difference"] == pytest.approx(row["heads"] - row["slices"], abs=1e-6)
        assert row["documents"] == 60


def test_a_role_at_a_layer_is_one_that_random_slices_do_not_have(made: Run) -> None:
    claimed = [row for row in rows(made, "layer_profiles") if row["role"]]
    assert {(row["layer"], row["head"]) for row in claimed} == {(DEEP, FOLLOWER)}
    for row in claimed:
        measure, side = BEYOND[row["role"]]
        (found,) = rows(made, "layer_null", layer=DEEP, stage=row["stage"], head=FOLLOWER, measure=measure)
        assert found["verdict"] == side


def test_too_few_labelled_documents_are_not_compared_and_have_no_role(copied: Run) -> None:
    swept(copied, documents=18)
    assert rows(copied, "layer_null") == rows(copied, "layer_null_summary") == []
    profiles = rows(copied, "layer_profiles")
    assert len(profiles) == 4 * 3 * 5
    assert not any(row["role"] for row in profiles)
    assert depth_finding([], 1, 4) is None


@pytest.mark.slow
def test_a_measure_is_as_analyse_defines_it(copied: Run) -> None:
    """The last layer's rows are the run's own vectors, and the sample is all documents: the figures must agree."""
    topics = {stage: dict(zip(TOPICS, planted(TOPICS)[stage][-1], strict=True)) for stage in (1, 2, 3)}
    analyse.run(AnalyseConfig(copied.cache, copied.name, topics="labels", model=PlantedTopics(SHAPE, topics)))
    layers.run(LayersConfig(copied.cache, copied.name, topics="labels", model=MODEL, again=True))
    for stage in (1, 3):
        grid = {(row["measure"], row["head"]): row for row in rows(copied, "layers", layer=4, stage=stage)}
        for row in rows(copied, "topic_match", stage=stage, slicing="heads", within=1):
            if row["head"] is not None:
                of = grid["topic_match", row["head"]]
                assert (of["value"], of["low"], of["high"]) == pytest.approx((row["rate"], row["low"], row["high"]))
        for row in rows(copied, "probe", stage=stage, slicing="heads", split="document"):
            of = grid["probe", row["head"]]
            assert (of["value"], of["low"], of["high"]) == pytest.approx((row["value"], row["low"], row["high"]))
        for row in rows(copied, "profiles", stage=stage, slicing="heads"):
            assert grid["selectivity", row["head"]]["value"] == pytest.approx(row["selectivity"], abs=1e-5)
            assert grid["activation", row["head"]]["value"] == pytest.approx(row["activation"], rel=1e-5)
            (of,) = rows(copied, "layer_profiles", layer=4, stage=stage, head=row["head"])
            assert (of["role"], of["mean"]) == (row["role"], pytest.approx(row["mean"], abs=1e-5))
        of_layer = {(row["measure"], row["head"]): row for row in rows(copied, "layer_null", layer=4, stage=stage)}
        assert {measure for measure, _ in of_layer} == set(LAYER_NULL_MEASURES)
        for row in rows(copied, "null", stage=stage):
            if row["measure"] in LAYER_NULL_MEASURES:
                of = of_layer[row["measure"], row["head"]]
                assert of["value"] == pytest.approx(row["value"], abs=1e-5)
                assert of["verdict"] == row["verdict"]
        (groups,) = rows(copied, "groups", stage=stage)
        curves = {row["series"]: row for row in rows(copied, "layer_curves", layer=4, stage=stage, measure="groups")}
        assert curves["within"]["value"] == pytest.approx(groups["within"], abs=1e-5)
        assert curves["between"]["value"] == pytest.approx(groups["between"], abs=1e-5)
        assert grid["groups", 0]["value"] == pytest.approx(groups["within"] - groups["between"], abs=1e-5)
        control = rows(copied, "control", stage=stage, measure="topic match within 1, mean of slices")[0]
        curves = {
            row["series"]: row for row in rows(copied, "layer_curves", layer=4, stage=stage, measure="topic_match")
        }
        assert curves["heads"]["value"] == pytest.approx(control["heads"])
        assert curves["random"]["value"] == pytest.approx(control["random"])


def test_the_follower_s_topics_and_documents_are_kept(made: Run) -> None:
    place = {"layer": DEEP, "stage": 1, "head": FOLLOWER}
    assert {row["topic"] for row in rows(made, "layer_topics", **place)} == set(TOPICS)
    read = rows(made, "layer_documents", **place)
    assert [(row["side"], row["place"]) for row in read] == [
        (side, at) for side in ("most", "least") for at in range(1, 6)
    ]
    values = [row["similarity"] for row in read]
    assert values[:5] == sorted(values[:5], reverse=True)
    assert values[5:] == sorted(values[5:])
    name, docs = noise(LABELS[read[0]["doc"]], 1)[DEEP - 1, FOLLOWER - 1], planted(TEXTS)[1][DEEP - 1]
    vector = docs[read[0]["doc"]].reshape(4, 8)[FOLLOWER - 1]
    cosine = vector @ name / np.linalg.norm(vector) / np.linalg.norm(name)
    assert values[0] == pytest.approx(cosine, abs=1e-5)


# How much of the embedding is whose


def test_every_term_has_its_part_and_all_add_up_to_one(made: Run) -> None:
    parts = {(row["kind"], row["layer"], row["head"]): row for row in rows(made, "parts")}
    assert len(parts) == 1 + 16 + 4 + 4  # embeddings, heads, each layer's heads, sums
    assert parts["head", 2, 3]["mean"] == pytest.approx(0.23)
    assert parts["heads", 2, None]["mean"] == pytest.approx(0.21 + 0.22 + 0.23 + 0.24)
    assert parts["heads", None, None]["mean"] == pytest.approx(4.4)  # 4 · (0.1 + … + 0.4) + 4 · (0.01 + … + 0.04)
    assert parts["embedding", None, None]["mean"] == pytest.approx(-3.4)
    assert parts["total", None, None]["mean"] == pytest.approx(1)
    assert {row["documents"] for row in parts.values()} == {60}
    assert parts["head", 2, 3]["spread"] == pytest.approx(0, abs=1e-6)


def test_random_pairs_have_the_mean_cosine_of_the_sample(made: Run) -> None:
    output = planted(TEXTS)[3][-1]
    unit = output / np.linalg.norm(output, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(60, 1)]
    total = next(row for row in rows(made, "pair_parts") if row["kind"] == "total")
    assert total["pairs"] == 1_000  # of 1,770
    assert total["mean"] == pytest.approx(cosines.mean(), abs=0.02)
    assert total["low"] == pytest.approx(np.percentile(cosines, 2.5), abs=0.05)
    (head,) = rows(made, "pair_parts", kind="head", layer=2, head=3)
    assert head["mean"] == pytest.approx(0.23 * total["mean"], abs=1e-6)


@pytest.mark.slow
def test_a_model_without_exact_shares_has_the_other_tables(copied: Run) -> None:
    class Uneven(PlantedLayers):
        def check_exact(self) -> None:
            raise Mistake("Its terms miss its output.")

    assert not swept(copied, model=Uneven(planted), again=True).skipped
    for table in ("parts", "part_topics", "pair_parts"):
        assert rows(copied, table) == []
    assert rows(copied, "layers")
    assert verify.verify(copied, part_digest).problems == ()


# The step


@pytest.mark.slow
def test_nothing_is_done_twice_and_other_labels_make_it_outdated(copied: Run, tmp_path: Path) -> None:
    assert swept(copied).skipped
    assert not swept(copied, again=True).skipped
    file = tmp_path / "labels.csv"
    for name, shift in (("others", 1), ("same", 0)):
        lines = "".join(f"d{doc},{TOPICS[(doc + shift) % 6]}\n" for doc in range(60))
        file.write_text(f"id,topic\n{lines}")
        label.run(LabelConfig(copied.cache, copied.name, "file", file=file, again=True))
        assert copied.manifest().steps["layers"].state == "outdated", name
    assert not swept(copied).skipped  # other words for the same labels: another source
    assert verify.verify(copied, part_digest).problems == ()


@pytest.mark.slow
def test_a_stopped_sweep_goes_on_with_what_is_missing(copied: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: copied.analysis_path(name).read_bytes() for name in STEPS["layers"].tables}
    manifest = copied.manifest()
    copied.write_manifest(replace(manifest, steps={k: v for k, v in manifest.steps.items() if k != "layers"}))
    done: list[int] = []
    measure = layers.measure_layer

    def counts(*args: Any) -> dict[str, Any]:
        done.append(1)
        return measure(*args)

    def stops(*args: Any) -> dict[str, Any]:
        if len(done) == 2:
            raise KeyboardInterrupt
        return counts(*args)

    monkeypatch.setattr(layers, "measure_layer", stops)
    with pytest.raises(KeyboardInterrupt):
        swept(copied)
    assert not copied.manifest().is_done("layers")
    monkeypatch.setattr(layers, "measure_layer", counts)
    nobody = PlantedLayers(lambda texts: pytest.fail("the pass was made already"))
    assert not swept(copied, model=nobody).skipped
    assert len(done) == 4  # each layer once
    assert {name: copied.analysis_path(name).read_bytes() for name in STEPS["layers"].tables} == before
    assert not list(copied.folder.rglob("*.npy"))


def test_a_sample_has_every_topic_and_is_of_the_right_documents(copied: Run) -> None:
    seen: list[str] = []
    listening = PlantedLayers(lambda texts: (seen.extend(texts), planted(texts))[1])
    result = swept(copied, documents=18, model=listening)
    assert result.manifest.steps["layers"].counts["documents"] == 18
    sampled = [int(text.removeprefix("Document ").rstrip(".")) for text in seen if text.startswith("Document")]
    assert sorted(LABELS[doc] for doc in sampled) == sorted(TOPICS * 3)
    assert {row["doc"] for row in rows(copied, "layer_documents")} <= set(sampled)
    with pytest.raises(Mistake, match="--documents 3 is too few"):
        LayersConfig(copied.cache, copied.name, documents=3)


def test_without_labels_the_probe_and_the_activation_remain(tmp_path: Path) -> None:
    run = write_run(tmp_path, "bare", SHAPE, last_layer, [None] * 60)
    swept(run)
    known = {row["measure"] for row in rows(run, "layers") if row["value"] is not None}
    assert known == {"probe", "groups", "activation"}
    for table in ("layer_profiles", "layer_topics", "layer_documents", "layer_null", "layer_null_summary"):
        assert rows(run, table) == [], table
    assert topic_structure(rows(run, "layer_curves"), 1, 4) is None


@pytest.mark.parametrize(
    ("table", "column", "value", "wrong"),
    [
        ("layers", "layer", 5, "'layer' values outside 1 to 4"),
        ("layers", "measure", "beauty", "'measure' values that are not known"),
        ("layers", "head", 1, "duplicate rows"),
        ("layer_curves", "series", "heads", "duplicate rows"),
        ("layer_documents", "place", 6, "'place' values outside 1 to 5"),
        ("layer_documents", "doc", 60, "'doc' values outside 0 to 59"),
        ("layer_topics", "gap", None, "has missing values in 'gap'"),
        ("layer_profiles", "mean", float("inf"), "not finite"),
        ("layer_null", "head", 0, "'head' values outside 1 to 4"),
        ("layer_null", "verdict", "perhaps", "'verdict' values that are not known"),
        ("layer_null", "p_adjusted", None, "has missing values in 'p_adjusted'"),
        ("parts", "kind", "soul", "'kind' values that are not known"),
        ("parts", "head", 0, "'head' values outside 1 to 4"),
        ("pair_parts", "mean", None, "has missing values in 'mean'"),
        ("layer_null_summary", "layer", 2, "duplicate rows"),
        ("layer_null_summary", "measure", "neighbour", "'measure' values that are not known"),
        ("layer_null_summary", "slices_spreads", [float("inf")], "not finite"),
    ],
)
def test_rows_that_the_run_cannot_have_are_refused(
    made: Run, table: str, column: str, value: object, wrong: str
) -> None:
    found, sizes = read_analysis(made, table), Sizes.of(made.manifest(), "layers")
    at = found.column_names.index(column)
    field = found.schema.field(at)
    changed = found.set_column(at, field, pa.array([value, *found[column].to_pylist()[1:]], field.type))
    with pytest.raises(Mistake, match=wrong):
        check_rows(table, changed, sizes, "python -m precompute layers planted --again")


def test_a_file_without_a_layer_is_refused(copied: Run) -> None:
    table = read_analysis(copied, "layers")
    write_table(copied.analysis_path("layers"), table.filter(pa.compute.not_equal(table["layer"], 2)), "x")
    with pytest.raises(Mistake, match="has 225 rows, not 300"):
        read_analysis(copied, "layers")


# Real weights


def test_the_last_layer_is_what_the_run_holds(demo_cache: Path, tmp_path: Path) -> None:
    """MiniLM: one pass over all 6 layers gives at the last one the vectors that 'embed' has stored, in float16."""
    run = Run(demo_cache, "demo")
    docs = [3, 50, 120, 200, 310]
    texts = run.documents(["text"])["text"].take(pa.array(docs)).to_pylist()
    manifest = run.manifest()
    found = embed_layers(tmp_path, texts, manifest.shape, "d", lambda: run_model(manifest.model), lambda *_: None)
    for stage in (1, 2, 3):
        assert found.vectors[stage].shape == (6, 5, 384)
        np.testing.assert_allclose(found.at(5, stage), run.head_vectors(stage, 0)[docs], atol=2e-3)
        assert not np.allclose(found.at(4, stage), found.at(5, stage), atol=0.05)


def test_other_weights_are_refused(
    command: Callable[..., Outcome],
    write_corpus: Callable[..., Path],
    some_rows: Callable[..., list[dict[str, Any]]],
    tiny_model: Path,
    other_model: Path,
    tmp_path: Path,
) -> None:
    source = write_corpus(some_rows(12))
    assert command("embed", "tiny", "--cache", tmp_path, "--source", source, "--model", tiny_model).status == 0
    refused = command("layers", "tiny", "--cache", tmp_path, "--model", other_model)
    assert (refused.status, "its weights differ" in refused.err) == (2, True)
    assert "layers" not in Run(tmp_path, "tiny").manifest().steps
    done = command("layers", "tiny", "--cache", tmp_path, "--model", tiny_model)
    assert done.status == 0
    assert "2 layers × 4 stages × 4 heads over 12 documents" in done.err
    assert "Nothing to do" in command("layers", "tiny", "--cache", tmp_path, "--model", tiny_model).err
    assert command("verify", "tiny", "--cache", tmp_path).status == 0


def test_every_layer_reads_what_one_layer_reads(tiny_model: Path) -> None:
    """The pass over all layers against passes that ask for one layer each."""
    from core.model.embedder import Embedder, EmbedderConfig

    texts = ["harbour violin", "enzyme glacier verdict orchard", "loom"]
    every = Embedder.load(EmbedderConfig(model=str(tiny_model))).every_layer().embed(texts)
    assert every.outputs is not None
    for layer in (1, 2):
        alone = Embedder.load(EmbedderConfig(model=str(tiny_model), layers=(layer,))).embed(texts)
        for stage in (1, 2):
            np.testing.assert_allclose(every.stage(stage, layer - 1), alone.stage(stage), atol=1e-6)
    np.testing.assert_allclose(every.stage(3, 1), alone.output, atol=1e-6)


# By hand


def test_group_gaps_by_hand() -> None:
    """Heads 1, 2 share a key/value head, and 3, 4: within (0.8 + 0.4) / 2, between (0.1 + 0.2 + 0.3 + 0.2) / 4."""
    cka = np.array([[1, 0.8, 0.1, 0.2], [0.8, 1, 0.3, 0.2], [0.1, 0.3, 1, 0.4], [0.2, 0.2, 0.4, 1]])
    nothing = np.full((4, 4), np.nan)
    found = group_gaps(Redundancy(cka, nothing, nothing, np.arange(4), np.stack([cka, cka + 0.1])), SHAPE)
    assert found is not None
    np.testing.assert_allclose(found.within.value, [0.6])
    np.testing.assert_allclose(found.between.value, [0.2])
    np.testing.assert_allclose(found.gap.value, [0.4, 0.8 - 0.15, 0.8 - 0.25, 0.4 - 0.2, 0.4 - 0.2])
    # Two folds 0.1 apart: a variance of 0.0025, Student's t 12.71; the gap is the same in both.
    np.testing.assert_allclose(found.within.high - found.within.value, [12.71 * 0.05])
    np.testing.assert_allclose(found.gap.low, found.gap.value, atol=1e-12)
    plain = ModelShape(layers=4, heads=4, kv_heads=4, hidden=32, head_dim=8)
    assert group_gaps(Redundancy(cka, nothing, nothing, np.arange(4)), plain) is None
    assert np.isnan(group_gaps(Redundancy(cka, nothing, nothing, np.arange(4)), SHAPE).gap.low).all()  # type: ignore[union-attr]


def curve(values: Sequence[float], margin: float, chance: float = 0.04, majority: float = 0.05) -> list[dict[str, Any]]:
    return [
        {"layer": at, "stage": 1, "measure": "topic_match", "series": "full", "value": value, "low": value - margin,
         "high": value + margin, "chance": chance, "majority": majority}
        for at, value in enumerate(values, start=1)
    ]  # fmt: skip


def test_a_peak_and_what_cannot_be_told_from_it() -> None:
    found = peak(curve([0.10, 0.42, 0.40, 0.20], 0.05))
    assert found is not None
    assert (found.top["layer"], found.last["layer"], found.level, found.clear) == (2, 4, (3,), True)
    assert found.baseline == 0.05  # always naming the most frequent topic is the better guess


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            [0.1, 0.4, 0.2],
            "peaks at layer 2 of 3: 40.0\u00a0% (35.0–45.0\u00a0%), against 20.0\u00a0% "
            "(15.0–25.0\u00a0%) at the last layer.",
        ),
        (
            [0.1, 0.4, 0.38],
            "but the last layer's interval overlaps with it (38.0\u00a0% (33.0–43.0\u00a0%)): no clear peak before the "
            "end.",
        ),
        (
            [0.1, 0.2, 0.4],
            "strongest at the end, at layer 3 of 3: 40.0\u00a0% (35.0–45.0\u00a0%). No other layer reaches that.",
        ),
        (
            [0.3, 0.31, 0.34],
            "strongest at the end, at layer 3 of 3: 34.0\u00a0% (29.0–39.0\u00a0%). Layers 1–2 cannot be distinguished",
        ),
        ([0.04, 0.08, 0.05], "no layer's full embedding finds the topic clearly more often than guessing does."),
    ],
)
def test_the_sentence_follows_the_numbers(values: list[float], said: str) -> None:
    found = topic_structure(curve(values, 0.05), 1, 3)
    assert found is not None
    assert said in found.sentence


def test_noise_makes_no_claim() -> None:
    """300 documents, 25 topics, 30 layers that guess: of 200 such runs at most one in twenty claims something."""
    chance = np.random.default_rng(0)
    claimed = 0
    for _ in range(200):
        hits = chance.binomial(300, 0.04, size=30) / 300
        margin = 1.96 * np.sqrt(hits * (1 - hits) / 300)
        rows = curve(hits.tolist(), 0.0, majority=0.04)
        for row, half in zip(rows, margin.tolist(), strict=True):
            row |= {"low": row["value"] - half, "high": row["value"] + half}
        found = peak(rows)
        assert found is not None
        claimed += found.clear
        assert max(row["low"] for row in rows) > 0  # an interval above 0 is no claim by itself
    assert claimed <= 10


def depth(layer: int, measure: str, spread: float, nulls: Sequence[float], **others: Any) -> dict[str, Any]:
    """A row of ``layer_null_summary``; the best slices spread as the slices do."""
    return {
        "layer": layer, "stage": 1, "measure": measure, "spread": spread, "slices_spreads": list(nulls),
        "slices_spread": float(np.median(nulls)), "slices_spread_high": max(nulls), "best": spread, "best_head": 7,
        "best_slice": float(np.median(nulls)), "best_slices": list(nulls), **others,
    }  # fmt: skip


def test_layers_are_corrected_together() -> None:
    """Of 99 slicings 2 reach the first layer's spread, p = 0.03; with a second layer at 0.5 it is 0.06, not shown."""
    nulls = [at / 100 for at in range(1, 100)]
    alone = specialising([depth(1, "names", 0.975, nulls)], 1)
    assert alone is not None
    assert alone.layers("names") == [1]
    both = specialising([depth(1, "names", 0.975, nulls), depth(2, "names", 0.505, nulls)], 1)
    assert both is not None
    assert (both.rows, both.tests, both.slicings) == ([], 2, 99)
    assert specialising([], 1) is specialising([depth(1, "selectivity", 0.9, nulls)], 1) is None


def test_a_spread_beyond_all_slicings_stands_a_correction_over_many_layers() -> None:
    """19 slicings alone give p = 0.05 at best, 2 after a correction over 40 layers."""
    chance = np.random.default_rng(3)
    nulls = [0.1 + 0.01 * chance.normal(size=19) for _ in range(40)]
    rows = [depth(at, "names", 0.1, null) for at, null in enumerate(nulls, start=1)]
    rows[16]["spread"] = rows[16]["best"] = 0.2  # ten standard deviations
    for test in (specialising, best_heads):
        found = test(rows, 1)
        assert found is not None
        assert found.layers("names") == [17]
    said = depth_finding(rows, 1, 40)
    assert said is not None
    assert (
        "By topic names the best head is head 7 at layer 17 of 40: it finds the topic for 20\u00a0% of" in said.sentence
    )


def test_random_slicings_in_place_of_heads_seldom_specialise() -> None:
    """Spreads of 12 normal values at 24 layers, 200 slicings: at most one in twenty would be shown at any layer."""
    spreads = np.random.default_rng(4).normal(size=(24, 200, 12)).std(axis=2)
    found = specialising([depth(at, "names", 1.0, null) for at, null in enumerate(spreads.tolist(), start=1)], 1)
    assert found is not None
    assert found.false_alarms <= 10


def test_false_alarms_are_the_slicings_that_would_be_shown_in_place_of_the_heads() -> None:
    """Some slicings far out, some equal; each is put in place of the heads and tested against the others."""
    null = np.round(np.random.default_rng(5).lognormal(sigma=1.2, size=(3, 60)), 2)
    found = specialising([depth(at, "names", 1.0, row.tolist()) for at, row in enumerate(null, start=1)], 1)
    shown = 0
    for out in range(60):
        others = np.delete(null, out, axis=1).tolist()
        rows = [depth(at + 1, "names", float(null[at, out]), others[at]) for at in range(3)]
        alone = specialising(rows, 1)
        assert alone is not None
        shown += bool(alone.rows)
    assert found is not None
    assert found.false_alarms == shown > 0


def test_the_mean_head_is_held_against_the_mean_slice_by_document() -> None:
    ends = [(0.01, 0.03), (0.02, 0.04), (-0.01, 0.02), (-0.05, -0.01)]
    rows = [
        depth(at, "names", 0.1, [0.1], difference=0.0, difference_low=low, difference_high=high)
        for at, (low, high) in enumerate(ends, start=1)
    ]
    said = difference_to_slices(rows, 1, "names")
    assert said.endswith(
        "at 2 of 4 layers (1–2), less at 1 (4); at 1 no difference is shown (95 % CI, paired by document)."
    )
    assert difference_to_slices(rows, 2, "names") == difference_to_slices(rows, 1, "examples") == ""


def test_the_tables_of_layers_know_the_same_names() -> None:
    assert set(LAYER_NULL_MEASURES) == set(LAYER_MEASURES)
    assert set(PART_KINDS) == {*KINDS, *GROUP_KINDS}
    assert {measure for measure, _ in BEYOND.values()} <= set(LAYER_MEASURES)


def test_two_curves_are_held_against_each_other() -> None:
    heads = [row | {"series": "heads"} for row in curve([0.5, 0.5, 0.5, 0.1], 0.05)]
    random = [row | {"series": "random"} for row in curve([0.2, 0.3, 0.45, 0.4], 0.05)]
    said = held_against(heads + random, 1, "topic_match")
    assert said.endswith("at 2 of 4 layers (1–2), less at 1 (4); at 1 their 95 % CIs overlap.")
    assert held_against(heads + random, 1, "activation") == held_against(heads, 1, "topic_match") == ""


def test_the_probe_compares_heads_with_slices_by_pairs() -> None:
    ends = [(0.01, 0.03), (-0.02, 0.04), (0.02, 0.05), (-0.05, -0.01)]
    curves = [
        {"layer": at, "stage": 1, "measure": "probe", "series": "difference", "value": sum(end) / 2, "low": end[0],
         "high": end[1], "chance": None, "majority": None}
        for at, end in enumerate(ends, start=1)
    ]  # fmt: skip
    said = probe_difference(curves, 1)
    assert said.startswith("Heads are more distinguishable than random slices at 2 of 4 layers (1, 3), less at 1 (4); ")
    assert said.endswith("paired by split).")
    assert probe_difference(curves, 2) == probe_difference([curves[0] | {"value": None}], 1) == ""
    # Overlapping curves say nothing any more: they are of different splits.
    assert held_against(curves, 1, "probe") == ""


def test_noise_is_not_more_distinguishable_than_random_slices(made: Run) -> None:
    found = rows(made, "layer_curves", measure="probe", series="difference")
    assert len(found) == 4 * 3
    assert all(row["low"] < row["value"] < row["high"] for row in found)
    assert sum(row["low"] > 0 for row in found if row["layer"] != DEEP) == 0
    assert all(row["chance"] is None for row in found)


def test_curves_of_an_older_version_are_whole_without_the_difference(made: Run) -> None:
    table, sizes = read_analysis(made, "layer_curves"), Sizes.of(made.manifest(), "layers")
    older = table.filter(pa.compute.not_equal(table["series"], "difference"))
    assert len(table) - len(older) == 4 * 3
    check_rows("layer_curves", older, sizes, "x")
    with pytest.raises(Mistake, match=f"has {len(older) + 1} rows, not {len(table)}"):
        check_rows(
            "layer_curves",
            pa.concat_tables([older, table.filter(pa.compute.equal(table["series"], "difference"))[:1]]),
            sizes,
            "x",
        )


def test_every_measure_has_rows_at_every_layer(made: Run) -> None:
    for name in MEASURES:
        found = rows(made, "layers", measure=name)
        assert len(found) == 4 * 3 * 5
        assert all(row["low"] <= row["value"] + 1e-9 and row["value"] <= row["high"] + 1e-9 for row in found), name


def test_every_aspect_is_read_from_every_head_of_every_layer(made: Run) -> None:
    """The topic is planted in one head of one layer; the other layers are noise."""
    found = rows(made, "layer_aspects")
    assert {row["aspect"] for row in found} == {"topic"}
    assert len(found) == 4 * 3 * 5
    above = {(row["layer"], row["head"]) for row in found if row["verdict"] == "above"}
    assert above == {(DEEP, FOLLOWER)}
    carrier = next(row for row in found if (row["layer"], row["stage"], row["head"]) == (DEEP, 1, FOLLOWER))
    # None of the 160 slices reaches it, though they have a quarter of its dimensions each: twice 1 in 161, of 4 heads.
    assert carrier["p_adjusted"] == pytest.approx(4 * 2 / 161)
    assert (carrier["documents"], carrier["slicings"], carrier["chance"]) == (60, 40, pytest.approx(1 / 6))
    flagged = [row for row in found if row["layer"] != DEEP and row["head"] and row["verdict"] != "within"]
    assert len(flagged) <= 0.05 * 3 * 3 * 4


def test_one_head_of_twelve_that_carries_an_aspect_is_far_beyond_random_slices() -> None:
    """A slice of 8 of 96 dimensions seldom has more than two of the carrier's, and most have none."""
    chance = np.random.default_rng(0)
    codes = np.arange(120) % 6
    vectors = chance.normal(size=(120, 12, 8))
    vectors[:, 4] += chance.normal(size=(6, 8))[codes]
    genre = sampled(Aspect("genre", "column", TOPICS, codes), np.arange(120))
    assert genre is not None
    sample = AspectSample(np.arange(120), (genre,))
    columns: Rows = {}
    add_layer_aspects(columns, 1, 1, vectors.reshape(120, -1).astype(np.float32), sample, 12, 0, None)
    heads = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)][1:]
    assert [row["head"] for row in heads if row["verdict"] != "within"] == [5]
    carrier = heads[4]
    assert carrier["low"] > carrier["slices"] + 5 * carrier["slices_sd"]
    assert carrier["p_adjusted"] == pytest.approx(12 * 2 / 481)  # beyond all of 480 slices
