"""The result as tables and JSON: every part of the document, every stage, every head, every topic."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from pages.shared.csv_cells import defused
from pages.shared.data import documents
from pages.use.your_document.sections import profile_table
from pages.use.your_document.sentences import consensus_sentences
from pages.use.your_document.state import Shown


def whole_table(shown: Shown) -> pa.Table:
    """A row a (part, stage, head, topic); part 0 is the beginning, head 0 the full embedding."""
    tables = []
    for part in range(len(shown.reading.parts)):
        for stage in shown.reading.vectors:
            table = profile_table(replace(shown, part=part, stage=stage))
            tables.append(table.add_column(0, "part", pa.array(np.full(len(table), part))))
    return pa.concat_tables(tables)


def as_parquet(shown: Shown) -> bytes:
    stream = io.BytesIO()
    pq.write_table(whole_table(shown), stream)
    return stream.getvalue()


def as_csv(shown: Shown) -> bytes:
    stream = io.BytesIO()
    pacsv.write_csv(defused(whole_table(shown)), stream)
    return stream.getvalue()


def as_json(shown: Shown) -> bytes:
    """The part and stage that are shown, with votes and neighbours; the document's own text is left out."""
    assert shown.state.manifest is not None
    model = shown.state.manifest.model
    found: dict[str, Any] = {
        "document": shown.name,
        "run": shown.state.run.name,
        "model": {key: model[key] for key in ("name", "revision", "layer", "pooling", "max_tokens")},
        "tokens": {"seen": shown.reading.reach.seen, "total": shown.reading.reach.total},
        "part": shown.part,
        "stage": shown.stage,
        "neighbours": [_neighbours(shown, row) for row in range(len(shown.nearest.docs))],
        "votes": _votes(shown),
    }
    if shown.state.analysed:
        found["consensus"] = consensus_sentences(shown.profile, shown.consensus, shown.topics)
        found["activation"] = [
            {"head": row, "activation": float(value), "percentile": float(percentile)}
            for row, (value, percentile) in enumerate(
                zip(shown.profile.activation, shown.profile.activation_percentiles, strict=True)
            )
        ]
        found["profile"] = profile_table(shown).to_pylist()
    return json.dumps(found, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _neighbours(shown: Shown, row: int) -> dict[str, Any]:
    pairs = zip(_ids(shown, shown.nearest.docs[row]), shown.nearest.similarity[row].tolist(), strict=True)
    return {"head": row, "documents": [{"id": own, "cosine": cosine} for own, cosine in pairs]}


def _votes(shown: Shown) -> list[dict[str, Any]]:
    ballot = shown.ballot
    return [
        {
            "id": own,
            "score": float(score),
            "heads": {str(head + 1): float(given[head]) for head in np.flatnonzero(given)},
        }
        for own, score, given in zip(_ids(shown, ballot.docs), ballot.scores, ballot.by_head, strict=True)
    ]


def _ids(shown: Shown, docs: np.ndarray) -> list[str]:
    found: list[str] = documents(shown.state).rows(docs, ["id"])["id"].to_pylist()
    return found
