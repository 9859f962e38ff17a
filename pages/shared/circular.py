"""Where topic match is shown: a word of warning if the embedding has made the labels itself."""

from __future__ import annotations

import streamlit as st

from core.runs.labels import CIRCULAR_NOTE
from core.runs.tables import Tables
from pages.shared.glossary import why
from pages.shared.text import plain


def circular_notice(found: Tables) -> None:
    """Nothing where the labels come from elsewhere."""
    if found.labelled and found.labels.circular:
        st.warning(plain(CIRCULAR_NOTE), icon=":material/sync_problem:")
        st.caption("What does that mean?", help=why("circular", "zero-shot"))


def circular_mark(found: Tables) -> str:
    """For a figure's name."""
    return " (circular)" if found.labelled and found.labels.circular else ""
