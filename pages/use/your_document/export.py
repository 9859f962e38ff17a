"""The result to take away: tables, JSON, and one HTML file that opens offline. Made on request, stored nowhere."""

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

from core.model.attention import Attended
from core.model.stages import STAGES
from core.runs.parquet import RowLookup
from pages.shared.data import documents
from pages.shared.embedding import attended_already
from pages.shared.figures.reliability import right_for, solidity
from pages.shared.figures.similarity import cell_colour, colour_limit
from pages.shared.figures.words import words_html
from pages.shared.notices import among, shows_mistakes
from pages.shared.show import defused
from pages.shared.text import safe, shortened
from pages.shared.theme import BORDER, FONT, GROUND, INK, LABEL_SIZE, MUTED, PAGE_SIZE, ink_on
from pages.use.your_document.figures import shown_topics
from pages.use.your_document.state import (
    NEIGHBOURS,
    REFERENCES,
    DocumentView,
    consensus_sentences,
    row_name,
    voting_heads,
)
from pages.use.your_document.topics import profile_table


def whole_table(shown: DocumentView) -> pa.Table:
    """A row a (part, stage, head, topic); part 0 is the beginning, head 0 the full embedding."""
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


_STYLE = f"""
body {{ font: {PAGE_SIZE}px/1.5 {FONT}; color: {INK["light"]};
  background: {GROUND["light"]}; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: {LABEL_SIZE}px; }}
th, td {{ padding: .2rem .35rem; text-align: right; font-weight: 400; }}
th.topic {{ writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; max-height: 11rem; }}
th[scope=row] {{ text-align: left; white-space: nowrap; }}
tr.head th[scope=row] {{ font-weight: 700; }}
.scroll {{ overflow-x: auto; }}
details {{ border: 1px solid {BORDER["light"]}; border-radius: .4rem; padding: .4rem .7rem; margin: .3rem 0;
  overflow-wrap: anywhere; }}
details div {{ white-space: pre-wrap; }}
.quiet {{ color: {MUTED["light"]}; }}
"""
# Even if an escape were missing somewhere, a browser would run and load nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report_html(shown: DocumentView, found: Attended | None) -> str:
    """``found`` is where the heads look, if that was computed."""
    assert shown.state.manifest is not None
    model, stage = shown.state.manifest.model, STAGES[shown.stage]
    part = "" if shown.part == 0 else f", chunk {shown.part}"
    sections = [
        f"<h1>{safe(shown.name)}</h1>",
        f'<p class="quiet">{safe(shown.reading.reach)}{part}, through {safe(model["name"])}, layer {model["layer"]}, '
        f"at stage {stage.number} ({stage.name}), against the {shown.state.manifest.corpus['documents']:,} documents "
        f"of the run {safe(shown.state.run.name)}. {safe(stage.caveat)}</p>",
    ]
    if shown.state.analysed:
        said = " ".join(consensus_sentences(shown.profile, shown.consensus, shown.topics, shown.reliability))
        sections += ["<h2>What it is about</h2>", f"<p>{safe(said)}</p>", _profile(shown), _activation(shown)]
    sections += [_neighbours(shown)]
    if found is not None:
        sections += [f"<h2>Where head {shown.head} looks</h2>", words_html(shown.text, found, shown.head)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe(shown.name)} – Headscope</title><style>{_STYLE}</style></head><body>"
        f"{''.join(sections)}</body></html>"
    )


def _profile(shown: DocumentView) -> str:
    order = shown_topics(shown.consensus.order, shown.consensus.choices)
    percentile = shown.measure == "percentile"
    values = shown.cells(shown.profile)[:, order]
    limit = 50.0 if percentile else colour_limit(values)
    names = "".join(f'<th class="topic" scope="col">{safe(shortened(shown.topics[topic], 40))}</th>' for topic in order)
    known, solid = shown.reliability, solidity(shown.reliability, len(values) - 1)
    vote = [None, *shown.consensus.choices.tolist()]
    body = ""
    for row, cells in enumerate(values):
        rate = "" if known is None else f"<td>{right_for(known.rates[row])}</td>"
        body += f'<tr{" class=head" if row == shown.head else ""}><th scope="row">{row_name(row)}</th>{rate}'
        counts = row and shown.consensus.weights[row - 1] > 0
        for topic, value in zip(order.tolist(), cells.tolist(), strict=True):
            share = (value - (50 if percentile else 0)) / limit
            body += _cell(value, share, percentile, bool(counts) and topic == vote[row], float(solid[row]))
        body += "</tr>"
    kind = "percentiles among the corpus" if percentile else "cosines"
    against = f"topics by {REFERENCES[shown.reference].lower()}"
    rates = "" if known is None else '<th scope="col">on the corpus</th>'
    faded = "" if known is None else " Paler heads are less reliable."
    return (
        f'<h2>Topic profile, {kind}</h2><p class="quiet">Compared with {against}; framed: the head\'s vote.{faded}</p>'
        f'<div class="scroll"><table><thead><tr><th></th>{rates}{names}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(value: float, share: float, percentile: bool, vote: bool, solid: float) -> str:
    text = f"{value:.0f}" if percentile else f"{value:+.2f}".replace("-", "−")
    colour = cell_colour(share, "light")
    frame = f";outline:2px solid {INK['light']};outline-offset:-2px" if vote else ""
    return f'<td style="background:{colour};color:{ink_on(colour)};opacity:{0.5 + 0.5 * solid:.2f}{frame}">{text}</td>'


def _activation(shown: DocumentView) -> str:
    rows = "".join(
        f'<tr><th scope="row">head {row}</th><td>{shown.profile.activation[row]:.2f}</td>'
        f"<td>{shown.profile.activation_percentiles[row]:.0f}</td></tr>"
        for row in range(1, len(shown.profile.activation))
    )
    head = '<tr><th></th><th scope="col">activation</th><th scope="col">percentile</th></tr>'
    return f"<h2>Activation of each head</h2><table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _neighbours(shown: DocumentView) -> str:
    table, near, ballot = documents(shown.state), shown.nearest, shown.ballot
    parts = ["<h2>Nearest documents of the corpus</h2>"]
    if said := among(shown.state):
        parts.append(f"<p>{safe(said.strip())}</p>")
    for row in (0, shown.head):
        parts.append(f"<h3>{row_name(row).capitalize()}</h3>")
        pairs = zip(near.docs[row][:NEIGHBOURS].tolist(), near.similarity[row].tolist(), strict=False)
        parts += [_document(table, doc, f"{cosine:+.2f}".replace("-", "−")) for doc, cosine in pairs]
    parts.append("<h3>Votes of all heads</h3>")
    for doc, given in zip(ballot.docs.tolist(), ballot.by_head, strict=True):
        parts.append(_document(table, doc, voting_heads(given)))
    return "".join(parts)


def _document(table: RowLookup, doc: int, score: str) -> str:
    row = table.row(doc)
    topic = f' <span class="quiet">{safe(row["topic"])}</span>' if row["topic"] else ""
    return (
        f"<details><summary>{safe(score)} <b>{safe(shortened(row['title'], 110))}</b>{topic}</summary>"
        f"<div>{safe(row['text'])}</div></details>"
    )


KINDS: dict[str, tuple[str, str, Callable[[DocumentView], bytes]]] = {
    "Parquet": ("parquet", "application/vnd.apache.parquet", as_parquet),
    "CSV": ("csv", "text/csv", as_csv),
    "JSON": ("json", "application/json", as_json),
}
"""Name on the button: ending, media type, how it is made."""


@shows_mistakes
def keep_section(shown: DocumentView) -> None:
    st.subheader("Export", anchor=False)
    name = file_name(shown.name)
    found = attended_already(shown.state, shown.text)
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "HTML report",
            lambda: report_html(shown, found).encode("utf-8", "replace"),
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
        "The report opens offline and has no links. Parquet and CSV hold every stage; JSON holds votes and neighbours "
        "too. Nothing of the document is kept on the server."
    )


def file_name(name: str) -> str:
    """A document's name as a file's: letters, numbers and dashes, not too long."""
    plain = re.sub(r"[^\w]+", "-", name, flags=re.UNICODE).strip("-_").lower()
    return f"headscope-{plain[:60] or 'document'}"
