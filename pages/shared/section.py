"""A section of a page: a heading that can be linked to."""

from __future__ import annotations

import streamlit as st

from pages.shared.components.in_view import bring_into_view, in_view_once_asked
from pages.shared.glossary import why

SEE = "see"
"""In the address: the anchor of the section to scroll to, once."""


def section(title: str, anchor: str, *terms: str) -> None:
    """The heading, as ``#anchor`` in the address, with the glossary's ``terms`` in its tooltip.

    The anchor is fixed here: one made from the title would change with its words, and with what is chosen.
    """
    if st.query_params.get(SEE) == anchor:  # a finding's link leads to a section, which a page link cannot name
        del st.query_params[SEE]
        bring_into_view(anchor)
    in_view_once_asked(anchor)
    st.subheader(title, anchor=anchor, help=why(*terms) if terms else None)
