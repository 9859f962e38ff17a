"""The parts of the Overview page, from top to bottom."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import streamlit as st

from core.neighbours import Neighbours, nearest
from core.stages import STAGES
from pages.shared.build import current_build, start_build
from pages.shared.cards import Card, cards, open_card
from pages.shared.data import RunState, cache_folder, documents, head_vectors, runs
from pages.shared.figures import head_vectors_figure
from pages.shared.text import plain
from pages.shared.url import choice_from_url, choice_to_url

NEIGHBOURS = 6
_MOST_OPTIONS = 1_000
_WHAT_IS = {
    "Layers": "Blocks that the model applies one after another; the heads are read at one of them.",
    "Heads": "Parts of an attention block that each look at the text in their own way.",
    "Key/value heads": "In grouped-query attention several heads share one of these; equal to the heads where none do.",
    "Head width": "How many numbers a head gives for a document at stage 1.",
    "Hidden size": "How many numbers the model's own embedding has.",
    "Pooling": "How one vector a document is made from one a token: the model's own way, the same at every stage.",
    "Documents": "Documents of the corpus after duplicates and empty ones were left out.",
}


def empty_cache() -> None:
    """Nothing has been computed yet: says so, and offers to."""
    with st.container(border=True):
        st.subheader("There is nothing to look at yet")
        st.markdown(
            "Headscope shows **runs**: a corpus that has been embedded once, with every head's vector kept. The demo "
            "is a corpus of short texts on 25 topics, embedded with the small model all-MiniLM-L6-v2. It takes about a "
            "minute on a laptop and needs no network and no GPU."
        )
        _build_demo()
        st.caption("For a corpus of your own, in a terminal:")
        st.code("python -m precompute all my-run --source my-corpus.jsonl", language="bash")


@st.fragment(run_every=0.7)
def _build_demo() -> None:
    cache = cache_folder()
    build = current_build(cache)
    if build is not None and build.running:
        st.progress(build.fraction, text=f"Building the demo: {build.sentence}")
        return
    if build is not None and not build.problem:
        st.rerun()
    if build is not None:
        st.error(build.problem, icon=":material/error:")
    if st.button("Build the demo", type="primary", icon=":material/play_arrow:"):
        start_build(cache)
        st.rerun(scope="fragment")


def half_built(state: RunState) -> None:
    """A run whose vectors are not all there."""
    build = current_build(cache_folder())
    if build is not None and build.running:
        _build_demo()
    elif state.run.is_locked():
        st.info(f"The run {plain(state.run.name)} is being built. Come back in a while.", icon=":material/hourglass:")
        st.button("Look again", icon=":material/refresh:")
    else:
        st.warning(
            f"The run {plain(state.run.name)} was interrupted. Start the same command again; what is finished is kept.",
            icon=":material/pause_circle:",
        )
        if state.run.name == "demo":
            _build_demo()


def facts(state: RunState) -> None:
    """The model and the corpus in numbers."""
    assert state.manifest is not None
    model, counts = state.manifest.model, state.manifest.steps["embed"].counts
    st.subheader(plain(model["name"]))
    _metrics(
        {
            "Layers": str(model["layers"]),
            "Heads": str(model["heads"]),
            "Key/value heads": str(model["kv_heads"]),
            "Head width": str(model["head_dim"]),
            "Hidden size": str(model["hidden"]),
            "Pooling": model["pooling"],
            "Documents": f"{state.manifest.corpus['documents']:,}",
        }
    )
    said = [f"Heads read at layer {model['layer']}", f"corpus: {plain(state.manifest.corpus['source'])}"]
    said.append(f"{counts['tokens']:,} tokens")
    if counts["duplicate"]:
        said.append(f"{counts['duplicate']:,} duplicates left out")
    if counts["truncated"]:
        said.append(f"{counts['truncated']:,} documents cut to {model['max_tokens']} tokens")
    said.append(f"built {state.manifest.steps['embed'].finished or ''}"[:16])
    st.caption(" · ".join(said))
    for note in model["notes"]:
        st.caption(plain(note))


def _metrics(values: dict[str, str]) -> None:
    with st.container(horizontal=True, gap="small"):
        for label, value in values.items():
            st.metric(label, value, help=_WHAT_IS[label], border=True, width="content")


@st.fragment
def one_head(state: RunState) -> None:
    """One document, one head: its vector, and the documents nearest to it there and in the full embedding."""
    assert state.manifest is not None
    shape, extra = state.manifest.shape, state.manifest.corpus["extra"]
    st.subheader("Through one head")
    table = documents(state)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        doc = _choose_document(table)
    with right:
        stage = _choose_stage(state.manifest.stages)
        head = _choose_head(shape.heads)
    if doc is None:
        return
    rows = head_vectors(state, stage, 0)
    with left:
        open_card(_card(table, doc, extra))
    with right:
        theme = st.context.theme.type or "light"
        st.plotly_chart(
            head_vectors_figure(rows[doc].reshape(shape.heads, -1), head, theme),
            theme=None,
            config={"displaylogo": False, "modeBarButtonsToRemove": ["zoom2d", "pan2d", "select2d", "lasso2d"]},
            key="vectors",
        )
        st.caption("Every row is one head's vector for this document; the chosen head is framed.")
    in_one, in_all = nearest(head_vectors(state, stage, head), doc, NEIGHBOURS), nearest(rows, doc, NEIGHBOURS)
    left, right = st.columns(2, gap="medium")
    with left:
        _neighbours(f"Nearest in head {head}", in_one, table, extra)
    with right:
        _neighbours("Nearest in the full embedding", in_all, table, extra)
    shared = len(set(in_one.docs.tolist()) & set(in_all.docs.tolist()))
    st.caption(
        f"By cosine, at this stage. {shared} of the {len(in_all.docs)} nearest are the same in both. "
        "Open a document to read it."
    )


def _choose_stage(stages: tuple[int, ...]) -> int:
    choice_from_url("stage", stages, stages[0])
    stage = st.segmented_control(
        "Stage",
        stages,
        format_func=lambda number: f"{number} {STAGES[number].name}",
        required=True,
        key="stage",
        help="Where in the model the heads are read.  \n"
        + "  \n".join(f"**{stage.number} {stage.name}** – {stage.sentence}" for stage in STAGES.values()),
    )
    stage = int(stage or stages[0])
    choice_to_url("stage", stage, stages[0])
    st.caption(f"{STAGES[stage].sentence} {STAGES[stage].caveat}")
    return stage


def _choose_head(heads: int) -> int:
    numbers = list(range(1, heads + 1))
    choice_from_url("head", numbers, 1)
    head = int(st.selectbox("Head", numbers, key="head", help="Heads are counted from 1."))
    choice_to_url("head", head, 1)
    return head


def _choose_document(table: pa.Table) -> int | None:
    words = st.text_input(
        "Find a document", key="find", placeholder="words of a title or text", help="All words must occur."
    )
    titles = table["title"]
    found = _search(table, words) if words.strip() else np.arange(len(table))
    if not len(found):
        st.info("No document has all of these words. Try fewer.", icon=":material/search_off:")
        return None
    linked = st.query_params.get("doc", "")  # a linked document is listed, however far down the corpus it is
    options = found[:_MOST_OPTIONS].tolist()
    if not words.strip() and linked.isdecimal() and _MOST_OPTIONS < int(linked) <= len(table):
        options.append(int(linked) - 1)
    if len(found) > len(options):
        st.caption(f"{len(options):,} of {len(found):,} documents are listed; search to narrow them down.")
    numbers = [doc + 1 for doc in options]
    choice_from_url("doc", numbers, numbers[0])
    if st.session_state["doc"] not in numbers:
        st.session_state["doc"] = numbers[0]
    number = int(
        st.selectbox("Document", numbers, key="doc", format_func=lambda number: f"{number} · {titles[number - 1]}")
    )
    choice_to_url("doc", number, 1)
    return number - 1


def _search(table: pa.Table, words: str) -> np.ndarray:
    import pyarrow.compute as pc

    hit = np.ones(len(table), dtype=bool)
    for word in words.split():
        either = [pc.match_substring(table[column], word, ignore_case=True) for column in ("title", "text")]
        hit &= pc.or_(*either).to_numpy(zero_copy_only=False)
    return np.flatnonzero(hit)


def _neighbours(title: str, found: Neighbours, table: pa.Table, extra: Mapping[str, str]) -> None:
    st.markdown(f"##### {title}")
    if not len(found.docs):
        st.caption("There is no other document in this run.")
    pairs = zip(found.docs.tolist(), found.similarity.tolist(), strict=True)
    cards([_card(table, doc, extra, score) for doc, score in pairs])


def _card(table: pa.Table, doc: int, extra: Mapping[str, str], score: float | None = None) -> Card:
    row = table.slice(doc, 1).to_pylist()[0]
    # Of the corpus's own columns those that read like a label: a genre, a language, a dump; not a path or an id.
    labels = [str(row[name]) for name, kind in extra.items() if kind == "string" and row[name]]
    meta = [row["topic"], *[label for label in labels if len(label) <= 30][:3]]
    if score is None:
        meta.append(f"{row['tokens']:,} tokens{', cut' if row['truncated'] else ''}")
    return Card(row["title"], meta, row["text"], score)


def run_table() -> None:
    """All runs of the cache."""
    st.subheader("Runs in the cache")
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
                "model": model["name"],
                "layer": f"{model['layer']} of {model['layers']}",
                "heads": f"{model['heads']} on {model['kv_heads']}",
                "documents": state.manifest.corpus["documents"] or None,
                "corpus": state.manifest.corpus["source"],
                "built": (state.manifest.steps["embed"].finished or "")[:16].replace("T", " "),
            }
        )
    st.dataframe(rows, hide_index=True)
