"""A section of a page: a heading that can be linked to."""

from __future__ import annotations

import streamlit as st

from pages.shared.glossary import why


def section(title: str, anchor: str, *terms: str) -> None:
    """The heading, as ``#anchor`` in the address, with the glossary's ``terms`` in its tooltip.

    The anchor is fixed here: one made from the title would change with its words, and with what is chosen.
    """
    st.subheader(title, anchor=anchor, help=why(*terms) if terms else None)
