"""The link from a topic, wherever it is shown, to the heads that follow it."""

from __future__ import annotations

import streamlit as st

from pages.shared.text import plain, shortened

PAGE = "pages/understand/topics/page.py"


def topic_link(topic: str, label: str = "") -> None:
    """To the tab of the page Topics that ranks heads by ``topic``, at the same run and stage."""
    kept = {name: value for name, value in st.query_params.items() if name in ("run", "stage")}
    said = label or f"Heads that follow {plain(shortened(topic, 60))}"
    st.page_link(PAGE, label=said, icon=":material/category:", query_params={**kept, "tab": "heads", "topic": topic})
