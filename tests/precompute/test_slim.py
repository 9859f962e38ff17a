"""The step ``slim``: whose vectors stay, that they are the same, that nothing else changes, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import Mistake
from core.maps.place import Placer
from core.model.embedder import EmbedderConfig
from core.model.shape import ModelShape
from core.remote.mirror import mirror_at
from core.retrieval.tasks import pose_query_set
from core.runs.aspects import aspect_named, aspects_of
from core.runs.manifest import Manifest
from core.runs.parts import write_table
from core.runs.replace import new_versions
from core.runs.results import QuerySet, read_analysis, read_fitted_map, read_map
from core.runs.run import Run
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from precompute.job.storage import Storage
from precompute.job.topic_vectors import TopicModel
from precompute.steps.analyse import step as analyse
from precompute.steps.analyse.step import AnalyseConfig
from precompute.steps.aspects import step as aspects
from precompute.steps.aspects.step import AspectsConfig
from precompute.steps.embed import step as embed
from precompute.steps.label import step as label
from precompute.steps.label.config import LabelConfig
from precompute.steps.project import step as project
from precompute.steps.project.config import ProjectConfig
from precompute.steps.retrieve import step as retrieve
from precompute.steps.retrieve.step import RetrieveConfig
from precompute.steps.slim import step as slim
from precompute.steps.slim.step import SlimConfig
from tests.support.jobs import Outcome
from tests.support.synthetic import PlantedTopics, write_run

DOCUMENTS, SIZE = 45, 7
WANTED = (3, 40)
"""The documents that the query set looks for."""

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, some_rows: Callable[..., list[dict[str, Any]]]
) -> Path:
    """A cache with the run 'run', with figures, judged heads, and maps that are fitted on 20 of 45 documents."""
    folder = tmp_path_factory.mktemp("slim")
    rows = [row | {"topic": ("rivers", "engines", "gardens")[at % 3]} for at, row in enumerate(some_rows(DOCUMENTS))]
    source = folder / "corpus.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = folder / "queries.jsonl"
    queries.write_text("".join(json.dumps({"query": "harbour", "relevant": [f"d{doc}"]}) + "\n" for doc in WANTED))
    cache, how = folder / "cache", TopicModel(str(tiny_model))
    embed.run(
        embed.EmbedConfig(
            cache, "run", str(source), EmbedderConfig(model=str(tiny_model)), part_size=SIZE,
            storage=Storage((1, 3), "int8"),
        )
    )  # fmt: skip
    analyse.run(AnalyseConfig(cache, "run", model=how))
    project.run(ProjectConfig(cache, "run", iterations=60, threads=1, limit=20 * 4))
    retrieve.run(RetrieveConfig(cache, "run", queries, limit=6, model=how))
    return cache


@pytest.fixture
def cache(made: Path, tmp_path: Path) -> Path:
    """A copy of it, to be slimmed."""
    shutil.copytree(made, tmp_path / "cache")
    return tmp_path / "cache"


def fitted(cache: Path) -> set[int]:
    table = read_map(Run(cache, "run"), 1)
    return set(table["doc"].to_numpy()[table["fitted"].to_numpy()].tolist())


def others(cache: Path) -> dict[str, bytes]:
    """All files of a run but its vectors and its manifest."""
    folder = cache / "run"
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        str(path): (folder / path).read_bytes() for path in paths if path.parts[0] not in ("heads", "manifest.json")
    }


@pytest.mark.slow
def test_what_queries_look_for_stays_then_what_the_maps_were_fitted_on_then_others_by_topic(made: Path) -> None:
    run, manifest = Run(made, "run"), Run(made, "run").manifest()
    on_the_map = fitted(made)
    assert len(on_the_map) == 20
    few = slim.choose(run, manifest, 8, 0).tolist()
    assert few == sorted(set(few))
    assert len(few) == 8
    assert set(WANTED) < set(few) <= on_the_map | set(WANTED)
    all_fitted = on_the_map | set(WANTED)
    more = slim.choose(run, manifest, len(all_fitted) + 9, 0)
    assert all_fitted < set(more.tolist())
    assert len(more) == len(all_fitted) + 9
    # Nine of 23 to 25 others, three topics of about the same size: three of each.
    rest = [doc for doc in more.tolist() if doc not in all_fitted]
    assert sorted(doc % 3 for doc in rest) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert slim.choose(run, manifest, DOCUMENTS, 0).tolist() == list(range(DOCUMENTS))


def test_of_more_than_have_room_there_is_a_sample_by_topic_and_not_the_first(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query set looks for 30 documents, ten of each topic, and nine may stay."""
    asked = QuerySet(("all",), (tuple(range(30)),), np.array([30]), {})
    monkeypatch.setattr(slim, "read_query_set", lambda run: asked)
    few = slim.choose(Run(made, "run"), Run(made, "run").manifest(), 9, 0)
    assert sorted(doc % 3 for doc in few.tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert 8 < few.max() < 30


def test_vectors_that_stay_are_the_same_and_nothing_else_changes(cache: Path) -> None:
    run = Run(cache, "run")
    before = {stage: np.concatenate(list(run.vectors(stage))) for stage in (1, 3)}
    texts, bytes_before = others(cache), run.bytes("heads")
    result = slim.run(SlimConfig(cache, "run", 17))
    docs = run.vector_docs()
    assert (len(docs), result.manifest.with_vectors, result.manifest.is_sampled) == (17, 17, True)
    for stage in (1, 3):
        assert np.array_equal(np.concatenate(list(run.vectors(stage))), before[stage][docs])
        assert np.array_equal(run.document_vectors(stage, int(docs[-1])), before[stage][docs[-1]])
        assert [path.name for path in run.parts(stage)] == [
            "part-00000.parquet",
            "part-00001.parquet",
            "part-00002.parquet",
        ]
    gone = next(doc for doc in range(DOCUMENTS) if doc not in docs)
    with pytest.raises(Mistake, match=f"document {gone + 1} are not stored; those of 17 others are"):
        run.document_vectors(1, gone)
    assert others(cache) == texts
    assert result.manifest.steps["slim"].counts["bytes_before"] == bytes_before > run.bytes("heads")
    assert verify(run, part_digest).problems == ()
    assert slim.run(SlimConfig(cache, "run", 17)).skipped


def test_a_document_is_still_placed_where_it_lies(cache: Path) -> None:
    slim.run(SlimConfig(cache, "run", 12))
    run = Run(cache, "run")
    docs = run.vector_docs()
    on_the_map = [at for at, doc in enumerate(docs.tolist()) if doc in fitted(cache)]
    table = read_map(run, 3)
    places = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1).reshape(DOCUMENTS, 4, 2)
    vectors = np.concatenate(list(run.vectors(3))).reshape(12, 4, -1).astype(np.float32)
    points = read_fitted_map(run, 3)
    placer = Placer.of(points.vectors, points.places)
    assert len(placer.coordinates) == 4 * len(on_the_map)
    found = placer.place(vectors[on_the_map].reshape(-1, 8)).reshape(-1, 4, 2)
    off = np.linalg.norm(found - places[docs[on_the_map]], axis=2)
    assert np.median(off) < 0.05 * np.ptp(places)


def test_stopped_in_the_middle_readers_have_the_old_run_and_the_next_start_goes_on(
    cache: Path, monkeypatch: pytest.MonkeyPatch, made: Path, tmp_path: Path
) -> None:
    written = []

    def stopping(path: Path, *rest: Any) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(path)
        write_table(path, *rest)

    run = Run(cache, "run")
    with monkeypatch.context() as patched:
        patched.setattr(slim, "write_table", stopping)
        with pytest.raises(KeyboardInterrupt):
            slim.run(SlimConfig(cache, "run", 17))
    assert len(run.vector_docs()) == DOCUMENTS
    assert verify(run, part_digest).problems == ()
    assert [draft.kind for draft in new_versions(run)] == ["slim"]
    slim.run(SlimConfig(cache, "run", 17))
    assert new_versions(run) == []
    shutil.copytree(made, tmp_path / "at once")
    slim.run(SlimConfig(tmp_path / "at once", "run", 17))
    for path in run.parts(1) + run.parts(3):
        assert path.read_bytes() == (tmp_path / "at once" / path.relative_to(cache)).read_bytes()
    assert verify(run, part_digest).problems == ()


def test_steps_that_need_all_vectors_are_refused_before_anything_is_begun(cache: Path, tiny_model: Path) -> None:
    slim.run(SlimConfig(cache, "run", 17))
    before = others(cache), (cache / "run" / "manifest.json").read_bytes()
    how = TopicModel(str(tiny_model))
    assert analyse.run(AnalyseConfig(cache, "run", model=how)).skipped
    for again in (
        lambda: analyse.run(AnalyseConfig(cache, "run", model=how, seed=1)),
        lambda: project.run(ProjectConfig(cache, "run", iterations=60, threads=1, again=True)),
        lambda: retrieve.run(RetrieveConfig(cache, "run", limit=7, model=how)),
        lambda: label.run(LabelConfig(cache, "run", labels="zero-shot", topics="labels", model=how)),
    ):
        with pytest.raises(Mistake, match=r"stores the vectors of 17 of 45 documents, and '[a-z]+' needs all of them"):
            again()
    with pytest.raises(Mistake, match="stores the vectors of 17 of 45 documents, and 'slim' needs all of them"):
        slim.run(SlimConfig(cache, "run", 12))
    assert (others(cache), (cache / "run" / "manifest.json").read_bytes()) == before


def test_a_run_without_figures_or_maps_keeps_all_its_vectors(tmp_path: Path) -> None:
    shape = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
    vectors = np.random.default_rng(0).normal(size=(12, 32))
    write_run(tmp_path, "run", shape, lambda stage, first, n: vectors[first : first + n], ["rivers", "engines"] * 6)
    with pytest.raises(Mistake, match="'slim' needs the results of 'analyse'"):
        slim.run(SlimConfig(tmp_path, "run", 5))
    analyse.run(AnalyseConfig(tmp_path, "run", model=PlantedTopics(shape, {})))
    with pytest.raises(Mistake, match="'slim' needs the results of 'project'"):
        slim.run(SlimConfig(tmp_path, "run", 5))
    with pytest.raises(Mistake, match="leaves nothing to compare"):
        SlimConfig(tmp_path, "run", 1)


def test_a_corpus_smaller_than_the_sample_stays_as_it_is(cache: Path, command: Callable[..., Outcome]) -> None:
    before = (cache / "run" / "manifest.json").read_bytes()
    done = command("slim", "run", "--cache", cache)
    assert done.status == 0
    assert "45 documents; the vectors of all of them are kept" in done.err
    assert (cache / "run" / "manifest.json").read_bytes() == before


@pytest.mark.slow
def test_all_keeps_a_sample_in_the_end_and_says_so(
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    some_rows: Callable[..., list[dict[str, Any]]],
    command: Callable[..., Outcome],
) -> None:
    rows = [row | {"topic": ("rivers", "engines")[at % 2]} for at, row in enumerate(some_rows(24))]
    common = ("run", "--cache", tmp_path, "--source", write_corpus(rows), "--model", tiny_model)
    early = command("embed", *common, "--store-vectors", "sample")
    assert early.status == 2
    assert "a sample can be stored only afterwards. Use 'all' with --store-vectors sample, or 'slim'" in early.err
    more = ("--iterations", 30, "--query-limit", 6, "--without", "layers", "aspects", "attention")
    sample = ("--store-vectors", "sample", "--vector-sample", 9)
    done = command("all", *common, *more, *sample)
    assert done.status == 0, done.err
    assert "run: vectors of 9 of 24 documents stored" in done.err
    manifest = Run(tmp_path, "run").manifest()
    assert manifest.is_done("retrieve")
    assert manifest.with_vectors == 9
    again = command("all", *common, *more, *sample)
    assert (again.status, again.err.count("up to date") + again.err.count("Nothing to do") > 3) == (0, True)
    assert "of 9 of 24 documents" in command("status", "run", "--cache", tmp_path).out
    report = command("report", "run", "--cache", tmp_path)
    assert "A slim run: vectors of 9 of 24 documents are stored" in report.out
    refused = command("all", *common, *more, "--store-vectors", "all")
    assert refused.status == 2
    assert "stores the vectors of 9 of 24 documents. Add --replace" in refused.err
    anew = command("all", *common, *more, "--store-vectors", "all", "--replace")
    assert anew.status == 0, anew.err
    assert Run(tmp_path, "run").manifest().with_vectors == 24


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda docs: docs[::-1], "lists documents that are not in the run"),
        (lambda docs: docs + 1, "was made from different texts"),
        (lambda docs: docs + 1_000, "lists documents that are not in the run"),
    ],
)
def test_verify_finds_vectors_that_are_other_documents(
    cache: Path, spoil: Callable[[np.ndarray], np.ndarray], said: str
) -> None:
    slim.run(SlimConfig(cache, "run", 5))
    for stage in (1, 3):
        path = Run(cache, "run").part_path(stage, 0)
        table = pq.read_table(path)
        docs = pa.array(spoil(table["doc"].to_numpy().copy()), pa.int32())
        metadata = pq.read_metadata(path).metadata[b"headscope.digest"].decode()
        write_table(path, table.set_column(0, table.schema.field(0), docs), metadata, "none")
    problems = verify(Run(cache, "run"), part_digest).problems
    assert any(said in problem for problem in problems), problems


def test_stages_with_other_documents_are_found(cache: Path) -> None:
    slim.run(SlimConfig(cache, "run", 5))
    run = Run(cache, "run")
    docs = run.vector_docs()
    path = run.part_path(3, 0)
    table = pq.read_table(path)
    moved = docs.copy()
    moved[0] = next(doc for doc in range(docs[1]) if doc != docs[0])
    write_table(path, table.set_column(0, table.schema.field(0), pa.array(moved, pa.int32())), "", "none")
    problems = verify(run, part_digest).problems
    assert any(f"does not hold its 5 documents from {docs[0]} to {docs[-1]}" in problem for problem in problems)


@pytest.mark.parametrize("count", [0, -1, 46, "9", True, None])
def test_a_manifest_with_more_vectors_than_documents_is_refused(cache: Path, count: object) -> None:
    path = cache / "run" / "manifest.json"
    found = json.loads(path.read_text())
    found["vectors"]["documents"] = count
    path.write_text(json.dumps(found))
    with pytest.raises(Mistake, match=r"'vectors\.documents' must be a whole number"):
        Run(cache, "run").manifest()


def test_a_manifest_of_all_documents_is_of_no_sample() -> None:
    given = {"model": {}, "versions": {}, "corpus": {"documents": 45}}
    whole = Manifest(vectors={"part_size": 7}, **given)
    some = Manifest(vectors={"part_size": 7, "documents": 15}, **given)
    assert (whole.with_vectors, whole.is_sampled, whole.parts) == (45, False, 7)
    assert (some.with_vectors, some.is_sampled, some.parts) == (15, True, 3)


def test_a_query_is_posed_by_the_places_of_what_is_left_or_not_at_all() -> None:
    posed = pose_query_set(np.arange(3)[:, None, None], [(5, 9), (6,), (9,)], np.array([2, 1, 1]), np.array([4, 5, 9]))
    assert posed.relevant == ((1, 2), (2,))
    assert posed.vectors[:, 0, 0].tolist() == [0, 2]
    assert posed.aspects.tolist() == [2, 1]
    assert posed.own.tolist() == [-1, -1]


def test_a_run_in_an_object_store_is_slimmed_there_by_a_machine_that_has_nothing_of_it(
    cache: Path, here: Path, elsewhere: Path
) -> None:
    there = mirror_at(here)
    assert there is not None
    for path in (cache / "run").rglob("*"):
        if path.is_file():
            there.store.put(path.relative_to(cache).as_posix(), path)
    slim.run(SlimConfig(elsewhere, "run", 17))
    slim.run(SlimConfig(cache, "run", 17))
    assert there.store.listing("run").keys() - {"files.json"} == {
        path.relative_to(cache / "run").as_posix() for path in (cache / "run").rglob("*") if path.is_file()
    }
    for stage in (1, 3):
        for path in Run(cache, "run").parts(stage):
            assert there.store.get(path.relative_to(cache).as_posix()) == path.read_bytes()
    assert Run(here, "run").vector_docs().tolist() == Run(cache, "run").vector_docs().tolist()
    assert verify(Run(here, "run"), part_digest).problems == ()


def _moods(folder: Path) -> Path:
    path = folder / "moods.csv"
    path.write_text("\n".join(["id,mood", *(f"d{doc},{'glad' if doc % 2 else 'sad'}" for doc in range(DOCUMENTS))]))
    return path


def _has_moods(run: Run) -> None:
    found = aspect_named(aspects_of(run), "mood")
    assert found is not None
    assert (found.source, found.values, found.counts.tolist()) == ("file", ("glad", "sad"), [22, 23])
    assert verify(run, part_digest).problems == ()


def test_a_slim_run_gets_labels_of_another_aspect_and_figures_of_the_vectors_that_stay(
    cache: Path, tmp_path: Path
) -> None:
    label.run(LabelConfig(cache, "run"))
    analyse.run(AnalyseConfig(cache, "run"))
    slim.run(SlimConfig(cache, "run", 25))
    label.run(LabelConfig(cache, "run", labels="file", aspect="mood", file=_moods(tmp_path)))
    run = Run(cache, "run")
    _has_moods(run)
    aspects.run(AspectsConfig(cache, "run"))
    docs = set(read_analysis(run, "aspect_documents")["doc"].to_pylist())
    assert docs
    assert docs <= set(run.vector_docs().tolist())


def test_a_run_in_an_object_store_gets_labels_of_another_aspect_from_a_machine_that_has_nothing_of_it(
    cache: Path, here: Path, elsewhere: Path, tmp_path: Path
) -> None:
    there = mirror_at(here)
    assert there is not None
    for path in (cache / "run").rglob("*"):
        if path.is_file():
            there.store.put(path.relative_to(cache).as_posix(), path)
    label.run(LabelConfig(elsewhere, "run", labels="file", aspect="mood", file=_moods(tmp_path)))
    _has_moods(Run(here, "run"))
