"""What a run's figures say, in sentences; each is made from numbers, and carries them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.analysis.probe import BY_DOCUMENT, BY_SAMPLE
from core.analysis.report import TopicMerges, mean_redundancy, most_redundant
from core.model.stages import HEADS, RANDOM, STAGES
from core.runs.labels import CIRCULAR_NOTE
from core.runs.tables import Row, Tables


@dataclass(frozen=True)
class Finding:
    """``sentence`` says it, ``evidence`` has the numbers."""

    about: str
    sentence: str
    evidence: str


def findings(tables: Tables, merges: TopicMerges | None = None) -> list[Finding]:
    """All that this run's figures allow to be said."""
    found = [finding for about in _ABOUT for finding in about(tables)]
    return found + ([_merging(merges)] if merges else [])


def _where_to_extract(tables: Tables) -> Iterator[Finding]:
    measure = "topic match within 1, mean of slices"
    rows = {stage: tables.one("control", stage=stage, measure=measure) for stage in tables.manifest.stages}
    known = {stage: row for stage, row in rows.items() if row is not None}
    if len(known) < 2:
        return
    order = sorted(known, key=lambda stage: -known[stage]["heads"])
    best, second = order[0], order[1]
    clear = known[best]["heads_low"] > max(known[stage]["heads_high"] for stage in order[1:])
    name = f"stage {best} ({STAGES[best].name})"
    if known[best]["heads_low"] <= known[best]["chance"]:
        sentence = "At no stage does a single head find the labelled topic more often than chance."
    elif clear:
        sentence = (
            f"A single head finds the labelled topic most often at {name}: extract there to use heads one by one."
        )
    else:
        sentence = (
            f"A single head finds the labelled topic about as often at {name} as at stage {second}: neither is clearly "
            "better."
        )
    yield Finding(
        "stage",
        sentence + _circular(tables),
        "; ".join(
            f"stage {stage}: {_share(known[stage], 'heads')} (random slices {known[stage]['random']:.1%}, "
            f"chance {known[stage]['chance']:.1%})"
            for stage in sorted(known)
        ),
    )


def _separation(tables: Tables) -> Iterator[Finding]:
    for stage in tables.manifest.stages:
        row = tables.one("control", stage=stage, measure=f"probe by {BY_DOCUMENT}")
        by_sample = tables.one("control", stage=stage, measure=f"probe by {BY_SAMPLE}")
        if row is None or by_sample is None:
            continue
        if row["heads_low"] <= row["chance"]:
            verdict = "heads cannot be told apart by their vectors"
        elif row["heads_low"] > row["random_high"]:
            verdict = "heads can be told apart by their vectors, better than random slices can"
        elif row["heads_high"] < row["random_low"]:
            verdict = "slices can be told apart by their vectors, but random ones even better: no finding about heads"
        else:
            verdict = "slices can be told apart by their vectors, but random ones just as well: no finding about heads"
        yield Finding(
            "separation",
            f"At stage {stage} {verdict}.",
            f"probe by document {_figure(row, 'heads')}, random slices {_figure(row, 'random')}, by sample "
            f"{_figure(by_sample, 'heads')}, chance {row['chance']:.3f}",
        )


def _pooling(tables: Tables) -> Iterator[Finding]:
    for stage in tables.manifest.stages:
        rows = tables.pick("topic_match", stage=stage, slicing=HEADS, within=1)
        if not rows:
            continue
        full = next(row for row in rows if row["method"] == "full")
        best = max((row for row in rows if row["method"] == "head"), key=lambda row: row["rate"])
        pools = [row for row in rows if row["head"] is None]
        worse = [row["method"] for row in pools if row["high"] < full["low"]]
        better = [row["method"] for row in pools if row["low"] > full["high"]]
        if worse:
            said = f"naive pooling blurs ({', '.join(worse)})"
            said += f", but {', '.join(better)} does better than the full embedding" if better else ""
        elif better:
            said = f"pooling of heads does better than the full embedding ({', '.join(better)})"
        else:
            said = "naive pooling of heads does neither better nor worse than the full embedding, within the intervals"
        yield Finding(
            "pooling",
            f"At stage {stage} {said}.{_circular(tables)}",
            f"full {_share(full)}, "
            + ", ".join(f"{row['method']} {_share(row)}" for row in pools)
            + f"; best single head {best['head']} {_share(best)}; chance {full['chance']:.1%}",
        )


def _roles(tables: Tables) -> Iterator[Finding]:
    for stage in tables.manifest.stages:
        rows = [row for row in tables.pick("profiles", stage=stage, slicing=HEADS) if row["head"]]
        if not rows or rows[0]["because"] is None:
            continue
        by_role: dict[str, list[Row]] = {}
        for row in rows:
            by_role.setdefault(row["role"] or "no clear role", []).append(row)
        parts = [
            f"{role} {_heads(members)}" for role, members in sorted(by_role.items(), key=lambda item: -len(item[1]))
        ]
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
        named = ", ".join(f"{row['head']} and {row['other']}" for row in pairs)
        yield Finding(
            "redundancy",
            f"The most alike heads at stage {stage} are {named}.",
            ", ".join(f"CKA {row['cka']:.2f}{_range(row)}" for row in pairs)
            + f"; mean of all pairs {mean_redundancy(tables, stage):.2f}, independent heads 0",
        )
        group = tables.one("groups", stage=stage)
        if group is not None:
            verdict = (
                "are more alike than others" if group["p"] < 0.05 else "are not shown to be more alike than others"
            )
            yield Finding(
                "groups",
                f"At stage {stage} heads that share a key/value head {verdict}.",
                f"mean CKA {group['within']:.2f} within {group['pairs_within']} such pairs, {group['between']:.2f} "
                f"between {group['pairs_between']} others; permutation p = {group['p']:.4f}",
            )


def _selectivity(tables: Tables) -> Iterator[Finding]:
    for stage in tables.manifest.stages:
        row = tables.one("control", stage=stage, measure="selectivity, median of slices (range)")
        if row is None:
            continue
        above = sum(
            profile["selectivity_low"] is not None and profile["selectivity_low"] > row["random_high"]
            for profile in tables.pick("profiles", stage=stage, slicing=HEADS)
            if profile["head"]
        )
        heads = tables.manifest.shape.heads
        yield Finding(
            "selectivity",
            f"At stage {stage} topics explain more of {above} of {heads} heads' variation than of any random slice's."
            if above
            else f"At stage {stage} topics explain no head's variation better than the best random slice's.",
            f"median over heads {row['heads']:.2f} ({row['heads_low']:.2f}–{row['heads_high']:.2f}), over random "
            f"slices {row['random']:.2f} ({row['random_low']:.2f}–{row['random_high']:.2f}); no effect 0",
        )


def _missing(tables: Tables) -> Iterator[Finding]:
    if not tables.labelled:
        documents = tables.manifest.corpus["documents"]
        yield Finding(
            "labels",
            "Topic match, head profiles, roles and the heat map are missing: no document has a topic of the list.",
            f"0 of {documents:,} documents labelled",
        )


def _labelled_by_itself(tables: Tables) -> Iterator[Finding]:
    if tables.labelled and tables.labels.circular:
        yield Finding(
            "circular",
            f"{CIRCULAR_NOTE} Label the documents by another source to learn how well it finds topics.",
            f"{tables.labelled:,} of {tables.manifest.corpus['documents']:,} documents are labelled so",
        )


def _circular(tables: Tables) -> str:
    """For the end of a sentence about topic match."""
    return " (Circular: the labels are the nearest topics themselves.)" if tables.labels.circular else ""


def _merging(merges: TopicMerges) -> Finding:
    agreed = merges.agreement
    return Finding(
        "topics",
        f"Merged by their similarity at stage {merges.stage}, FineWeb's 39 topics give groups that agree "
        f"{'largely' if agreed.index >= 0.6 else 'partly' if agreed.index >= 0.2 else 'little'} with the study's 25.",
        f"adjusted Rand index {agreed.index:.2f} (chance 0, the same 1); {agreed.pairs_both} of the study's "
        f"{agreed.pairs_second} merged pairs are among the {agreed.pairs_first} suggested; merged down to a mean "
        f"cosine of {merges.merges.threshold:.2f}",
    )


_ABOUT: tuple[Callable[[Tables], Iterator[Finding]], ...] = (
    _missing,
    _labelled_by_itself,
    _where_to_extract,
    _separation,
    _selectivity,
    _pooling,
    _roles,
    _redundancy,
)


def _share(row: Row, name: str = "") -> str:
    value, low, high = (
        row[name or "rate"],
        row[f"{name}_low" if name else "low"],
        row[f"{name}_high" if name else "high"],
    )
    return f"{value:.1%} ({low:.1%}–{high:.1%})"


def _figure(row: Row, name: str) -> str:
    return f"{row[name]:.3f} ({row[f'{name}_low']:.3f}–{row[f'{name}_high']:.3f})"


def _range(row: Row) -> str:
    return "" if row["low"] is None else f" ({row['low']:.2f}–{row['high']:.2f})"


def _heads(rows: list[Row]) -> str:
    numbers = ", ".join(str(row["head"]) for row in rows)
    return f"{'head' if len(rows) == 1 else 'heads'} {numbers}"
