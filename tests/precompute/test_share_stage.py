"""Stage 4 as a stage of a run: written by default, added later, analysed, refused where it cannot be."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from core.analysis.similarity import unit
from core.model.embedder import Embedder, EmbedderConfig
from core.model.families import FAMILIES, Family
from core.model.shares import full_shares
from core.runs.describe import adds_shares, lacks_shares
from core.runs.parts import write_table
from core.runs.results import read_analysis, read_similarity, read_tables, read_topics
from core.runs.run import Run
from core.runs.shares import read_share_space
from core.runs.steps import STEPS
from precompute.cli import main
from precompute.job.storage import Storage
from precompute.steps.layers.rows import embed_layers
from tests.support import ROOT
from tests.support.apps import figures_of, page_at
from tests.support.caches import share_rows

PAGES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("pages/*/*/page.py"))
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def cache(share_cache: Path, tmp_path: Path) -> Path:
    shutil.copytree(share_cache, tmp_path / "cache")
    return tmp_path / "cache"


def vectors(run: Run, stage: int) -> np.ndarray:
    return np.concatenate(list(run.vectors(stage))).astype(np.float32)


def test_a_new_run_has_it_and_the_basis_makes_its_rows_add_up(share_cache: Path, tiny_model: Path) -> None:
    run = Run(share_cache, "four")
    assert run.manifest().stages == (1, 2, 3, 4)
    embedder = Embedder.load(EmbedderConfig(model=str(tiny_model), shares=True))
    texts = [row["text"] for row in share_rows(36)]
    assert vectors(run, 4) == pytest.approx(embedder.embed(texts).stage(4), abs=2e-3)
    # The rest of the embedding, by an independent way: the ledger's other terms.
    left = vectors(run, 3) - read_share_space(run).full(vectors(run, 4))
    ledger = embedder.ledgers(texts[:2])
    for doc, one in enumerate(ledger):
        last = [term.kind == "head" and term.layer == 2 for term in one.terms]
        assert left[doc] == pytest.approx(one.vectors[~np.array(last)].sum(axis=0), abs=5e-3)
    assert main(["verify", "four", "--cache", str(share_cache)]) == 0


def test_the_fingerprint_is_that_of_a_run_with_three_and_figures_are_not(share_cache: Path) -> None:
    four, three = Run(share_cache, "four").manifest(), Run(share_cache, "three").manifest()
    assert four.steps["embed"].fingerprint == three.steps["embed"].fingerprint
    assert four.vectors_fingerprint != three.vectors_fingerprint == three.steps["embed"].fingerprint


@pytest.mark.parametrize(
    ("stages", "asked"),
    [
        (None, {}),
        ((1, 2, 3), {}),
        ((1, 2, 3, 4), {}),
        ((3, 1), {"store_stages": (1, 3)}),
        ((1, 3, 4), {"store_stages": (1, 3)}),
    ],
)
def test_stage_4_is_no_part_of_what_was_asked(stages: tuple[int, ...] | None, asked: dict[str, Any]) -> None:
    assert Storage(stages, shares=True).asked() == asked


def test_the_control_is_cut_before_the_projection(share_cache: Path) -> None:
    """What the tables say of random slices at stage 4 is what slices of the heads' outputs would."""
    run = Run(share_cache, "four")
    space, names = read_share_space(run), read_topics(run)
    order = np.random.default_rng(20_250_908).permutation(32)
    docs, topics = (space.resliced(one, order) for one in (vectors(run, 4), names.vectors[4]))
    near = np.einsum("nhd,thd->nht", unit(docs), unit(topics)).argmax(axis=2)
    labels = np.array([names.names.index(row["topic"]) for row in share_rows(36)])
    found = read_tables(run).pick("topic_match", stage=4, slicing="random", method="head", within=1)
    rates = {row["head"]: row["rate"] for row in found}
    assert [rates[head] for head in range(1, 5)] == pytest.approx((near == labels[:, None]).mean(axis=0).tolist())


def test_its_full_embedding_is_the_sum_of_the_shares(share_cache: Path) -> None:
    run = Run(share_cache, "four")
    space, topics = read_share_space(run), read_topics(run)
    wanted = unit(space.full(vectors(run, 4))) @ unit(space.full(topics.vectors[4])).T
    found = np.concatenate(list(read_similarity(run, 4, len(topics.names))))
    assert found[:, 0] == pytest.approx(wanted, abs=2e-3)
    side_by_side = unit(vectors(run, 4)) @ unit(topics.vectors[4]).T
    assert np.abs(side_by_side - wanted).max() > 0.02, "heads side by side are something else"


def test_a_run_with_three_stays_as_it_is_and_is_told_how_to_get_it(
    cache: Path, tiny_model: Path, command: Callable[..., Any]
) -> None:
    run = Run(cache, "three")
    before = run.manifest()
    asked = ("--source", cache / "corpus.jsonl", "--model", tiny_model, "--part-size", 15, "--cache", cache)
    outcome = command("embed", "three", *asked)
    assert outcome.status == 0
    assert "python -m precompute all three --stages 1 2 3 4" in outcome.err
    assert run.manifest() == before
    assert lacks_shares(before)
    assert adds_shares("three", before) in outcome.err


def test_it_is_added_without_touching_the_others(cache: Path, tiny_model: Path, command: Callable[..., Any]) -> None:
    run = Run(cache, "three")
    files = list(run.folder.rglob("*.parquet"))
    before = {path: path.read_bytes() for path in files}
    added = ("embed", "three", "--stages", 1, 2, 3, 4, "--model", tiny_model, "--cache", cache)
    outcome = command(*added)
    assert outcome.status == 0, outcome.err
    assert "stage 4 (share) was added to 36 documents" in outcome.err
    assert {path: path.read_bytes() for path in before} == before
    assert run.manifest().stages == (1, 2, 3, 4)
    assert np.array_equal(vectors(run, 4), vectors(Run(cache, "four"), 4))
    assert command("verify", "three", "--cache", cache).status == 0
    assert "Nothing to do" in command(*added).err


def test_figures_of_three_stages_are_made_again_once_there_is_a_fourth(
    cache: Path, tiny_model: Path, command: Callable[..., Any]
) -> None:
    where = ("--model", tiny_model, "--cache", cache)
    assert command("analyse", "three", *where, "--topics", "labels").status == 0
    outcome = command("embed", "three", "--stages", 1, 2, 3, 4, *where)
    assert "must be rebuilt" in outcome.err
    assert "analyse" not in Run(cache, "three").manifest().steps, "a page asks for it, and shows no figure of three"
    assert command("analyse", "three", *where, "--topics", "labels").status == 0
    assert read_tables(Run(cache, "three")).pick("profiles", stage=4)


def test_another_corpus_is_no_addition(cache: Path, tiny_model: Path, command: Callable[..., Any]) -> None:
    (cache / "other.jsonl").write_text(json.dumps({"id": "x", "text": "violin"}) + "\n")
    asked = ("--source", cache / "other.jsonl", "--model", tiny_model, "--cache", cache)
    outcome = command("embed", "three", "--stages", 1, 2, 3, 4, *asked)
    assert outcome.status == 2
    assert "has vectors from different inputs" in outcome.err


def test_a_model_without_exact_shares_gets_three_stages_and_a_sentence(
    cache: Path, tiny_model: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = FAMILIES["bert"]
    monkeypatch.setitem(FAMILIES, "bert", Family(bare.projection, bare.mlp))
    asked = ("--source", cache / "corpus.jsonl", "--model", tiny_model, "--cache", cache)
    outcome = command("embed", "refused", *asked)
    assert outcome.status == 0, outcome.err
    manifest = Run(cache, "refused").manifest()
    assert manifest.stages == (1, 2, 3)
    assert "Stage 4 is left out. Shares cannot be computed for models of type 'bert'" in outcome.err
    assert not lacks_shares(manifest)
    outcome = command("embed", "insisted", *asked, "--stages", 1, 4)
    assert outcome.status == 2
    assert "Shares cannot be computed" in outcome.err
    assert not Run(cache, "insisted").exists()


def test_stage_4_alone_is_refused(command: Callable[..., Any], tmp_path: Path) -> None:
    outcome = command("embed", "alone", "--stages", 4, "--cache", tmp_path)
    assert outcome.status == 2
    assert "Stage 4 is stored beside others" in outcome.err


def test_aspects_are_read_at_stage_4_too(cache: Path, command: Callable[..., Any]) -> None:
    assert command("aspects", "four", "--cache", cache).status == 0
    found = read_analysis(Run(cache, "four"), "aspects").to_pylist()
    assert {row["stage"] for row in found} == {1, 2, 3, 4}
    assert command("verify", "four", "--cache", cache).status == 0


def test_zero_shot_labels_go_by_the_model_s_own_embedding(
    cache: Path, tiny_model: Path, command: Callable[..., Any]
) -> None:
    run = Run(cache, "four")
    names = read_topics(run)
    nearest = (unit(vectors(run, 3)) @ unit(names.vectors[3]).T).argmax(axis=1)
    asked = ("--labels", "zero-shot", "--topics", "labels", "--model", tiny_model, "--cache", cache)
    assert command("label", "four", *asked).status == 0
    assert run.documents(["topic"])["topic"].to_pylist() == [names.names[at] for at in nearest]
    assert run.manifest().steps["label"].options["stage"] == 3


def test_a_damaged_basis_is_found(cache: Path, command: Callable[..., Any]) -> None:
    path = Run(cache, "four").share_basis_path
    path.write_bytes(path.read_bytes()[:-30])
    outcome = command("verify", "four", "--cache", cache)
    assert outcome.status != 0
    assert "share_basis.parquet" in outcome.out + outcome.err


def test_int8_and_several_workers_store_it_too(cache: Path, tiny_model: Path, command: Callable[..., Any]) -> None:
    asked = ("--source", cache / "corpus.jsonl", "--model", tiny_model, "--part-size", 15, "--cache", cache)
    assert command("embed", "small", *asked, "--store-dtype", "int8", "--stages", 3, 4).status == 0
    small = Run(cache, "small")
    assert small.manifest().stages == (3, 4)
    assert vectors(small, 4) == pytest.approx(vectors(Run(cache, "four"), 4), abs=0.02)
    assert command("verify", "small", "--cache", cache).status == 0


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_page_shows_stage_4(share_cache: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(share_cache, page, monkeypatch, run="four", stage="4")
    assert app.title
    assert not app.error


@pytest.mark.slow
def test_the_lab_s_full_embedding_at_stage_4_is_the_sum(share_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rest it is the model's own embedding; without, what the heads' shares add up to."""
    run, lab = Run(share_cache, "four"), "pages/use/retrieval_lab/page.py"
    titles = run.documents(["title"])["title"].to_pylist()
    own = int(run.vector_docs()[0])

    def best(rows: np.ndarray) -> list[str]:
        scores = unit(rows) @ unit(rows)[own]
        return [titles[doc] for doc in np.argsort(-scores, kind="stable") if doc != own][:10]

    def found(app: Any) -> list[str]:
        """On the left."""
        bodies = [one.proto.body for one in app.get("html") if one.proto.body.startswith("<details")]
        return [re.search(r'hs-title">\d+\. (?:✓ )?(.*?)</span>', body)[1] for body in bodies[:10]]  # type: ignore[index]

    app = page_at(share_cache, lab, monkeypatch, run="four", stage="4")
    assert any(one.value.startswith("rest + Σ weight × share") for one in app.caption)
    assert found(app) == best(vectors(run, 3))
    next(one for one in app.toggle if one.label == "Keep the rest").set_value(False).run()
    assert not app.exception
    assert any(one.value.startswith("Σ weight × share") for one in app.caption)
    assert found(app) == best(read_share_space(run).full(vectors(run, 4)))
    other = page_at(share_cache, lab, monkeypatch, run="four", stage="3")
    assert not [one for one in other.toggle if one.label == "Keep the rest"]


@pytest.mark.slow
def test_the_lab_says_what_full_is_at_stage_4(share_cache: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def notes(where: Path) -> str:
        app = page_at(where, "pages/use/retrieval_lab/page.py", monkeypatch, run="four", stage="4", tab="metrics")
        assert any("side by side" in chart.spec for chart in figures_of(app))
        return " ".join(one.value.replace("\\", "") for one in app.caption)

    assert "“full” is the model's own embedding" in notes(share_cache)
    as_of_version_0_2_0(Run(cache, "four"))
    assert "for the full embedding, run `python -m precompute retrieve four`" in notes(cache)


def as_of_version_0_2_0(run: Run) -> None:
    """The shares side by side were called 'full', and the model's own embedding was not ranked by."""
    for name in ("retrieval", "pruned", "pruning", "importance"):
        table = read_analysis(run, name)
        older = table.filter(pc.invert(pc.and_(pc.equal(table["way"], "full"), pc.equal(table["stage"], 4))))
        at = table.column_names.index("way")
        ways = pc.if_else(pc.equal(older["way"], "side by side"), "full", older["way"])
        digest = run.manifest().steps["retrieve"].fingerprint
        write_table(run.analysis_path(name), older.set_column(at, table.schema.field(at), ways), digest)


def test_retrieval_by_the_full_embedding_of_stage_4_is_that_of_stage_3(share_cache: Path) -> None:
    rows = read_analysis(Run(share_cache, "four"), "retrieval").to_pylist()
    of = {
        stage: [{**row, "stage": 0} for row in rows if (row["stage"], row["way"]) == (stage, "full")]
        for stage in (1, 3, 4)
    }
    assert of[4] == of[3] != of[1]
    beside = [row["value"] for row in rows if (row["stage"], row["way"]) == (4, "side by side")]
    assert len(beside) == len(of[4])
    assert beside != [row["value"] for row in of[4]]


def test_heads_of_stage_4_are_pruned_side_by_side(share_cache: Path) -> None:
    """A sum has as many numbers with fewer heads: there is nothing to save."""
    rows = read_analysis(Run(share_cache, "four"), "pruned").to_pylist()
    assert {row["way"] for row in rows if row["stage"] == 4} == {"side by side"}
    assert {row["way"] for row in rows if row["stage"] < 4} == {"full"}


def test_what_version_0_2_0_called_full_at_stage_4_is_read_as_side_by_side(
    cache: Path, command: Callable[..., Any]
) -> None:
    run = Run(cache, "four")
    before = {name: read_analysis(run, name) for name in ("retrieval", "pruned", "pruning", "importance")}
    as_of_version_0_2_0(run)
    for name, table in before.items():
        own = table.filter(pc.invert(pc.and_(pc.equal(table["way"], "full"), pc.equal(table["stage"], 4))))
        assert read_analysis(run, name).equals(own), name
    outcome = command("report", "four", "--cache", cache)
    assert (outcome.status, "stage 4: best way" in outcome.out) == (0, True)


# Every layer


@pytest.fixture
def swept(swept_cache: Path) -> Run:
    return Run(swept_cache, "four")


def test_a_layer_s_shares_are_its_terms_of_the_ledger(tiny_model: Path, tmp_path: Path) -> None:
    """By an independent way: the ledger adds up the final embedding without any basis."""
    embedder = Embedder.load(EmbedderConfig(model=str(tiny_model), shares=True))
    texts = [row["text"] for row in share_rows(5)]
    rows = embed_layers(tmp_path, texts, embedder.info.shape, "d", lambda: embedder, lambda *_: None, shares=True)
    for doc, ledger in enumerate(embedder.ledgers(texts)):
        for layer in range(2):
            space = rows.space(layer, 4)
            assert space is not None
            found = full_shares(rows.at(layer, 4)[[doc]], space.directions)[0]  # [head, hidden]
            own = [term.kind == "head" and term.layer == layer + 1 for term in ledger.terms]
            assert found == pytest.approx(ledger.vectors[own], abs=1e-5)
            assert space.full(rows.at(layer, 4)[[doc]])[0] == pytest.approx(found.sum(axis=0), abs=1e-5)


def test_the_sweep_s_last_layer_at_stage_4_is_what_analyse_measures(swept: Run) -> None:
    rows = [row for row in read_analysis(swept, "layers").to_pylist() if row["stage"] == 4]
    assert len(rows) == 2 * 5 * 5
    grid = {(row["measure"], row["head"]): row["value"] for row in rows if row["layer"] == 2}
    tables = read_tables(swept)
    for row in tables.pick("topic_match", stage=4, slicing="heads", within=1):
        if row["head"] is not None:
            assert grid["topic_match", row["head"]] == pytest.approx(row["rate"])
    for row in tables.pick("profiles", stage=4, slicing="heads"):
        assert grid["activation", row["head"]] == pytest.approx(row["activation"], rel=1e-3)  # stored in float16
    null = {(row["measure"], row["head"]): row for row in tables.pick("null", stage=4)}
    compared = [row for row in read_analysis(swept, "layer_null").to_pylist() if row["stage"] == 4]
    assert {row["layer"] for row in compared} == {1, 2}
    for row in compared:
        if row["layer"] == 2:
            assert row["value"] == pytest.approx(null[row["measure"], row["head"]]["value"], abs=5e-3)
    summary = {row["measure"]: row for row in tables.pick("null_summary", stage=4)}
    for row in read_analysis(swept, "layer_null_summary").to_pylist():
        if (row["layer"], row["stage"]) == (2, 4):
            # The same slicings, cut before the projection.
            assert row["slices"] == pytest.approx(summary[row["measure"]]["slices"], abs=5e-3)
    assert {row["stage"] for row in read_analysis(swept, "layer_aspects").to_pylist()} == {1, 2, 3, 4}
    assert main(["verify", "four", "--cache", str(swept.cache)]) == 0


@pytest.mark.slow
def test_pages_offer_stage_4_at_every_layer(swept: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(swept.cache, "pages/understand/layers/page.py", monkeypatch, run="four", stage="4", layer="1")
    assert app.segmented_control(key="stage").value == 4
    assert any(one.value == "Layer 1, full embedding, at stage 4" for one in app.subheader)
    assert any("without those of other layers" in one.value for one in app.caption)


@pytest.mark.slow
def test_a_sweep_without_stage_4_opens_and_names_the_command(
    swept: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(swept.cache, tmp_path / "older")
    run = Run(tmp_path / "older", "four")
    manifest = run.manifest()
    step = manifest.steps["layers"]
    for name in STEPS["layers"].tables:
        table = read_analysis(run, name)
        if "stage" in table.column_names:
            write_table(run.analysis_path(name), table.filter(pc.less(table["stage"], 4)), step.fingerprint)
    counts = {name: count for name, count in step.counts.items() if name != "stages"}
    run.write_manifest(replace(manifest, steps={**manifest.steps, "layers": replace(step, counts=counts)}))
    for name in STEPS["layers"].tables:
        read_analysis(run, name)  # checks that the rows are whole
    app = page_at(run.cache, "pages/understand/layers/page.py", monkeypatch, run="four", stage="4")
    assert app.segmented_control(key="stage").value == 1
    wanted = "To measure stage 4 at every layer, run `python -m precompute layers four`."
    assert wanted in [one.value for one in app.caption]
