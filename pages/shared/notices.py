"""Sentences that pages show instead of a result, or beside one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import streamlit as st

from core.errors import Mistake
from core.runs.describe import sampled
from core.runs.labels import CIRCULAR_NOTE
from core.runs.tables import Tables
from pages.shared.data import RunState
from pages.shared.glossary import why
from pages.shared.server.visit import note_problem
from pages.shared.text import plain


def show_problem(problem: object, kind: str = "", icon: str = ":material/error:") -> None:
    """``problem`` is a Mistake, or a sentence with the ``kind`` of thing that went wrong."""
    note_problem(problem, kind)
    st.error(plain(problem), icon=icon)


Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def shows_mistakes(section: Callable[Given, Returned]) -> Callable[Given, Returned | None]:
    """For a section: a file that is missing or damaged costs it alone, not the page, and its sentence is shown."""

    @wraps(section)
    def shown(*args: Given.args, **kwargs: Given.kwargs) -> Returned | None:
        try:
            return section(*args, **kwargs)
        except Mistake as mistake:
            show_problem(mistake)
            return None

    return shown


def circular_notice(found: Tables) -> None:
    """Nothing where the labels come from elsewhere."""
    if found.labelled and found.labels.circular:
        st.warning(plain(CIRCULAR_NOTE), icon=":material/sync_problem:")
        st.caption("What does that mean?", help=why("circular", "zero-shot"))


def circular_mark(found: Tables) -> str:
    """For a figure's name."""
    return " (circular)" if found.labelled and found.labels.circular else ""


def among(state: RunState, what: str = "Looked for") -> str:
    """A sentence on the documents that are looked through, to follow another; empty where they are all."""
    assert state.manifest is not None
    if not state.manifest.is_sampled:
        return ""
    return f" {what} among the {sampled(state.manifest)} whose vectors this run stores."


def no_vectors(state: RunState, doc: int, what: str) -> None:
    """In the place of ``what``, for a document whose vectors are not kept."""
    assert state.manifest is not None
    st.info(
        f"No {what}: this run stores the vectors of {sampled(state.manifest)}, and document {doc + 1:,} is not among "
        "them. Its similarities and its positions on the maps are stored.",
        icon=":material/layers_clear:",
    )
