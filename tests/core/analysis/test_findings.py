"""What a run's figures are said to mean: small tables by hand, and the sentence that each must give."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis.cautions import CEILING
from core.analysis.findings import Finding, across_runs, findings
from core.analysis.merging import MergeAgreement, Merges
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
ADDED = ("topic_match_differences", "null", "null_summary", "untrained")


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


def summary(measure: str = "names", stage: int = 1, **figures: float | int | None) -> Row:
    """A row of ``null_summary`` in which nothing is beyond random slices; ``figures`` are others."""
    row: Row = {"stage": stage, "measure": measure, "slicings": 200, "documents": 90}
    row |= {"heads": 0.2, "slices": 0.2, "slices_sd": 0.03, "slices_low": 0.15, "slices_high": 0.25}
    row |= {"slices_least": 0.1, "slices_most": 0.3}
    row |= {"spread": 0.03, "slices_spread": 0.03, "slices_spread_high": 0.04, "spread_p": 0.5, "flagged": 0.0}
    row |= {"largest_slice": 0.25, "largest_slice_high": 0.3, "largest_p": 0.5}
    row |= {"best_head": 1, "best": 0.22, "best_slice": 0.21, "best_slice_high": 0.28, "best_p": 0.5}
    row |= {"difference": 0.0, "difference_low": -0.01, "difference_high": 0.01}
    return row | figures


def against(head: int, value: float, verdict: str, measure: str = "names", stage: int = 1) -> Row:
    figures = {"percentile": 0.5, "p": 0.01, "p_adjusted": 0.02}
    return {"stage": stage, "measure": measure, "head": head, "value": value, "verdict": verdict, **figures}


def untrained(measure: str, value: float, stage: int = 1, **figures: float) -> Row:
    row: Row = {"stage": stage, "measure": measure, "head": 0, "value": value, "p_adjusted": None, "spread": 0.005}
    row |= {"spread_p": 0.5, "difference": None, "difference_low": None, "difference_high": None, "documents": 90}
    return row | figures


# Do heads specialise, and which stand out?


def test_heads_specialise_where_they_differ_more_than_random_slices_do() -> None:
    rows = [summary(spread=0.123, spread_p=0.005), summary(stage=2), summary(stage=3, spread_p=0.06)]
    twin = [untrained("names", 0.04)]
    found = the_one(tables_of(stages=(1, 2, 3), null_summary=rows, untrained=twin), "specialisation")
    assert found.sentence.startswith("Heads specialise at stage 1:")
    assert "At stages 2 and 3 it does not." in found.sentence
    for figure in ("over heads 0.123", "over random slices 0.030", "random weights 0.005", "p = 0.005", "200 random"):
        assert figure in found.evidence


def test_a_spread_that_one_stage_of_three_may_have_by_chance_is_no_finding() -> None:
    rows = [summary(spread_p=0.03), summary(stage=2, spread_p=0.3), summary(stage=3, spread_p=0.9)]
    found = the_one(tables_of(stages=(1, 2, 3), null_summary=rows), "specialisation")  # 0.03 · 3 is above 0.05
    assert found.sentence.startswith("Heads are not shown to specialise in topics at stages 1, 2 and 3")


def test_heads_beyond_random_slices_are_named_with_their_figures() -> None:
    rows = [against(11, 0.591, "above"), against(2, 0.068, "below"), against(10, 0.111, "below")]
    rows += [against(head, 0.2, "within") for head in (1, 3, 4)]
    match = match_rows((0.68, 0.63, 0.73), [(0.4, 0.3, 0.5)] * 3)
    tables = tables_of(null=rows, null_summary=[summary(slices_most=0.406)], topic_match=match)
    found = the_one(tables, "heads")
    assert found.sentence == (
        "At stage 1, compared with random slices, head 11 finds the labelled topic more often and heads 2 and 10 find "
        "it less often."
    )
    for figure in (
        "head 11 59.1\u00a0%",
        "head 2 6.8\u00a0%",
        "all heads together 68.0\u00a0% (63.0–73.0\u00a0%)",
        "the largest of 800 40.6\u00a0%",
    ):
        assert figure in found.evidence


def test_no_sentence_about_single_heads_where_none_stands_out() -> None:
    assert not about(tables_of(null=[against(1, 0.2, "within")], null_summary=[summary()]), "heads")


# Where to extract.


def test_the_stage_is_recommended_whose_best_head_beats_the_best_slices() -> None:
    rows = [summary(best=0.55, best_head=11, best_p=0.005), summary(stage=2, best=0.6, best_p=0.2)]
    found = the_one(tables_of(stages=(1, 2), null_summary=rows), "stage")
    assert "extract at stage 1 (attention)" in found.sentence
    assert "head 11, finds the labelled topic for 55\u00a0% of held-out documents" in found.sentence
    assert (
        "stage 2: head 1 60.0\u00a0%, best random slice 21.0\u00a0% (95 % below 28.0\u00a0%), p = 0.200"
        in found.evidence
    )


def test_no_stage_is_recommended_where_the_best_slices_do_as_well() -> None:
    found = the_one(tables_of(stages=(1, 2), null_summary=[summary(best_p=0.04), summary(stage=2)]), "stage")
    assert found.sentence.startswith("No stage is recommended")  # two were tried: 0.04 is above 0.05 / 2


def test_a_run_of_an_older_version_is_told_what_it_lacks() -> None:
    found = findings(tables_of())
    assert [finding.about for finding in found] == ["older"]
    assert "Run 'analyse' again" in found[0].sentence
    assert not about(tables_of(labelled=0), "older")


# Can heads be told apart?


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.001, 0.04, "At stage 1 heads are easier to tell apart than random slices."),
        (-0.04, -0.001, "At stage 1 heads are harder to tell apart than random slices."),
        (-0.01, 0.01, "At stage 1 heads are not shown to be easier to tell apart than random slices."),
    ],
)
def test_heads_are_told_apart_better_only_by_a_paired_difference(low: float, high: float, said: str) -> None:
    rows = [summary("probe", heads=0.71, slices=0.69, difference=0.02, difference_low=low, difference_high=high)]
    found = the_one(tables_of(null_summary=rows), "separation")
    assert found.sentence == said
    assert "0.710, random slices 0.690, difference +0.020" in found.evidence
    assert "chance 0.250" in found.evidence


@pytest.mark.parametrize(
    ("low", "said"),
    [
        (0.01, "easier to tell apart than in the same model with random weights"),
        (-0.3, "With random weights heads are at least as easy to tell apart, so this does not show anything learned."),
    ],
)
def test_what_random_weights_show_as_well_was_not_learned(low: float, said: str) -> None:
    twin = [untrained("probe", 0.6, difference=0.1, difference_low=low, difference_high=0.2)]
    rows = [summary("probe", difference_low=0.01, difference_high=0.04)]
    found = the_one(tables_of(null_summary=rows, untrained=twin), "separation")
    assert said in found.sentence
    assert "random weights 0.600" in found.evidence


def test_nothing_is_said_of_a_probe_that_was_not_computed() -> None:
    assert not about(tables_of(null_summary=[summary()]), "separation")


# Selectivity.


def test_heads_are_named_that_follow_topics_more_than_random_slices_do() -> None:
    rows = [against(3, 0.38, "above", "selectivity"), against(1, 0.2, "within", "selectivity")]
    found = the_one(tables_of(null=rows, null_summary=[summary("selectivity")]), "selectivity")
    assert found.sentence.endswith("than of random slices': at stage 1 head 3.")
    assert "over random slices 0.20 (95 % below 0.25); no effect 0" in found.evidence
    found = the_one(tables_of(null=rows[1:], null_summary=[summary("selectivity")]), "selectivity")
    assert found.sentence == "No head is shown to follow topics more than random slices do."


# Pooling.

LESS, SAME, MORE = (-0.1, -0.15, -0.05), (0.0, -0.02, 0.02), (0.1, 0.05, 0.15)


def pooled(*differences: tuple[float, float, float], stage: int = 1) -> list[Row]:
    """Differences of POOLINGS to the full embedding; random slices lose two points."""
    return [
        {"stage": stage, "slicing": slicing, "method": name, "head": None, "within": 1}
        | dict(zip(("difference", "low", "high"), values, strict=True))
        for slicing, given in ((HEADS, differences), (RANDOM, [(-0.02, -0.03, -0.01)] * 3))
        for name, values in zip(POOLINGS, given, strict=True)
    ]


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        ((LESS, SAME, SAME), "less often than the full embedding: mean of vectors (stage 1)."),
        (
            (LESS, SAME, LESS),
            "less often than the full embedding: mean of vectors (stage 1), max of cosines (stage 1).",
        ),
        ((SAME, MORE, SAME), "more often than the full embedding: mean of cosines (stage 1)."),
        ((SAME, SAME, SAME), "No difference between pooled heads and the full embedding is shown."),
    ],
)
def test_poolings_are_compared_document_by_document(
    differences: tuple[tuple[float, float, float], ...], said: str
) -> None:
    found = the_one(tables_of(topic_match_differences=pooled(*differences)), "pooling")
    assert found.sentence.endswith(said)
    assert "random slices −2.0" in found.evidence
    assert all(name in found.evidence for name in POOLINGS)


def test_poolings_of_all_stages_are_one_finding() -> None:
    rows = [*pooled(LESS, SAME, MORE), *pooled(LESS, SAME, SAME, stage=2)]
    found = the_one(tables_of(stages=(1, 2), topic_match_differences=rows), "pooling")
    assert "less often than the full embedding: mean of vectors (stages 1 and 2)." in found.sentence
    assert "more often than the full embedding: max of cosines (stage 1)." in found.sentence


# Roles.


def test_roles_are_told_with_their_heads_the_most_frequent_first() -> None:
    rows = [profile(0), profile(1, "general"), profile(2, "selective"), profile(3, "general"), profile(4)]
    found = the_one(tables_of(profiles=rows), "roles")
    assert (
        found.sentence == "Roles at stage 1: heads 1 and 3 are general; head 2 is selective; 1 head has no clear role."
    )
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
    assert found.sentence == "At stage 1 the most similar pairs of heads are 1 and 2; 3 and 4; 2 and 3."
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
    ("p", "said"), [(0.0499, "are more similar than others"), (0.05, "are not shown to be more similar than others")]
)
def test_groups_are_alike_where_chance_seldom_gives_as_much(p: float, said: str) -> None:
    found = the_one(tables_of(redundancy=PAIRS, groups=[group(p)]), "groups")
    assert found.sentence == f"At stage 1 heads of the same key/value group {said}."
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
    assert not about(tables_of(labelled=1), "labels")


def merges_of(index: float) -> TopicMerges:
    return TopicMerges(3, [["a", "b"]], Merges(np.array([0, 0, 1]), 0.71), MergeAgreement(index, 4, 9, 17))


@pytest.mark.parametrize(
    ("index", "word"),
    [(1, "largely"), (0.6, "largely"), (0.59, "partly"), (0.2, "partly"), (0.19, "hardly"), (-0.1, "hardly")],
)
def test_suggested_merges_beside_the_studys(index: float, word: str) -> None:
    found = the_one(tables_of(), "topics", merges_of(index))
    assert f"{word} agree with the study's 25" in found.sentence
    assert f"index {index:.2f}" in found.evidence
    assert "4 of the study's 17 merged pairs are among the 9 suggested" in found.evidence
    assert "cosine of 0.71" in found.evidence


# All of it.


@st.composite
def figures(draw: st.DrawFn) -> tuple[float, float, float]:
    low, value, high = sorted(draw(st.lists(st.integers(0, 20), min_size=3, max_size=3)))
    return value / 20, low / 20, high / 20


def drawn_summary(draw: st.DrawFn, measure: str, stage: int) -> Row:
    difference, low, high = draw(figures())
    shift = draw(st.sampled_from([0.0, 0.5, 1.0]))
    p = draw(st.sampled_from([0.005, 0.03, 0.5]))
    ends = {"difference": difference - shift, "difference_low": low - shift, "difference_high": high - shift}
    return summary(measure, stage, spread_p=p, best_p=p, **ends)


@st.composite
def any_tables(draw: st.DrawFn) -> Tables:
    """Figures of every kind, coarse enough for intervals that just meet."""
    stages = draw(st.sampled_from([(1,), (1, 3), (1, 2, 3)]))
    rows: dict[str, list[Row]] = {name: [] for name in (*TABLES, *ADDED)}
    roles = st.sampled_from([None, "selective", "sparse", "uniform", "avoiding", "aligned", "general"])
    labelled = draw(st.booleans())
    for stage in stages:
        rows["null_summary"].append(drawn_summary(draw, "probe", stage))
        if labelled:
            verdicts = st.sampled_from(["above", "within", "below"])
            for measure in ("names", "selectivity"):
                rows["null_summary"].append(drawn_summary(draw, measure, stage))
                rows["null"] += [against(head, 0.2, draw(verdicts), measure, stage) for head in range(1, 5)]
            rows["topic_match_differences"] += pooled(
                *(draw(st.sampled_from([LESS, SAME, MORE])) for _ in POOLINGS), stage=stage
            )
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
    full = tables.pick("topic_match", method="full", within=1)
    allowed = any(row["low"] > row["chance"] and row["rate"] < CEILING for row in full)
    assert ({"stage", "selectivity", "pooling", "roles"} <= subjects) == allowed
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
        topic_match=match_rows((0.5, 0.4, 0.6), [(0.4, 0.3, 0.5)] * 3)
        + match_rows((0.9, 0.8, 1), [(0.4, 0.3, 0.5)] * 3, within=5),
        profiles=[profile(0), profile(1, "general"), profile(2), profile(1, slicing=RANDOM)],
        control=[control("topic match within 1, mean of slices", (0.3, 0.2, 0.4))],
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


def test_the_first_of_stages_that_cannot_be_told_apart_is_recommended() -> None:
    """Halves of 45: equal shares of 0.57 differ by up to 0.2 in 95 of 100 cases; 0.55 is near, 0.3 is not."""
    summaries = [
        summary(stage=stage, best=best, best_head=11, best_p=0.005) for stage, best in ((1, 0.55), (2, 0.57), (3, 0.3))
    ]
    found = the_one(tables_of(stages=(1, 2, 3), null_summary=summaries), "stage")
    assert "extract at stage 1 (attention): the best single head, head 11, finds the labelled topic for 55\u00a0%" in (
        found.sentence
    )
    assert "Stage 2 is not shown to differ (57\u00a0%)." in found.sentence


# The same model elsewhere.


def test_the_same_best_head_in_runs_of_one_model_is_a_finding() -> None:
    runs = {
        "news": tables_of(null_summary=[summary(best=0.5, best_head=3, best_p=0.005)]),
        "web": tables_of(null_summary=[summary(best=0.7, best_head=3, best_p=0.005)]),
        "poems": tables_of(null_summary=[summary(best=0.6, best_head=2, best_p=0.005)]),
    }
    found = across_runs("news", runs)
    assert found is not None
    assert found.sentence == "Head 3 at stage 1 is the best single head in 2 of 3 runs of this model."
    assert "poems: stage 1 head 2 60.0\u00a0%" in found.evidence
    assert "one run in 4 would agree" in found.evidence


def test_runs_in_which_no_head_stands_out_are_counted_apart() -> None:
    loud = {name: tables_of(null_summary=[summary(best=0.5, best_head=3, best_p=0.005)]) for name in ("news", "web")}
    quiet = {"mail": tables_of(null_summary=[summary(best=0.4, best_head=1, best_p=0.3)])}
    found = across_runs("news", loud | quiet)
    assert found is not None
    assert found.sentence == (
        "Head 3 at stage 1 is the best single head in 2 of 2 runs of this model in which one stands out; in 1 more, "
        "none does."
    )
    assert across_runs("mail", loud | quiet) is None
    assert across_runs("news", {"news": loud["news"], **quiet}) is None


def test_runs_are_compared_at_one_stage() -> None:
    """Head 3 is ahead by a hair at stage 1 here and at stage 4 there: it is the same head."""

    def run(first: float, last: float) -> Tables:
        rows = [summary(stage=stage, best=best, best_head=3, best_p=0.005) for stage, best in ((1, first), (4, last))]
        return tables_of(stages=(1, 4), null_summary=rows)

    found = across_runs("news", {"news": run(0.5, 0.6), "web": run(0.6, 0.5)})
    assert found is not None
    assert found.sentence == "Head 3 at stage 4 is the best single head in 2 of 2 runs of this model."


def test_one_run_alone_says_nothing_about_others() -> None:
    one = tables_of(null_summary=[summary()])
    assert across_runs("one", {"one": one}) is None
    assert across_runs("one", {"one": one, "older": tables_of()}) is None
