"""A run that keeps the vectors of some documents only: what pages say of it."""

from __future__ import annotations

import streamlit as st

from core.runs.describe import sampled
from pages.shared.data import RunState


def among(state: RunState, what: str = "Looked for") -> str:
    """A sentence on the documents that are looked through, to follow another; empty where they are all."""
    assert state.manifest is not None
    if not state.manifest.is_sampled:
        return ""
    return f" {what} among the {sampled(state.manifest)} whose vectors this run keeps."


def no_vectors(state: RunState, doc: int, what: str) -> None:
    """In the place of ``what``, for a document whose vectors are not kept."""
    assert state.manifest is not None
    st.info(
        f"No {what}: this run keeps the vectors of {sampled(state.manifest)}, and document {doc + 1:,} is not among "
        "them. Its similarities and its places on the maps are kept.",
        icon=":material/layers_clear:",
    )
