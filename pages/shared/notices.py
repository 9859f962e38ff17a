"""Sections of a page: a file that is missing or damaged costs only its own, and a figure is drawn once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import plotly.graph_objects as go
import streamlit as st

from core.errors import Mistake
from core.runs.run import Run
from pages.shared.problem import show_problem

Given = ParamSpec("Given")


def told(section: Callable[Given, None]) -> Callable[Given, None]:
    """A file that is missing or damaged costs one section, not the page, and is told in a sentence."""

    @wraps(section)
    def shown(*args: Given.args, **kwargs: Given.kwargs) -> None:
        try:
            section(*args, **kwargs)
        except Mistake as mistake:
            show_problem(mistake)

    return shown


@st.cache_resource(max_entries=48, show_spinner=False)
def drawn_once(run: Run, version: str, name: str, stage: int, theme: str, _draw: Callable[[], go.Figure]) -> go.Figure:
    """A figure that changes with the run, the stage and the theme alone: building it costs more than sending it."""
    return _draw()
