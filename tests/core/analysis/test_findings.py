"""What a run's figures are said to mean: small tables by hand, and the sentence that each must give."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis.findings import Finding, findings
from core.analysis.merging import Agreement, Merges
from core.analysis.probe import BY_DOCUMENT, BY_SAMPLE, SPLITS
from core.analysis.report import TopicMerges, as_json, mean_redundancy, most_redundant
from core.analysis.similarity import POOLINGS
from core.analysis.topic_match import WITHIN
from core.model.shape import ModelShape
from core.model.stages import HEADS, RANDOM
from core.runs.manifest import Manifest, Step
from core.runs.tables import Row, Tables

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=8, head_dim=2)
TABLES = ("topic_match", "probe", "profiles", "redundancy", "groups", "control")
BEST_STAGE = "topic match within 1, mean of slices"
SELECTIVITY = "selectivity, median of slices (range)"


def tables_of(labelled: int = 90, stages: tuple[int, ...] = (1,), centre: bool = False, **rows: list[Row]) -> Tables:
    """Of a run of 100 documents; tables that are not given are empty."""
    model = {"name": "planted", "revision": "planted", "layer": 2, "pooling": "mean", **asdict(SHAPE)}
    done = Step("f", "done", "2026-01-01T00:00:00+00:00")
    analysed = Step("f", "done", "2026-01-01T00:00:00+00:00", counts={"labelled": labelled}, options={"centre": centre})
    manifest = Manifest(
        model=model,
        vectors={"dtype": "float16", "stages": list(stages), "part_size": 1_000},
        corpus={"source": "planted", "fingerprint": "planted", "documents": 100, "extra": {}},
        versions={},
        steps={"embed": done, "analyse": analysed},
    )
    return Tables(manifest, {name: [] for name in TABLES} | rows)


def control(
    measure: str,
    heads: tuple[float, float, float],
    random: tuple[float, float, float] = (0.1, 0.08, 0.12),
    chance: float = 0.04,
    stage: int = 1,
) -> Row:
    """``heads`` and ``random`` are value, low, high."""
    figures = {
        f"{slicing}{suffix}": value
        for slicing, values in ((HEADS, heads), (RANDOM, random))
        for suffix, value in zip(("", "_low", "_high"), values, strict=True)
    }
    return {"stage": stage, "measure": measure, "chance": chance, **figures}


def match_rows(
    full: tuple[float, float, float], pools: list[tuple[float, float, float]], stage: int = 1, within: int = 1
) -> list[Row]:
    """Rates with their intervals: of the full embedding, of POOLINGS, and of heads that have 0.2 and 0.25."""
    rows = [("full", 0, full), ("head", 1, (0.2, 0.1, 0.3)), ("head", 2, (0.25, 0.15, 0.35))]
    return [
        {
            "stage": stage,
            "slicing": HEADS,
            "method": method,
            "head": head,
            "within": within,
            "rate": rate,
            "low": low,
            "high": high,
            "chance": 0.04,
            "majority": 0.1,
            "documents": 90,
        }
        for method, head, (rate, low, high) in [
            *rows,
            *((name, None, values) for name, values in zip(POOLINGS, pools, strict=True)),
        ]
    ]


def profile(head: int, role: str | None = None, slicing: str = HEADS, stage: int = 1, **more: Any) -> Row:
    because = f"{role or 'no rule holds'}: mean 0.30" if head else None
    roles = [role] if role else []
    return {
        "stage": stage,
        "slicing": slicing,
        "head": head,
        "mean": 0.3,
        "selectivity": 0.1,
        "selectivity_low": 0.05,
        "selectivity_high": 0.15,
        "role": role,
        "roles": roles,
        "because": because,
        **more,
    }


def pair(head: int, other: int, cka: float | None, stage: int = 1, low: float | None = 0.1) -> Row:
    high = None if low is None else 0.9
    return {"stage": stage, "head": head, "other": other, "cka": cka, "low": low, "high": high, "position": head - 1}


def group(p: float, stage: int = 1) -> Row:
    return {"stage": stage, "within": 0.5, "between": 0.2, "p": p, "pairs_within": 2, "pairs_between": 4}


def about(tables: Tables, subject: str, merges: TopicMerges | None = None) -> list[Finding]:
    return [finding for finding in findings(tables, merges) if finding.about == subject]


def the_one(tables: Tables, subject: str, merges: TopicMerges | None = None) -> Finding:
    found = about(tables, subject, merges)
    assert len(found) == 1
    return found[0]


# Where to extract.


def test_a_clearly_best_stage_is_recommended() -> None:
    rows = [
        control(BEST_STAGE, (0.20, 0.18, 0.22), stage=1),
        control(BEST_STAGE, (0.30, 0.23, 0.32), stage=2),
        control(BEST_STAGE, (0.10, 0.08, 0.12), stage=3),
    ]
    found = the_one(tables_of(stages=(1, 2, 3), control=rows), "stage")
    assert "most often at stage 2 (projected)" in found.sentence
    assert "extract there" in found.sentence
    for figure in ("20.0%", "30.0% (23.0%–32.0%)", "10.0%", "chance 4.0%"):
        assert figure in found.evidence


@pytest.mark.parametrize("low", [0.22, 0.19])
def test_no_stage_is_recommended_where_the_intervals_meet(low: float) -> None:
    rows = [control(BEST_STAGE, (0.20, 0.18, 0.22), stage=1), control(BEST_STAGE, (0.25, low, 0.3), stage=2)]
    found = the_one(tables_of(stages=(1, 2), control=rows), "stage")
    assert "about as often at stage 2 (projected) as at stage 1" in found.sentence
    assert "neither is clearly better" in found.sentence
    assert "extract" not in found.sentence


def test_no_stage_is_recommended_where_the_third_might_be_better() -> None:
    rows = [
        control(BEST_STAGE, (0.30, 0.28, 0.32), stage=1),
        control(BEST_STAGE, (0.25, 0.24, 0.26), stage=2),
        control(BEST_STAGE, (0.24, 0.10, 0.38), stage=3),
    ]
    assert "extract there" not in the_one(tables_of(stages=(1, 2, 3), control=rows), "stage").sentence


@pytest.mark.parametrize("stages", [(), (2,)])
def test_one_stage_alone_is_not_compared(stages: tuple[int, ...]) -> None:
    rows = [control(BEST_STAGE, (0.3, 0.2, 0.4), stage=stage) for stage in stages]
    assert not about(tables_of(stages=(1, 2, 3), control=rows), "stage")


# Can heads be told apart?


@pytest.mark.parametrize(
    ("heads", "random", "said"),
    [
        ((0.8, 0.7, 0.9), (0.5, 0.4, 0.6), "heads can be told apart by their vectors, better than random slices can"),
        ((0.8, 0.7, 0.9), (0.6, 0.5, 0.7), "random ones just as well: no finding about heads"),  # 0.7 is not above 0.7
        ((0.5, 0.4, 0.6), (0.7, 0.6, 0.8), "random ones just as well: no finding about heads"),
        ((0.5, 0.4, 0.6), (0.7, 0.61, 0.8), "random ones even better: no finding about heads"),
        ((0.3, 0.25, 0.4), (0.1, 0.05, 0.15), "heads cannot be told apart by their vectors"),  # the chance is 0.25
        ((0.3, 0.26, 0.4), (0.1, 0.05, 0.15), "heads can be told apart by their vectors, better"),
    ],
)
def test_the_probe_of_heads_beside_that_of_random_slices(
    heads: tuple[float, float, float], random: tuple[float, float, float], said: str
) -> None:
    rows = [control(f"probe by {split}", heads, random, chance=0.25) for split in (BY_DOCUMENT, BY_SAMPLE)]
    found = the_one(tables_of(control=rows), "separation")
    assert said in found.sentence
    assert f"{heads[0]:.3f} ({heads[1]:.3f}–{heads[2]:.3f})" in found.evidence
    assert "chance 0.250" in found.evidence


def test_the_verdict_is_by_document_and_the_other_split_is_told() -> None:
    rows = [
        control(f"probe by {BY_DOCUMENT}", (0.26, 0.20, 0.32), chance=0.25),
        control(f"probe by {BY_SAMPLE}", (0.99, 0.98, 1.0), chance=0.25),
    ]
    found = the_one(tables_of(control=rows), "separation")
    assert "cannot be told apart" in found.sentence
    assert "by sample 0.990" in found.evidence


def test_nothing_is_said_of_a_probe_that_was_not_computed() -> None:
    rows = [control(f"probe by {BY_DOCUMENT}", (0.8, 0.7, 0.9))]
    assert not about(tables_of(control=rows), "separation")
    assert not about(tables_of(), "separation")


# Selectivity.


@pytest.mark.parametrize(
    ("lows", "said"),
    [
        ([0.31, 0.30, 0.5, None], "topics explain more of 2 of 4 heads' variation than of any random slice's"),
        ([0.30, 0.1, -0.1, None], "topics explain no head's variation better than the best random slice's"),
    ],
)
def test_heads_are_counted_that_exceed_the_best_random_slice(lows: list[float | None], said: str) -> None:
    """The best random slice has 0.3; the full embedding (head 0) and random slices do not count as heads."""
    profiles = [profile(0, selectivity_low=0.9), profile(1, slicing=RANDOM, selectivity_low=0.9)]
    profiles += [profile(head, selectivity_low=low) for head, low in enumerate(lows, 1)]
    rows = [control(SELECTIVITY, (0.4, 0.1, 0.6), (0.2, 0.1, 0.3), chance=0)]
    found = the_one(tables_of(control=rows, profiles=profiles), "selectivity")
    assert said in found.sentence
    assert "0.40 (0.10–0.60)" in found.evidence
    assert "0.20 (0.10–0.30)" in found.evidence


def test_a_head_of_unknown_selectivity_exceeds_nothing() -> None:
    rows = [control(SELECTIVITY, (-0.1, -0.2, 0), (-0.1, -0.2, -0.05), chance=0)]
    found = the_one(tables_of(control=rows, profiles=[profile(1, selectivity_low=None)]), "selectivity")
    assert "no head's variation" in found.sentence


# Pooling.

FULL = (0.5, 0.4, 0.6)
SAME = (0.45, 0.35, 0.55)
MEETS_BELOW, BELOW = (0.3, 0.2, 0.4), (0.3, 0.2, 0.39)
MEETS_ABOVE, ABOVE = (0.7, 0.6, 0.8), (0.7, 0.61, 0.8)


@pytest.mark.parametrize(
    ("pools", "said"),
    [
        ([BELOW, SAME, SAME], "At stage 1 naive pooling blurs (mean of vectors)."),
        ([BELOW, SAME, BELOW], "At stage 1 naive pooling blurs (mean of vectors, max of cosines)."),
        ([SAME, ABOVE, SAME], "At stage 1 pooling of heads does better than the full embedding (mean of cosines)."),
        ([MEETS_BELOW, SAME, MEETS_ABOVE], "neither better nor worse than the full embedding, within the intervals"),
    ],
)
def test_poolings_beside_the_full_embedding(pools: list[tuple[float, float, float]], said: str) -> None:
    found = the_one(tables_of(topic_match=match_rows(FULL, pools)), "pooling")
    assert said in found.sentence
    assert "full 50.0% (40.0%–60.0%)" in found.evidence
    assert "best single head 2 25.0% (15.0%–35.0%)" in found.evidence
    assert "chance 4.0%" in found.evidence
    assert all(name in found.evidence for name in POOLINGS)


def test_poolings_may_differ() -> None:
    found = the_one(tables_of(topic_match=match_rows(FULL, [BELOW, SAME, ABOVE])), "pooling")
    assert "mean of vectors" in found.sentence
    assert "max of cosines" in found.sentence


def test_pooling_is_judged_by_the_nearest_topic_of_each_stage() -> None:
    rows = [
        *match_rows(FULL, [SAME, SAME, SAME], stage=1),
        *match_rows(FULL, [BELOW, BELOW, BELOW], stage=1, within=5),
        *match_rows(FULL, [BELOW, SAME, SAME], stage=3),
    ]
    one, three = about(tables_of(stages=(1, 2, 3), topic_match=rows), "pooling")
    assert "neither better nor worse" in one.sentence
    assert one.sentence.startswith("At stage 1")
    assert three.sentence.startswith("At stage 3 naive pooling blurs")


# Roles.


def test_roles_are_told_with_their_heads_the_most_frequent_first() -> None:
    rows = [profile(0), profile(1, "general"), profile(2, "selective"), profile(3, "general"), profile(4)]
    found = the_one(tables_of(profiles=rows), "roles")
    assert found.sentence.startswith("Roles at stage 1: general heads 1, 3; ")
    assert "selective head 2" in found.sentence
    assert "no clear role head 4" in found.sentence
    assert "head 2: selective: mean 0.30" in found.evidence  # the example is the selective one


def test_without_a_selective_head_the_first_is_the_example() -> None:
    rows = [profile(0), profile(1, "general"), profile(2)]
    assert "head 1: general" in the_one(tables_of(profiles=rows), "roles").evidence


def test_the_roles_that_random_slices_have_are_told() -> None:
    """Two are general and one aligned; the random slices' full embedding has none."""
    random = [profile(head, role, RANDOM) for head, role in enumerate([None, "general", "aligned", "general", None])]
    rows = [*random, profile(1, "general")]
    assert "random slices: general 2, aligned 1" in the_one(tables_of(profiles=rows), "roles").evidence
    assert "random slices: none has a role" in the_one(tables_of(profiles=[profile(1, "general")]), "roles").evidence


def test_no_roles_without_labels() -> None:
    rows = [profile(head, because=None) for head in range(5)]
    assert not about(tables_of(labelled=0, profiles=rows), "roles")


# Redundancy and groups.

PAIRS = [
    pair(head, other, cka)
    for (head, other), cka in {(1, 2): 0.8, (1, 3): 0.1, (1, 4): 0.3, (2, 3): 0.4, (2, 4): 0.2, (3, 4): 0.6}.items()
]
BOTH_WAYS = [
    *(pair(head, head, 1.0) for head in range(1, 5)),
    *PAIRS,
    *({**row, "head": row["other"], "other": row["head"]} for row in PAIRS),
]


def test_the_most_alike_heads_and_the_mean_of_all_pairs() -> None:
    tables = tables_of(redundancy=BOTH_WAYS)
    assert [(row["head"], row["other"]) for row in most_redundant(tables, 1)] == [(1, 2), (3, 4), (2, 3)]
    assert mean_redundancy(tables, 1) == pytest.approx(0.4)  # 2.4 / 6
    found = the_one(tables, "redundancy")
    assert found.sentence == "The most alike heads at stage 1 are 1 and 2, 3 and 4, 2 and 3."
    assert "CKA 0.80 (0.10–0.90), CKA 0.60 (0.10–0.90), CKA 0.40 (0.10–0.90)" in found.evidence
    assert "mean of all pairs 0.40" in found.evidence


def test_a_missing_interval_of_cka_is_left_out() -> None:
    found = the_one(tables_of(redundancy=[pair(1, 2, 0.8, low=None)]), "redundancy")
    assert found.evidence.startswith("CKA 0.80;")


@pytest.mark.parametrize("rows", [[], [pair(1, 1, 1.0)], [pair(1, 2, None, low=None)]])
def test_nothing_is_said_without_pairs(rows: list[Row]) -> None:
    tables = tables_of(redundancy=rows)
    assert not about(tables, "redundancy")
    assert not about(tables, "groups")
    assert np.isnan(mean_redundancy(tables, 1))


@pytest.mark.parametrize(
    ("p", "said"), [(0.0499, "are more alike than others"), (0.05, "are not shown to be more alike than others")]
)
def test_groups_are_alike_where_chance_seldom_gives_as_much(p: float, said: str) -> None:
    found = the_one(tables_of(redundancy=PAIRS, groups=[group(p)]), "groups")
    assert found.sentence == f"At stage 1 heads that share a key/value head {said}."
    assert "0.50 within 2 such pairs, 0.20 between 4 others" in found.evidence
    assert f"p = {p:.4f}" in found.evidence


def test_no_sentence_about_groups_where_there_are_none() -> None:
    assert not about(tables_of(redundancy=PAIRS), "groups")


# Labels and merges.


def test_missing_labels_are_told_with_what_is_missing_for_it() -> None:
    found = the_one(tables_of(labelled=0), "labels")
    assert found.sentence.startswith("Topic match, head profiles, roles and the heat map are missing")
    assert found.evidence == "0 of 100 documents labelled"


def test_present_labels_are_not_told() -> None:
    assert findings(tables_of(labelled=1)) == []


def merges_of(index: float) -> TopicMerges:
    return TopicMerges(3, [["a", "b"]], Merges(np.array([0, 0, 1]), 0.71), Agreement(index, 4, 9, 17))


@pytest.mark.parametrize(
    ("index", "word"),
    [(1, "largely"), (0.6, "largely"), (0.59, "partly"), (0.2, "partly"), (0.19, "little"), (-0.1, "little")],
)
def test_suggested_merges_beside_the_studys(index: float, word: str) -> None:
    found = the_one(tables_of(), "topics", merges_of(index))
    assert f"agree {word} with the study's 25" in found.sentence
    assert f"index {index:.2f}" in found.evidence
    assert "4 of the study's 17 merged pairs are among the 9 suggested" in found.evidence
    assert "cosine of 0.71" in found.evidence


# All of it.


@st.composite
def figures(draw: st.DrawFn) -> tuple[float, float, float]:
    low, value, high = sorted(draw(st.lists(st.integers(0, 20), min_size=3, max_size=3)))
    return value / 20, low / 20, high / 20


@st.composite
def any_tables(draw: st.DrawFn) -> Tables:
    """Figures of every kind, coarse enough for intervals that just meet."""
    stages = draw(st.sampled_from([(1,), (1, 3), (1, 2, 3)]))
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    roles = st.sampled_from([None, "selective", "sparse", "uniform", "avoiding", "aligned", "general"])
    labelled = draw(st.booleans())
    for stage in stages:
        for measure in (f"probe by {BY_DOCUMENT}", f"probe by {BY_SAMPLE}"):
            rows["control"].append(control(measure, draw(figures()), draw(figures()), 0.25, stage))
        if labelled:
            for measure in (BEST_STAGE, SELECTIVITY):
                rows["control"].append(control(measure, draw(figures()), draw(figures()), 0.05, stage))
            pools = [draw(figures()) for _ in POOLINGS]
            for within in WITHIN:
                rows["topic_match"] += match_rows(draw(figures()), pools, stage, within)
            for slicing in (HEADS, RANDOM):
                rows["profiles"].append(profile(0, None, slicing, stage))
                rows["profiles"] += [profile(head, draw(roles), slicing, stage) for head in range(1, 5)]
        known = draw(st.booleans())
        rows["redundancy"] += [{**row, "stage": stage, **({} if known else {"cka": None})} for row in BOTH_WAYS]
        if known and draw(st.booleans()):
            rows["groups"].append(group(draw(st.integers(1, 100)) / 100, stage))
    return tables_of(labelled=90 if labelled else 0, stages=stages, **rows)


@settings(max_examples=60, deadline=None)
@given(tables=any_tables(), index=st.none() | st.integers(-2, 10))
def test_every_finding_is_a_sentence_with_numbers(tables: Tables, index: int | None) -> None:
    found = findings(tables, None if index is None else merges_of(index / 10))
    assert found
    for finding in found:
        assert finding.sentence.endswith(".")
        assert finding.sentence[0].isupper()
        assert any(letter.isdigit() for letter in finding.evidence)
        assert "nan" not in finding.evidence
        assert "None" not in finding.evidence
    subjects = {finding.about for finding in found}
    assert ("labels" in subjects) == (tables.labelled == 0)
    assert ("topics" in subjects) == (index is not None)
    assert {"selectivity", "pooling", "roles"} <= subjects or not tables.labelled
    assert "separation" in subjects


# For machines.


def probe_rows(stage: int = 1) -> list[Row]:
    """The accuracy of heads is 0.7 by sample and 0.6 by document, of random slices 0.3; head n's recall is n tenths."""
    overall = {(HEADS, BY_SAMPLE): 0.7, (HEADS, BY_DOCUMENT): 0.6, (RANDOM, BY_SAMPLE): 0.3, (RANDOM, BY_DOCUMENT): 0.3}
    return [
        {
            "stage": stage,
            "slicing": slicing,
            "split": split,
            "head": head,
            "value": head / 10 if head else accuracy,
            "low": 0.0,
            "high": 1.0,
            "chance": 0.25,
            "train": 80,
            "test": 20,
        }
        for (slicing, split), accuracy in overall.items()
        for head in range(5)
    ]


def test_the_figures_by_stage_for_machines() -> None:
    maps = [{"stage": 1, "head": head, "points": 400, "kl": 0.5, "follows": None} for head in (0, 1)]
    tables = tables_of(
        stages=(1, 3),
        centre=True,
        probe=probe_rows(),
        topic_match=match_rows(FULL, [BELOW, SAME, ABOVE]) + match_rows((0.9, 0.8, 1), [SAME] * 3, within=5),
        profiles=[profile(0), profile(1, "general"), profile(2), profile(1, slicing=RANDOM)],
        control=[control(BEST_STAGE, (0.3, 0.2, 0.4))],
        groups=[group(0.01)],
        maps=maps,
    )
    found = as_json(tables)
    assert (found["documents"], found["labelled"], found["centred"]) == (100, 90, True)
    assert set(found["probe"]) == set(found["topic_match"]) == set(found["heads"]) == {1, 3}
    assert set(found["probe"][1]) == set(SPLITS)
    by_document = found["probe"][1][BY_DOCUMENT]
    assert by_document["accuracy"] == 0.6
    assert by_document["random_slices"]["accuracy"] == 0.3
    assert by_document["recall"] == {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4}
    assert (by_document["train"], by_document["test"], by_document["chance"]) == (80, 20, 0.25)
    assert set(found["topic_match"][1]) == {"full", "head 1", "head 2", *POOLINGS}
    assert found["topic_match"][1]["full"][5]["rate"] == 0.9
    assert found["topic_match"][1]["head 2"][1]["rate"] == 0.25
    assert [(head["head"], head["role"]) for head in found["heads"][1]] == [(1, "general"), (2, None)]
    assert found["control"][1][0]["heads"] == 0.3
    assert found["groups"][1][0]["p"] == 0.01
    assert [row["points"] for row in found["maps"][1]] == [400]
    # What was not computed is empty, not left out.
    assert (found["probe"][3], found["topic_match"][3], found["heads"][3]) == ({}, {}, [])
    read = json.loads(json.dumps(found, allow_nan=False))
    assert read["probe"]["1"][BY_DOCUMENT]["recall"]["3"] == 0.3
    assert read["topic_match"]["1"]["full"]["1"]["rate"] == 0.5


def test_a_run_without_maps_has_none_for_machines() -> None:
    assert "maps" not in as_json(tables_of())


@settings(max_examples=20, deadline=None)
@given(tables=any_tables())
def test_any_figures_can_be_written_as_json(tables: Tables) -> None:
    found = json.loads(json.dumps(as_json(tables), allow_nan=False))
    assert {"probe", "topic_match", "heads", "study"} <= set(found)
    for key in ("probe", "topic_match", "heads"):
        assert list(found[key]) == [str(stage) for stage in tables.manifest.stages]


def test_rows_are_picked_by_all_that_is_wanted() -> None:
    tables = tables_of(redundancy=PAIRS)
    assert [row["other"] for row in tables.pick("redundancy", stage=1, head=1)] == [2, 3, 4]
    assert tables.pick("redundancy", stage=2) == []
    assert tables.one("redundancy", head=3, other=4) == PAIRS[-1]
    assert tables.one("redundancy", head=9) is None
