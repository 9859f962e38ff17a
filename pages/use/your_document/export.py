"""Downloads: tables, JSON and the report. Made on request, never stored."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import streamlit as st

from pages.shared.data import documents
from pages.shared.embedding import attended_already
from pages.shared.notices import shows_mistakes
from pages.shared.show import defused
from pages.use.your_document.neighbours import all_placed
from pages.use.your_document.report import PageExperiments, report_html
from pages.use.your_document.state import (
    DocumentView,
    consensus_sentences,
)
from pages.use.your_document.topics import profile_table


def whole_table(shown: DocumentView) -> pa.Table:
    """One row per part, stage, head and topic; part 0 is the beginning, head 0 the full embedding."""
    tables = []
    for part in range(len(shown.reading.parts)):
        for stage in shown.reading.vectors:
            table = profile_table(replace(shown, part=part, stage=stage))
            tables.append(table.add_column(0, "part", pa.array(np.full(len(table), part))))
    return pa.concat_tables(tables)


def as_parquet(shown: DocumentView) -> bytes:
    stream = io.BytesIO()
    pq.write_table(whole_table(shown), stream)
    return stream.getvalue()


def as_csv(shown: DocumentView) -> bytes:
    stream = io.BytesIO()
    pacsv.write_csv(defused(whole_table(shown)), stream)
    return stream.getvalue()


def as_json(shown: DocumentView) -> bytes:
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
        "neighbours": [_nearest_ids(shown, row) for row in range(len(shown.nearest.docs))],
        "votes": _votes(shown),
    }
    if shown.state.analysed:
        found["reference"] = shown.reference
        found["consensus"] = consensus_sentences(shown.profile, shown.consensus, shown.topics, shown.reliability)
        found["topic votes"] = _topic_votes(shown)
        found["activation"] = [
            {"head": row, "activation": float(value), "percentile": float(percentile)}
            for row, (value, percentile) in enumerate(
                zip(shown.profile.activation, shown.profile.activation_percentiles, strict=True)
            )
        ]
        found["profile"] = profile_table(shown).to_pylist()
    return json.dumps(found, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _topic_votes(shown: DocumentView) -> list[dict[str, Any]]:
    """Each head's vote and how far it counts; ``reliability`` is null in a run without labels."""
    votes, known = shown.consensus, shown.reliability
    return [
        {
            "head": head,
            "topic": shown.topics[int(topic)],
            "weight": float(weight),
            "reliability": None if known is None else float(known.rates[head]),
        }
        for head, (topic, weight) in enumerate(zip(votes.choices, votes.weights, strict=True), start=1)
    ]


def _nearest_ids(shown: DocumentView, row: int) -> dict[str, Any]:
    pairs = zip(_ids(shown, shown.nearest.docs[row]), shown.nearest.similarity[row].tolist(), strict=True)
    return {"head": row, "documents": [{"id": own, "cosine": cosine} for own, cosine in pairs]}


def _votes(shown: DocumentView) -> list[dict[str, Any]]:
    ballot = shown.ballot
    return [
        {
            "id": own,
            "score": float(score),
            "heads": {str(head + 1): float(given[head]) for head in np.flatnonzero(given)},
        }
        for own, score, given in zip(_ids(shown, ballot.docs), ballot.scores, ballot.by_head, strict=True)
    ]


def _ids(shown: DocumentView, docs: np.ndarray) -> list[str]:
    found: list[str] = documents(shown.state).rows(docs, ["id"])["id"].to_pylist()
    return found


KINDS: dict[str, tuple[str, str, Callable[[DocumentView], bytes]]] = {
    "Parquet": ("parquet", "application/vnd.apache.parquet", as_parquet),
    "CSV": ("csv", "text/csv", as_csv),
    "JSON": ("json", "application/json", as_json),
}
"""Name on the button: ending, media type, how it is made."""


@shows_mistakes
def keep_section(shown: DocumentView, seen: PageExperiments) -> None:
    """``seen``: what the page shows beside the document itself, for the report."""
    st.subheader("Export", anchor="export")
    name = file_name(shown.name)
    found = attended_already(shown.state, shown.text)
    placed = all_placed(shown) if shown.state.projected else None
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "HTML report",
            lambda: report_html(shown, found, placed, seen).encode("utf-8", "replace"),
            f"{name}.html",
            "text/html",
            icon=":material/description:",
            key="keep html",
            on_click="ignore",
        )
        for label, (ending, mime, make) in KINDS.items():
            # Tables are of the profile: without the run's figures there is none.
            if ending != "json" and not shown.state.analysed:
                continue
            st.download_button(
                label, partial(make, shown), f"{name}.{ending}", mime, key=f"keep {ending}", on_click="ignore"
            )
    st.caption(
        "The report opens offline and has the figures that this page shows now. Parquet and CSV have every stage; JSON "
        "has votes and neighbours, too. Nothing of the document is stored on the server."
    )


def file_name(name: str) -> str:
    """A document's name as a file's: letters, numbers and dashes, not too long."""
    plain = re.sub(r"[^\w]+", "-", name, flags=re.UNICODE).strip("-_").lower()
    return f"headscope-{plain[:60] or 'document'}"
