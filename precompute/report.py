"""``report``: the study's tables beside this run's, and what the figures say."""

from __future__ import annotations

import contextlib
import json
import textwrap
from pathlib import Path

from core.analysis import study
from core.analysis.ablation_findings import ablation_findings, ablation_json, ablation_lines
from core.analysis.agreement import Compared, all_compared
from core.analysis.aspect_findings import AspectRows, aspect_findings, aspect_lines, aspects_json
from core.analysis.cautions import Caution
from core.analysis.findings import Finding, across_runs, findings
from core.analysis.head_measures import TITLES
from core.analysis.null import ABOVE, BELOW
from core.analysis.probe import BY_DOCUMENT, BY_SAMPLE, LEAST_DOCS
from core.analysis.report import TopicMerges, as_json, topic_merges
from core.analysis.topic_match import WITHIN, by_construction
from core.analysis.topics import merged_into
from core.analysis.wording import percent, percents
from core.errors import Mistake
from core.model.stages import HEADS, RANDOM, STAGES
from core.retrieval.cautions import all_cautions
from core.retrieval.findings import retrieval_json, retrieval_lines, voting_findings
from core.runs.aspects import aspect_labels, stored_aspects
from core.runs.describe import brings_stages, heads_in_groups, left_out, sampled, stage_names, stored
from core.runs.labels import CIRCULAR_NOTE
from core.runs.results import all_labels, read_ablation, read_aspects, read_retrieval, read_tables, read_topics
from core.runs.run import Run, open_run, run_names
from core.runs.tables import Row, Tables

_WIDTH = 110
_MOST_RUNS = 8
"""Of the same model that are compared."""


def report(cache: Path, name: str, for_machines: bool = False, threshold: float | None = None) -> str:
    """A run's report, as text or as JSON; ``threshold`` is the least mean cosine of topics that are merged."""
    run = open_run(cache, name)
    tables = read_tables(run)
    stage = tables.manifest.study_stages[-1]
    merges = topic_merges(read_topics(run, original=True).vectors[stage], stage, threshold)
    compared, retrieval, aspects = all_compared(all_labels(run)), read_retrieval(run), read_aspects(run)
    agreed = {name: all_compared(aspect_labels(run, name)) for name, of in stored_aspects(run).items() if len(of) > 1}
    given = all_cautions(tables, retrieval.get("retrieval", ()), compared)
    ablated = read_ablation(run)
    said = [
        *findings(tables, merges, given),
        *_other_runs(run, tables),
        *voting_findings(retrieval, given),
        *aspect_findings(aspects),
    ]
    said += ablation_findings(ablated["ablation"], ablated["ablation_noise"]) if ablated else []
    if for_machines:
        found = {
            "run": name,
            **as_json(tables),
            "vectors": {**tables.manifest.vectors, "bytes": run.bytes("heads"), "run_bytes": run.bytes()},
            "agreement": [pair.as_json() for pair in compared],
            **(
                {"aspect_agreement": {name: [pair.as_json() for pair in pairs] for name, pairs in agreed.items()}}
                if agreed
                else {}
            ),
            "topic_merges": {"stage": merges.stage, "threshold": merges.merges.threshold, "groups": merges.groups},
            **({"retrieval": retrieval_json(retrieval)} if retrieval else {}),
            **({"aspects": aspects_json(aspects)} if aspects else {}),
            **({"ablation": ablation_json(ablated["ablation"], ablated["ablation_noise"])} if ablated else {}),
            "findings": [vars(finding) for finding in said],
        }
        return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)
    return "\n".join(
        [
            *_head(run, tables),
            *_probe(tables),
            *_topic_match(tables),
            *_random_slices(tables),
            *_agreement(compared),
            *(line for name, pairs in agreed.items() for line in _agreement(pairs, name)),
            *_maps(tables),
            *_merges(merges),
            *_retrieval(retrieval, tables, given),
            *_aspects(aspects),
            *_ablation(ablated, tables),
            *_findings(said),
        ]
    )


def _other_runs(run: Run, tables: Tables) -> list[Finding]:
    """Whether the same head is best in the cache's other runs of this model; those that cannot be read are left out."""
    found = {run.name: tables}
    for name in run_names(run.cache):
        with contextlib.suppress(Mistake):
            other = open_run(run.cache, name)
            if len(found) < _MOST_RUNS and name != run.name and other.manifest().model == tables.manifest.model:
                found[name] = read_tables(other)
    finding = across_runs(run.name, found)
    return [] if finding is None else [finding]


def _head(run: Run, tables: Tables) -> list[str]:
    model, corpus = tables.manifest.model, tables.manifest.corpus
    lines = [
        f"{run.name}: {corpus['documents']:,} documents ({tables.labelled:,} labelled) × "
        f"{heads_in_groups(tables.manifest)}, "
        f"{model['name']}, layer {model['layer']}",
        f"Vectors: {stored(tables.manifest)}, {run.bytes('heads') / 1e6:,.1f} MB of {run.bytes() / 1e6:,.1f} MB",
        f"Labels: {tables.labels.sentence}{' – CIRCULAR, see below' if tables.labels.circular else ''}",
        f"The study: {study.CITATION}; {study.MODEL}, another corpus: its figures are for orientation only.",
    ]
    if missing := left_out(tables.manifest):
        lines.append(
            f"A slim run: {stage_names(missing)} {'are' if len(missing) > 1 else 'is'} not stored; "
            f"'{brings_stages(run.name, tables.manifest)}' adds {'them' if len(missing) > 1 else 'it'}."
        )
    if tables.manifest.is_sampled:
        lines.append(f"A slim run: vectors of {sampled(tables.manifest)} are stored; the figures cover all documents.")
    if tables.manifest.steps["analyse"].options.get("centre"):
        lines.append("Cosines are of vectors centred by the corpus mean (--centre).")
    return lines


def _probe(tables: Tables) -> list[str]:
    lines = ["", "Which head is it? Accuracy of a logistic probe (Table 1), with 95 % CI"]
    lines.append(f"  {'stage':<14}{'study':>7}  {'by sample':<22}{'by document':<22}{'random slices':<22}{'chance':>6}")
    rows = 0
    for stage in tables.manifest.stages:
        ours = [
            tables.one("probe", stage=stage, slicing=slicing, split=split, head=0)
            for slicing, split in ((HEADS, BY_SAMPLE), (HEADS, BY_DOCUMENT), (RANDOM, BY_DOCUMENT))
        ]
        if None in ours:
            continue
        rows += 1
        cells = "".join(f"{_interval(row):<22}" for row in ours if row)
        chance = ours[0]["chance"] if ours[0] else 0
        lines.append(f"  {_stage(stage):<14}{_study(stage):>7}  {cells}{chance:>6.3f}")
    if not rows:
        lines.append(f"  not computed: the probe needs at least {LEAST_DOCS} documents and 2 heads.")
    return lines


def _study(stage: int) -> str:
    """Table 1; the study has no stage 4."""
    return f"{study.PROBE_ACCURACY[stage]:.3f}" if stage in study.PROBE_ACCURACY else "–"


def _topic_match(tables: Tables) -> list[str]:
    lines = ["", "Is the labelled topic among the nearest? (§3.5), with 95 % CI"]
    if tables.labels.circular:
        lines += textwrap.wrap(CIRCULAR_NOTE, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    if not tables.labelled:
        return [*lines, "  not computed: no document has a topic from the list. Label them, then run 'analyse' again."]
    topics = int(tables.manifest.steps["analyse"].counts["topics"])
    header = "".join(f"{f'nearest {k}' if k > 1 else 'nearest':<24}" for k in WITHIN)
    lines.append(f"  {'':<32}{header}")
    cells = "".join(f"{percent(study.TOPIC_MATCH[k], 1):<24}" for k in WITHIN)
    lines.append(f"  {'the study, full, stage 3':<32}{cells}")
    for stage in tables.manifest.stages:
        rows = tables.pick("topic_match", stage=stage, slicing=HEADS)
        names = ["full", *dict.fromkeys(row["method"] for row in rows if row["head"] is None)]
        shown = {name: {row["within"]: row for row in rows if row["method"] == name} for name in names}
        best = max((row for row in rows if row["method"] == "head" and row["within"] == 1), key=lambda row: row["rate"])
        shown[f"best of {tables.manifest.shape.heads} heads ({best['head']})"] = {
            row["within"]: row for row in rows if row["head"] == best["head"]
        }
        for name, by_k in shown.items():
            cells = "".join(f"{_share(by_k[k], topics):<24}" for k in WITHIN)
            lines.append(f"  {f'stage {stage}, {name}':<32}{cells}")
    first = tables.pick("topic_match", stage=tables.manifest.stages[0], slicing=HEADS, method="full")
    for name, key in (("chance", "chance"), ("always the most frequent", "majority")):
        cells = "".join(f"{'–' if by_construction(row) else percent(row[key], 1):<24}" for row in first)
        lines.append(f"  {name:<32}{cells}")
    return lines


def _random_slices(tables: Tables) -> list[str]:
    rows = tables.rows.get("null_summary", [])
    if not rows:
        return []
    lines = ["", f"Heads against random slices of the same size ({rows[0]['documents']:,} documents)"]
    lines.append(f"  {'':<46}{'heads':>7}{'slices':>8}{'SD heads':>10}{'SD slices':>11}{'p':>7}  above / below")
    for row in rows:
        heads = tables.pick("null", stage=row["stage"], measure=row["measure"])
        beyond = [
            ", ".join(str(one["head"]) for one in heads if one["verdict"] == side) or "–" for side in (ABOVE, BELOW)
        ]
        stage, name = row["stage"], TITLES[row["measure"]]
        lines.append(
            f"  {f'stage {stage}, {name}':<46}{row['heads']:>7.3f}{row['slices']:>8.3f}{row['spread']:>10.3f}"
            f"{row['slices_spread']:>11.3f}{row['spread_p']:>7.3f}  {' / '.join(beyond)}"
        )
    return lines


def _retrieval(found: dict[str, list[Row]], tables: Tables, given: list[Caution]) -> list[str]:
    if not found:
        return []
    title = "Which heads are needed for retrieval? 95 % CI; pruned on one half of the queries, reported on the other"
    return ["", title, *(f"  {line}" for line in retrieval_lines(found, tables.manifest.shape, given))]


def _aspects(found: AspectRows) -> list[str]:
    lines = aspect_lines(found) if found else []
    title = "What does each head carry? Accuracy of a ridge probe with 95 % CI, against random slices of the same size"
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _ablation(found: dict[str, list[Row]], tables: Tables) -> list[str]:
    if not found:
        return []
    counts, options = (getattr(tables.manifest.steps["ablate"], name) for name in ("counts", "options"))
    how = " (replaced by their mean)" if options.get("how") == "mean" else ""
    title = (
        f"What happens without a head? {counts['heads']} heads switched off one by one{how} over "
        f"{counts['documents']:,} documents; change in points or degrees"
    )
    return ["", title, *(f"  {line}" for line in ablation_lines(found["ablation"]))]


def _agreement(compared: list[Compared], aspect: str = "labels") -> list[str]:
    lines = ["", f"Do the sources of {aspect} agree? Cohen's kappa, with 95 % CI"] if compared else []
    for pair in compared:
        lines.append(f"  {pair.sentence}")
        found = pair.agreement
        if found.only_first or found.only_second or found.neither:
            lines.append(
                f"    left out: labelled by {pair.first} alone {found.only_first:,}, by {pair.second} alone "
                f"{found.only_second:,}, by neither {found.neither:,}"
            )
    return lines


def _maps(tables: Tables) -> list[str]:
    rows = [row for row in tables.rows.get("maps", []) if row["head"] == 0]
    lines = ["", "Maps (Figs. 3–5)"] if rows else []
    for row in rows:
        placed = row["points"] - row["fitted"]
        sampled = f", a sample fitted, {placed:,} placed" if placed else ""
        follows = (
            ""
            if row["follows"] is None
            else f"; follows the previous stage: {row['follows']:.2f} (before rotation {row['follows_before']:.2f})"
        )
        lines.append(
            f"  {_stage(row['stage']):<14}{row['points']:,} points{sampled}; KL {row['kl']:.3f}; keeps "
            f"{percent(row['kept'])} of the ten nearest (chance {percent(row['kept_by_chance'], 1)}){follows}"
        )
    return lines


def _merges(merges: TopicMerges) -> list[str]:
    count = len(set(merges.merges.group.tolist()))
    lines = [
        "",
        f"Topics (Fig. 1): FineWeb's 39 merged into {count} by their similarity at stage {merges.stage}, down to a "
        f"mean cosine of {merges.merges.threshold:.2f}",
    ]
    study_group = merged_into()
    for group in merges.groups:
        lines += textwrap.wrap(" + ".join(group), _WIDTH, initial_indent="  ", subsequent_indent="    ")
        theirs = dict.fromkeys(study_group[topic] for topic in group)
        verdict = "merged by the study too" if len(theirs) == 1 else f"the study has them in {len(theirs)} topics"
        lines.append(f"      {verdict}")
    return lines


def _findings(said: list[Finding]) -> list[str]:
    lines = ["", "Findings"]
    for finding in said:
        lines += textwrap.wrap(finding.sentence, _WIDTH, initial_indent="  • ", subsequent_indent="    ")
        lines += textwrap.wrap(finding.evidence, _WIDTH, initial_indent="      ", subsequent_indent="      ")
    return lines


def _stage(stage: int) -> str:
    return f"{stage} {STAGES[stage].name}"


def _interval(row: Row) -> str:
    return f"{row['value']:.3f} ({row['low']:.3f}–{row['high']:.3f})"


def _share(row: Row, topics: int) -> str:
    if by_construction(row):
        return f"– (all {topics} topics)"
    return f"{percent(row['rate'], 1)} ({percents(row['low'], row['high'], 1)})"
