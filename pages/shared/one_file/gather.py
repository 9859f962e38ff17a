"""The parts of a run that go into the file: findings, maps, heat-map cells, profiles, tables and texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from core.analysis.heat_map import frequent_topics, heat_map
from core.analysis.stratify import stratified
from core.model.shape import ModelShape
from core.model.stages import HEADS, STAGES
from core.runs.describe import stored
from core.runs.labels import label_codes
from core.runs.results import read_analysis, read_own_similarity, read_tables, read_topics
from core.runs.run import Run
from core.runs.schema import ANALYSIS
from core.runs.steps import command, maker_of
from pages.shared.components.map_data import message_of_sample
from pages.shared.data import RunState
from pages.shared.figures.similarity import colour_limit
from pages.shared.findings import FIRST, TITLES
from pages.shared.one_file.pack import Packed, finite
from pages.shared.run_findings import run_findings
from pages.shared.text import shortened, visible
from pages.shared.theme import DIVERGING, FRAME, GROUND, INK

MOST_POINTS = 160_000
"""Points per map."""
MOST_COLUMNS = 6_000
"""Documents of the heat map."""
PER_TOPIC = 120
MOST_ROWS = 3_000
"""Rows; larger tables are left out."""
CUT = 420
"""Characters of a shortened text."""
_LONGEST = 200_000
_LEFT_OUT = ("examples", "confusion", "mismatches", "relation_examples", "aspect_documents", "layer_documents")
"""Tables of vectors, of documents, and of a treebank's sentences."""


def gathered(run: Run, texts: str) -> tuple[Packed, dict[str, Any]]:
    """The arrays, and the header; ``texts`` is 'whole', 'cut' or 'none'."""
    manifest, packed = run.manifest(), Packed()
    state = RunState(run, manifest)
    header: dict[str, Any] = {
        "run": run.name,
        "facts": _facts(run, texts),
        "heads": manifest.shape.heads,
        "groups": _groups(manifest.shape),
        "stages": [{"stage": stage, "name": STAGES[stage].name} for stage in manifest.stages],
        "first": manifest.stages[0],
        "missing": {},
        "findings": [],
        "texts": texts,
        "looks": {
            theme: {"scale": DIVERGING[theme], "ink": INK[theme], "ground": GROUND[theme], "accent": FRAME[theme]}
            for theme in ("light", "dark")
        },
    }
    shown: set[int] = set()
    if state.projected:
        header["maps"], docs = _maps(state, packed)
        shown |= set(docs)
    else:
        header["missing"]["maps"] = command("project", run.name)
    if state.analysed:
        header["findings"] = _findings(run)
        header["profiles"] = _profiles(run)
        header["heat_map"], docs = _heat_map(run, packed)
        shown |= set(docs)
    else:
        header["missing"]["figures"] = command("analyse", run.name)
    header["tables"] = _tables(run)
    header["documents"] = _documents(run, np.array(sorted(shown), dtype=np.int64), texts, packed)
    return packed, header


def _groups(shape: ModelShape) -> list[list[int]]:
    """First and last row of each key/value group in the heat map; empty if there is one group, or one per head."""
    size = shape.heads // shape.kv_heads
    if shape.kv_heads in (1, shape.heads):
        return []
    return [[first, first + size - 1] for first in range(1, shape.heads + 1, size)]


def _facts(run: Run, texts: str) -> list[list[str]]:
    manifest = run.manifest()
    model, corpus = manifest.model, manifest.corpus
    grouped = "" if model["kv_heads"] == model["heads"] else f" on {model['kv_heads']} key/value heads"
    return [
        ["Model", shortened(str(model["name"]), 200)],
        [
            "Heads",
            f"{model['heads']}{grouped}, layer {model['layer']} of {model['layers']}, {model['pooling']} pooling",
        ],
        ["Corpus", f"{shortened(str(corpus['source']), 200)}, {int(corpus['documents']):,} documents"],
        ["Vectors", stored(manifest)],
        ["Built", str(manifest.steps["embed"].finished or manifest.steps["embed"].started)[:16].replace("T", " ")],
        [
            "Texts",
            {"whole": "included", "cut": f"truncated to {CUT} characters", "none": "left out, as are titles"}[texts],
        ],
    ]


_LEADING = (*FIRST, "specialisation", "heads", "runs", "stage")
"""Findings that are shown at the top; the others are collapsed."""


def _findings(run: Run) -> list[dict[str, Any]]:
    """Findings in the Overview's order, with the first ones marked."""
    order = list(TITLES)
    found = sorted(run_findings(run), key=lambda one: order.index(one.about) if one.about in order else len(order))
    return [
        {
            "title": TITLES.get(one.about, one.about),
            "sentence": visible(one.sentence),
            "evidence": visible(one.evidence),
            "first": one.about in _LEADING,
        }
        for one in found
    ]


def _maps(state: RunState, packed: Packed) -> tuple[dict[str, Any], list[int]]:
    """The messages the app itself sends, for fewer documents if there are too many points."""
    assert state.manifest is not None
    heads, found, base = state.manifest.shape.heads, {}, None
    for stage in state.manifest.stages:
        told = message_of_sample(state, stage)
        points, about = told.pop("points"), told.pop("documents")
        docs = about["doc"].to_numpy()
        if base is None:
            first = about.column_names[2:3]
            strata = about[first[0]].to_numpy() if first else np.zeros(len(docs), dtype=np.int64)
            kept = np.arange(len(docs))
            if len(docs) * heads > MOST_POINTS:
                kept = np.sort(stratified(strata, max(1, MOST_POINTS // heads)))
            base = {name: packed.array(about[name].to_numpy()[kept]) for name in about.column_names if name != "title"}
            chosen, own = docs[kept].tolist(), docs[kept]
        rows = (np.flatnonzero(np.isin(docs, own))[:, None] * heads + np.arange(heads)).reshape(-1)
        arrays = {name: packed.array(points[name].to_numpy()[rows]) for name in points.column_names}
        found[str(stage)] = {**told, "points": arrays}
    total = int(state.manifest.corpus["documents"])
    left_out = f"A sample of {len(chosen):,} of {total:,} documents, by topic." if len(chosen) < total else ""
    return {"stages": found, "documents": base, "note": left_out}, chosen


def _heat_map(run: Run, packed: Packed) -> tuple[dict[str, Any] | None, list[int]]:
    """Cells ``[row, column]`` of every stage as float16, columns in blocks by topic; None without labels."""
    names, stages = read_topics(run).names, run.manifest().stages
    labels = label_codes(run.documents(["topic"])["topic"], names)
    topics = frequent_topics(labels, len(names)) if (labels >= 0).any() else np.empty(0, dtype=np.int64)
    if not len(topics):
        return None, []
    per_topic = max(5, min(PER_TOPIC, MOST_COLUMNS // len(topics)))
    own = {stage: read_own_similarity(run, stage, labels, len(names)) for stage in stages}
    cells = heat_map(own[stages[-1]], labels, topics, per_topic)
    found = {
        "topics": [shortened(names[topic], 120) for topic in cells.topics[cells.starts]],
        "starts": cells.starts.tolist(),
        "docs": packed.array(cells.docs.astype(np.int32)),
        "usual": len(frequent_topics(labels)),
        "values": {
            str(stage): {
                "cells": packed.array(np.nan_to_num(own[stage][cells.docs].T).astype(np.float16).view(np.uint16)),
                "limit": colour_limit(own[stage][cells.docs]),
            }
            for stage in stages
        },
        "note": f"Up to {per_topic} documents per topic." if int((labels >= 0).sum()) > len(cells.docs) else "",
    }
    return found, cells.docs.tolist()


def _profiles(run: Run) -> list[dict[str, Any]]:
    """A row per stage and head, with how often the head alone finds the labelled topic and what slices do."""
    tables = read_tables(run)
    found = []
    for row in tables.pick("profiles", slicing=HEADS):
        if not row["head"]:
            continue
        at = {"stage": row["stage"], "head": row["head"]}
        match = tables.one("topic_match", slicing=HEADS, method="head", within=1, **at) or {}
        null = tables.one("null", measure="names", **at) or {}
        keys = ("role", "because", "topic", "selectivity", "alignment", "mean", "activation")
        profile = {key: visible(row[key]) if isinstance(row[key], str) else row[key] for key in keys}
        profile |= at | {"match": match.get("rate"), "low": match.get("low"), "high": match.get("high")}
        found.append(dict(zip(profile, finite(list(profile.values())), strict=True)) | {"verdict": null.get("verdict")})
    return found


def _tables(run: Run) -> dict[str, Any]:
    manifest, found = run.manifest(), {}
    for name in ANALYSIS:
        if name in _LEFT_OUT or not manifest.is_done(maker_of(name)) or not run.has(run.analysis_path(name)):
            continue
        table = read_analysis(run, name)
        if 0 < len(table) <= MOST_ROWS:
            found[name] = {
                "columns": table.column_names,
                "values": [_cells(column.to_pylist()) for column in table.columns],
            }
    return found


def _cells(values: list[Any]) -> list[Any]:
    return [visible(value)[:500] if isinstance(value, str) else value for value in finite(values)]


def _documents(run: Run, docs: np.ndarray, texts: str, packed: Packed) -> dict[str, Any]:
    """Titles, topics and texts of the documents that are drawn."""
    columns = ["topic"] if texts == "none" else ["title", "topic", "text"]
    rows: pa.Table = run.document_lookup().rows(docs, columns) if len(docs) else None
    found: dict[str, Any] = {"docs": packed.array(docs.astype(np.int32)), "titles": [], "topics": [], "texts": []}
    if rows is None:
        return found
    found["topics"] = [None if one is None else shortened(one, 120) for one in rows["topic"].to_pylist()]
    if texts == "none":
        found["titles"] = [f"Document {doc + 1}" for doc in docs.tolist()]
        return found
    found["titles"] = [shortened(title, 120) for title in rows["title"].to_pylist()]
    for text in rows["text"].to_pylist():
        found["texts"].append(shortened(text, CUT) if texts == "cut" else visible(text[:_LONGEST]))
    return found
