"""Tabs whose choice is in the address: only the open one is computed and drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.shared.url import choice_from_url, choice_to_url

NAME = "tab"


def linked_tabs(labels: Mapping[str, str], opened_by: Mapping[str, str] | None = None) -> tuple[str, Any]:
    """The open tab's key and its container; ``labels`` has the label by the key that stands in the address.

    ``opened_by`` has for a choice in the address the tab that it belongs to: links from before there were tabs name no
    tab, and open there.
    """
    first = next(iter(labels))
    belongs = next((tab for name, tab in (opened_by or {}).items() if name in st.query_params), first)
    choice_from_url(NAME, list(labels), belongs)
    widget = f"{NAME} widget {' '.join(labels)}"

    def choose() -> None:
        st.session_state[NAME] = next(key for key, label in labels.items() if label == st.session_state[widget])

    st.session_state[widget] = labels[st.session_state[NAME]]
    containers = st.tabs(list(labels.values()), key=widget, on_change=choose)
    chosen = str(st.session_state[NAME])
    # With a tab's choice in the address the tab is always there, too: without it the link would open that choice's tab.
    choice_to_url(NAME, chosen, first if belongs == first else "")
    return chosen, containers[list(labels).index(chosen)]
