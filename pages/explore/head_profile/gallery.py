"""A head among others: those like it, itself at other stages and beside another run's; and the gallery of all heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.by_topic import ByTopic, by_topic
from core.analysis.head_measures import TITLES
from core.analysis.null import ABOVE, BELOW
from core.analysis.report import mean_redundancy
from core.analysis.roles import RULES
from core.model.stages import HEADS, STAGES
from core.runs.tables import Row, Tables
from pages.explore.head_profile.sections import LINKED, HeadView, evidence
from pages.shared import show
from pages.shared.aspects import carried_here, carried_line
from pages.shared.attention import attention_badge, types_here
from pages.shared.controls import choose_other_run
from pages.shared.data import RunState, labels, own_similarity, tables, topics
from pages.shared.empty_states import no_labels
from pages.shared.figures.random_slices import slices_alt, slices_figure, slices_rows
from pages.shared.figures.table import cell, figure_table, interval, number, share
from pages.shared.figures.topic_gaps import GRID, bars
from pages.shared.glossary import why, why_rule
from pages.shared.notices import circular_mark
from pages.shared.text import plain, safe, shortened
from pages.shared.topic_link import topic_link
from pages.shared.url import choice_to_url, linked

PAGE = "pages/explore/head_profile/page.py"
ALIKE = 4


def alike(shown: HeadView) -> None:
    """The heads most like this one, and those that share its key/value head; each a link."""
    pairs = {
        row["other"]: row
        for row in shown.tables.pick("redundancy", stage=shown.stage, head=shown.head)
        if row["other"] != shown.head and row["cka"] is not None
    }
    nearest = sorted(pairs, key=lambda other: -pairs[other]["cka"])[:ALIKE]
    st.subheader("Most similar heads", help=why("CKA", "interval"), anchor="similar-heads")
    if nearest:
        mean = mean_redundancy(shown.tables, shown.stage)
        st.caption(f"By CKA. The mean over all pairs of heads is {number(mean)}.")
        _linked(shown, "grid-alike", nearest, pairs)
    else:
        st.caption("Too few heads or documents to compare.")
    st.subheader("Its key/value group", help=why("key/value group"), anchor="key-value-group")
    assert shown.state.manifest is not None
    shape = shown.state.manifest.shape
    mine = shape.group_of(shown.head - 1)
    siblings = [head + 1 for head in range(shape.heads) if shape.group_of(head) == mine and head + 1 != shown.head]
    if not siblings:
        st.caption("In this model every head has its own key/value head.")
        return
    st.caption(f"The other heads of key/value group {mine + 1} of {shape.kv_heads}.")
    _linked(shown, "grid-siblings", siblings, pairs)


def _linked(shown: HeadView, key: str, heads: Sequence[int], pairs: dict[int, Row]) -> None:
    types = types_here(shown.state)
    with st.container(horizontal=True, gap="small", key=key):
        for head in heads:
            with st.container(border=True, width=212, height="stretch", gap=None):
                _link(head, shown.profile(head).get("role"))
                row = pairs.get(head, {})
                said = interval(row, "cka")
                st.caption(plain(f"CKA {number(row.get('cka'))}" + (f" ({said})" if said else "")))
                attention_badge(types.get(head))


def _link(head: int, role: str | None = None) -> None:
    """To a head's profile: the address as it is now, with another head."""
    kept = {name: value for name, value in st.query_params.items() if name not in ("head", "view")}
    st.page_link(
        PAGE,
        label=f"**Head {head}**" + (f" · {plain(role)}" if role else ""),
        query_params={**kept, "head": str(head), LINKED: "1"},
    )


def by_stage(shown: HeadView) -> None:
    """How the head stands in each stage."""
    assert shown.state.manifest is not None
    st.subheader("Across stages", help=why("stage"), anchor="across-stages")
    stages = shown.state.manifest.stages
    names = [f"{stage} {STAGES[stage].name}" for stage in stages]
    lines = _lines([replace(shown, stage=stage) for stage in stages])
    st.html(figure_table(names, stages.index(shown.stage), lines))
    if len(stages) > 1:
        st.caption(
            "A dense projection lies between stage 1 and stages 2 and 3. There a column is the slice with this number, "
            "which does not necessarily correspond to the head."
        )


def beside(shown: HeadView) -> None:
    """A head of another run, at the same stage: another model, or another layer."""
    left, right = st.columns(2, gap="medium")
    with left:
        other = choose_other_run(shown.state)
    if other is None:
        choice_to_url("beside_head", 1, 1)
        return
    assert other.manifest is not None
    numbers = list(range(1, other.manifest.shape.heads + 1))
    with right:
        head = linked(st.selectbox, "Its head", "beside_head", numbers, 1)
    if shown.stage not in other.manifest.stages:
        st.caption(f"That run has no stage {shown.stage}. Choose another stage.")
        return
    both = [shown, HeadView(other, tables(other), shown.stage, head)]
    st.html(figure_table([f"{safe(one.state.run.name)}, head {one.head}" for one in both], 0, _lines(both)))
    st.caption("Heads with the same number in two models have nothing in common.")


def _lines(shown: Sequence[HeadView]) -> list[tuple[str, list[str]]]:
    """The figures of some heads, a line a figure; those that need labels only where a head has them."""
    rows = [one.profile(one.head) for one in shown]
    found: list[tuple[str, list[str]]] = []
    if any(one.tables.labelled for one in shown):
        pairs = zip(shown, rows, strict=True)
        roles = [row.get("role") or ("no clear role" if one.tables.labelled else "–") for one, row in pairs]
        found.append(("Role", [safe(role) for role in roles]))
        for label, name in (("Mean similarity", "mean"), ("Selectivity", "selectivity"), ("Alignment", "alignment")):
            found.append((label, [cell(row, name) for row in rows]))
        mark = next((mark for one in shown if (mark := circular_mark(one.tables))), "")
        found.append((f"Topic match, top 1{mark}", [cell(one.topic_match(one.head), "rate", share) for one in shown]))
    found.append(("Probe recall", [cell(one.probe(one.head), "value", share) for one in shown]))
    found.append(("Activation", [cell(row, "activation") for row in rows]))
    return found


def gallery(state: RunState, found: Tables, stage: int) -> None:
    """Every head of a stage, under the role it has."""
    st.html(GRID)
    rows = [row for row in found.pick("profiles", stage=stage, slicing=HEADS) if row["head"]]
    if not found.labelled:
        no_labels("A head's role")
        _group(state, found, stage, rows, {}, "all")
        return
    if found.pick("null", stage=stage, measure="names"):
        show.figure(
            show.drawn_once(
                state.run,
                state.analysis_version,
                "gallery",
                stage,
                show.theme(),
                lambda: slices_figure(found, "names", show.theme(), height=240),
            ),
            "gallery-among-slices",
            lambda: pa.Table.from_pylist(slices_rows(found, "names")),
            "How often each head alone finds the labelled topic, against random slices.",
            alt=slices_alt(found, "names"),
        )
    own, labelled = own_similarity(state, stage), labels(state)
    gaps = {row["head"]: by_topic(own, labelled, row["head"]) for row in rows}
    st.caption(
        "One bar per topic, in the same order and on the same scale on every card. Up: its documents are more similar "
        "to it than others are to theirs. Down: less similar. Pale: no clear difference."
    )
    known = [*RULES, *sorted({row["role"] for row in rows if row["role"] and row["role"] not in RULES})]
    for role in [*known, None]:
        mine = [row for row in rows if row["role"] == role]
        if not mine:
            continue
        name = plain(role.capitalize()) if role else "No clear role"
        st.subheader(f"{name} · {len(mine)}", help=why_rule("role", role), anchor=f"role-{role or 'none'}")
        sentence = RULES[role].sentence if role in RULES else "These heads meet no role's criteria."
        st.caption(plain(sentence))
        _group(state, found, stage, mine, gaps, role or "no-role")


def _group(state: RunState, found: Tables, stage: int, rows: list[Row], gaps: dict[int, ByTopic], key: str) -> None:
    types, carried = types_here(state), carried_here(state, stage)
    limit = max((float(np.abs(one.gap).max(initial=0)) for one in gaps.values()), default=0.0)
    with st.container(horizontal=True, gap="small", key=f"grid-{key}"):
        for row in rows:
            with st.container(border=True, width=212, height="stretch", gap="xsmall"):
                _link(row["head"])
                if row["head"] in gaps:
                    st.html(_bars(gaps[row["head"]], topics(state).names, limit))
                    if len(gaps[row["head"]].topic) and gaps[row["head"]].side[0] > 0:
                        topic = topics(state).names[gaps[row["head"]].topic[0]]
                        topic_link(topic, f"Most: {plain(shortened(topic, 40))}")
                st.caption(plain(_line(found, stage, row)))
                _against_slices(found, stage, row["head"])
                carried_line(carried.get(row["head"]))
                attention_badge(types.get(row["head"]))


def _against_slices(found: Tables, stage: int, head: int) -> None:
    """A line for each side on which the head lies beyond random slices, with the measures."""
    rows = found.pick("null", stage=stage, head=head)
    for side, icon in ((ABOVE, "arrow_upward"), (BELOW, "arrow_downward")):
        names = [TITLES[row["measure"]] for row in rows if row["verdict"] == side]
        if names:
            count = f"{len(names)} measure{'s' if len(names) > 1 else ''}"
            said = f"{side.capitalize()} random slices in {', '.join(names)}."
            st.caption(f":material/{icon}: {side} random slices in {count}", help=said)


def _bars(found: ByTopic, names: tuple[str, ...], limit: float) -> str:
    order = np.argsort(found.topic)
    ends = f"most {names[found.topic[0]]}, least {names[found.topic[-1]]}" if len(found.topic) else "no topics"
    return bars(found.gap[order], found.side[order], limit, show.theme(), f"Topics: {ends}")


def _line(found: Tables, stage: int, row: Row) -> str:
    """The evidence in a line; without labels, what there is."""
    said = evidence(row, row["role"])
    if found.labelled and said:
        return shortened(said.removeprefix("no rule holds: "), 160)
    probe = found.one("probe", stage=stage, slicing=HEADS, split="document", head=row["head"]) or {}
    return f"activation {number(row['activation'])}, probe recall {share(probe.get('value'))}"
