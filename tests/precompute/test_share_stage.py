"""Stage 4 as a stage of a run: written by default, added later, analysed, refused where it cannot be."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.analysis.similarity import unit
from core.model.embedder import Embedder, EmbedderConfig
from core.model.families import FAMILIES, Family
from core.runs.describe import adds_shares, lacks_shares
from core.runs.results import read_analysis, read_similarity, read_tables, read_topics
from core.runs.run import Run
from core.runs.shares import read_share_space
from precompute.cli import main
from precompute.job.storage import Storage
from tests.support import ROOT
from tests.support.apps import page_at
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
    assert "must be made again" in outcome.err
    assert "analyse" not in Run(cache, "three").manifest().steps, "a page asks for it, and shows no figure of three"
    assert command("analyse", "three", *where, "--topics", "labels").status == 0
    assert read_tables(Run(cache, "three")).pick("profiles", stage=4)


def test_another_corpus_is_no_addition(cache: Path, tiny_model: Path, command: Callable[..., Any]) -> None:
    (cache / "other.jsonl").write_text(json.dumps({"id": "x", "text": "violin"}) + "\n")
    asked = ("--source", cache / "other.jsonl", "--model", tiny_model, "--cache", cache)
    outcome = command("embed", "three", "--stages", 1, 2, 3, 4, *asked)
    assert outcome.status == 2
    assert "holds vectors of other inputs" in outcome.err


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
def test_what_the_job_ranks_by_at_stage_4_is_named_for_what_it_is(
    share_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = "pages/use/retrieval_lab/page.py"
    app = page_at(share_cache, lab, monkeypatch, run="four", stage="4", tab="metrics")
    assert any(
        "by the heads' shares side by side, not by their sum" in one.value.replace("\\", "") for one in app.caption
    )
    assert any("side by side" in chart.proto.spec for chart in app.get("plotly_chart"))
