"""The parts of the Head profile page, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st

from core.analysis.by_topic import by_topic
from core.analysis.head_measures import TITLES
from core.analysis.null import ABOVE, BELOW
from core.analysis.roles import RULES, RoleEvidence
from core.analysis.wording import plural
from core.model.stages import HEADS
from core.retrieval.head_index import largest
from core.runs.tables import Row, Tables
from pages.shared import show
from pages.shared.aspects import carried_in_words
from pages.shared.attention import evidence_of, types_here
from pages.shared.cards import Card, cards, figure_card
from pages.shared.components.step_keys import step_keys
from pages.shared.controls import choose_head
from pages.shared.data import RunState, documents, labels, own_similarity, topics
from pages.shared.figures.random_slices import slices_alt, slices_figure, slices_rows
from pages.shared.figures.table import Form, number, share
from pages.shared.figures.topic_gaps import GRID, MOST, gaps_figure
from pages.shared.glossary import why, why_rule
from pages.shared.notices import circular_mark, circular_notice
from pages.shared.text import plain
from pages.shared.topic_link import topic_link
from pages.shared.url import decide, linked, linked_toggle

LINKED = "linked"
"""Marks an address that a link of this page leads to."""
VIEWS = {"head": "One head", "gallery": "All heads by role"}
TO_READ, SHOWN = 5, 12
"""Documents in each list, and topics in the chart unless all are asked for."""
NORMAL_SPARSITY = 0.14
"""The share of all squared deviation that the farthest 2 % of a normal distribution have."""


@dataclass(frozen=True)
class HeadView:
    """What the page is about: ``head`` counts from 1."""

    state: RunState
    tables: Tables
    stage: int
    head: int

    def profile(self, head: int) -> Row:
        """Head 0 is the full embedding; empty where there is none, as in the others."""
        return self.tables.one("profiles", stage=self.stage, slicing=HEADS, head=head) or {}

    def topic_match(self, head: int) -> Row:
        return self.tables.one("topic_match", stage=self.stage, slicing=HEADS, head=head, within=1) or {}

    def probe(self, head: int) -> Row:
        return self.tables.one("probe", stage=self.stage, slicing=HEADS, split="document", head=head) or {}

    def against(self, measure: str, otherwise: str, form: Form = number) -> str:
        """Where the head lies among random slices; ``otherwise`` in runs that were not compared with them."""
        row = self.tables.one("null", stage=self.stage, measure=measure, head=self.head)
        summary = self.tables.one("null_summary", stage=self.stage, measure=measure)
        if row is None or summary is None:
            return otherwise
        return f"random slices {form(summary['slices_low'])} to {form(summary['slices_high'])}: {row['verdict']}"

    def drawn(self, name: str, draw: Callable[[], go.Figure]) -> go.Figure:
        """A figure of this head, drawn once."""
        version = self.state.analysis_version
        return show.drawn_once(self.state.run, version, f"head {self.head} {name}", self.stage, show.theme(), draw)


def arrive() -> None:
    """Lets the browser show the address that a link of this page led to, which Streamlit does only for other pages.

    Taking the mark away sends it the whole address.
    """
    if LINKED in st.query_params:
        del st.query_params[LINKED]


def view_control() -> str:
    return linked(
        st.segmented_control, "View", "view", list(VIEWS), "head", format_func=VIEWS.__getitem__, required=True
    )


def head_control(heads: int, opens_on: int) -> int:
    """The head, with its neighbours one key away; an address without a head opens on the one that stands out most."""

    def go_to(head: int) -> None:
        decide("head", head)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        before = st.container(width="content")
        with st.container(width="stretch"):
            head = choose_head(heads, opens_on=opens_on)
        after = st.container(width="content")
    for place, step, label, icon, key in (
        (before, -1, "Previous", ":material/chevron_left:", "left"),
        (after, 1, "Next", ":material/chevron_right:", "right"),
    ):
        place.button(
            label,
            icon=icon,
            icon_position="left" if step < 0 else "right",
            key=f"{label.lower()} head",
            on_click=go_to,
            args=((head - 1 + step) % heads + 1,),
            help=f"{label} head. Shortcut: the {key} arrow key.",
        )
    step_keys("head keys", head, heads, go_to)
    return head


def role(shown: HeadView) -> None:
    """The verdict, the rule in words, and the numbers that decided."""
    row = shown.profile(shown.head)
    name = row.get("role")
    with st.container(border=True):
        verdict = f"is {plain(name)}" if name else "has no clear role"
        st.subheader(f"Head {shown.head} {verdict}", help=why_rule("role", name), anchor="role")
        if name:
            st.markdown(plain(RULES[name].sentence if name in RULES else ""))
            st.markdown(f"**Evidence** – {plain(evidence(row, name))}")
        else:
            st.markdown("It meets no role's criteria beyond what random slices show.")
            st.markdown(f"**Evidence** – {plain(evidence(row, None).removeprefix('no rule holds: '))}")
        for other in (row.get("roles") or [])[1:]:
            st.markdown(f"**Also {plain(other)}** – {plain(evidence(row, other))}")
            st.caption(plain(RULES[other].sentence if other in RULES else ""))
        carries(shown)
        looks(shown)


def carries(shown: HeadView) -> None:
    """Which aspects can be read from the head, where the run's aspects have been probed."""
    if (said := carried_in_words(shown.state, shown.stage, shown.head)) is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**Carries: {plain(said)}**", help=why("aspect", "random slices"))
        kept = {name: value for name, value in st.query_params.items() if name in ("run", "stage", "head")}
        st.page_link("pages/understand/aspects/page.py", label="All aspects", query_params=kept)


def among_slices(shown: HeadView) -> None:
    """Where the head lies among random slices, as a sentence and as a dot on their band."""
    rows = shown.tables.pick("null", stage=shown.stage, head=shown.head)
    if not rows:
        return
    sides = {side: [TITLES[row["measure"]] for row in rows if row["verdict"] == side] for side in (ABOVE, BELOW)}
    said = [f"**{side} random slices** in {', '.join(names)}" for side, names in sides.items() if names]
    sentence = "; ".join(said) or "within random slices in every measure"
    st.markdown(f"Head {shown.head} lies {sentence}.", help=why("random slices", "untrained model"))
    show.figure(
        shown.drawn("slices", lambda: slices_figure(shown.tables, "names", show.theme(), shown.head, height=260)),
        "among-slices",
        lambda: pa.Table.from_pylist(slices_rows(shown.tables, "names")),
        f"How often each head alone finds the labelled topic. Head {shown.head} is the large dot.",
        alt=slices_alt(shown.tables, "names"),
        remake=show.Remake("random slices", {"measure": "names", "head": shown.head}),
    )


def looks(shown: HeadView) -> None:
    """What the head looks at, where that is known: the same at every stage, for attention comes before them all."""
    row = types_here(shown.state).get(shown.head)
    if row is None:
        return
    said = evidence_of(row, row["type"]).removeprefix("no rule holds: ")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**Attention: {plain(row['type'])}** – {plain(said)}", help=why("attention type", "shuffled"))
        kept = {name: value for name, value in st.query_params.items() if name == "run"}
        head = {"head": str(shown.head)}
        st.page_link("pages/understand/attention/page.py", label="See its attention", query_params={**kept, **head})


_OTHER = ("topic", "against_slices")
"""Fields of RoleEvidence that are no numbers."""


def evidence(row: Row, name: str | None) -> str:
    """What decided one role; where none holds, or the rule is not known here, what the analysis wrote."""
    if name not in RULES:
        return str(row.get("because") or "")
    numbers = {field.name: row.get(field.name) for field in fields(RoleEvidence) if field.name not in _OTHER}
    known = {key: float("nan") if value is None else float(value) for key, value in numbers.items()}
    return RULES[name].because(RoleEvidence(topic=row.get("topic"), **known))  # type: ignore[arg-type]


def figures(shown: HeadView) -> None:
    """The head's figures, each with its interval and its baseline."""
    row, full = shown.profile(shown.head), shown.profile(0)
    match, full_match = shown.topic_match(shown.head), shown.topic_match(0)
    probe = shown.probe(shown.head)
    heads = shown.tables.pick("profiles", stage=shown.stage, slicing=HEADS)
    strengths = [one["activation"] for one in heads if one["head"] and one["activation"] is not None]
    st.subheader("Figures", anchor="figures")
    st.html(GRID)
    with st.container(horizontal=True, gap="small", key="grid-figures"):
        if shown.tables.labelled:
            said = shown.against("names", "", share)
            said = f"chance {share(match.get('chance'))}, full {share(full_match.get('rate'))}\n{said}"
            figure_card(
                f"Topic match, top 1{circular_mark(shown.tables)}",
                match,
                "rate",
                said,
                "topic match",
                "chance",
                "full embedding",
                "random slices",
                form=share,
            )
            by_examples = shown.tables.one("example_match", stage=shown.stage, head=shown.head)
            if by_examples is not None:
                said = shown.against("examples", "", share)
                terms = ("topic match", "examples", "random slices")
                figure_card("By examples, top 1", by_examples, "rate", said, *terms, form=share)
            said = shown.against("selectivity", "")
            figure_card("Selectivity", row, "selectivity", said, "selectivity", "random slices")
            most = shown.against("alignment", f"random slices ≤ {number(row.get('alignment_of_random'))}")
            figure_card("Alignment", row, "alignment", most, "alignment", "random slices")
            said = shown.against("mean", f"full embedding {number(full.get('mean'))}")
            figure_card("Mean similarity", row, "mean", said, "similarity", "random slices")
            figure_card("Sparsity", row, "sparsity", f"normal distribution {NORMAL_SPARSITY}", "sparsity")
        said = f"chance {share(probe.get('chance'))}"
        figure_card("Probe recall", probe, "value", said, "probe", "by document", form=share)
        span = f"all heads {number(min(strengths))} to {number(max(strengths))}" if strengths else ""
        figure_card("Activation", row, "activation", span, "activation")
        figure_card(
            "Variation of activation",
            row,
            "activation_variation",
            "standard deviation divided by the mean",
            "activation",
        )
    st.caption(
        "Below each value: 95 % CI, then the baseline. “Above” and “below” mean beyond random slices of the same size."
    )
    circular_notice(shown.tables)


def topics_followed(shown: HeadView) -> None:
    """Each topic's gap to the rest."""
    st.subheader("Topics it follows and avoids", help=why("similarity", "interval"), anchor="topics")
    found = by_topic(own_similarity(shown.state, shown.stage), labels(shown.state), shown.head)
    names = topics(shown.state).names
    if not len(found.topic):
        st.info(
            "Needs a topic with at least five documents, and other topics to compare it with.", icon=":material/info:"
        )
        return
    follows, avoids = int((found.side > 0).sum()), int((found.side < 0).sum())
    st.markdown(
        f"Follows **{follows}** and avoids **{avoids}** of {plural(len(found.topic), 'topic')}. Gap: mean similarity "
        "of the topic's documents to their topic, minus that of all other documents to theirs."
    )
    said = "Coloured where the 95 % CI excludes 0; by chance alone, one in twenty would."
    most = SHOWN
    if len(found.topic) > SHOWN and linked_toggle("Show every topic", "every", "Otherwise the top and bottom six."):
        most = MOST
    if len(found.topic) > most:
        said += f" The {most // 2} largest and {most // 2} smallest gaps; the download has all topics."
    if found.left_out:
        said += f" Not shown: {plural(found.left_out, 'topic')} with fewer than five documents."
    data = {
        "topic": [names[topic] for topic in found.topic],
        "gap": found.gap,
        "low": found.low,
        "high": found.high,
        "documents": found.documents,
    }
    name = f"topics of head {shown.head} at stage {shown.stage}"
    show.figure(
        shown.drawn(f"gaps {most}", lambda: gaps_figure(found, names, show.theme(), most)),
        name,
        pa.table(data),
        said,
        alt=f"Head {shown.head} follows {plural(follows, 'topic')} and avoids {avoids}: "
        f"{names[found.topic[0]]} the most and {names[found.topic[-1]]} the least.",
    )
    if follows:
        topic_link(names[found.topic[0]])


def reading(shown: HeadView) -> None:
    """The documents that are most and least similar to their own topic in this head."""
    own = own_similarity(shown.state, shown.stage)[:, shown.head]
    known = np.flatnonzero(np.isfinite(own))
    count = min(len(known), TO_READ, max(1, len(known) // 2))
    # From the end for the least: of equal ones the last documents, as if all were in order.
    most, least = largest(own[known], count), len(known) - 1 - largest(-own[known][::-1], count)
    table = documents(shown.state)
    lists = (
        ("Most similar documents", "most-similar", known[most]),
        ("Least similar documents", "least", known[least]),
    )
    for (title, anchor, docs), column in zip(lists, st.columns(2, gap="large"), strict=True):
        with column:
            st.subheader(title, help=why("similarity"), anchor=anchor)
            found = table.rows(docs, ["title", "topic", "text"]).to_pylist()
            cards(
                [
                    Card(row["title"], [row["topic"]], row["text"], float(own[doc]))
                    for row, doc in zip(found, docs, strict=True)
                ]
            )
    st.caption("By similarity to their own topic, within this head. Open a document to read it.")
