"""What a document is about: what the heads vote for, the profile of every head, and chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.document_profile import profile
from pages.shared import show
from pages.shared.corpus import EXAMPLES, MOST_COMPARED
from pages.shared.data import tables
from pages.shared.data import topics as all_topics
from pages.shared.empty_states import not_analysed
from pages.shared.figures.reliability import right_for, solidity
from pages.shared.figures.table import figure_table, number
from pages.shared.glossary import why
from pages.shared.heads_in_address import heads_named
from pages.shared.notices import shows_mistakes
from pages.shared.text import plain, safe, shortened
from pages.use.your_document.figures import along_figure, profile_figure, shown_topics
from pages.use.your_document.state import (
    DocumentView,
    by_share,
    consensus_sentences,
    row_name,
)

_LINES = 8


@shows_mistakes
def consensus_section(shown: DocumentView) -> None:
    """Sentences, and a small table of the topics that matter."""
    st.subheader("What it is about", help=why("full embedding", "vote", "consensus", "reliability"), anchor="about")
    if not shown.state.analysed:
        not_analysed(shown.state)
        return
    found, votes, topics, reliability = shown.profile, shown.consensus, shown.topics, shown.reliability
    first, *rest = consensus_sentences(found, votes, topics, reliability)
    st.markdown(f"**{plain(first)}** {plain(' '.join(rest))}")
    st.html(consensus_table(shown))
    said = f"Percentile and cosine: full embedding.{_of_a_sample(shown)}"
    if reliability is not None:
        said += (
            " In parentheses: the number of 100 labelled documents whose topic the head finds "
            f"(the full embedding: {100 * reliability.rates[0]:.0f}, chance: {100 * reliability.chance:.0f}). Votes "
            f"are weighted by reliability above chance.{_circular(shown)}"
        )
    if left_out := len(all_topics(shown.state).names) - len(topics):
        said += f" Left out for too few examples: {left_out} topic{'s' if left_out > 1 else ''}."
    st.caption(said)


def consensus_table(shown: DocumentView) -> str:
    """The topics that matter, as HTML: first those of the full embedding, then those that heads vote for."""
    found, votes, topics, reliability = shown.profile, shown.consensus, shown.topics, shown.reliability
    chosen = [*dict.fromkeys([*votes.order[:3].tolist(), *by_share(votes)])][:_LINES]
    lines = [
        (
            safe(shortened(topics[topic], 60)),
            [
                f"{found.percentiles[0, topic]:.0f}",
                safe(number(float(found.cosines[0, topic]))),
                f"{100 * votes.shares[topic]:.0f} %" if votes.shares[topic] else "–",
                _voters(shown, topic),
            ],
        )
        for topic in chosen
    ]
    voting = "Heads that vote for it"
    if reliability is not None:
        voting += "<small>(right for … of 100)</small>"
    return figure_table(["Percentile", "Cosine", "Votes", voting], -1, lines)


_MOST_VOTERS = 12


def _voters(shown: DocumentView, topic: int) -> str:
    """The heads that vote for a topic as HTML, each with its reliability, fainter the less reliable it is."""
    heads, reliability = shown.consensus.voters(topic), shown.reliability
    if not heads:
        return "–"
    if reliability is None:
        return safe(heads_named(sorted(heads)).capitalize())
    solid = 0.65 + 0.35 * solidity(reliability, len(shown.consensus.choices))
    named = [
        f'<span style="white-space:nowrap;opacity:{solid[head]:.2f}" title="Head {head}, '
        f'{right_for(reliability.rates[head])}">{head} ({100 * reliability.rates[head]:.0f})</span>'
        for head in heads[:_MOST_VOTERS]
    ]
    more = [f"and {len(heads) - _MOST_VOTERS} more"] if len(heads) > _MOST_VOTERS else []
    return ", ".join([*named, *more])


def _circular(shown: DocumentView) -> str:
    circular = tables(shown.state).labels.circular
    return " The labels come from this embedding itself, so these rates are too high." if circular else ""


def _of_a_sample(shown: DocumentView) -> str:
    """The documents that percentiles refer to, if they are not the whole corpus."""
    assert shown.state.manifest is not None
    documents = int(shown.state.manifest.corpus["documents"])
    if documents <= MOST_COMPARED:
        return ""
    return f" Percentiles are among {MOST_COMPARED:,} of the {documents:,} documents, drawn at random."


@shows_mistakes
def profile_section(shown: DocumentView) -> None:
    """Heads × topics."""
    if not shown.state.analysed:
        return
    st.subheader("Topic profile", help=why("percentile", "vote", "reliability"), anchor="profile")
    found, votes = shown.profile, shown.consensus
    order = shown_topics(votes.order, votes.choices)
    values = shown.cells(found)[:, order]
    names = [shown.topics[topic] for topic in order]
    place = {int(topic): at for at, topic in enumerate(order)}
    dots = np.array([place.get(int(topic), -1) for topic in votes.choices])
    said = "Topics in the order of the full embedding, nearest first. One column per head; the dot is its vote. "
    if shown.reliability is not None:
        said += "Below each head's number: for how many of 100 corpus documents it is right; paler = less reliable. "
    if shown.measure == "percentile":
        said += "50 = a typical document of the corpus, 100 = nearest to this topic in this head."
        said += _of_a_sample(shown)
    elif shown.reference == EXAMPLES:
        said += "Cosines with the mean of each topic's labelled documents, both less the corpus mean."
    else:
        said += "Raw cosines: some heads are near every topic, which says nothing about the document."
    if len(order) < len(shown.topics):
        said += f" {len(order)} of {len(shown.topics)} topics are drawn; the download has all."
    show.figure(
        profile_figure(values, names, dots, shown.head, shown.measure, show.theme(), shown.reliability),
        "topic-profile",
        lambda: profile_table(shown),
        said,
        alt=f"Heat map of {len(names)} topics and {len(values)} columns, the full embedding and the heads.",
    )


@dataclass(frozen=True)
class AlongDocument:
    """Each chunk's profile in one row of it, ``values[chunk, topic]``, and the topics that are drawn, in order."""

    values: np.ndarray
    order: np.ndarray


def along(shown: DocumentView, row: int) -> AlongDocument | None:
    """In a head from 1, or the full embedding (0); None for a document that was not read in chunks."""
    chunks = shown.reading.vectors[shown.stage][1:]
    if not len(chunks):
        return None
    values = np.stack([shown.cells(profile(vectors, shown.yardstick))[row] for vectors in chunks])
    order = shown_topics(np.argsort(-values.max(axis=0), kind="stable"), np.array([], dtype=int))
    return AlongDocument(values, order[:25])


@shows_mistakes
def along_section(shown: DocumentView) -> None:
    """Each chunk's profile in the chosen head or the full embedding, along the document."""
    chunks = shown.reading.parts[1:]
    if not shown.state.analysed or not chunks:
        return
    st.subheader("Along the document", help=why("percentile"), anchor="along")
    rows = {"full embedding": 0, f"head {shown.head}": shown.head}
    name = st.segmented_control("Seen by", list(rows), default="full embedding", required=True, key="along")
    row = rows.get(str(name), 0)
    found = along(shown, row)
    assert found is not None
    values, order = found.values, found.order
    names = [shown.topics[topic] for topic in order]
    best = [shown.topics[int(topic)] for topic in values.argmax(axis=1)]
    data = {
        "chunk": np.arange(1, len(chunks) + 1),
        "start": [chunk.start for chunk in chunks],
        "end": [chunk.end for chunk in chunks],
        "tokens": [chunk.tokens for chunk in chunks],
        "first topic": best,
    } | {f"{shown.measure} {topic}": values[:, at] for at, topic in enumerate(shown.topics)}
    show.figure(
        along_figure(values[:, order], names, shown.measure, show.theme()),
        "along-the-document",
        pa.table(data),
        f"{len(chunks)} chunk{'s' if len(chunks) != 1 else ''} in {'the ' if row == 0 else ''}{row_name(row)}, from "
        "the beginning to the end; topics ordered by their nearest chunk.",
        alt=f"Heat map of {len(names)} topics along {len(chunks)} chunks of the document.",
    )


def profile_table(shown: DocumentView) -> pa.Table:
    """The whole profile at the chosen stage, a row a cell; head 0 is the full embedding."""
    found, votes = shown.profile, shown.consensus
    rows, topics = found.cosines.shape
    votes_of = np.zeros((rows, topics), dtype=bool)
    votes_of[np.arange(1, rows), votes.choices] = True
    weights = np.repeat(np.concatenate([[np.nan], votes.weights]), topics)
    rates = [None] * rows if shown.reliability is None else shown.reliability.rates.tolist()
    return pa.table(
        {
            "stage": np.full(rows * topics, shown.stage),
            "head": np.repeat(np.arange(rows), topics),
            "topic": list(shown.topics) * rows,
            "cosine": found.cosines.reshape(-1),
            "percentile": found.percentiles.reshape(-1),
            "vote": votes_of.reshape(-1),
            "weight": pa.array(weights, from_pandas=True),
            "reference": [shown.reference] * (rows * topics),
            "reliability": pa.array([rate for rate in rates for _ in range(topics)], pa.float64()),
        }
    )
