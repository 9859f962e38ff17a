"""What experiments show: a head in example sentences, heads ranked by relation, families of types by layer."""

from __future__ import annotations

import pyarrow as pa
import streamlit as st

from core.analysis.attention_types import FAMILIES
from core.analysis.type_claims import (
    LEAST,
    LEAST_CORRELATION,
    SEEN_AGAIN,
    SIMILAR,
    TIMES,
    TYPE_OF,
    type_claims,
)
from core.analysis.type_depth import type_depth
from core.runs.tables import Row
from pages.shared import show
from pages.shared.attention import Shown, attention_rows, experiments
from pages.shared.figures.relations import (
    Arrows,
    Ranked,
    arrows_html,
    families_figure,
    offset_name,
    ranking_figure,
)
from pages.shared.figures.table import figure_table
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.text import plain, safe
from pages.shared.url import linked
from pages.understand.attention.sections import AttentionView

MOST = 15
_LINES = (
    ("Token after a repeated one's first occurrence", "induction", "induction_unrepeated"),
    ("First occurrence of a repeated token", "duplicate", "duplicate_unrepeated"),
    ("Similar words, correlation", "similarity", "similarity_exchanged"),
    ("Tokens of the documents that rest on the first", "rests", None),
)
_BOTH_WAYS = (
    "This model sees both ways. It can compare the two copies of the random tokens from either side, so these figures "
    "say that a head matches equal tokens, not that it predicts what comes next, as induction does in a causal model."
)


@shows_mistakes
def scores(shown: AttentionView) -> None:
    """The head's figures in the experiments that need no treebank, whether they give it a type or not."""
    found = experiments(shown.state)
    row = found.scores[shown.layer, shown.head] if found else None
    if row is None:
        return
    lines = []
    for label, measure, baseline in _LINES:
        value, other = row[measure], row[baseline] if baseline else None
        if value is None:
            continue
        form = "{:.2f}" if measure == "similarity" else "{:.1%}"
        ends = [row[f"{measure}_{end}"] for end in ("low", "high")] if baseline else []
        small = f"<small>{safe(' to '.join(_form(form, end) for end in ends))}</small>" if ends else ""
        lines.append(
            (safe(label), [safe(_form(form, value)) + small, safe(_form(form, other)) if other is not None else "–"])
        )
    if lines:
        st.html(figure_table(["value", "baseline"], 0, lines))
        st.caption(
            "In experiments, with 95 % intervals. Baselines: the same distance where nothing is repeated; words "
            "exchanged.",
            help=why("induction", "semantic similarity", "sink"),
        )


def _form(form: str, value: float) -> str:
    return form.format(value).replace("-", "−")


@shows_mistakes
def examples(shown: AttentionView) -> None:
    """The head's arrows in a few sentences for every type that experiments show; nothing for other heads."""
    found = experiments(shown.state)
    rows = found.examples.get((shown.layer, shown.head), []) if found else []
    types = [name for name in shown.row["types"] or [] if any(row["type"] == name for row in rows)]
    if not types:
        return
    st.subheader(f"{shown.name} in example sentences", help=why("relation", "induction"), anchor=False)
    name = types[0]
    if len(types) > 1:
        key = f"example {shown.layer} {shown.head}"
        name = st.segmented_control("Example type", types, default=name, required=True, key=key) or name
    mine = sorted((row for row in rows if row["type"] == name), key=lambda row: int(row["example"]))
    drawn = [Arrows(row["words"], row["starts"], row["right"], row["attended"]) for row in mine]
    hits, of = sum(one.hits for one in drawn), sum(len(one.known) for one in drawn)
    st.markdown(plain(f"{_what(mine[0])}: right in {hits} of {of} here."))
    for one in drawn:
        st.html(arrows_html(one, show.theme()))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            "An arrow goes from a word to the other word that gets most of its attention: green where that is the "
            f"right one, red where not; the dashed arrow is then the right one. {_drawn(name)}"
        )
        show.downloads("example sentences", lambda: pa.Table.from_pylist(mine))


def _what(row: Row) -> str:
    if row["relation"]:
        return str(row["relation"])
    if row["type"] == SIMILAR:
        return "From a word to the most similar other word"
    return f"From a token seen again to {SEEN_AGAIN[row['type']]}"


def _drawn(name: str) -> str:
    if name in SEEN_AGAIN:
        return "Eight random tokens, twice."
    return "Sentences are drawn at random" + (
        ", and the words with the most similar ones are shown; the same word elsewhere does not count as similar."
        if name == SIMILAR
        else " from the held-out half."
    )


@shows_mistakes
def ranking(shown: AttentionView) -> None:
    """For a relation, or another experiment: the heads that follow it most, beside their baselines."""
    found = experiments(shown.state)
    if found is None:
        return
    st.subheader(
        "Which heads follow a relation?",
        help=why("relation", "fixed offset", "shuffled sentences", "induction", "semantic similarity", "interval"),
        anchor=False,
    )
    relations = list(dict.fromkeys(row["relation"] for row in found.relations))
    measured = [name for name in (*SEEN_AGAIN, SIMILAR) if _measured(found, name)]
    options = [*relations, *measured]
    if not relations:
        st.info(
            "There are no relations: the model does not know the treebank's words, or the treebank has too few pairs. "
            "Give one in the model's language with `--treebank FILE.conllu`.",
            icon=":material/translate:",
        )
    if not options:
        return
    beyond = {name: sum(row["beyond"] for row in found.relations if row["relation"] == name) for name in relations}
    name = linked(
        st.selectbox,
        "Relation",
        "relation",
        options,
        max(beyond, key=lambda relation: beyond[relation]) if beyond else options[0],
        format_func=lambda one: f"{one} · {beyond[one]} beyond" if one in beyond else one,
    )
    if name in relations:
        _relation(found, name)
    else:
        _scores(shown, found, name)


def _relation(found: Shown, name: str) -> None:
    rows = sorted((row for row in found.relations if row["relation"] == name), key=lambda row: -row["chosen"])
    best = rows[0]
    verdict = "beyond both baselines" if best["beyond"] else "not beyond its baselines"
    st.markdown(
        plain(
            f"The best head on the choosing half, {best['layer']}.{best['head']}, is right for {best['score']:.0%} of "
            f"{best['pairs']} held-out pairs ({best['low']:.0%} to {best['high']:.0%}); the best fixed offset for "
            f"{best['offset_score']:.0%}, the same head on shuffled sentences for {best['shuffled']:.0%}: {verdict}. "
            f"{_heads(sum(row['beyond'] for row in rows))} of {len(rows)} beyond both."
        )
    )
    heads = [
        Ranked(_at(row), row["score"], row["low"], row["high"], row["shuffled"], row["beyond"]) for row in rows[:MOST]
    ]
    show.figure(
        ranking_figure(
            heads, best["offset_score"], offset_name(best["fixed_offset"]), "on shuffled sentences", show.theme()
        ),
        "relation ranking",
        lambda: pa.Table.from_pylist(rows),
        f"The {len(heads)} heads that are best on one half of the sentences; bars are the other half, with 95 % "
        "intervals over sentences. Blue bars are beyond both baselines (5 % false discoveries over all heads and "
        f"relations). It counts for the type {TYPE_OF[name]}.",
        alt=f"Heads by how often they follow {name}.",
    )


def _scores(shown: AttentionView, found: Shown, name: str) -> None:
    measure = "similarity" if name == SIMILAR else name.split()[0]
    other = "similarity_exchanged" if name == SIMILAR else f"{measure}_unrepeated"
    rows = sorted(found.scores.values(), key=lambda row: -row[measure])
    heads = [
        Ranked(_at(row), row[measure], row[f"{measure}_low"], row[f"{measure}_high"], row[other], _claimed(row, name))
        for row in rows[:MOST]
    ]
    count = sum(_claimed(row, name) for row in rows)
    if name == SIMILAR:
        said = (
            "Correlation of attention between words with the cosine of their input embeddings beyond distance, with "
            f"95 % intervals over sentences. Blue bars have the type: at least {LEAST_CORRELATION}."
        )
        st.markdown(plain(f"{_heads(count)} of {len(rows)} attend to similar words."))
        figure = ranking_figure(heads, None, "", "words exchanged", show.theme(), "correlation")
    else:
        elsewhere = sum(row["elsewhere"] for row in rows) / len(rows)
        said = (
            f"Attention from a random token seen again to {SEEN_AGAIN[name]}, over 8 sequences, with 95 % intervals. "
            f"Blue bars have the type: at least {LEAST:.0%}, and {TIMES} times the baselines."
        )
        st.markdown(plain(f"{_heads(count)} of {len(rows)} of the type {name}."))
        if any(row["next"] is not None for row in attention_rows(shown.state).values()):
            st.caption(plain(_BOTH_WAYS))
        figure = ranking_figure(
            heads, elsewhere, "another token, all heads", "this distance, not repeated", show.theme(), "attention"
        )
    show.figure(figure, "score ranking", lambda: pa.Table.from_pylist(rows), said, alt=f"Heads by {name}.")


@shows_mistakes
def families(shown: AttentionView) -> None:
    """How many heads of each family every layer has, beside the textbook picture."""
    if experiments(shown.state) is None:
        return
    st.subheader("Early positional, middle syntactic, late abstract?", help=why("attention type"), anchor=False)
    rows = attention_rows(shown.state)
    found = type_depth([(layer, row["type"]) for (layer, _), row in rows.items()], shown.shape.layers)
    st.markdown(plain(found.sentence))
    table = pa.table({"layer": range(1, shown.shape.layers + 1), **found.counts})
    members = "; ".join(f"{family}: {', '.join(types)}" for family, types in FAMILIES.items() if family != "none")
    show.figure(
        families_figure(found.counts, show.theme()),
        "families by layer",
        table,
        f"Heads by the family of their type. {members[0].upper()}{members[1:]}. The textbook picture is of language "
        "models as a whole; whether it holds for this one, the permutation test says.",
        alt="Heads of each family of types at every layer.",
    )


def _measured(found: Shown, name: str) -> bool:
    measure = "similarity" if name == SIMILAR else name.split()[0]
    return all(row[measure] is not None for row in found.scores.values())


def _claimed(row: Row, name: str) -> bool:
    return name in type_claims(row, ())


def _at(row: Row) -> str:
    return f"{row['layer']}.{row['head']}"


def _heads(count: int) -> str:
    return f"{count} head{'' if count == 1 else 's'}"
