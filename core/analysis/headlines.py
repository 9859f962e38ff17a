"""The few findings that a reader should see first: each a sentence, its number with an interval, and a small picture.

A headline claims no more than the finding it is made of. What is not shown is one short sentence, without a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

from core.analysis.aspect_findings import AspectRows, aspect_findings
from core.analysis.aspect_probe import ACCURACY
from core.analysis.cautions import TOPIC_MATCH, Caution, cautions, ruled_out
from core.analysis.findings import NAMES, findings
from core.analysis.layer_findings import best_heads, depth_finding, specialising
from core.analysis.null import ABOVE, WITHIN
from core.analysis.report import mean_redundancy, most_redundant
from core.analysis.wording import interval, percent
from core.model.stages import HEADS
from core.runs.tables import Row, Tables

_NOTHING_SHARED = 0.1
"""A CKA below which two heads are not called redundant, however clearly it exceeds that of other pairs."""


@dataclass(frozen=True)
class DotsOnBand:
    """Heads as dots on the band of random slices; ``full`` is all heads together."""

    values: dict[int, float]
    beyond: frozenset[int]
    low: float
    high: float
    least: float
    most: float
    full: float | None = None


@dataclass(frozen=True)
class HeadlineBar:
    """A value between 0 and 1, with its interval where there is one; ``strong`` is what the headline is about."""

    label: str
    text: str
    value: float
    low: float | None = None
    high: float | None = None
    strong: bool = False


@dataclass(frozen=True)
class Marks:
    """``marked[row][column]`` of named rows, and how many columns there are."""

    rows: dict[str, frozenset[int]]
    columns: int


@dataclass(frozen=True)
class Depth:
    """A value at each layer, and what 95 % of random slices stay below."""

    values: tuple[float, ...]
    bounds: tuple[float, ...]


Picture = DotsOnBand | tuple[HeadlineBar, ...] | Marks | Depth


@dataclass(frozen=True)
class Headline:
    """``about`` is that of the finding; without a ``number`` nothing was found, and the sentence says so."""

    about: str
    title: str
    sentence: str
    number: str = ""
    spread: str = ""
    """The number's interval."""
    against: str = ""
    """What to compare the number with."""
    picture: Picture | None = None
    alt: str = ""
    """What the picture shows, for those who cannot see it."""
    at: dict[str, str] = field(default_factory=dict)
    """Stage and head, for the link to the page that shows it in full."""


def headlines(tables: Tables, aspects: AspectRows, layers: Sequence[Row]) -> list[Headline]:
    """From a run's tables, those of aspects, and ``layer_null_summary``; the last two are empty if not computed."""
    given = cautions(tables)
    stages = [stage for stage in tables.manifest.stages if not ruled_out(given, TOPIC_MATCH, stage)]
    return [
        _specialisation(tables, given, stages),
        _standing_out(tables, stages),
        _aspects(aspects),
        _redundancy(tables),
        _depth(layers, tables.manifest.shape.layers),
    ]


def standing_out(tables: Tables, stage: int) -> int | None:
    """The head (from 1) that stands out most at a stage: above random slices by topic match, else by any measure."""
    given = cautions(tables)
    if ruled_out(given, TOPIC_MATCH, stage):
        return None
    best = _best(tables, stage)
    if best is not None:
        return int(best["head"])
    beyond = [row for row in tables.pick("null", stage=stage) if row["verdict"] != WITHIN]
    return int(min(beyond, key=lambda row: (row["p_adjusted"], row["head"]))["head"]) if beyond else None


def _best(tables: Tables, stage: int) -> Row | None:
    above = [row for row in tables.pick("null", stage=stage, measure=NAMES) if row["verdict"] == ABOVE]
    return max(above, key=lambda row: float(row["value"]), default=None)


def _specialisation(tables: Tables, given: Sequence[Caution], stages: Sequence[int]) -> Headline:
    title = "Do heads specialise?"
    found = next((one for one in findings(tables, None, given) if one.about == "specialisation"), None)
    if found is None:
        return Headline("specialisation", title, "Whether heads specialise in topics cannot be tested on this run.")
    rows = [row for row in tables.pick("null_summary", measure=NAMES) if row["stage"] in stages]
    top = min(rows, key=lambda row: (row["spread_p"], row["stage"]))
    if found.sentence.startswith("Heads are not shown"):
        return Headline("specialisation", title, found.sentence)
    return Headline(
        "specialisation",
        title,
        found.sentence,
        f"{100 * top['spread']:.1f} points",
        f"95\u00a0% of slices below\u00a0{100 * top['slices_spread_high']:.1f}",
        f"standard deviation of topic match over heads, stage {top['stage']}",
        _dots(tables, top["stage"]),
        f"Every head's topic match at stage {top['stage']}, as dots on the band of random slices.",
    )


def _dots(tables: Tables, stage: int) -> DotsOnBand | None:
    summary = tables.one("null_summary", stage=stage, measure=NAMES)
    rows = tables.pick("null", stage=stage, measure=NAMES)
    if summary is None or not rows:
        return None
    full = tables.one("topic_match", stage=stage, slicing=HEADS, method="full", within=1)
    return DotsOnBand(
        values={row["head"]: float(row["value"]) for row in rows},
        beyond=frozenset(row["head"] for row in rows if row["verdict"] != WITHIN),
        low=float(summary["slices_low"]),
        high=float(summary["slices_high"]),
        least=float(summary["slices_least"]),
        most=float(summary["slices_most"]),
        full=None if full is None else float(full["rate"]),
    )


def _standing_out(tables: Tables, stages: Sequence[int]) -> Headline:
    title = "The head that stands out"
    stage = next((stage for stage in stages if _best(tables, stage) is not None), None)
    if stage is None:
        return Headline("heads", title, "No head alone is shown to find topics more often than random slices do.")
    best, summary = _best(tables, stage), tables.one("null_summary", stage=stage, measure=NAMES)
    assert best is not None
    assert summary is not None
    head = best["head"]
    own = tables.one("topic_match", stage=stage, slicing=HEADS, method="head", head=head, within=1)
    full = tables.one("topic_match", stage=stage, slicing=HEADS, method="full", within=1)
    assert own is not None
    assert full is not None
    circular = " (Circular: the labels are the nearest topics themselves.)" if tables.labels.circular else ""
    return Headline(
        "heads",
        title,
        f"Head {head} alone finds the labelled topic of {percent(own['rate'])} of the documents at stage {stage}, all "
        f"heads together of {percent(full['rate'])}, any random slice of at most {percent(summary['slices_most'])}."
        f"{circular}",
        percent(own["rate"]),
        interval(own["low"], own["high"]),
        f"head {head} alone, stage {stage}",
        (
            HeadlineBar(f"head {head}", percent(own["rate"]), own["rate"], own["low"], own["high"], strong=True),
            HeadlineBar("all heads", percent(full["rate"]), full["rate"], full["low"], full["high"]),
            HeadlineBar("best random slice", percent(summary["slices_most"]), float(summary["slices_most"])),
        ),
        f"Topic match of head {head}, of all heads together and of the best random slice, as bars.",
        {"stage": str(stage), "head": str(head)},
    )


def _aspects(rows: AspectRows) -> Headline:
    title = "What heads carry"
    if not rows.get("aspects"):
        return Headline("aspects", title, "What heads carry besides topic has not been measured on this run.")
    above = [row for row in rows["aspects"] if row["measure"] == ACCURACY and row["head"] and row["verdict"] == ABOVE]
    if not above:
        return Headline("aspects", title, "No head is shown to carry an aspect beyond random slices.")
    stage = min(row["stage"] for row in above)
    above = [row for row in above if row["stage"] == stage]
    found = next(one for one in aspect_findings(rows) if f"At stage {stage}," in one.sentence)
    summaries = {
        row["aspect"]: row for row in rows["aspect_summary"] if (row["stage"], row["measure"]) == (stage, ACCURACY)
    }
    top = max(above, key=lambda row: float(row["value"]) - float(summaries[row["aspect"]]["slices_most"]))
    summary = summaries[top["aspect"]]
    return Headline(
        "aspects",
        title,
        found.sentence,
        percent(top["value"]),
        interval(top["low"], top["high"]),
        f"{top['aspect']} read from head {top['head']} alone; any random slice at most "
        f"{percent(summary['slices_most'])}",
        Marks(
            {aspect: frozenset(row["head"] for row in above if row["aspect"] == aspect) for aspect in summaries},
            max(row["head"] for row in rows["aspects"]),
        ),
        "Which heads carry which aspect, as marks in a grid of aspects and heads.",
        {"stage": str(stage)},
    )


def _redundancy(tables: Tables) -> Headline:
    title = "Most redundant heads"
    stage = tables.manifest.stages[0]
    pairs, mean = most_redundant(tables, stage), mean_redundancy(tables, stage)
    count = sum(row["head"] < row["other"] for row in tables.pick("redundancy", stage=stage))
    if not pairs or pairs[0]["low"] is None:
        return Headline("redundancy", title, "Too few heads or documents to compare heads with each other.")
    top = pairs[0]
    if top["cka"] < _NOTHING_SHARED:
        said = f"No two heads are alike at stage {stage}: the most similar pair has a CKA of {top['cka']:.2f}."
        return Headline("redundancy", title, said)
    # The largest of many pairs must clear a higher bar than one pair's interval (Bonferroni).
    bar = NormalDist().inv_cdf(1 - 0.025 / max(1, count)) / NormalDist().inv_cdf(0.975)
    if top["cka"] - mean <= bar * (top["cka"] - top["low"]):
        return Headline("redundancy", title, f"No two heads are shown to be more alike than others at stage {stage}.")
    found = next(
        one for one in findings(tables, None, ()) if one.about == "redundancy" and f"At stage {stage} " in one.sentence
    )
    return Headline(
        "redundancy",
        title,
        found.sentence,
        f"CKA {top['cka']:.2f}",
        f"95\u00a0% CI {top['low']:.2f}–{top['high']:.2f}",
        f"heads {top['head']} and {top['other']}; identical heads 1, the mean pair {mean:.2f}",
        (
            *(
                HeadlineBar(
                    f"{row['head']} and {row['other']}",
                    f"{row['cka']:.2f}",
                    row["cka"],
                    row["low"],
                    row["high"],
                    row is top,
                )
                for row in pairs
            ),
            HeadlineBar("mean pair", f"{mean:.2f}", mean),
        ),
        "CKA of the most alike pairs of heads and of the mean pair, as bars.",
        {"stage": str(stage)},
    )


def _depth(rows: Sequence[Row], layers: int) -> Headline:
    title = "Where in depth?"
    stage = min((row["stage"] for row in rows), default=None)
    if stage is None or (found := depth_finding(rows, stage, layers)) is None:
        return Headline("layers", title, "The layers of this model have not been compared with random slices.")
    differ, best = specialising(rows, stage), best_heads(rows, stage)
    tops = [row for row in best.rows if row["measure"] == NAMES] if best else []
    if not tops:
        return Headline("layers", title, found.sentence)
    top = max(tops, key=lambda row: float(row["best"]))
    own = sorted(
        (row for row in rows if (row["stage"], row["measure"]) == (stage, NAMES)), key=lambda row: row["layer"]
    )
    low, high = _wilson(float(top["best"]), max(1, int(top["documents"]) // 2))
    return Headline(
        "layers",
        title,
        f"At stage {stage} heads specialise in topics at {len(differ.layers(NAMES)) if differ else 0} of {layers} "
        f"layers. The best head is head {top['best_head']} at layer {top['layer']}.",
        percent(top["best"]),
        interval(low, high),
        f"of held-out documents; the best random slice {percent(top['best_slice'])}",
        Depth(tuple(float(row["spread"]) for row in own), tuple(float(row["slices_spread_high"]) for row in own)),
        "How far heads differ at each layer, as bars, with what 95 % of random slices stay below.",
        {"stage": str(stage), "layer": str(top["layer"]), "head": str(top["best_head"])},
    )


def _wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of ``count`` documents."""
    z = NormalDist().inv_cdf(0.975)
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    margin = z / (1 + z**2 / count) * (share * (1 - share) / count + z**2 / (4 * count**2)) ** 0.5
    return middle - margin, middle + margin
