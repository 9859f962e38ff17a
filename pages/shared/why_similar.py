"""Why are these two similar? The cosine of two texts as a sum over the model's parts, on any page that lists documents.

Not within a fragment: one that is run again does not call the fragment that watches the model any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.explained import (
    Baseline,
    TermGrid,
    against_random,
    from_stored,
    rounded_to_sum,
    signed,
    stored_summary,
    summary,
    term_name,
)
from core.model.head_words import HeadWords
from core.model.ledger import Explanation, Term
from core.model.share_space import ShareSpace
from core.model.stages import SHARE
from core.runs.run import Run
from core.runs.shares import read_share_space
from core.runs.steps import command
from pages.shared.components.layer_grid import GridCell, layer_grid
from pages.shared.data import RunState, document_vectors, documents, row_of
from pages.shared.embedding import WhyText, explained, head_in_both
from pages.shared.figures.term_grid import decimal, term_grid
from pages.shared.figures.why_similar import (
    PLACES,
    matrix_figure,
    shade_legend,
    shade_limit,
    shaded,
    waterfall,
)
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.run_version import VECTORS, one_version, version_of
from pages.shared.show import downloads, figure, grid_paper, theme
from pages.shared.text import plain, shortened
from pages.shared.url import decide, linked, linked_clicks, linked_toggle
from pages.shared.whose import term_rows

TITLE = "Why are these two similar?"
_NOTHING = 0
_WIDE = 16
"""Heads up to which two grids stand side by side."""


def choose_why(state: RunState, docs: Sequence[int], label: str, numbered: bool = False) -> int | None:
    """One of some documents to be explained, or None; in the address as ``why``, the document's number from 1."""
    numbers = [int(doc) + 1 for doc in docs]
    titles = documents(state).rows([number - 1 for number in numbers], ["title"])["title"].to_pylist()
    names = {
        number: f"{place}. {shortened(title, 90)}" if numbered else shortened(title, 90)
        for place, (number, title) in enumerate(zip(numbers, titles, strict=True), 1)
    }
    chosen = linked(
        st.selectbox,
        label,
        "why",
        [_NOTHING, *numbers],
        _NOTHING,
        format_func=lambda number: names.get(number, "choose a document"),
        help=why("why similar"),
    )
    return chosen - 1 if chosen else None


def corpus_text(state: RunState, doc: int) -> WhyText:
    row = documents(state).row(doc)
    return WhyText(row["title"], row["text"], doc=doc)


_ASKED = "the pair that is explained"


def ask_in_fragment(state: RunState, doc: int | None, docs: Sequence[int]) -> None:
    """Within a fragment: asks which of the nearest documents is to be explained, and has the page show it."""
    other = choose_why(state, docs, TITLE) if doc is not None and len(docs) else None
    asked = None if doc is None or other is None else (state.run.name, doc, other)
    if st.session_state.get(_ASKED) != asked:
        st.session_state[_ASKED] = asked
        st.rerun()


@shows_mistakes
def explain_asked(state: RunState) -> None:
    """The pair that ``ask_in_fragment`` was asked for."""
    run, doc, other = st.session_state.get(_ASKED) or ("", -1, -1)
    count = int(state.manifest.corpus["documents"]) if state.manifest else 0
    still = st.session_state.get("doc") == doc + 1  # another document may have been chosen since
    if still and run == state.run.name and doc != other and 0 <= doc < count and 0 <= other < count:
        why_similar(state, corpus_text(state, doc), corpus_text(state, other))


@dataclass(frozen=True)
class WhySimilar:
    """Two texts that were explained, as the page shows it."""

    first: WhyText
    second: WhyText
    found: Explanation
    baseline: Baseline | None
    """What random pairs have; None if that was not measured."""
    less: bool
    """Whether that is subtracted."""
    chosen: Term
    """The head whose words are shown."""
    words: HeadWords | None = None

    @property
    def steps(self) -> tuple[Explanation, float]:
        """Of the waterfall: the values, and where they begin."""
        if not self.less or self.baseline is None:
            return self.found, 0.0
        values = self.found.values - self.baseline.mean
        return Explanation(self.found.cosine, self.found.terms, values), self.baseline.cosine

    @property
    def cells(self) -> np.ndarray:
        """Of the grid, ``[term]``, rounded so that they add up."""
        shown, start = self.steps
        return rounded_to_sum(shown.values, round(self.found.cosine, PLACES) - round(start, PLACES), PLACES)

    @property
    def waterfall_caption(self) -> str:
        if self.less:
            return "From the mean cosine of random pairs to that of this pair: the terms that differ most; bars add up."
        return "The terms that change the cosine most; bars add up to it."


def pair_caption(first: WhyText, second: WhyText) -> str:
    one, other = (shortened(text.name, 90) for text in (first, second))
    return f"“{one}” and “{other}”: the cosine of the model's own embeddings (stage 3), taken apart."


@shows_mistakes
def why_similar(state: RunState, first: WhyText, second: WhyText) -> WhySimilar | None:
    """The sentence, the waterfall, the grid, and the words of one head."""
    st.subheader(TITLE, help=why("why similar", "random pairs"), anchor=False)
    st.caption(plain(pair_caption(first, second)))
    if not (first.text.strip() and second.text.strip()):
        st.info("One of the two texts is empty.", icon=":material/info:")
        return None
    found = explained(state, first, second)
    if found is None:
        _stored(state, first, second)
        return None
    baseline = random_pairs(state, found.terms)
    st.markdown(f"**{plain(summary(found))}**")
    less = False
    if baseline is None:
        st.info(
            "What random pairs of documents have in common is not measured yet, so part of these numbers may be common "
            f"to all pairs. To measure it, run `{command('layers', state.run.name)}`.",
            icon=":material/info:",
        )
    else:
        st.markdown(plain(against_random(found, baseline)))
        less = linked_toggle("Subtract random pairs", "beyond", why("random pairs"))
    shown = WhySimilar(first, second, found, baseline, less, _chosen(found))
    _waterfall(shown)
    _grid(shown)
    return replace(shown, words=_words(state, shown.chosen, first, second))


def _stored(state: RunState, first: WhyText, second: WhyText) -> None:
    """While the model is not there: what the stored shares of two documents of the corpus say without it."""
    manifest = state.manifest
    assert manifest is not None
    if first.doc is None or second.doc is None or not {3, SHARE} <= set(manifest.stages):
        return
    both = (first.doc, second.doc)
    if min(row_of(state, doc) for doc in both) < 0:
        return
    space = _space(state.run, version_of(manifest, VECTORS))
    shares = [document_vectors(state, SHARE, doc).astype(np.float64) for doc in both]
    outputs = [document_vectors(state, 3, doc).reshape(-1) for doc in both]
    onto = [space.coordinates(output) for output in outputs]
    if not all(output.any() for output in outputs):
        return
    layer = int(manifest.model["layer"])
    found = from_stored((shares[0], shares[1]), (outputs[0], outputs[1]), (onto[0], onto[1]), layer)
    st.markdown(f"**{plain(stored_summary(found))}**")
    figure(
        waterfall(found, 0.0, theme()),
        "why-stored",
        lambda: _table(found),
        f"From the shares that the run stores for layer {layer}, without the model. The model adds all other terms, "
        "random pairs and words.",
        alt=f"Waterfall of what the heads of layer {layer} add to the cosine.",
    )


@st.cache_resource(max_entries=4, show_spinner=False)
@one_version(*VECTORS)
def _space(run: Run, version: str) -> ShareSpace:
    return read_share_space(run)


def _waterfall(shown: WhySimilar) -> None:
    found = shown.found
    figure(
        waterfall(*shown.steps, theme()),
        "why-waterfall",
        lambda: _table(found),
        f"{shown.waterfall_caption} Residual {abs(found.residual):.0e}.",
        alt=f"Waterfall of the terms that add most to the cosine of {signed(found.cosine, PLACES)}.",
    )


def _table(found: Explanation) -> pa.Table:
    return pa.Table.from_pylist(found.as_json()["terms"])


def _grid(pair: WhySimilar) -> None:
    """Layers × heads of the pair, and of random pairs beside it."""
    st.markdown("##### Layers × heads")
    found, baseline, shown = pair.found, pair.baseline, pair.cells
    usual = None if baseline is None else rounded_to_sum(baseline.mean, baseline.cosine, PLACES)
    heads = max(term.head or 0 for term in found.terms)
    boxes = st.columns(2, gap="medium") if usual is not None and heads <= _WIDE else [st.container(), st.container()]
    limit = max(
        float(np.abs(_head_values(found.terms, values)).max()) for values in (shown, usual) if values is not None
    )
    with boxes[0]:
        st.caption("This pair, less random pairs" if pair.less else "This pair")
        _one_grid("pair", found, shown, baseline, limit, pair.chosen)
    if usual is not None and baseline is not None:
        with boxes[1]:
            st.caption(f"Random pairs, the mean of {baseline.pairs:,}")
            _one_grid(
                "random", Explanation(baseline.cosine, found.terms, baseline.mean), usual, None, limit, pair.chosen
            )
    st.caption(
        "Click a head to see its words. ff: feed-forward block; bias: biases of the layer. What two terms have in "
        "common is split evenly between them. A head's share is direct: what later layers compute from its output "
        "counts as theirs."
    )


def _head_values(terms: Sequence[Term], values: np.ndarray) -> np.ndarray:
    return values[[term.kind == "head" for term in terms]]


def _one_grid(
    key: str, found: Explanation, shown: np.ndarray, baseline: Baseline | None, limit: float, chosen: Term
) -> None:
    def note(at: int) -> str:
        said = f"{signed(float(found.values[at]), 4)}"
        if baseline is not None:
            ends = f"{signed(float(baseline.low[at]), 4)} to {signed(float(baseline.high[at]), 4)}"
            beyond = "" if baseline.low[at] <= found.values[at] <= baseline.high[at] else ": beyond them"
            said += f"\nrandom pairs {signed(float(baseline.mean[at]), 4)}, 95 % {ends}{beyond}"
        return said

    def picked(place: GridCell) -> None:
        if place.column < heads:
            decide("why_layer", place.row + 1)
            decide("why_head", place.column + 1)

    heads = max(term.head or 0 for term in found.terms)
    drawn = term_grid(
        found.terms, shown, decimal, note, theme(), "What each term adds to the cosine.", f"why-{key}", limit
    )
    layer_grid(drawn, f"why grid {key}", GridCell((chosen.layer or 1) - 1, (chosen.head or 1) - 1), picked)
    grid = TermGrid.of(found.terms, shown)
    final = any(term.kind == "bias" and term.layer is None for term in found.terms)
    parts = [f"layers {signed(float(grid.layers.sum()), PLACES)}", f"embeddings {signed(grid.embedding, PLACES)}"]
    parts += [f"final bias {signed(grid.final_bias, PLACES)}"] if final else []
    total = signed(float(shown.sum()), PLACES)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(plain(f"{' + '.join(parts)} = {total}").replace("+ −", "− "))
        downloads(f"why-{key}", lambda: _table(found), grid_paper(drawn, f"{' + '.join(parts)} = {total}"))


def _chosen(found: Explanation) -> Term:
    """The head that was clicked, or is in the address, or adds most."""
    heads = [term for term in found.terms if term.kind == "head"]
    value = dict(zip(found.terms, found.values.tolist(), strict=True))
    last = heads[-1]
    clicked = linked_clicks(
        {"why_layer": (range((last.layer or 0) + 1), 0), "why_head": (range((last.head or 0) + 1), 0)}
    )
    term = Term("head", clicked["why_layer"], clicked["why_head"])
    return term if term in value else max(heads, key=value.__getitem__)


def _words(state: RunState, chosen: Term, first: WhyText, second: WhyText) -> HeadWords | None:
    """Which words make up one head's value: both texts shaded, and the pairs of words as a matrix."""
    assert chosen.layer is not None
    assert chosen.head is not None
    name = term_name(chosen)
    st.markdown(f"##### {plain(name[0].upper() + name[1:])}, word by word", help=why("why words"))
    words = head_in_both(state, first, second, chosen.layer, chosen.head)
    if words is None:
        return None
    st.markdown(plain(words_sentence(words)))
    limit = shade_limit(words)
    st.html(shade_legend(limit))
    for column, text, pieces, values in zip(
        st.columns(2, gap="medium"), (first, second), words.pieces, words.values, strict=True
    ):
        with column:
            st.caption(plain(shortened(text.name, 90)))
            st.html(shaded(text.text, pieces, values, limit))
    _matrix(words, name)
    return words


def words_sentence(words: HeadWords) -> str:
    parts = rounded_to_sum([words.values[0].sum(), words.values[1].sum()], words.value, PLACES)
    return (
        f"It adds {signed(words.value, PLACES)} to the cosine: {signed(parts[0], PLACES)} by what it read in the first "
        f"text, {signed(parts[1], PLACES)} by what it read in the second."
    )


def matrix_caption(words: HeadWords, name: str) -> str:
    return (
        f"Pairs of words: together {signed(words.shared, PLACES)}, what {name} adds to both texts in the same "
        f"direction. The remaining {signed(words.value - words.shared, PLACES)} lies between this head and all other "
        "terms. Equal words are one row or column."
    )


def _matrix(words: HeadWords, name: str) -> None:
    figure(
        matrix_figure(words, theme()),
        "why-words",
        lambda: _matrix_table(words),
        matrix_caption(words, name),
        alt=f"Matrix of the words of both texts by what {name} makes of each pair.",
    )


def _matrix_table(words: HeadWords) -> pa.Table:
    names = [[*own, "all other words"] for own in words.words]
    rows = [
        {"first": first, "second": second, "value": float(words.matrix[row, column])}
        for row, first in enumerate(names[0])
        for column, second in enumerate(names[1])
    ]
    return pa.Table.from_pylist(rows)


def random_pairs(state: RunState, terms: tuple[Term, ...]) -> Baseline | None:
    """What random pairs of the run's documents have; None where the layer sweep has not measured it."""
    return Baseline.of(term_rows(state, "pair_parts"), terms)
