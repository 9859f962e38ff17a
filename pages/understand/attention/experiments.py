"""What experiments show: a head in example sentences, heads ranked by relation, families of types by layer."""

from __future__ import annotations

from functools import partial

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
from core.analysis.wording import percent
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
from pages.shared.section import section
from pages.shared.text import plain, safe
from pages.shared.url import linked
from pages.understand.attention.sections import AttentionView

MOST = 15
_LINES = (
    ("Token after the first occurrence of a repeated token", "induction", "induction_unrepeated"),
    ("First occurrence of a repeated token", "duplicate", "duplicate_unrepeated"),
    ("Similar words (correlation)", "similarity", "similarity_exchanged"),
    ("Document tokens that attend mostly to the first token", "rests", None),
)
_BOTH_WAYS = (
    "This model attends in both directions and can compare the two copies of the random tokens from either side. So "
    "these figures show that a head matches equal tokens, not that it predicts the next one, as induction does in a "
    "causal model."
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
        written = _decimal if measure == "similarity" else partial(percent, digits=1)
        ends = [row[f"{measure}_{end}"] for end in ("low", "high")] if baseline else []
        small = f"<small>{safe(' to '.join(written(end) for end in ends))}</small>" if ends else ""
        lines.append((safe(label), [safe(written(value)) + small, safe(written(other)) if other is not None else "–"]))
    if lines:
        st.html(figure_table(["value", "baseline"], 0, lines))
        st.caption(
            "From experiments, with 95 % CI. Baselines: the same distance without repetition; words exchanged.",
            help=why("induction", "semantic similarity", "sink"),
        )


def _decimal(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


@shows_mistakes
def examples(shown: AttentionView) -> None:
    """The head's arrows in a few sentences for every type that experiments show; nothing for other heads."""
    found = experiments(shown.state)
    rows = found.examples.get((shown.layer, shown.head), []) if found else []
    types = [name for name in shown.row["types"] or [] if any(row["type"] == name for row in rows)]
    if not types:
        return
    section(f"{shown.name} in example sentences", "examples", "relation", "induction")
    name = types[0]
    if len(types) > 1:
        key = f"example {shown.layer} {shown.head}"
        name = st.segmented_control("Example type", types, default=name, required=True, key=key) or name
    mine = sorted((row for row in rows if row["type"] == name), key=lambda row: int(row["example"]))
    drawn = [Arrows(row["words"], row["starts"], row["right"], row["attended"]) for row in mine]
    hits, of = sum(one.hits for one in drawn), sum(len(one.known) for one in drawn)
    st.markdown(plain(f"{_what(mine[0])}: correct for {hits} of {of} here."))
    for one in drawn:
        st.html(arrows_html(one, show.theme()))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            "Each arrow runs from a word to the other word that gets most of its attention: green if correct, red if "
            f"not. Dashed arrows show the correct word. {_drawn(name)}"
        )
        show.downloads("example sentences", lambda: pa.Table.from_pylist(mine))


def _what(row: Row) -> str:
    if row["relation"]:
        return str(row["relation"])
    if row["type"] == SIMILAR:
        return "From a word to the most similar other word"
    return f"From a repeated token to {SEEN_AGAIN[row['type']]}"


def _drawn(name: str) -> str:
    if name in SEEN_AGAIN:
        return "The text is eight random tokens, repeated once."
    return "Sentences are drawn at random" + (
        "; words with the most similar partners are shown. Another occurrence of the same word does not count."
        if name == SIMILAR
        else " from the held-out half."
    )


@shows_mistakes
def ranking(shown: AttentionView) -> None:
    """For a relation, or another experiment: the heads that follow it most, beside their baselines."""
    found = experiments(shown.state)
    if found is None:
        return
    terms = ("relation", "fixed offset", "shuffled sentences", "induction", "semantic similarity", "interval")
    section("Which heads follow a relation?", "relations", *terms)
    relations = list(dict.fromkeys(row["relation"] for row in found.relations))
    measured = [name for name in (*SEEN_AGAIN, SIMILAR) if _measured(found, name)]
    options = [*relations, *measured]
    if not relations:
        st.info(
            "No relations were measured: the tokenizer does not know the treebank's words, or the treebank has too few "
            "pairs. Pass a treebank in the model's language with `--treebank FILE.conllu`.",
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
        format_func=lambda one: f"{one} · {_heads(beyond[one])} above baseline" if one in beyond else one,
    )
    if name in relations:
        _relation(found, name)
    else:
        _scores(shown, found, name)


def _relation(found: Shown, name: str) -> None:
    rows = sorted((row for row in found.relations if row["relation"] == name), key=lambda row: -row["chosen"])
    best = rows[0]
    verdict = "above both baselines" if best["beyond"] else "not above its baselines"
    st.markdown(
        plain(
            f"The head that was best on one half of the sentences, {best['layer']}.{best['head']}, is correct for "
            f"{percent(best['score'])} of {best['pairs']} held-out pairs (95 % CI {percent(best['low'])} to "
            f"{percent(best['high'])}). "
            f"The best fixed offset reaches {percent(best['offset_score'])}, the same head on shuffled sentences "
            f"{percent(best['shuffled'])}: {verdict}. Above both: {_heads(sum(row['beyond'] for row in rows))} of "
            f"{len(rows)}."
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
        f"The {len(heads)} heads that are best on one half of the sentences. Bars show the held-out half with 95 % CI "
        "over sentences. Blue bars are above both baselines (false discovery rate 5 % over all heads and relations). "
        f"The relation counts towards the type {TYPE_OF[name]}.",
        alt=f"Bar chart of heads by how often they follow the relation {name}: best {heads[0].name} with "
        f"{percent(heads[0].value)}.",
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
            "Correlation between attention and the cosine of the words' input embeddings, corrected for distance, with "
            f"95 % CI over sentences. Blue bars have the type: at least {LEAST_CORRELATION}."
        )
        st.markdown(plain(f"Attending to similar words: {_heads(count)} of {len(rows)}."))
        figure = ranking_figure(heads, None, "", "words exchanged", show.theme(), "correlation")
    else:
        elsewhere = sum(row["elsewhere"] for row in rows) / len(rows)
        said = (
            f"Attention from a repeated random token to {SEEN_AGAIN[name]}, over 8 sequences, with 95 % CI. "
            f"Blue bars have the type: at least {percent(LEAST)} and {TIMES} times the baselines."
        )
        st.markdown(plain(f"Of type {name}: {_heads(count)} of {len(rows)}."))
        if any(row["next"] is not None for row in attention_rows(shown.state).values()):
            st.caption(plain(_BOTH_WAYS))
        figure = ranking_figure(
            heads, elsewhere, "another token, all heads", "this distance, not repeated", show.theme(), "attention"
        )
    show.figure(figure, "score ranking", lambda: pa.Table.from_pylist(rows), said, alt=f"Bar chart of heads by {name}.")


@shows_mistakes
def families(shown: AttentionView) -> None:
    """How many heads of each family every layer has, beside the textbook picture."""
    if experiments(shown.state) is None:
        return
    section("Early positional, middle syntactic, late abstract?", "families", "attention type")
    rows = attention_rows(shown.state)
    found = type_depth([(layer, row["type"]) for (layer, _), row in rows.items()], shown.shape.layers)
    st.markdown(plain(found.sentence))
    table = pa.table({"layer": range(1, shown.shape.layers + 1), **found.counts})
    members = "; ".join(f"{family}: {', '.join(types)}" for family, types in FAMILIES.items() if family != "none")
    show.figure(
        families_figure(found.counts, show.theme()),
        "families by layer",
        table,
        f"Heads by the family of their type. {members[0].upper()}{members[1:]}. The textbook picture describes "
        "language models in general; the permutation test says whether it holds for this one.",
        alt=f"Stacked bars: heads of each family of types at every layer. {found.sentence}",
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
