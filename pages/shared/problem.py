"""A problem, told to a person in its sentence and to the log by its kind."""

from __future__ import annotations

import streamlit as st

from pages.shared.server.visit import note_problem
from pages.shared.text import plain


def show_problem(problem: object, kind: str = "", icon: str = ":material/error:") -> None:
    """``problem`` is a Mistake, or a sentence with the ``kind`` of thing that went wrong."""
    note_problem(problem, kind)
    st.error(plain(problem), icon=icon)
