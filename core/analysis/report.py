"""A run's figures beside the study's, gathered from its tables: what ``report`` prints and the app shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.analysis import study
from core.analysis.merging import STUDY_GROUPS, Agreement, Merges, agreement, suggest_merges, topic_similarity
from core.analysis.probe import SPLITS
from core.analysis.topics import merged_into, original
from core.model.stages import HEADS, RANDOM
from core.runs.tables import Row, Tables


@dataclass(frozen=True)
class TopicMerges:
    """The merges of the 39 original topics that a stage's similarities suggest, beside the study's 25."""

    stage: int
    groups: list[list[str]]
    """Only groups of two or more."""
    merges: Merges
    agreement: Agreement


def topic_merges(vectors: np.ndarray, stage: int, threshold: float | None = None) -> TopicMerges:
    """Of the original topics' ``vectors[topic, width]`` at a stage.

    With ``threshold``, topics are merged down to that mean cosine; without one, down to 25 groups.
    """
    merges = suggest_merges(topic_similarity(vectors), threshold, STUDY_GROUPS)
    theirs = merged_into()
    names = sorted(set(theirs.values()))
    groups = [
        [topic for topic, group in zip(original(), merges.group, strict=True) if group == number]
        for number in range(int(merges.group.max()) + 1)
    ]
    return TopicMerges(
        stage,
        [group for group in groups if len(group) > 1],
        merges,
        agreement(merges.group, [names.index(theirs[topic]) for topic in original()]),
    )


def as_json(tables: Tables) -> dict[str, Any]:
    """The figures by stage, for machines: ``probe``, ``topic_match``, ``heads``, and what else there is."""
    stages = tables.manifest.stages
    found: dict[str, Any] = {
        "model": tables.manifest.model["name"],
        "documents": tables.manifest.corpus["documents"],
        "labelled": tables.labelled,
        "labels": {
            "source": tables.labels.source,
            "model": tables.labels.model,
            "circular": tables.labels.circular,
            "labelled": tables.labelled,
            "unlabelled": tables.manifest.corpus["documents"] - tables.labelled,
        },
        "centred": bool(tables.manifest.steps["analyse"].options.get("centre", False)),
        "study": {"citation": study.CITATION, "probe": study.PROBE_ACCURACY, "topic_match": study.TOPIC_MATCH},
        "probe": {stage: _probe(tables, stage) for stage in stages},
        "topic_match": {stage: _topic_match(tables, stage) for stage in stages},
        "heads": {stage: _heads(tables, stage) for stage in stages},
        "control": {stage: _without_stage(tables.pick("control", stage=stage)) for stage in stages},
        "groups": {stage: _without_stage(tables.pick("groups", stage=stage)) for stage in stages},
    }
    if "maps" in tables.rows:
        found["maps"] = {stage: _without_stage(tables.pick("maps", stage=stage, head=0)) for stage in stages}
    return found


def _probe(tables: Tables, stage: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for split in SPLITS:
        overall = tables.one("probe", stage=stage, slicing=HEADS, split=split, head=0)
        random = tables.one("probe", stage=stage, slicing=RANDOM, split=split, head=0)
        if overall is None or random is None:
            continue
        recall = [row for row in tables.pick("probe", stage=stage, slicing=HEADS, split=split) if row["head"]]
        found[split] = {
            "accuracy": overall["value"],
            **{name: overall[name] for name in ("low", "high", "chance", "train", "test")},
            "random_slices": {"accuracy": random["value"], "low": random["low"], "high": random["high"]},
            "recall": {row["head"]: row["value"] for row in recall},
        }
    return found


def _topic_match(tables: Tables, stage: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in tables.pick("topic_match", stage=stage, slicing=HEADS):
        name = f"head {row['head']}" if row["method"] == "head" else row["method"]
        figures = {key: row[key] for key in ("rate", "low", "high", "chance", "majority")}
        found.setdefault(name, {})[row["within"]] = figures
    return found


def _heads(tables: Tables, stage: int) -> list[Row]:
    rows = tables.pick("profiles", stage=stage, slicing=HEADS)
    return [
        {key: value for key, value in row.items() if key not in ("stage", "slicing")} for row in rows if row["head"]
    ]


def _without_stage(rows: Sequence[Row]) -> list[Row]:
    return [{key: value for key, value in row.items() if key != "stage"} for row in rows]


def most_redundant(tables: Tables, stage: int, count: int = 3) -> list[Row]:
    """The pairs of heads with the largest CKA."""
    return sorted(_pairs(tables, stage), key=lambda row: -row["cka"])[:count]


def mean_redundancy(tables: Tables, stage: int) -> float:
    """Of all pairs of different heads; NaN where there is none."""
    values = [row["cka"] for row in _pairs(tables, stage)]
    return float(np.mean(values)) if values else float("nan")


def _pairs(tables: Tables, stage: int) -> list[Row]:
    rows = tables.pick("redundancy", stage=stage)
    return [row for row in rows if row["head"] < row["other"] and row["cka"] is not None]
