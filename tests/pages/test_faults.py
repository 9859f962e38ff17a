"""What goes wrong while people read: a cache that vanishes, a run that is rebuilt, a full disk, a file cut short."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.errors import Mistake
from core.model.shape import ModelShape
from core.runs.run import Run
from core.runs.verify import verify
from pages.shared import data
from precompute.job.fingerprint import part_digest
from precompute.steps.analyse import step as analyse
from precompute.steps.label import step as label
from precompute.steps.label.config import LabelConfig
from tests.pages.test_fuzz_address import PAGES
from tests.support.apps import page_at
from tests.support.synthetic import PlantedTopics, write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)


@pytest.fixture
def cache(hostile_cache: Path, tmp_path: Path) -> Path:
    shutil.copytree(hostile_cache / "hostile", tmp_path / "cache" / "hostile")
    return tmp_path / "cache"


def said(app: AppTest) -> str:
    kinds = ("subheader", "info", "warning", "error", "caption")
    return "\n".join(str(element.value) for kind in kinds for element in app.get(kind)).replace("\\", "")


@pytest.mark.parametrize("page", PAGES)
def test_a_cache_that_vanishes_and_comes_back(cache: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(cache, page, monkeypatch)
    cache.rename(cache.with_name("gone"))
    app.run()
    assert not app.exception
    assert "The cache folder is missing." in said(app)
    cache.with_name("gone").rename(cache)
    app.run()
    assert not app.exception
    assert "The cache folder is missing." not in said(app)


@pytest.mark.parametrize(
    "file",
    [
        "documents.parquet",
        "topics.parquet",
        "heads/stage=1/part-00000.parquet",
        "similarity/stage=1.parquet",
        "map/stage=1.parquet",
        "analysis/profiles.parquet",
        "analysis/probe.parquet",
        "analysis/original_topics.parquet",
    ],
)
def test_a_file_that_is_cut_short_costs_a_sentence(cache: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cache / "hostile" / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    app = page_at(cache, PAGES[0], monkeypatch)
    told = said(app)
    for page in PAGES[1:]:
        app.switch_page(page).run()
        assert not app.exception, page
        told += said(app)
    assert f"{path.name} cannot be read: it is damaged. Rebuild it with 'python -m precompute" in told


def variant(cache: Path, name: str, number: int) -> Run:
    """Twenty documents whose texts and vectors both say ``number``."""
    vectors = np.full((20, 32), float(number))
    texts = [f"{number}" for _ in range(20)]
    run = write_run(
        cache, name, SHAPE, lambda stage, first, count: vectors[first : first + count], [None] * 20, texts=texts
    )
    manifest = json.loads((run.folder / "manifest.json").read_text())
    manifest["steps"]["embed"]["fingerprint"] = f"planted {number}"
    manifest["steps"]["embed"]["finished"] = f"2026-01-01T00:00:{number:02d}+00:00"
    (run.folder / "manifest.json").write_text(json.dumps(manifest))
    return run


def test_what_was_read_of_the_old_run_is_not_joined_by_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path))
    variant(tmp_path, "run", 1)
    old = data.run_state("run")
    assert data.documents(old).row(0)["text"] == "1"
    variant(tmp_path, "run", 2)
    with pytest.raises(Mistake, match=r"The run 'run' was rebuilt while this page was loading\. Reload the page\."):
        data.head_index(old, 1)
    assert data.documents(old).row(0)["text"] == "1", "what was read before is still the old one"
    new = data.run_state("run")
    assert (data.documents(new).row(0)["text"], data.head_index(new, 1).vectors[0, 0, 0]) == ("2", 2.0)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(Mistake, match="The run 'run' no longer exists"):
        data.head_index(new, 2)


REBUILD = """
import shutil, sys
from pathlib import Path
from core.runs import replace as exchange
from core.runs.replace import NewVersion, publish
from core.runs.run import Run
cache = Path(sys.argv[1])
if sys.argv[2] == "two renames":
    exchange.exchanged = lambda *_: False
run, draft = Run(cache, "run"), NewVersion(cache, "run")
print("ready", flush=True)
for turn in range(1, 10_000):
    sys.stdin.readline()
    with run.lock():
        draft.remove()
        shutil.copytree(cache / f"variant{turn % 2 + 1}", draft.folder, dirs_exist_ok=True)
        publish(draft)
"""


@pytest.mark.parametrize("way", ["one exchange", "two renames"])
def test_a_run_that_is_rebuilt_all_the_time_is_the_old_one_or_the_new_one_never_half_and_never_none(
    tmp_path: Path, way: str, start_job: Callable[..., subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path))
    for number in (1, 2):
        variant(tmp_path, f"variant{number}", number)
    shutil.copytree(tmp_path / "variant1", tmp_path / "run")
    job = start_job(tmp_path, way, script=REBUILD)
    assert job.stdout is not None
    assert job.stdin is not None
    assert job.stdout.readline() == "ready\n"
    told: set[str] = set()
    for turn in range(1, 31):
        job.stdin.write("\n")
        job.stdin.flush()
        for _ in range(100_000):  # while it is rebuilt, and until it is there
            text = _whole(told)
            assert "run" in data.run_names(tmp_path)
            if text == str(turn % 2 + 1):
                break
        else:
            raise AssertionError(f"turn {turn}: {told}")
    assert told <= {"The run 'run' was rebuilt while this page was loading"}


def _whole(told: set[str]) -> str | None:
    """What the run says, in its texts and its vectors alike; None, and a sentence more, while it cannot be read."""
    for name in ("_documents", "_head_index"):
        getattr(data, name).clear()  # as if nobody had read it before
    try:
        state = data.run_state("run")
        if state.manifest is None:
            raise Mistake(state.problem)
        text = str(data.documents(state).row(0)["text"])
        assert np.array_equal(data.head_index(state, 1).vectors[:, 0], np.full((20, 8), float(text)))
    except Mistake as mistake:
        told.add(str(mistake).split(".")[0])
        return None
    return text


def test_a_disk_that_fills_up_while_maps_are_written(
    cache: Path, start_job: Callable[..., subprocess.Popen[str]], finish: Callable[..., object]
) -> None:
    arguments = ("project", "hostile", "--cache", cache, "--again", "--iterations", 30, "--quiet")

    def no_larger_files() -> None:
        size = 4_000  # the manifest is larger already, and stays as it is; a map of 168 points does not fit
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    before = json.loads((cache / "hostile" / "manifest.json").read_text())
    full = finish(start_job(*arguments, preexec_fn=no_larger_files))
    assert full.status == 2  # type: ignore[attr-defined]
    assert full.err.startswith("headscope: There is not enough space to write ")  # type: ignore[attr-defined]
    assert full.err.count("\n") == 1  # type: ignore[attr-defined]
    run = Run(cache, "hostile")
    assert not list(run.folder.rglob("*.writing*"))
    assert json.loads((cache / "hostile" / "manifest.json").read_text())["model"] == before["model"]
    assert finish(start_job(*arguments)).status == 0  # type: ignore[attr-defined]
    assert run.manifest().is_done("project")
    assert not [one for one in verify(run, part_digest).problems if "map/" in one]


def figures(cache: Path) -> object:
    return analyse.run(analyse.AnalyseConfig(cache, "hostile", centre=True, model=PlantedTopics(SHAPE, {})))


def labels(cache: Path) -> object:
    return label.run(LabelConfig(cache, "hostile", "zero-shot", "labels", model=PlantedTopics(SHAPE, {})))


def with_files_up_to(size: int, act: Callable[[], object]) -> str:
    """What is said where no file can be larger; nothing where that is enough."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        act()
    except Mistake as mistake:
        return str(mistake)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return ""


@pytest.mark.parametrize(("step", "name"), [(figures, "analyse"), (labels, "label")])
@pytest.mark.parametrize("known", [True, False], ids=["made before", "never made"])
def test_a_disk_that_fills_up_while_figures_or_labels_are_written(
    cache: Path, step: Callable[[Path], object], name: str, known: bool
) -> None:
    run, unwritten = Run(cache, "hostile"), list[str]()
    if not known:
        shutil.rmtree(run.folder / "labels")
        manifest = run.manifest()
        run.write_manifest(replace(manifest, steps={"embed": manifest.steps["embed"]}))
    old, topics = run.manifest(), run.documents(["topic"])
    # From a disk that has no room for the lock's note to one that has room for all.
    for size in (0, 500, 5_000, 9_000, 20_000, 10_000_000):
        said = with_files_up_to(size, lambda: step(cache))
        assert not list(cache.rglob("*.writing*"))
        if not said:
            break
        why = (
            r"There is not enough space to write (\S+) \(File too large\)\. Free some space and start the same "
            "command again: .*"
        )
        assert re.fullmatch(why, said)
        unwritten.append(re.fullmatch(why, said)[1])  # type: ignore[index]
        assert run.documents(["topic"]).equals(topics)
        assert not known or run.manifest() == old, "readers have what they had"
    assert len(set(unwritten)) > 1, unwritten
    step(cache)
    assert run.manifest().is_done(name)
    assert run.manifest().steps[name] != old.steps.get(name)
    assert not [path.name for path in cache.iterdir() if path.name not in ("hostile", ".lock-hostile")]
