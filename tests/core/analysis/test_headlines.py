"""The findings that a reader sees first: no more than the tables allow, with the tables' own numbers."""

from __future__ import annotations

from core.analysis.headlines import DotsOnBand, HeadlineBar, headlines, standing_out
from core.runs.tables import Row
from tests.core.analysis.test_findings import against, summary, tables_of


def match(method: str, head: int, rate: float, low: float, high: float) -> Row:
    row: Row = {"stage": 1, "slicing": "heads", "method": method, "head": head, "within": 1, "documents": 90}
    return row | {"rate": rate, "low": low, "high": high, "chance": 0.04, "majority": 0.05}


def pair(head: int, other: int, cka: float, low: float, high: float) -> Row:
    return {"stage": 1, "head": head, "other": other, "cka": cka, "low": low, "high": high, "position": 0}


MATCH = [match("full", 0, 0.68, 0.63, 0.73), match("head", 2, 0.59, 0.54, 0.64), match("head", 1, 0.2, 0.1, 0.3)]
HEADS = [against(1, 0.2, "within"), against(2, 0.59, "above")]


def by_about(**rows: list[Row]) -> dict[str, tuple[str, str, str]]:
    found = headlines(tables_of(**rows), {}, [])
    return {one.about: (one.sentence, one.number, one.spread) for one in found}


def test_the_head_that_stands_out_has_the_runs_own_figures() -> None:
    tables = tables_of(null_summary=[summary(slices_most=0.41)], null=HEADS, topic_match=MATCH)
    one = next(one for one in headlines(tables, {}, []) if one.about == "heads")
    assert one.sentence.replace("\u00a0", " ") == (
        "Head 2 alone finds the labelled topic of 59 % of the documents at stage 1, all heads together of 68 %, any "
        "random slice of at most 41 %."
    )
    assert (one.number, one.spread) == ("59\u00a0%", "95\u00a0% CI 54–64\u00a0%")
    assert one.at == {"stage": "1", "head": "2"}
    assert isinstance(one.picture, tuple)
    assert [(bar.label, bar.value) for bar in one.picture if isinstance(bar, HeadlineBar)] == [
        ("head 2", 0.59),
        ("all heads", 0.68),
        ("best random slice", 0.41),
    ]
    assert standing_out(tables, 1) == 2


def test_heads_within_random_slices_are_a_sentence_without_a_number() -> None:
    within = [against(1, 0.2, "within"), against(2, 0.59, "within")]
    found = by_about(null_summary=[summary()], null=within, topic_match=MATCH)
    assert found["heads"][:2] == ("No head alone is shown to find topics more often than random slices do.", "")
    assert found["specialisation"][0].startswith("Heads are not shown to specialise in topics at stage 1")
    assert found["specialisation"][1] == ""
    assert standing_out(tables_of(null_summary=[summary()], null=within, topic_match=MATCH), 1) is None


def test_specialising_heads_have_their_spread_and_are_dots_on_the_band() -> None:
    tables = tables_of(
        null_summary=[summary(spread=0.123, spread_p=0.005, slices_spread_high=0.05)], null=HEADS, topic_match=MATCH
    )
    one = next(one for one in headlines(tables, {}, []) if one.about == "specialisation")
    assert (one.number, one.spread) == ("12.3 points", "95\u00a0% of slices below\u00a05.0")
    assert isinstance(one.picture, DotsOnBand)
    assert (one.picture.values, one.picture.beyond, one.picture.full) == ({1: 0.2, 2: 0.59}, {2}, 0.68)


def test_a_pair_no_more_alike_than_the_mean_pair_is_not_called_redundant() -> None:
    # Three pairs: the largest of them must lie 1.22 times as far from the mean as its interval reaches down.
    alike = [pair(1, 2, 0.6, 0.55, 0.65), pair(1, 3, 0.1, 0.05, 0.15), pair(2, 3, 0.2, 0.15, 0.25)]
    found = by_about(redundancy=alike)["redundancy"]
    assert found == ("At stage 1 the most similar pairs of heads are 1 and 2; 2 and 3; 1 and 3.", "CKA 0.60", found[2])
    assert found[2] == "95\u00a0% CI 0.55–0.65"
    noise = [pair(1, 2, 0.3, 0.21, 0.39), pair(1, 3, 0.15, 0.0, 0.3), pair(2, 3, 0.15, 0.0, 0.3)]
    assert by_about(redundancy=noise)["redundancy"] == (
        "No two heads are shown to be more alike than others at stage 1.",
        "",
        "",
    )


def test_a_pair_that_shares_next_to_nothing_is_not_called_redundant() -> None:
    apart = [pair(1, 2, 0.05, 0.049, 0.051), pair(1, 3, 0.01, 0.009, 0.011), pair(2, 3, 0.01, 0.009, 0.011)]
    sentence = "No two heads are alike at stage 1: the most similar pair has a CKA of 0.05."
    assert by_about(redundancy=apart)["redundancy"] == (sentence, "", "")


def test_what_was_not_measured_is_one_short_sentence() -> None:
    found = by_about()
    assert found["aspects"] == ("What heads carry besides topic has not been measured on this run.", "", "")
    assert found["layers"] == ("The layers of this model have not been compared with random slices.", "", "")
    assert found["redundancy"][1] == ""
