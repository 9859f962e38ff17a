"""The parts of the Overview page, from top to bottom."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import streamlit as st

from core.analysis.wording import plural
from core.retrieval.nearest import Neighbours
from core.runs.describe import heads_in_groups, precision, stored
from core.runs.labels import label_facts
from core.runs.parquet import RowLookup
from core.runs.tables import Row
from pages.explore.overview.figures import head_vectors_figure
from pages.shared.cards import Card, cards, open_card
from pages.shared.controls import choose_document, choose_head, choose_stage
from pages.shared.data import (
    RunState,
    document_vectors,
    documents,
    held_vectors,
    neighbours,
    row_of,
    runs,
    topics,
    vector_docs,
)
from pages.shared.notices import among, no_vectors, shows_mistakes
from pages.shared.show import Remake, cells, figure, theme
from pages.shared.text import plain, shortened
from pages.shared.topic_link import topic_link
from pages.shared.why_similar import ask_in_fragment

NEIGHBOURS = 6
LOOKED_THROUGH = 100_000
"""Documents from which on the nearest ones are looked for only when somebody asks: all vectors have to be read."""
_WHAT_IS = {
    "Layers": "Blocks that the model applies one after another; heads are read at one of them.",
    "Heads": "Parts of an attention block; each looks at the text in its own way.",
    "Key/value groups": "In grouped-query attention, heads of one group share a key/value head.",
    "Width": "Numbers per head and document at stage 1.",
    "Hidden size": "Numbers in the model's own embedding.",
    "Pooling": "How token vectors become one vector per document; the model's own, the same at every stage.",
    "Documents": "Without duplicates and empty ones.",
}


def facts(state: RunState) -> None:
    """The model and the corpus in one line; the rest is in its tooltip."""
    assert state.manifest is not None
    model, counts = state.manifest.model, state.manifest.steps["embed"].counts
    details = [
        f"heads read at layer {model['layer']}",
        f"hidden size {model['hidden']}",
        f"{counts.get('tokens', 0):,} tokens",
    ]
    if counts.get("duplicate"):
        details.append(f"{plural(counts['duplicate'], 'duplicate')} removed")
    if counts.get("truncated"):
        details.append(f"{plural(counts['truncated'], 'document')} truncated to {model['max_tokens']} tokens")
    details.append(plain(f"built {state.manifest.steps['embed'].finished or ''}"[:16]))
    details.append(plain(_stored(state)))
    details += [plain(note) for note in model["notes"]]
    labels = f" · labels: {plain(label_facts(state.manifest).sentence)}" if state.analysed else ""
    terms = "  \n".join(f"**{name}** – {meaning}" for name, meaning in _WHAT_IS.items())
    st.markdown(
        f"**{plain(shortened(model['name'], 120))}** · {plural(model['layers'], 'layer')}, "
        f"{heads_in_groups(state.manifest)} of width {model['head_dim']}, "
        f"{plain(model['pooling'])} pooling · "
        f"{plural(state.manifest.corpus['documents'], 'document')}, "
        f"{plain(shortened(state.manifest.corpus['source'], 200))}{labels}",
        help="  \n".join(f"{detail[0].upper()}{detail[1:]}" for detail in details) + "\n\n" + terms,
    )


def _stored(state: RunState) -> str:
    """How the vectors are kept."""
    assert state.manifest is not None
    explained = precision(state.manifest)
    return f"Vectors: {stored(state.manifest)}" + (f" ({explained})" if explained else "")


@st.fragment
@shows_mistakes
def one_head(state: RunState) -> None:
    """One document, one head: its vector, and the documents nearest to it there and in the full embedding."""
    st.subheader("One document through one head", anchor="one-head")
    assert state.manifest is not None
    shape, extra = state.manifest.shape, state.manifest.corpus["extra"]
    table = documents(state)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        doc = choose_document(state, vector_docs(state))
    with right:
        stage = choose_stage(state.manifest)
        head = choose_head(shape.heads)
    if doc is None:
        return
    with left:
        row = table.row(doc)
        open_card(_card(row, extra))
        if state.analysed and row["topic"] in topics(state).names:
            topic_link(row["topic"])
    looked_through = len(vector_docs(state))
    if row_of(state, doc) < 0:
        with right:
            no_vectors(state, doc, "vectors and no nearest documents")
        return
    with right:
        # The nearest documents need all vectors, unless there are too many of them.
        vectors = (document_vectors if looked_through > LOOKED_THROUGH else held_vectors)(state, stage, doc)
        figure(
            head_vectors_figure(vectors, head, theme()),
            "vectors",
            pa.table({f"head_{number}": values for number, values in enumerate(vectors, start=1)}),
            "Each row is one head's vector for this document; the chosen head is framed.",
            alt=f"The vectors of all heads for document {doc + 1}.",
            remake=Remake("head vectors", {"doc": doc, "stage": stage, "head": head}),
        )
    if looked_through > LOOKED_THROUGH and not st.toggle(
        "Show the nearest documents",
        key="nearest of all",
        persist_state="session",
        help="Off by default in a run of this size: the first search takes a few seconds.",
    ):
        st.caption(f"Compares this document with {looked_through:,} others, head by head.")
        return
    in_one, in_all = (neighbours(state, stage, number, doc, NEIGHBOURS) for number in (head, 0))
    left, right = st.columns(2, gap="medium")
    with left:
        _neighbours(f"Nearest in head {head}", in_one, table, extra)
    with right:
        _neighbours("Nearest in the full embedding", in_all, table, extra)
    shared = len(set(in_one.docs.tolist()) & set(in_all.docs.tolist()))
    st.caption(
        f"By cosine, at this stage. {shared} of {len(in_all.docs)} are in both lists. "
        f"Open a document to read it.{among(state)}"
    )
    ask_in_fragment(state, doc, list(dict.fromkeys([*in_all.docs.tolist(), *in_one.docs.tolist()])))


def _neighbours(title: str, found: Neighbours, table: RowLookup, extra: Mapping[str, str]) -> None:
    st.markdown(f"##### {title}")
    if not len(found.docs):
        st.caption("This run has no other document.")
    rows = zip(table.rows(found.docs).to_pylist(), found.similarity.tolist(), strict=True)
    cards([_card(row, extra, score) for row, score in rows])


def _card(row: Row, extra: Mapping[str, str], score: float | None = None) -> Card:
    # Of the corpus's own columns those that read like a label: a genre, a language, a dump; not a path or an id.
    labels = [str(row[name]) for name, kind in extra.items() if kind == "string" and row[name]]
    meta = [row["topic"], *[label for label in labels if len(label) <= 30][:3]]
    if score is None:
        meta.append(f"{row['tokens']:,} tokens{', truncated' if row['truncated'] else ''}")
    return Card(row["title"], meta, row["text"], score)


def run_table() -> None:
    """All runs of the cache."""
    st.subheader("Runs in the cache", anchor="runs")
    rows = []
    for state in runs():
        if state.manifest is None:
            rows.append({"run": state.run.name, "state": "damaged", "model": None})
            continue
        model = state.manifest.model
        rows.append(
            {
                "run": state.run.name,
                "state": "finished" if state.finished else "being built" if state.run.is_locked() else "interrupted",
                "model": cells([model["name"]])[0],
                "layer": f"{model['layer']} of {model['layers']}",
                "heads": model["heads"],
                "key/value groups": model["kv_heads"],
                "documents": state.manifest.corpus["documents"] or None,
                "corpus": cells([state.manifest.corpus["source"]])[0],
                "vectors": stored(state.manifest),
                "labels": label_facts(state.manifest).source if state.analysed else None,
                "built": (state.manifest.steps["embed"].finished or "")[:16].replace("T", " "),
            }
        )
    st.dataframe(rows, hide_index=True)
