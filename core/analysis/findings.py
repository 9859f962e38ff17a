"""What a run's figures say, in sentences; each is made from numbers, and carries them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.cautions import TOPIC_MATCH, Caution, cautions, joined, named_stages, ruled_out
from core.analysis.null import ABOVE, BELOW, LEVEL, benjamini_hochberg
from core.analysis.report import TopicMerges, mean_redundancy, most_redundant
from core.analysis.similarity import POOLINGS
from core.analysis.wording import percent, percents, plural
from core.model.stages import HEADS, RANDOM, STAGES
from core.runs.labels import CIRCULAR_NOTE
from core.runs.tables import Row, Tables

NAMES, PROBE = "names", "probe"
"""Measures of the tables ``null`` and ``null_summary``."""


@dataclass(frozen=True)
class Finding:
    """``sentence`` says it, ``evidence`` has the numbers."""

    about: str
    sentence: str
    evidence: str


def findings(
    tables: Tables, merges: TopicMerges | None = None, given: Sequence[Caution] | None = None
) -> list[Finding]:
    """All that this run's figures allow to be said, ``given`` first: by default the cautions of ``tables``.

    Nothing is claimed by labels at a stage where a caution rules that out.
    """
    given = cautions(tables) if given is None else given
    stages = [stage for stage in tables.manifest.stages if not ruled_out(given, TOPIC_MATCH, stage)]
    return [
        *(Finding("caution", caution.sentence, caution.evidence) for caution in given),
        *_missing(tables),
        *_older(tables),
        *_without_twin(tables),
        *_labelled_by_itself(tables),
        *_specialisation(tables, stages),
        *_standing_out(tables, stages),
        *_where_to_extract(tables, stages),
        *_separation(tables),
        *_selectivity(tables, stages),
        *_redundancy(tables),
        *_pooling(tables, stages),
        *_roles(tables, stages),
        *([_merging(merges)] if merges else []),
    ]


def _specialisation(tables: Tables, stages: Sequence[int]) -> Iterator[Finding]:
    """Do heads differ more than random slices do? The study's question, and the largest finding."""
    rows = {row["stage"]: row for row in tables.pick("null_summary", measure=NAMES) if row["stage"] in stages}
    if not rows:
        return
    adjusted = benjamini_hochberg(np.array([row["spread_p"] for row in rows.values()]))
    shown = [stage for stage, p in zip(rows, adjusted, strict=True) if p <= LEVEL]
    rest = [stage for stage in rows if stage not in shown]
    if shown:
        sentence = (
            f"Heads specialise at {named_stages(shown)}: how often one alone finds the labelled topic differs more "
            "between heads than between random slices of the same size."
        )
        if rest:
            sentence += f" At {named_stages(rest)} it does not."
    else:
        sentence = (
            f"Heads are not shown to specialise in topics at {named_stages(rest)}: they differ no more than random "
            "slices do."
        )
    parts = []
    for stage, row in rows.items():
        untrained = tables.one("untrained", stage=stage, measure=NAMES, head=0)
        without = "" if untrained is None else f", random weights {untrained['spread']:.3f}"
        parts.append(
            f"stage {stage}: standard deviation over heads {row['spread']:.3f}, over random slices "
            f"{row['slices_spread']:.3f} (95 % below {row['slices_spread_high']:.3f}){without}, p = "
            f"{row['spread_p']:.3f}"
        )
    slicings = next(iter(rows.values()))["slicings"]
    yield Finding("specialisation", sentence + _circular(tables), f"{'; '.join(parts)}; {slicings} random slicings")


def _standing_out(tables: Tables, stages: Sequence[int]) -> Iterator[Finding]:
    """Which heads lie beyond random slices, and how much of the full embedding the best reaches alone."""
    for stage in stages:
        summary = tables.one("null_summary", stage=stage, measure=NAMES)
        rows = tables.pick("null", stage=stage, measure=NAMES)
        above = sorted((row for row in rows if row["verdict"] == ABOVE), key=lambda row: -row["value"])
        below = sorted((row for row in rows if row["verdict"] == BELOW), key=lambda row: row["value"])
        if summary is None or not (above or below):
            continue
        parts = [f"{_heads(above)} {_finds(above)} the labelled topic more often"] if above else []
        parts += [f"{_heads(below)} {_finds(below)} it less often"] if below else []
        full = tables.one("topic_match", stage=stage, slicing=HEADS, method="full", within=1)
        named = ", ".join(f"head {row['head']} {percent(row['value'], 1)}" for row in [*above, *below])
        all_heads = f"; all heads together {_share(full)}" if full else ""
        yield Finding(
            "heads",
            f"At stage {stage}, compared with random slices, {' and '.join(parts)}." + _circular(tables),
            f"{named}{all_heads}; random slices {percent(summary['slices'], 1)} on average, the largest of "
            f"{summary['slicings'] * tables.manifest.shape.heads:,} {percent(summary['slices_most'], 1)}, the smallest "
            f"{percent(summary['slices_least'], 1)}; Benjamini–Hochberg over {len(rows)} heads",
        )


def across_runs(own: str, tables: Mapping[str, Tables]) -> Finding | None:
    """Whether the same head is the best in runs of the same model; ``tables`` by run, the run ``own`` among them.

    All runs are compared at the stage at which the run's own best head stands out most. None where it does not stand
    out from random slices, or where a best head stands out in no other run of this model and layer.
    """
    model = _identity(tables[own])
    rows = [row for row in tables[own].pick("null_summary", measure=NAMES) if row["best"] is not None]
    rows = [row for row in rows if row["best_p"] <= LEVEL / len(rows)]
    if not rows:
        return None
    stage = min(rows, key=lambda row: (row["best_p"], -row["best"]))["stage"]
    best: dict[str, Row] = {}
    for name, one in tables.items():
        row = one.one("null_summary", stage=stage, measure=NAMES) if _identity(one) == model else None
        if row is not None and row["best"] is not None:
            best[name] = row
    shown = [name for name, row in best.items() if row["best_p"] <= LEVEL]
    if len(shown) < 2:
        return None
    head, heads = best[own]["best_head"], tables[own].manifest.shape.heads
    same = sum(best[name]["best_head"] == head for name in shown)
    sentence = f"Head {head} at stage {stage} is the best single head in {same} of {len(shown)} runs of this model"
    quiet = len(best) - len(shown)
    if quiet:
        sentence += f" in which one stands out; in {quiet} more, none does"
    return Finding(
        "runs",
        f"{sentence}.",
        "; ".join(
            f"{name}: stage {stage} head {row['best_head']} {percent(row['best'], 1)}, p = {row['best_p']:.3f}"
            for name, row in best.items()
        )
        + f"; by chance one run in {heads} would agree with another",
    )


def _identity(tables: Tables) -> tuple[object, ...]:
    return tuple(tables.manifest.model[key] for key in ("name", "revision", "layer"))


def _where_to_extract(tables: Tables, stages: Sequence[int]) -> Iterator[Finding]:
    """By the best head, chosen on one half of the documents and reported on the other."""
    summaries = [row for row in tables.pick("null_summary", measure=NAMES) if row["stage"] in stages]
    rows = {row["stage"]: row for row in summaries if row["best"] is not None}
    if not rows:
        return
    beyond = [stage for stage, row in rows.items() if row["best_p"] <= LEVEL / len(rows)]
    if beyond:
        alike = _not_told_apart({stage: rows[stage] for stage in beyond})
        stage = min(alike)
        sentence = (
            f"To use single heads, extract at stage {stage} ({STAGES[stage].name}): the best single head, head "
            f"{rows[stage]['best_head']}, finds the labelled topic for {percent(rows[stage]['best'])} of held-out "
            "documents."
        )
        if others := [other for other in alike if other != stage]:
            named = named_stages(others)
            said = " and ".join(percent(rows[other]["best"]) for other in others)
            sentence += f" {named.capitalize()} {'is' if len(others) == 1 else 'are'} not shown to differ ({said})."
    else:
        sentence = (
            "No stage is recommended for using single heads: at every stage the best head finds the labelled topic no "
            "more often than the best random slice."
        )
    parts = [
        f"stage {stage}: head {row['best_head']} {percent(row['best'], 1)}, best random slice "
        f"{percent(row['best_slice'], 1)} (95 % "
        f"below {percent(row['best_slice_high'], 1)}), p = {row['best_p']:.3f}"
        for stage, row in rows.items()
    ]
    yield Finding(
        "stage",
        sentence + _circular(tables),
        "; ".join(parts) + "; the best is chosen on one half of the documents and reported on the other",
    )


def _not_told_apart(rows: Mapping[int, Row]) -> list[int]:
    """Stages whose best head is not shown to be worse than the best of all; halves of the documents judge each."""
    top = max(rows.values(), key=lambda row: float(row["best"]))
    share, documents = float(top["best"]), max(1, int(top["documents"]) // 2)
    room = 1.96 * (2 * share * (1 - share) / documents) ** 0.5
    return [stage for stage, row in rows.items() if share - float(row["best"]) <= room]


def _separation(tables: Tables) -> Iterator[Finding]:
    rows = {row["stage"]: row for row in tables.pick("null_summary", measure=PROBE)}
    if not rows:
        return
    more = [stage for stage, row in rows.items() if row["difference_low"] > 0]
    less = [stage for stage, row in rows.items() if row["difference_high"] < 0]
    rest = [stage for stage in rows if stage not in (*more, *less)]
    said = []
    if more:
        said.append(f"At {named_stages(more)} heads are easier to tell apart than random slices.")
    if less:
        said.append(f"At {named_stages(less)} heads are harder to tell apart than random slices.")
    if rest:
        said.append(f"At {named_stages(rest)} heads are not shown to be easier to tell apart than random slices.")
    untrained = {stage: tables.one("untrained", stage=stage, measure=PROBE, head=0) for stage in rows}
    learned = [stage for stage, row in untrained.items() if row is not None and row["difference_low"] > 0]
    known = [stage for stage, row in untrained.items() if row is not None]
    if known and not learned:
        said.append(
            "With random weights heads are at least as easy to tell apart, so this does not show anything learned."
        )
    elif learned:
        said.append(
            f"At {named_stages(learned)} they are easier to tell apart than in the same model with random weights."
        )
    parts = []
    for stage, row in rows.items():
        twin = untrained[stage]
        parts.append(
            f"stage {stage}: {row['heads']:.3f}, random slices {row['slices']:.3f}, difference "
            f"{_signed(row['difference'])} ({_signed(row['difference_low'])} to {_signed(row['difference_high'])})"
            + ("" if twin is None else f", random weights {twin['value']:.3f}")
        )
    chance = 1 / tables.manifest.shape.heads
    yield Finding(
        "separation",
        " ".join(said),
        f"accuracy of a linear probe over {next(iter(rows.values()))['slicings']} splits by document: "
        + "; ".join(parts)
        + f"; chance {chance:.3f}",
    )


def _selectivity(tables: Tables, stages: Sequence[int]) -> Iterator[Finding]:
    flagged = {
        stage: [row for row in tables.pick("null", stage=stage, measure="selectivity") if row["verdict"] == ABOVE]
        for stage in stages
    }
    summaries = {
        row["stage"]: row for row in tables.pick("null_summary", measure="selectivity") if row["stage"] in stages
    }
    if not summaries:
        return
    shown = {stage: rows for stage, rows in flagged.items() if rows}
    sentence = (
        "; ".join(f"at stage {stage} {_heads(rows)}" for stage, rows in shown.items())
        if shown
        else "no head is shown to follow topics more than random slices do"
    )
    if shown:
        sentence = f"Topics explain more of these heads' variation than of random slices': {sentence}"
    yield Finding(
        "selectivity",
        sentence[0].upper() + sentence[1:] + ".",
        "; ".join(
            f"stage {stage}: mean over heads {row['heads']:.2f}, over random slices {row['slices']:.2f} (95 % below "
            f"{row['slices_high']:.2f})"
            for stage, row in summaries.items()
        )
        + "; no effect 0",
    )


def _pooling(tables: Tables, stages: Sequence[int]) -> Iterator[Finding]:
    """Each naive pooling against the full embedding, document by document, and the same with random slices."""
    parts, worse, better = [], [], []
    for stage in stages:
        for name in POOLINGS:
            row, random = (
                tables.one("topic_match_differences", stage=stage, slicing=slicing, method=name, within=1)
                for slicing in (HEADS, RANDOM)
            )
            if row is None or random is None:
                continue
            if row["high"] < 0:
                worse.append((name, stage))
            elif row["low"] > 0:
                better.append((name, stage))
            parts.append(
                f"stage {stage}, {name} {_points(row['difference'])} ({_points(row['low'])} to {_points(row['high'])}; "
                f"random slices {_points(random['difference'])})"
            )
    if not parts:
        return
    said = []
    if worse:
        said.append(
            f"Naive pooling of the heads finds the topic less often than the full embedding: {_by_name(worse)}."
        )
    if better:
        said.append(f"Pooling the heads finds it more often than the full embedding: {_by_name(better)}.")
    if not said:
        said.append("No difference between pooled heads and the full embedding is shown.")
    yield Finding(
        "pooling",
        " ".join(said) + _circular(tables),
        "points of topic match against the full embedding, paired by document: " + "; ".join(parts),
    )


def _older(tables: Tables) -> Iterator[Finding]:
    if not tables.rows.get("null_summary") and tables.labelled:
        yield Finding(
            "older",
            "An older version analysed this run: its heads are not compared with random slices. Run 'analyse' again.",
            "missing: analysis/null.parquet",
        )


def _without_twin(tables: Tables) -> Iterator[Finding]:
    why = tables.manifest.steps["analyse"].options.get("no_untrained_twin")
    if why is not None:
        yield Finding(
            "untrained",
            "The run is not compared with random weights, so nothing here shows that a difference was learned.",
            str(why),
        )


def _roles(tables: Tables, stages: Sequence[int]) -> Iterator[Finding]:
    for stage in stages:
        rows = [row for row in tables.pick("profiles", stage=stage, slicing=HEADS) if row["head"]]
        if not rows or rows[0]["because"] is None:
            continue
        by_role: dict[str, list[Row]] = {}
        for row in rows:
            by_role.setdefault(row["role"] or "", []).append(row)
        without = len(by_role.pop("", []))
        parts = [
            f"{_heads(members)} {'is' if len(members) == 1 else 'are'} {role}"
            for role, members in sorted(by_role.items(), key=lambda item: -len(item[1]))
        ]
        if without and parts:
            parts.append(f"{plural(without, 'head has', 'heads have')} no clear role")
        elif without:
            parts.append("no head has a clear role")
        first = next((row for row in rows if row["role"] == "selective"), None) or rows[0]
        random = Counter(row["role"] for row in tables.pick("profiles", stage=stage, slicing=RANDOM) if row["role"])
        by_chance = ", ".join(f"{role} {count}" for role, count in random.most_common()) or "none has a role"
        yield Finding(
            "roles",
            f"Roles at stage {stage}: {'; '.join(parts)}.",
            f"for example head {first['head']}: {first['because']}; of as many random slices: {by_chance}",
        )


def _redundancy(tables: Tables) -> Iterator[Finding]:
    for stage in tables.manifest.stages:
        pairs = most_redundant(tables, stage)
        if not pairs:
            continue
        named = "; ".join(f"{row['head']} and {row['other']}" for row in pairs)
        yield Finding(
            "redundancy",
            f"At stage {stage} the most similar pairs of heads are {named}.",
            ", ".join(f"CKA {row['cka']:.2f}{_range(row)}" for row in pairs)
            + f"; mean of all pairs {mean_redundancy(tables, stage):.2f}, independent heads 0",
        )
        group = tables.one("groups", stage=stage)
        if group is not None:
            verdict = (
                "are more similar than others" if group["p"] < 0.05 else "are not shown to be more similar than others"
            )
            untrained = tables.one("untrained", stage=stage, measure="groups", head=0)
            if untrained is not None and group["p"] < 0.05 and untrained["spread_p"] < 0.05:
                verdict += ". With random weights they are, too, so this need not be learned"
            yield Finding(
                "groups",
                f"At stage {stage} heads of the same key/value group {verdict}.",
                f"mean CKA {_two(group['within'])} within {group['pairs_within']} such pairs, {_two(group['between'])} "
                f"between {group['pairs_between']} others; permutation p = {group['p']:.4f}"
                + ("" if untrained is None else f", with random weights {untrained['spread_p']:.4f}"),
            )


def _missing(tables: Tables) -> Iterator[Finding]:
    if not tables.labelled:
        documents = tables.manifest.corpus["documents"]
        yield Finding(
            "labels",
            "Topic match, head profiles, roles and the heat map are missing: no document has a topic from the list.",
            f"0 of {documents:,} documents labelled",
        )


def _labelled_by_itself(tables: Tables) -> Iterator[Finding]:
    if tables.labelled and tables.labels.circular:
        yield Finding(
            "circular",
            f"{CIRCULAR_NOTE} Label the documents from another source to measure how well it finds topics.",
            f"{tables.labelled:,} of {tables.manifest.corpus['documents']:,} documents have such labels",
        )


def _circular(tables: Tables) -> str:
    """For the end of a sentence about topic match."""
    return " (Circular: the labels are the nearest topics themselves.)" if tables.labels.circular else ""


def _merging(merges: TopicMerges) -> Finding:
    agreed = merges.agreement
    return Finding(
        "topics",
        f"Merged by their similarity at stage {merges.stage}, FineWeb's 39 topics form groups that "
        f"{'largely' if agreed.index >= 0.6 else 'partly' if agreed.index >= 0.2 else 'hardly'} agree with the "
        "study's 25.",
        f"adjusted Rand index {agreed.index:.2f} (chance 0, the same 1); {agreed.pairs_both} of the study's "
        f"{agreed.pairs_second} merged pairs are among the {agreed.pairs_first} suggested; merged down to a mean "
        f"cosine of {merges.merges.threshold:.2f}",
    )


def _finds(rows: list[Row]) -> str:
    return "finds" if len(rows) == 1 else "find"


def _by_name(pairs: list[tuple[str, int]]) -> str:
    """``mean of cosines (stage 1), max of cosines (stages 1 and 2)``."""
    names = dict.fromkeys(name for name, _ in pairs)
    return ", ".join(f"{name} ({named_stages([stage for other, stage in pairs if other == name])})" for name in names)


def _two(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _points(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "−")


def _share(row: Row, name: str = "") -> str:
    value, low, high = (
        row[name or "rate"],
        row[f"{name}_low" if name else "low"],
        row[f"{name}_high" if name else "high"],
    )
    return f"{percent(value, 1)} ({percents(low, high, 1)})"


def _figure(row: Row, name: str) -> str:
    return f"{row[name]:.3f} ({row[f'{name}_low']:.3f}–{row[f'{name}_high']:.3f})"


def _range(row: Row) -> str:
    return "" if row["low"] is None else f" ({row['low']:.2f}–{row['high']:.2f})"


def _heads(rows: list[Row]) -> str:
    return f"{'head' if len(rows) == 1 else 'heads'} {joined([row['head'] for row in rows])}"
