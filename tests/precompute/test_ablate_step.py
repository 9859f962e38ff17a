"""The step ``ablate``: on a tiny model whole, resumed and skipped, against the same heads switched off by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.analysis.ablation_effects import (
    ANGLE,
    EXAMPLES,
    HEAD,
    LAYER,
    NAMES,
    QUERIES,
    AblationTask,
    against_noise,
    same_value,
)
from core.analysis.bootstrap import Interval
from core.errors import Mistake
from core.model import embedder
from core.model.embedder import Embedder, EmbedderConfig
from core.model.shape import ModelShape
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.table_checks import Sizes, check_rows
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from precompute.job.progress import Report
from precompute.job.topic_vectors import TopicModel
from precompute.steps.ablate import step as ablate
from precompute.steps.ablate.config import AblateConfig
from precompute.steps.ablate.removals import removals
from precompute.steps.embed.step import EmbedConfig
from precompute.steps.embed.step import run as embed

pytestmark = pytest.mark.usefixtures("one_thread")
DOCS, DRAWS = 20, 3


@pytest.fixture
def made(tiny_model: Path, tmp_path: Path, write_corpus: Callable[..., Path], some_rows: Any) -> AblateConfig:
    """A run of 20 labelled documents by a BERT of two layers and four heads, and a query for two of them."""
    rows = [{**row, "topic": "odd" if row["n"] % 2 else "even"} for row in some_rows(DOCS)]
    source = str(write_corpus(rows))
    embed(EmbedConfig(tmp_path, "tiny", source=source, embedder=EmbedderConfig(model=str(tiny_model))))
    queries = write_corpus([{"query": rows[3]["text"], "relevant": ["d3", "d7"]}], "queries.jsonl")
    return AblateConfig(
        tmp_path, "tiny", queries=queries, random=DRAWS, topics="labels", model=TopicModel(str(tiny_model))
    )


def rows_of(config: AblateConfig, table: str = "ablation") -> list[dict[str, Any]]:
    return read_analysis(Run(config.cache, "tiny"), table).to_pylist()


def test_every_head_and_layer_has_its_rows_and_the_run_is_whole(made: AblateConfig) -> None:
    result = ablate.run(made)
    run = Run(made.cache, "tiny")
    heads = {(row["layer"], row["head"]) for row in rows_of(made) if row["kind"] == HEAD}
    assert heads == {(layer, head) for layer in (1, 2) for head in range(1, 5)}
    assert {(row["layer"], row["head"]) for row in rows_of(made) if row["kind"] == LAYER} == {(1, 0), (2, 0)}
    measures = {NAMES, EXAMPLES, "same topic", QUERIES, ANGLE, "aspect:topic"}
    assert {row["measure"] for row in rows_of(made)} == measures
    assert len(rows_of(made, "ablation_noise")) == 2 * DRAWS * 6
    assert [row["place"] for row in rows_of(made, "ablation_moved")][:10] == list(range(1, 11))
    assert result.manifest.steps["ablate"].counts == {
        "documents": DOCS,
        "layers": 2,
        "heads": 8,
        "topics": 2,
        "labelled": DOCS,
        "unlabelled": 0,
        "queries": 1,
    }
    assert result.manifest.steps["ablate"].options == {"queries": "queries.jsonl", "random": DRAWS}
    assert not verify(run, part_digest).problems
    assert not (run.folder / "analysis" / "ablate-staging").exists()


@pytest.mark.parametrize("how", ["zero", "mean"])
def test_the_figures_are_those_of_the_model_without_the_head(made: AblateConfig, how: str) -> None:
    config = replace(made, how=how, layers=(2,))
    ablate.run(config)
    run = Run(made.cache, "tiny")
    model = made.model.load(run.manifest())
    table = run.documents(["text", "topic"])
    docs = table["text"].to_pylist()
    labels = [["even", "odd"].index(topic) for topic in table["topic"].to_pylist()]
    texts = [*docs, "even", "odd", docs[3]]
    instead = model.mean_outputs(docs) if how == "mean" else None
    plain, changed = (model.embed(texts, change=change).output for change in (None, model.without([(2, 3)], instead)))
    task = AblationTask(np.array(labels), 2, ((3, 7),))
    before, after = task.measure(plain, plain), task.measure(changed, plain)
    rows = {row["measure"]: row for row in rows_of(made) if (row["kind"], row["head"]) == (HEAD, 3)}
    for name in before:
        assert rows[name]["plain"] == pytest.approx(np.mean(before[name]), abs=1e-4)
        assert rows[name]["value"] == pytest.approx(np.mean(after[name]), abs=1e-4)
        assert rows[name]["change"] == pytest.approx(rows[name]["value"] - rows[name]["plain"])
    of_aspect = [same_value(some[:DOCS], np.array(labels)).mean() for some in (plain, changed)]
    assert [rows["aspect:topic"][name] for name in ("plain", "value")] == pytest.approx(of_aspect, abs=1e-4)
    assert rows["aspect:topic"]["noise_low"] <= rows["aspect:topic"]["noise_high"]
    assert rows[ANGLE]["change"] > 0
    moved = [row for row in rows_of(made, "ablation_moved") if row["head"] == 3]
    most = int(np.argmax(after[ANGLE]))
    assert (moved[0]["doc"], moved[0]["angle"]) == (most, pytest.approx(after[ANGLE].max(), abs=1e-3))
    assert moved[0]["before"] == task.neighbours(plain, [most])[0].tolist()
    assert moved[0]["after"] == task.neighbours(changed, [most])[0].tolist()
    assert moved[0]["topic_after"] == ["even", "odd"][task.topic_similarity(changed)[most].argmax()]


def test_verdicts_are_over_the_heads_of_all_layers_together(made: AblateConfig) -> None:
    ablate.run(made)
    rows = [row for row in rows_of(made) if (row["kind"], row["measure"]) == (HEAD, ANGLE)]
    noise = [row for row in rows_of(made, "ablation_noise") if row["measure"] == ANGLE]
    change = np.array([row["change"] for row in rows])
    draws = {layer: np.array([row["change"] for row in noise if row["layer"] == layer]) for layer in (1, 2)}
    floor = against_noise(change, np.array([row["layer"] for row in rows]), draws, 0.0)
    assert [row["p_adjusted"] for row in rows] == pytest.approx(floor.adjusted.tolist())
    assert isinstance(Interval(change, change, change), Interval)
    assert all(row["verdict"] is None for row in rows_of(made) if row["kind"] == LAYER)


def test_it_is_skipped_and_goes_on_with_the_layers_that_are_missing(
    made: AblateConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = ablate._Ablation.measure

    def stops(self: Any, layer: int, on_done: Any) -> Any:
        if layer == 2 and not seen.count(2):
            seen.append(2)
            raise KeyboardInterrupt
        seen.append(layer)
        return real(self, layer, on_done)

    monkeypatch.setattr(ablate._Ablation, "measure", stops)
    with pytest.raises(KeyboardInterrupt):
        ablate.run(made)
    assert not Run(made.cache, "tiny").manifest().is_done("ablate")
    reports: list[Report] = []
    assert not ablate.run(made, SimpleNamespace(show=reports.append, close=lambda: None)).skipped
    assert seen == [1, 2, 2]
    # Layer 1 was there: its share of the work says nothing about the time that is left.
    arrived = next(report for report in reports if report.message == "layer 2 of 2")
    assert arrived.fraction is not None
    assert arrived.fraction > 0.5
    assert arrived.seconds_left is None
    resumed = rows_of(made)
    assert ablate.run(made).skipped
    assert not ablate.run(replace(made, again=True)).skipped
    assert rows_of(made) == resumed
    assert not ablate.run(replace(made, tokens=8)).skipped


def test_key_value_groups_are_removed_too_and_random_removals_have_the_sizes_of_both() -> None:
    found = removals(3, ModelShape(layers=4, heads=6, kv_heads=3, hidden=48, head_dim=8), draws=4, seed=0)
    plain = [(one.kind, one.head, one.heads) for one in found if not one.draw]
    assert plain[6:] == [
        ("group", 1, (0, 1)),
        ("group", 2, (2, 3)),
        ("group", 3, (4, 5)),
        ("layer", 0, (0, 1, 2, 3, 4, 5)),
    ]
    assert [len(one.heads) for one in found if one.draw] == [1] * 4 + [2] * 4
    assert len({one.heads for one in found if one.draw and one.kind == "head"}) == 4


def test_deep_models_have_fewer_random_removals_per_layer_by_default(tmp_path: Path) -> None:
    asked = AblateConfig(tmp_path, "r")
    assert [asked.draws(layers) for layers in (1, 6, 12, 30, 80)] == [12, 12, 9, 4, 4]
    assert replace(asked, random=5).draws(30) == 5


def test_the_command_and_what_it_refuses(made: AblateConfig, command: Callable[..., Any]) -> None:
    given = ("ablate", "tiny", "--cache", made.cache)
    asked = (*given, "--model", made.model.model, "--layers", 2, "--random", 3, "--topics", "labels", "--documents", 20)
    done = command(*asked, "--progress", "json")
    assert done.status == 0
    assert "tiny: 4 heads of 1 layers switched off one by one over 20 documents in" in done.err
    assert json.loads(done.out.splitlines()[-1])["step"] == "ablate"
    for wrong, sentence in (
        (("--documents", 1), "too few to measure anything"),
        (("--random", 2), "too few for a noise floor"),
        (("--layers", 3), r"Layer 3 does not exist (this model has layers 1–2)"),
        (("--tokens", 2), "--tokens 2 is too few"),
    ):
        refused = command(*given, *wrong)
        assert (refused.status, sentence in refused.err) == (2, True), refused.err


def test_all_runs_it_on_request_only(made: AblateConfig, command: Callable[..., Any], write_corpus: Any) -> None:
    run = Run(made.cache, "tiny")
    source = made.cache / "corpora" / "corpus.jsonl"
    more = ("--source", source, "--model", made.model.model, "--topics", "labels", "--iterations", 30)
    asked = ("all", "tiny", "--cache", made.cache, *more, "--without", "retrieve", "layers", "attention")
    assert command(*asked).status == 0
    assert not run.manifest().is_done("ablate")
    assert command(*asked, "--with", "ablate").status == 0
    assert run.manifest().is_done("ablate")


@pytest.mark.parametrize(
    ("table", "change", "sentence"),
    [
        ("ablation", {"kind": "neuron"}, "'kind' values that are not known"),
        ("ablation", {"layer": 3}, "'layer' values outside 1 to 2"),
        ("ablation", {"change": None}, "has missing values in 'change'"),
        ("ablation_noise", {"draw": 0}, "'draw' values outside 1 to 1000"),
        ("ablation_moved", {"before": [99]}, "names documents in 'before' that the run does not have"),
        ("ablation_moved", {"place": 11}, "'place' values outside 1 to 10"),
    ],
)
def test_rows_that_the_run_cannot_have_are_refused(table: str, change: dict[str, Any], sentence: str) -> None:
    import pyarrow as pa

    from core.runs.schema import ANALYSIS

    row: dict[str, Any] = dict.fromkeys(ANALYSIS[table].names, 1)
    row |= {"kind": HEAD, "measure": NAMES, "verdict": None, "before": [0], "after": [1]}
    row |= {"topic_before": None, "topic_after": None}
    rows = [{**row, **change}]
    made = pa.table({name: [one[name] for one in rows] for name in ANALYSIS[table].names}, schema=ANALYSIS[table])
    with pytest.raises(Mistake, match=sentence):
        check_rows(table, made, Sizes((1,), 20, 4, 2, 20, 2), "x")


def test_a_sweep_that_does_not_fit_into_memory_goes_on_with_less(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text under each change once, in smaller batches; what came before is not computed again."""
    model = Embedder.load(EmbedderConfig(model=str(tiny_model)))
    texts = [f"alpha {'beta ' * (1 + number % 3)}" for number in range(9)]
    changes = [model.without([(layer, head)]) for layer in (1, 2) for head in (1, 2, 3)]
    wanted = [model.embed(texts, change=change).output for change in changes]
    real = embedder.sweep

    def small(extract: Any, ids: Any, mask: Any, some: Any, budget: int) -> Any:
        for number, one in enumerate(real(extract, ids, mask, some, budget)):
            if number == 2 and len(ids) > 3:
                raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
            yield one

    monkeypatch.setattr(embedder, "sweep", small)
    seen: dict[tuple[int, int], np.ndarray] = {}
    for batch, swept in model.sweep(texts, changes):
        for text, row in zip(batch, swept.output.numpy(), strict=True):
            assert (text, swept.change) not in seen
            seen[text, swept.change] = row
    assert len(seen) == len(texts) * len(changes)
    for (text, change), row in seen.items():
        np.testing.assert_allclose(row, wanted[change][text], atol=1e-5)


def test_a_text_that_never_fits_is_named(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Embedder.load(EmbedderConfig(model=str(tiny_model)))

    def never(*_: Any) -> Any:
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
        yield

    monkeypatch.setattr(embedder, "sweep", never)
    with pytest.raises(Mistake, match="does not fit into the memory of cpu"):
        list(model.sweep(["alpha", "beta"], [model.without([(1, 1)])]))


def test_pruning_measures_sets_of_heads_on_the_half_that_did_not_choose_them(made: AblateConfig) -> None:
    ablate.run(replace(made, prune=2))
    rows = rows_of(made, "ablation_pruning")
    assert [(row["order"], row["removed"]) for row in rows] == [
        (order, size) for order in ("greedy", "angle", "random") for size in (0, 1, 2)
    ]
    assert sum(row["enough"] for row in rows) == 1
    last = rows[2]
    off = list(zip(last["off_layers"], last["off_heads"], strict=True))
    assert len(set(off)) == 2
    run = Run(made.cache, "tiny")
    model = made.model.load(run.manifest())
    table = run.documents(["text", "topic"])
    half = np.random.default_rng([0, 7]).permutation(DOCS) % 2 == 1
    texts = [text for text, mine in zip(table["text"].to_pylist(), half, strict=True) if mine]
    labels = [topic == "odd" for topic, mine in zip(table["topic"].to_pylist(), half, strict=True) if mine]
    outputs = model.embed(texts, change=model.without(off)).output
    expected = AblationTask(np.array(labels, dtype=int), 2).measure_same_topic(outputs)
    assert last["value"] == pytest.approx(np.nanmean(expected), abs=1e-4)
    assert not verify(run, part_digest).problems
    ablate.run(made)
    assert rows_of(made, "ablation_pruning") == []
