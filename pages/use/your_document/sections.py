"""The topic profile: what the full embedding and the heads say, every head against every topic, and how loud it is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.document_profile import Ranks, profile
from pages.shared import show
from pages.shared.corpus import MOST_COMPARED, yardstick
from pages.shared.empty_states import not_analysed
from pages.shared.figures.table import figure_table, number
from pages.shared.glossary import why
from pages.shared.heads_in_address import heads_named
from pages.shared.kept import among
from pages.shared.notices import told
from pages.shared.text import plain, safe, shortened
from pages.shared.url import choice_from_url, choice_to_url
from pages.use.your_document.figures import activation_figure, along_figure, profile_figure, shown_topics
from pages.use.your_document.sentences import consensus_sentences, voters
from pages.use.your_document.state import MEASURES, Shown, row_name

_LINES = 8


def measure_control() -> str:
    """Percentile or raw cosine, in the address."""
    choice_from_url("measure", list(MEASURES), "percentile")
    measure = st.segmented_control(
        "Cells and votes by",
        list(MEASURES),
        key="measure",
        format_func=MEASURES.__getitem__,
        required=True,
        help=why("percentile", "similarity", "vote"),
    )
    measure = str(measure or "percentile")
    choice_to_url("measure", measure, "percentile")
    return measure


@told
def consensus_section(shown: Shown) -> None:
    """Sentences, and a small table of the topics that matter."""
    st.subheader("What it is about", help=why("full embedding", "vote", "consensus"), anchor=False)
    if not shown.state.analysed:
        not_analysed(shown.state)
        return
    found, votes, topics = shown.profile, shown.consensus, shown.topics
    first, *rest = consensus_sentences(found, votes, topics)
    st.markdown(f"**{plain(first)}** {plain(' '.join(rest))}")
    voted = np.argsort(-votes.counts, kind="stable")[: int((votes.counts > 0).sum())]
    chosen = [*dict.fromkeys([*votes.order[:4].tolist(), *voted.tolist()])][:_LINES]
    lines = []
    for topic in chosen:
        heads = voters(votes, topic)
        lines.append(
            (
                safe(shortened(topics[topic], 60)),
                [
                    f"{found.percentiles[0, topic]:.0f}",
                    safe(number(float(found.cosines[0, topic]))),
                    safe(heads_named(heads).capitalize()) if heads else "–",
                ],
            )
        )
    st.html(figure_table(["Percentile", "Cosine", "Votes of heads"], -1, lines))
    st.caption(f"Percentile and cosine are the full embedding's.{_of_a_sample(shown)}")


def _of_a_sample(shown: Shown) -> str:
    """What percentiles are of, where that is not the whole corpus."""
    assert shown.state.manifest is not None
    documents = int(shown.state.manifest.corpus["documents"])
    if documents <= MOST_COMPARED:
        return ""
    return f" Percentiles are among {MOST_COMPARED:,} of the {documents:,} documents, drawn at random."


@told
def profile_section(shown: Shown) -> None:
    """Heads × topics."""
    if not shown.state.analysed:
        return
    st.subheader("Topic profile", help=why("percentile", "similarity", "vote"), anchor=False)
    found, votes = shown.profile, shown.consensus
    order = shown_topics(votes.order, votes.choices)
    values = (found.percentiles if shown.measure == "percentile" else found.cosines)[:, order]
    names = [shown.topics[topic] for topic in order]
    place = {int(topic): at for at, topic in enumerate(order)}
    dots = np.array([place.get(int(topic), -1) for topic in votes.choices])
    said = "Topics in the order of the full embedding, its first choice on top; a column a head, a dot its vote. "
    if shown.measure == "percentile":
        said += "50 is an ordinary document of the corpus, 100 the one that is nearest to this topic in this head."
        said += _of_a_sample(shown)
    else:
        said += "Raw cosines: some heads are near to every topic, which says nothing about the document."
    if len(order) < len(shown.topics):
        said += f" {len(order)} of {len(shown.topics)} topics are drawn; the data has all."
    show.figure(
        profile_figure(values, names, dots, shown.head, shown.measure, show.theme()),
        "topic-profile",
        lambda: profile_table(shown),
        said,
        alt=f"Heat map of {len(names)} topics and {len(values)} columns, the full embedding and the heads.",
    )


@told
def activation_section(shown: Shown) -> None:
    """How loud each head is for this document, against the corpus."""
    if not shown.state.analysed:
        return
    st.subheader("How strongly each head speaks", help=why("activation", "percentile"), anchor=False)
    found = shown.profile
    corpus = Ranks(yardstick(shown.state, shown.stage).activations.values[1:])
    percentiles = found.activation_percentiles[1:]
    loud = [int(head) + 1 for head in np.flatnonzero(percentiles >= 95)]
    quiet = [int(head) + 1 for head in np.flatnonzero(percentiles <= 5)]
    said = [f"Louder than in 95 % of the corpus: {heads_named(loud)}."] if loud else []
    said += [f"Quieter than in 95 % of the corpus: {heads_named(quiet)}."] if quiet else []
    st.markdown(plain(" ".join(said) or "No head is unusually loud or quiet for this document."))
    table = pa.table(
        {
            "head": np.arange(1, len(percentiles) + 1),
            "activation": found.activation[1:],
            "percentile": percentiles,
        }
    )
    drawn = activation_figure(found.activation[1:], corpus, shown.head, show.theme())
    show.figure(drawn, "activation", table, among(shown.state, "Percentiles are").strip())


@told
def along_section(shown: Shown) -> None:
    """Each chunk's profile in the chosen head or the full embedding, along the document."""
    chunks = shown.reading.parts[1:]
    if not shown.state.analysed or not chunks:
        return
    st.subheader("Along the document", help=why("percentile"), anchor=False)
    rows = {"full embedding": 0, f"head {shown.head}": shown.head}
    name = st.segmented_control("Seen by", list(rows), default="full embedding", required=True, key="along")
    row = rows.get(str(name), 0)
    yard = yardstick(shown.state, shown.stage)
    found = [profile(vectors, yard) for vectors in shown.reading.vectors[shown.stage][1:]]
    values = np.stack([(one.percentiles if shown.measure == "percentile" else one.cosines)[row] for one in found])
    order = shown_topics(np.argsort(-values.max(axis=0), kind="stable"), np.array([], dtype=int))
    order = order[:25]
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
        f"{len(chunks)} chunks in the {row_name(row)}, the beginning left; topics by their nearest chunk.",
    )


def profile_table(shown: Shown) -> pa.Table:
    """The whole profile at the chosen stage, a row a cell; head 0 is the full embedding."""
    found, votes = shown.profile, shown.consensus
    rows, topics = found.cosines.shape
    votes_of = np.zeros((rows, topics), dtype=bool)
    votes_of[np.arange(1, rows), votes.choices] = True
    return pa.table(
        {
            "stage": np.full(rows * topics, shown.stage),
            "head": np.repeat(np.arange(rows), topics),
            "topic": list(shown.topics) * rows,
            "cosine": found.cosines.reshape(-1),
            "percentile": found.percentiles.reshape(-1),
            "vote": votes_of.reshape(-1),
        }
    )
