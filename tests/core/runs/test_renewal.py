"""A run that is made anew while people read it: they have the old one, whole, until the new one is finished."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.model.embedder import Embedder, EmbedderConfig
from core.model.shape import ModelShape
from core.runs import replace as replacement
from core.runs.replace import NewVersion, begin_copy, is_being_renewed, new_versions, publish
from core.runs.results import read_tables
from core.runs.run import Run, run_names
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from precompute.job.work import working_on
from precompute.status import as_text, status
from precompute.steps.analyse import step as analyse
from precompute.steps.embed import step as embed
from precompute.steps.embed.staging import finished_paths
from precompute.steps.embed.step import EmbedConfig
from precompute.steps.label import step as label
from precompute.steps.label.config import LabelConfig
from precompute.steps.project import step as project
from precompute.steps.project.config import ProjectConfig
from precompute.table import STEP_COMMANDS
from tests.support.apps import page_at
from tests.support.synthetic import PlantedTopics, write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
TOPICS = ("rivers", "engines")
MODEL = PlantedTopics(SHAPE, {})


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a folder takes another one's place; the second is for systems that cannot do it in one step."""
    if request.param == "two renames":
        monkeypatch.setattr(replacement, "exchanged", lambda *_: False)
    return str(request.param)


BOTH_WAYS = pytest.mark.parametrize("way", ["one exchange", "two renames"], indirect=True)


@pytest.fixture
def config(tmp_path: Path, tiny_model: Path, write_corpus: Callable[..., Path], one_thread: None) -> EmbedConfig:
    """Three documents in three parts, of a run that is there already with other ones."""
    corpus = write_corpus([{"text": text} for text in ("loom", "enzyme", "glacier")], "new.jsonl")
    model, old = EmbedderConfig(model=str(tiny_model)), ["harbour", "violin"]
    write_run(tmp_path / "cache", "run", SHAPE, lambda *_: np.ones((2, 32)), [None, None], texts=old)
    return EmbedConfig(tmp_path / "cache", "run", str(corpus), model, part_size=1, replace=True)


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Twelve documents with labels and figures."""
    cache, vectors = tmp_path_factory.mktemp("analysed"), np.random.default_rng(0).normal(size=(12, 32))
    labels = [TOPICS[doc % 2] for doc in range(12)]
    run = write_run(cache, "run", SHAPE, lambda stage, first, n: vectors[first : first + n], labels)
    label.run(LabelConfig(cache, "run", "column"))
    analyse.run(analyse.AnalyseConfig(cache, "run", model=MODEL))
    return run


@pytest.fixture
def planted(tmp_path: Path, analysed: Run) -> Run:
    shutil.copytree(analysed.folder, tmp_path / "cache" / "run")
    return Run(tmp_path / "cache", "run")


def texts(run: Run) -> list[str]:
    """Of a run that is whole."""
    assert verify(run, part_digest).problems == ()
    found: list[str] = run.documents(["text"])["text"].to_pylist()
    return found


def left(run: Run) -> list[str]:
    """What is in the cache beside the run and its lock."""
    return sorted(path.name for path in run.cache.iterdir() if path.name not in (run.name, f".lock-{run.name}"))


def inodes(run: Run) -> set[int]:
    return {path.stat().st_ino for path in run.folder.rglob("*.parquet")}


# Embedded anew


@BOTH_WAYS
def test_while_a_run_is_embedded_anew_the_old_one_is_read(
    config: EmbedConfig, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, embed_, looks = Run(config.cache, "run"), Embedder.embed, []

    def look(self: Embedder, given: list[str], **options: Any) -> Any:
        looks.append((texts(run), run_names(run.cache), is_being_renewed(run)))
        return embed_(self, given, **options)

    monkeypatch.setattr(Embedder, "embed", look)
    embed.run(config)
    assert looks == [(["harbour", "violin"], ["run"], True)] * 3
    assert texts(run) == ["loom", "enzyme", "glacier"]
    assert left(run) == []
    assert not is_being_renewed(run)


def stopped(config: EmbedConfig, monkeypatch: pytest.MonkeyPatch, exchanged: bool) -> None:
    """The job ends as if killed just before or just after the new run has taken the old one's place."""

    put_in_place = replacement.put_in_place

    def dies(*folders: Path) -> None:
        if exchanged:
            put_in_place(*folders)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(replacement, "put_in_place", dies)
        with pytest.raises(KeyboardInterrupt):
            embed.run(config)


@BOTH_WAYS
def test_killed_before_the_exchange_the_next_start_ends_it_and_embeds_nothing(
    config: EmbedConfig, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(config.cache, "run")
    stopped(config, monkeypatch, exchanged=False)
    assert texts(run) == ["harbour", "violin"]
    monkeypatch.setattr(Embedder, "load", lambda *_: pytest.fail("loaded"))
    embed.run(config)
    assert texts(run) == ["loom", "enzyme", "glacier"]
    assert left(run) == []


@BOTH_WAYS
def test_killed_after_the_exchange_the_old_run_does_not_come_back(
    config: EmbedConfig, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(config.cache, "run")
    stopped(config, monkeypatch, exchanged=True)
    assert texts(run) == ["loom", "enzyme", "glacier"]
    assert len(left(run)) == 1
    assert new_versions(run) == [], "what was replaced is no new version"
    assert embed.run(replace(config, replace=False)).skipped
    assert left(run) == []
    assert texts(run) == ["loom", "enzyme", "glacier"]


@pytest.mark.parametrize("way", ["two renames"], indirect=True)
def test_killed_between_the_two_renames(config: EmbedConfig, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, rename = Run(config.cache, "run"), os.rename

    def once(source: Path, target: Path) -> None:
        if target == run.folder:
            raise KeyboardInterrupt
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", once)
        with pytest.raises(KeyboardInterrupt):
            embed.run(config)
    assert run_names(run.cache) == []
    with pytest.raises(Exception, match=r"was being replaced when its job was killed\. Start the same command again"):
        analyse.run(analyse.AnalyseConfig(run.cache, "run", model=MODEL))
    embed.run(config)
    assert texts(run) == ["loom", "enzyme", "glacier"]
    assert left(run) == []


def test_killed_for_real_refused_meanwhile_and_gone_on_with(
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    some_rows: Callable[..., list[dict[str, Any]]],
    start_job: Callable[..., subprocess.Popen[str]],
    command: Callable[..., Any],
    one_thread: None,
) -> None:
    cache = tmp_path / "cache"
    run, new = Run(cache, "run"), NewVersion(cache, "run")
    common = ("embed", "run", "--cache", cache, "--model", tiny_model, "--part-size", 2, "--replace")
    write_run(cache, "run", SHAPE, lambda *_: np.ones((1, 32)), [None], texts=["harbour"])
    rows = some_rows(120, words=100)
    arguments = (*common, "--source", write_corpus(rows))
    job = start_job(*arguments, "--quiet")
    while len(new.parts(3)) < 3:
        assert job.poll() is None, job.communicate()
        time.sleep(0.002)
    job.send_signal(signal.SIGSTOP)  # at work for as long as we look
    for arguments_of_second in (arguments, ("analyse", "run", "--cache", cache)):
        second = command(*arguments_of_second)
        assert second.status == 2
        assert second.err.startswith(f"headscope: Another job is working on run 'run': process {job.pid} on ")
    (record,) = json.loads(command("status", "--cache", cache, "--json").out)
    assert (record["documents"], record["at_work"], record["steps"]["embed"]["state"]) == (1, True, "done")
    (building,) = record["new_versions"]
    assert (building["made_by"], building["state"], building["steps"]["embed"]["state"]) == (
        "replace", "running", "running"
    )  # fmt: skip
    job.send_signal(signal.SIGKILL)
    job.communicate()
    assert texts(run) == ["harbour"]
    said = command("status", "run", "--cache", cache).out
    assert "new one    was being built, but stopped, with --replace; readers see the run above" in said
    assert command("verify", "run", "--cache", cache).status == 0
    kept = len(finished_paths(new))
    told = command(*arguments)
    assert told.status == 0
    assert f"({kept} of 60 parts were finished before)" in told.err
    assert texts(run) == [row["text"] for row in rows]
    assert left(run) == []


def test_a_draft_of_other_inputs_is_not_gone_on_with(config: EmbedConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(config.cache, "run")
    stopped(config, monkeypatch, exchanged=False)
    corpus = Path(config.source)
    corpus.write_text(json.dumps({"text": "orchard"}) + "\n")
    assert embed.run(config).parts_kept == 0
    assert texts(run) == ["orchard"]
    assert left(run) == []


def test_embed_alone_says_what_went_with_the_old_run(
    planted: Run, tiny_model: Path, write_corpus: Callable[..., Path], command: Callable[..., Any]
) -> None:
    options = ("--cache", planted.cache, "--source", write_corpus([{"text": "loom"}]), "--model", tiny_model)
    said = command("embed", "run", *options, "--replace").err
    assert (
        "The results of label and analyse were deleted with the previous run: 'python -m precompute all run' rebuilds"
        in said
    )
    assert set(planted.manifest().steps) == {"embed"}


@pytest.mark.slow
def test_all_with_replace_shows_the_new_run_after_its_last_step(
    planted: Run,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    some_rows: Callable[..., list[dict[str, Any]]],
    command: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    one_thread: None,
) -> None:
    old, rows, projected, seen = texts(planted), some_rows(5), project.run, []

    def look(*arguments: Any) -> Any:
        made = projected(*arguments)
        seen.append((texts(planted), planted.manifest().is_done("analyse"), planted.is_locked()))
        return made

    monkeypatch.setattr("precompute.steps.project.command.COMMAND", replace(STEP_COMMANDS["project"], run=look))
    options = ("--cache", planted.cache, "--source", write_corpus(rows), "--model", tiny_model, "--iterations", 30)
    outcome = command("all", "run", *options, "--replace")
    assert outcome.status == 0, outcome.err
    assert "were deleted with the previous run" not in outcome.err
    assert seen == [(old, True, True)]
    assert texts(planted) == [row["text"] for row in rows]
    assert all(step.state == "done" for step in planted.manifest().steps.values())
    made = ["embed", "search", "label", "analyse", "project", "layers", "aspects", "attention"]
    assert list(planted.manifest().steps) == made
    assert left(planted) == []


# Later steps


def with_all_files_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr("os.link", refuse)


@pytest.mark.parametrize("links", [True, False])
def test_figures_that_are_made_again_are_the_old_ones_until_all_of_them_are_new(
    planted: Run, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        with_all_files_copied(monkeypatch)
    before, made, looks = read_tables(planted), analyse.analyse_stage, []

    def look(run: Run, *arguments: Any) -> Any:
        assert read_tables(planted).rows == before.rows
        looks.append((planted.manifest().is_done("analyse"), verify(planted, part_digest).problems))
        if len(looks) == 3:
            raise KeyboardInterrupt
        return made(run, *arguments)

    centred = analyse.AnalyseConfig(planted.cache, "run", centre=True, model=MODEL)
    monkeypatch.setattr(analyse, "analyse_stage", look)
    with pytest.raises(KeyboardInterrupt):
        analyse.run(centred)
    (record,) = status(planted.cache, "run")
    assert record["steps"]["analyse"]["state"] == "done"
    assert record["new_versions"][0]["steps"]["analyse"]["state"] == "stopped"
    assert "was being built, but stopped, by 'analyse'" in as_text([record])
    analyse.run(centred)
    assert looks == [(True, ())] * 4, "the two stages that were there were not made again"
    assert read_tables(planted).rows != before.rows
    assert verify(planted, part_digest).problems == ()
    assert left(planted) == []


def test_what_a_step_does_not_change_is_shared_and_not_copied(planted: Run) -> None:
    before = inodes(planted)
    project.run(ProjectConfig(planted.cache, "run", iterations=30))
    assert before < inodes(planted), "never made before: in the run itself"
    project.run(ProjectConfig(planted.cache, "run", iterations=30, again=True))
    assert before < inodes(planted)
    assert left(planted) == []


def test_a_copy_of_what_the_run_no_longer_is_goes(planted: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed 'analyse' must not bring back the labels of before."""
    monkeypatch.setattr(analyse, "analyse_stage", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        analyse.run(analyse.AnalyseConfig(planted.cache, "run", centre=True, model=MODEL))
    assert left(planted) == [".building-analyse-run"]
    label.run(LabelConfig(planted.cache, "run", "zero-shot", model=MODEL))
    assert left(planted) == []
    assert planted.manifest().is_outdated("analyse")


def test_a_mistake_before_anything_is_begun_leaves_nothing(planted: Run) -> None:
    project.run(ProjectConfig(planted.cache, "run", iterations=30))
    with pytest.raises(Exception, match="--perplexity"):
        project.run(ProjectConfig(planted.cache, "run", perplexity=1_000))
    assert left(planted) == []
    assert planted.manifest().is_done("project")


def test_all_with_other_labels_changes_labels_and_figures_together(
    planted: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look() -> None:
        source = planted.documents(["label_source"])["label_source"][0].as_py()
        seen.append((source, planted.manifest().is_done("analyse")))

    with working_on(planted, "all") as work:
        label.run(LabelConfig(planted.cache, "run", "zero-shot", model=MODEL), work=work)
        look()
        analyse.run(analyse.AnalyseConfig(planted.cache, "run", model=MODEL), work=work)
        look()
    look()
    assert seen == [("column", True), ("column", True), ("zero-shot", True)]
    assert verify(planted, part_digest).problems == ()
    assert left(planted) == []


# Readers


def test_a_reader_of_the_old_run_reads_on_in_the_files_it_has_open(planted: Run) -> None:
    with planted.documents_path.open("rb") as file:
        new = begin_copy(planted, "analyse")
        new.write_manifest(new.manifest())
        publish(new)
        assert file.read(4) == b"PAR1"


def test_a_run_by_a_second_name_is_renewed_in_its_own_folder(planted: Run) -> None:
    """A link within the cache: one lock, one folder, and the link stays."""
    (planted.cache / "latest").symlink_to("run")
    latest = Run(planted.cache, "latest")
    with planted.lock():
        assert latest.is_locked()
    analyse.run(analyse.AnalyseConfig(planted.cache, "latest", centre=True, model=MODEL))
    assert (planted.cache / "latest").is_symlink()
    assert planted.manifest().steps["analyse"].options["centre"] is True
    assert left(planted) == ["latest"]


def test_a_page_says_that_a_new_version_is_being_built(planted: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "A new version of this run is being built. You see the old one until it is finished."
    begin_copy(planted, "analyse")
    app = page_at(planted.cache, "pages/understand/stages/page.py", monkeypatch)
    assert sentence not in [caption.value for caption in app.sidebar.caption], "nobody is at work on it"
    with planted.lock():
        app.run()
    assert sentence in [caption.value for caption in app.sidebar.caption]
    assert not [info for info in app.info if "figures" in info.value], "and shows the old ones"
