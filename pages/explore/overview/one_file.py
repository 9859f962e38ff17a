"""The run as one HTML file, to send to somebody who has no app."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.runs.run import Run
from pages.shared.data import RunState
from pages.shared.notices import shows_mistakes
from pages.shared.one_file.write import TEXTS, html_of


@shows_mistakes
def save_as_one_file(state: RunState) -> None:
    """A button; the file is made when somebody asks for it."""
    assert state.manifest is not None
    with st.popover("Save as one file", icon=":material/download:", type="tertiary"):
        st.caption(
            "Findings, maps, heat map, head profiles and tables in one HTML file. It opens in any browser, without a "
            "server or a network."
        )
        kinds = list(TEXTS) if state.manifest.has_texts else ["none"]
        default = kinds.index("cut") if "cut" in kinds else 0
        texts = st.radio("Texts", kinds, default, format_func=TEXTS.__getitem__, key="one file texts")
        name = f"headscope-{state.run.name}.html"
        make = partial(_made, state.run, str(texts))
        st.download_button("Download", make, name, "text/html", key="one file", on_click="ignore")


def _made(run: Run, texts: str) -> bytes:
    return html_of(run, texts).encode()
