"""The parts of the page from top to bottom: topics, words, neighbours, maps, activation, and another document."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st

from core.analysis.document_profile import Ranks, profile
from core.retrieval.head_index import largest
from core.retrieval.pairs import pair_cosines
from core.runs.parquet import RowLookup
from pages.shared import show
from pages.shared.cards import Card, cards
from pages.shared.corpus import EXAMPLES, MOST_COMPARED, pairs, place
from pages.shared.data import documents, head_index, places, preview, tables, vector_docs
from pages.shared.data import topics as all_topics
from pages.shared.embedding import attended, reading
from pages.shared.empty_states import not_analysed, not_made
from pages.shared.figures.maps import axis_names, stage_maps_figure
from pages.shared.figures.reliability import right_for, solidity
from pages.shared.figures.table import figure_table, number
from pages.shared.figures.words import resting, strongest_words, words_html
from pages.shared.glossary import why
from pages.shared.heads_in_address import heads_named
from pages.shared.notices import among, shows_mistakes
from pages.shared.text import plain, safe, shortened
from pages.shared.theme import INK, SERIES
from pages.use.your_document.figures import activation_figure, along_figure, pair_figure, profile_figure, shown_topics
from pages.use.your_document.input import Chosen, own_documents
from pages.use.your_document.state import (
    NEIGHBOURS,
    DocumentView,
    by_share,
    consensus_sentences,
    row_name,
    voting_heads,
)

_LINES = 8


@shows_mistakes
def consensus_section(shown: DocumentView) -> None:
    """Sentences, and a small table of the topics that matter."""
    st.subheader("What it is about", help=why("full embedding", "vote", "consensus", "reliability"), anchor=False)
    if not shown.state.analysed:
        not_analysed(shown.state)
        return
    found, votes, topics, reliability = shown.profile, shown.consensus, shown.topics, shown.reliability
    first, *rest = consensus_sentences(found, votes, topics, reliability)
    st.markdown(f"**{plain(first)}** {plain(' '.join(rest))}")
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
    st.html(figure_table(["Percentile", "Cosine", "Votes", voting], -1, lines))
    said = f"Percentile and cosine are the full embedding's.{_of_a_sample(shown)}"
    if reliability is not None:
        said += (
            " In brackets: for how many of 100 labelled documents the head's nearest topic is the right one "
            f"(the full embedding: {100 * reliability.rates[0]:.0f}, chance: {100 * reliability.chance:.0f}). Votes "
            f"are weighted by reliability above chance.{_circular(shown)}"
        )
    if left_out := len(all_topics(shown.state).names) - len(topics):
        said += f" Left out for too few examples: {left_out} topic{'s' if left_out > 1 else ''}."
    st.caption(said)


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
    return " The labels were made by this embedding itself, so these rates are too high." if circular else ""


def _of_a_sample(shown: DocumentView) -> str:
    """What percentiles are of, where that is not the whole corpus."""
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
    st.subheader("Topic profile", help=why("percentile", "vote", "reliability"), anchor=False)
    found, votes = shown.profile, shown.consensus
    order = shown_topics(votes.order, votes.choices)
    values = shown.cells(found)[:, order]
    names = [shown.topics[topic] for topic in order]
    place = {int(topic): at for at, topic in enumerate(order)}
    dots = np.array([place.get(int(topic), -1) for topic in votes.choices])
    said = "Topics in the order of the full embedding, its first choice on top; one column per head, a dot its vote. "
    if shown.reliability is not None:
        said += (
            "Below each head's number: for how many of 100 documents of the corpus it is right; paler = less reliable. "
        )
    if shown.measure == "percentile":
        said += "50 is an ordinary document of the corpus, 100 the one that is nearest to this topic in this head."
        said += _of_a_sample(shown)
    elif shown.reference == EXAMPLES:
        said += "Cosines of the document and the mean of each topic's labelled documents, both around the corpus mean."
    else:
        said += "Raw cosines: some heads are near to every topic, which says nothing about the document."
    if len(order) < len(shown.topics):
        said += f" {len(order)} of {len(shown.topics)} topics are drawn; the download has all."
    show.figure(
        profile_figure(values, names, dots, shown.head, shown.measure, show.theme(), shown.reliability),
        "topic-profile",
        lambda: profile_table(shown),
        said,
        alt=f"Heat map of {len(names)} topics and {len(values)} columns, the full embedding and the heads.",
    )


@shows_mistakes
def activation_section(shown: DocumentView) -> None:
    """How loud each head is for this document, against the corpus."""
    if not shown.state.analysed:
        return
    st.subheader("Activation of each head", help=why("activation", "percentile"), anchor=False)
    found = shown.profile
    corpus = Ranks(shown.yardstick.activations.values[1:])
    percentiles = found.activation_percentiles[1:]
    loud = [int(head) + 1 for head in np.flatnonzero(percentiles >= 95)]
    quiet = [int(head) + 1 for head in np.flatnonzero(percentiles <= 5)]
    said = [f"Stronger than in 95 % of the corpus: {heads_named(loud)}."] if loud else []
    said += [f"Weaker than in 95 % of the corpus: {heads_named(quiet)}."] if quiet else []
    st.markdown(plain(" ".join(said) or "No head is unusually strong or weak for this document."))
    table = pa.table(
        {
            "head": np.arange(1, len(percentiles) + 1),
            "activation": found.activation[1:],
            "percentile": percentiles,
        }
    )
    drawn = activation_figure(found.activation[1:], corpus, shown.head, show.theme())
    show.figure(drawn, "activation", table, among(shown.state, "Percentiles are").strip())


@shows_mistakes
def along_section(shown: DocumentView) -> None:
    """Each chunk's profile in the chosen head or the full embedding, along the document."""
    chunks = shown.reading.parts[1:]
    if not shown.state.analysed or not chunks:
        return
    st.subheader("Along the document", help=why("percentile"), anchor=False)
    rows = {"full embedding": 0, f"head {shown.head}": shown.head}
    name = st.segmented_control("Seen by", list(rows), default="full embedding", required=True, key="along")
    row = rows.get(str(name), 0)
    found = [profile(vectors, shown.yardstick) for vectors in shown.reading.vectors[shown.stage][1:]]
    values = np.stack([shown.cells(one)[row] for one in found])
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


_FROM = {
    "mean": "averaged over all tokens, for all of them are pooled",
    "last": "from the last token, which is pooled",
    "first": "from the first token, which is pooled",
}


@shows_mistakes
def words_section(shown: DocumentView) -> None:
    """The words, and what they say in a sentence."""
    assert shown.state.manifest is not None
    model = shown.state.manifest.model
    st.subheader(f"Where head {shown.head} looks", anchor=False)
    found = attended(shown.state, shown.text)
    if found is None:
        return
    words = strongest_words(shown.text, found, shown.head)
    said = f"Most of all at {', '.join(f'“{word}”' for word in words)}. " if words else ""
    rest = resting(found, shown.head)
    if rest >= 0.005:
        said += f"{rest:.0%} of its attention rests on special tokens, a common resting place for idle heads."
    elif (first := float(found.weights[shown.head - 1, 0])) >= 0.05:
        said += f"{first:.0%} of its attention is on the very first token, a common resting place for idle heads."
    st.markdown(plain(said))
    st.html(words_html(shown.text, found, shown.head))
    st.caption(
        f"Attention at layer {model['layer']}, {_FROM.get(model['pooling'], 'as the model pools')}. "
        "Small framed marks are special tokens; pale text was cut off and not read. It is the same at every stage."
    )


@shows_mistakes
def neighbours_section(shown: DocumentView) -> None:
    """Three lists side by side."""
    st.subheader("Nearest documents of the corpus", anchor=False)
    table, near, ballot = documents(shown.state), shown.nearest, shown.ballot
    left, middle, right = st.columns(3, gap="medium")
    for column, row, title in ((left, 0, "Full embedding"), (middle, shown.head, f"Head {shown.head}")):
        with column:
            st.markdown(f"##### {title}", help=why("full embedding") if row == 0 else None)
            pairs = zip(near.docs[row][:NEIGHBOURS].tolist(), near.similarity[row].tolist(), strict=False)
            cards([_card(table, doc, [], score) for doc, score in pairs])
    with right:
        st.markdown("##### Votes of all heads", help=why("vote"))
        shares = ballot.scores / max(float(ballot.scores.sum()), 1e-12)
        items = zip(ballot.docs.tolist(), ballot.by_head, shares.tolist(), strict=True)
        cards([_card(table, doc, [voting_heads(given), f"{share:.0%} of these votes"]) for doc, given, share in items])
    st.caption(
        "Numbers are cosines. Votes: each head gives its nearest document its weight, the next one half of it, and so "
        "on; a head weighs more the more strongly it speaks and the better it tells documents apart. "
        f"Open a document to read it.{among(shown.state)}"
    )


def _card(table: RowLookup, doc: int, meta: list[str], score: float | None = None) -> Card:
    row = table.row(doc)
    return Card(row["title"], [row["topic"], *meta], row["text"], score)


@shows_mistakes
def map_section(shown: DocumentView) -> None:
    """Three small maps; the ones of a run without maps are asked for."""
    st.subheader("On the map", anchor=False)
    state = shown.state
    if not state.projected:
        not_made(state, "project")
        return
    assert state.manifest is not None
    with st.spinner("Placing the document on the maps …"):
        placed = {stage: _placed(shown, stage) for stage in state.manifest.stages}
    near = {stage: _near(shown, stage) for stage in placed}
    figure = stage_maps_figure(preview(state).places, state.manifest.shape, show.theme(), placed, height=340)
    for column, stage in enumerate(placed, start=1):
        ends = places(state, stage, near[stage])[:, shown.head - 1]
        figure.add_trace(_joined(placed[stage][shown.head - 1], ends, axis_names(column), show.theme()))
    show.figure(
        figure,
        "on-the-map",
        lambda: _table(placed),
        f"The document's heads, numbered, on the corpus's maps; lines lead from head "
        f"{shown.head} to its {len(ends)} nearest documents in that head.{among(state)}",
        alt="Small maps of the stages with the document's heads.",
    )


def _placed(shown: DocumentView, stage: int) -> np.ndarray:
    """Kept for the session: it takes longer than all else on the page, and a change of the head changes nothing."""
    kept: dict[tuple[object, ...], np.ndarray] = st.session_state.setdefault("placed documents", {})
    vectors = shown.vectors(stage)
    key = (shown.state.run.name, shown.state.analysis_version, stage, vectors.tobytes())
    if key not in kept:
        kept[key] = place(shown.state, stage, vectors)
        for old in list(kept)[:-24]:
            del kept[old]
    return kept[key]


def _near(shown: DocumentView, stage: int) -> np.ndarray:
    """The nearest documents in the chosen head, nearest first."""
    found = head_index(shown.state, stage).cosines_in(shown.head, shown.vectors(stage))
    return vector_docs(shown.state)[largest(found, min(NEIGHBOURS, len(found)))]


def _joined(start: np.ndarray, ends: np.ndarray, axes: dict[str, str], theme: str) -> go.Scattergl:
    """Lines from one point to several, with a small mark at each end."""
    nothing = np.full((len(ends), 2), np.nan)
    line = np.stack([np.broadcast_to(start, ends.shape), ends, nothing], axis=1).reshape(-1, 2)
    return go.Scattergl(
        x=line[:, 0],
        y=line[:, 1],
        mode="lines+markers",
        line={"color": SERIES[theme][1], "width": 1.5},
        marker={
            "size": np.tile([0, 6, 0], len(ends)),
            "color": SERIES[theme][1],
            "line": {"color": INK[theme], "width": 0.5},
        },
        hoverinfo="skip",
        **axes,
    )


def _table(placed: dict[int, np.ndarray]) -> pa.Table:
    tables = [
        pa.table(
            {
                "stage": np.full(len(found), stage),
                "head": np.arange(1, len(found) + 1),
                "x": found[:, 0],
                "y": found[:, 1],
            }
        )
        for stage, found in placed.items()
    ]
    return pa.concat_tables(tables)


NONE = ""
_KEY = "compared document"
_MOST_ROWS = 13


@shows_mistakes
def compare_section(shown: DocumentView, chosen: Chosen) -> None:
    """A second document of this session, if there is one."""
    kept = own_documents()
    names = {key: name for key, name in kept.names().items() if key != chosen.key and kept.found[key].text.strip()}
    st.subheader("Compare with another document", anchor=False)
    if not names:
        st.caption("Upload a second document, or paste one beside an uploaded one, to compare the two.")
        return
    if st.session_state.get(_KEY) not in (NONE, *names):
        st.session_state[_KEY] = kept.compared if kept.compared in names else NONE
    key = kept.compared = st.selectbox(
        "The other document", [NONE, *names], key=_KEY, format_func=lambda key: names.get(key, "none")
    )
    if not key:
        return
    other = reading(shown.state, kept.found[key].asked or kept.found[key].text)
    if other is not None:
        _side_by_side(shown, other.vectors[shown.stage][0], names[key])


def _side_by_side(shown: DocumentView, other: np.ndarray, name: str) -> None:
    usual = pairs(shown.state, shown.stage)
    cosines = pair_cosines(shown.vectors(shown.stage), other, head_index(shown.state, shown.stage).space)
    if usual is None:
        st.caption("Too few documents for a baseline.")
        return
    percentiles = usual.percentile(cosines)
    heads = np.argsort(percentiles[1:], kind="stable") + 1
    apart, alike = int(heads[0]), int(heads[-1])
    st.markdown(
        plain(
            f"They are least alike in head {apart} (cosine {cosines[apart]:+.2f}, "
            f"{_among(float(percentiles[apart]))}) and most alike in head {alike} (cosine {cosines[alike]:+.2f}, "
            f"{_among(float(percentiles[alike]))}). In the full embedding: {cosines[0]:+.2f}, "
            f"{_among(float(percentiles[0]))}."
        ).replace("\\-", "−")
    )
    rows = heads if len(heads) < _MOST_ROWS else np.concatenate([heads[: _MOST_ROWS - 4], heads[-3:]])
    order = np.concatenate([[0], rows])
    table = pa.table({"head": np.arange(len(cosines)), "cosine": cosines, "percentile": percentiles})
    said = "Heads in which the two are least alike come first." + among(shown.state, "Percentiles are of pairs")
    if len(rows) < len(heads):
        said += f" The {_MOST_ROWS - 4} least and the 3 most alike of {len(heads)} heads; the download has all."
    show.figure(pair_figure(cosines, usual, order, show.theme()), "two-documents", table, said)
    if shown.state.analysed:
        _profiles(shown, other, name)


def _profiles(shown: DocumentView, other: np.ndarray, name: str) -> None:
    """Both profiles with the same topics in the same order, the first document's."""
    theirs = profile(other, shown.yardstick)
    order = shown_topics(shown.consensus.order, shown.consensus.choices)[:25]
    names = [shown.topics[topic] for topic in order]
    place = {int(topic): at for at, topic in enumerate(order)}
    both = ((shown.name, shown.profile, "one"), (name, theirs, "other"))
    for column, (title, found, which) in zip(st.columns(2, gap="medium"), both, strict=True):
        votes = np.array([place.get(int(topic), -1) for topic in shown.votes(found).choices])
        values = shown.cells(found)
        with column:
            st.markdown(f"##### {plain(shortened(title, 60))}", help=why("percentile", "vote"))
            drawn = profile_figure(
                values[:, order], names, votes, shown.head, shown.measure, show.theme(), shown.reliability
            )
            drawn.update_traces(showscale=False, selector={"type": "heatmap"})
            table = pa.table({"topic": list(shown.topics)} | {f"row {row}": cells for row, cells in enumerate(values)})
            show.figure(drawn, f"profile-{which}", table)


def _among(percentile: float) -> str:
    whole = round(percentile)
    if whole <= 0:
        return "less than any pair of the corpus"
    return f"more than {min(whole, 100)} % of the corpus's pairs"
