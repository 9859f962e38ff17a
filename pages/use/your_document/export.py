"""The result to take away; made when somebody asks for it, and kept nowhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.shared.embedding import attended_already
from pages.shared.notices import told
from pages.use.your_document.report import report_html
from pages.use.your_document.state import Shown
from pages.use.your_document.table import as_csv, as_json, as_parquet

KINDS: dict[str, tuple[str, str, Callable[[Shown], bytes]]] = {
    "Parquet": ("parquet", "application/vnd.apache.parquet", as_parquet),
    "CSV": ("csv", "text/csv", as_csv),
    "JSON": ("json", "application/json", as_json),
}
"""Name on the button: ending, media type, how it is made."""


@told
def keep_section(shown: Shown) -> None:
    st.subheader("Take it with you", anchor=False)
    name = file_name(shown.name)
    found = attended_already(shown.state, shown.text)
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "HTML report",
            lambda: report_html(shown, found).encode("utf-8", "replace"),
            f"{name}.html",
            "text/html",
            icon=":material/description:",
            key="keep html",
            on_click="ignore",
        )
        for label, (ending, mime, make) in KINDS.items():
            # Tables are of the profile: without the run's figures there is none.
            if ending != "json" and not shown.state.analysed:
                continue
            st.download_button(
                label, partial(make, shown), f"{name}.{ending}", mime, key=f"keep {ending}", on_click="ignore"
            )
    st.caption(
        "The report opens offline and has no links. Parquet and CSV hold every stage; JSON holds votes and neighbours "
        "too. Nothing of the document is kept on the server."
    )


def file_name(name: str) -> str:
    """A document's name as a file's: letters, numbers and dashes, not too long."""
    plain = re.sub(r"[^\w]+", "-", name, flags=re.UNICODE).strip("-_").lower()
    return f"headscope-{plain[:60] or 'document'}"
