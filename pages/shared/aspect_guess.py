"""What a text that is not in the corpus is by each aspect, head by head: the nearest of each value's examples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.analysis.aspect_probe import ACCURACY
from core.analysis.document_profile import corpus_mean
from core.analysis.examples import Examples, examples_of
from core.analysis.null import ABOVE
from core.analysis.wording import percent
from core.runs.aspects import LENGTH, TOPIC, Aspect, aspects_of
from core.runs.run import Run
from pages.shared import show
from pages.shared.aspects import aspect_rows
from pages.shared.data import RunState, head_index, vector_docs
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.run_version import ASPECTS, one_version
from pages.shared.text import plain, shortened

_PIECE = 4_096
_NOT_GUESSED = (TOPIC, LENGTH)
"""The page has the topic already, and the length can be counted."""


TITLE = "Other aspects, head by head"
CAPTION = (
    "The value whose documents are nearest on average. “Right”: the share of corpus documents for which a probe reads "
    "it correctly from that head."
)


@dataclass(frozen=True)
class ValueExamples:
    """The centred examples of an aspect's values, at one stage."""

    aspect: Aspect
    mean: np.ndarray
    """``[head, dim]``."""
    examples: Examples

    def guesses(self, vectors: np.ndarray) -> list[str]:
        """Of a text's ``vectors[head, dim]``: the nearest value by the full embedding, then by every head."""
        found = self.examples.with_full((vectors - self.mean)[None].astype(np.float32))[0]
        return [self.aspect.values[at] for at in found.argmax(axis=1)]


@dataclass(frozen=True)
class AspectGuess:
    """What a text seems to be by one aspect. Row 0 is all heads together, then every head."""

    name: str
    guesses: list[str]
    right: list[str]
    """For how many documents of the corpus a probe reads the aspect correctly, in per cent."""
    carriers: list[int]
    """Heads, from 1, that carry the aspect beyond random slices."""

    @property
    def title(self) -> str:
        return shortened(self.name, 40)


def aspect_guesses(state: RunState, stage: int, vectors: np.ndarray) -> list[AspectGuess]:
    """A text's ``vectors[head, dim]`` against the documents of every value; none where the run has no aspects."""
    rows = [row for row in aspect_rows(state).get("aspects", ()) if (row["stage"], row["measure"]) == (stage, ACCURACY)]
    guessed = []
    for name in dict.fromkeys(row["aspect"] for row in rows):
        found = None if name in _NOT_GUESSED else _examples(state, stage, name)
        if found is None:
            continue
        mine = {int(row["head"]): row for row in rows if row["aspect"] == name}
        right = [percent(mine[at]["value"]) for at in range(len(vectors) + 1)]
        carriers = [number for number, row in mine.items() if row["verdict"] == ABOVE]
        guessed.append(AspectGuess(name, found.guesses(vectors), right, carriers))
    return guessed


@shows_mistakes
def aspects_section(state: RunState, stage: int, head: int, vectors: np.ndarray) -> None:
    """What the text seems to be by every aspect, in sentences and as a table; nothing where the run has no aspects."""
    guessed = aspect_guesses(state, stage, vectors)
    if not guessed:
        return
    st.subheader(TITLE, help=why("aspect", "examples"), anchor=False)
    table: dict[str, list[str | None]] = {"": list(row_names(len(vectors)))}
    for one in guessed:
        said = [f"all heads together **{plain(shortened(one.guesses[0], 60))}**"]
        said += [f"head {number} **{plain(shortened(one.guesses[number], 60))}**" for number in one.carriers]
        none = "" if one.carriers else " No head carries it beyond random slices at this stage."
        st.markdown(f"{plain(one.title.capitalize())}: {', '.join(said)}.{none}")
        table[one.title] = show.cells(one.guesses)
        table[f"right, {one.title}"] = list(one.right)
    with st.expander(f"Every head (chosen: head {head})"):
        st.dataframe(table, hide_index=True)
    st.caption(f"{CAPTION} The heads named are those that carry the aspect beyond random slices.")


def row_names(heads: int) -> list[str]:
    return ["All heads", *(f"Head {number}" for number in range(1, heads + 1))]


def _examples(state: RunState, stage: int, name: str) -> ValueExamples | None:
    return _read(state.run, state.aspects_version, stage, name, state)


@st.cache_resource(max_entries=12, show_spinner="Comparing the corpus by its aspects …")
@one_version(*ASPECTS)
def _read(run: Run, version: str, stage: int, name: str, _state: RunState) -> ValueExamples | None:
    aspect = next((each for each in aspects_of(run) if each.name == name), None)
    if aspect is None:
        return None
    return value_examples(aspect, head_index(_state, stage).vectors, aspect.codes[vector_docs(_state)])


def value_examples(aspect: Aspect, vectors: np.ndarray, codes: np.ndarray) -> ValueExamples:
    """From ``vectors[doc, head, dim]`` and ``codes[doc]``, some documents at a time."""
    pieces = [slice(first, first + _PIECE) for first in range(0, len(vectors), _PIECE)]
    heads = vectors.shape[1]
    mean = corpus_mean((vectors[piece].reshape(len(vectors[piece]), -1) for piece in pieces), heads)
    sums = np.zeros((len(aspect.values), *vectors.shape[1:]), dtype=np.float32)
    counts = np.zeros(len(aspect.values), dtype=np.int64)
    for piece in pieces:
        found = examples_of((vectors[piece] - mean).astype(np.float32), codes[piece], len(aspect.values))
        sums += found.sums
        counts += found.counts
    return ValueExamples(aspect, mean, Examples(sums, counts))
