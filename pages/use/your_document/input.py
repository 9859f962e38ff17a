"""The way in: paste, upload, or an example; what was read is shown and can be changed before it is embedded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import listed
from core.settings import setting
from core.uploads import MAX_CHARACTERS, READERS
from pages.shared.problem import show_problem
from pages.shared.server.uploads import let_go, refusal
from pages.shared.text import plain
from pages.use.your_document.drafts import EXAMPLE, PASTED, Draft, Drafts, drafts

CHOSEN = "your document"
"""The key of the choice among several documents; its value is never in the address."""


@dataclass(frozen=True)
class Chosen:
    """The document that is looked at, as it is to be embedded."""

    key: str
    name: str
    text: str


def document_input() -> Chosen | None:
    """Shows the way in; the document to look at, or None while there is none."""
    kept = drafts()
    with st.container(border=True):
        _uploads(kept)
        key = _choice(kept)
        draft = kept.found[key]
        _text(kept, key)
        for problem in kept.problems:
            show_problem(problem, "upload")
        for note in draft.notes:
            st.caption(f":material/info: {plain(note)}")
    return None if draft.asked is None else Chosen(key, kept.names()[key], draft.asked)


def _uploads(kept: Drafts) -> None:
    megabytes: int = setting("HEADSCOPE_UPLOAD_MB")
    files = st.file_uploader(
        f"Upload documents, up to {megabytes} MB each",
        type=[suffix.removeprefix(".") for suffix in READERS],
        accept_multiple_files=True,
        max_upload_size=megabytes,
        key=f"files {kept.uploads}",
        help=f"Files that end in {listed(READERS)}. They are read in memory, kept for this session only, and never "
        "written to the server's disk.",
    )
    if files:
        with st.spinner(f"Reading {plain(', '.join(file.name for file in files))} …"):
            first = kept.take(files, megabytes * 1_000_000, partial(_waiting, st.empty()))
        let_go(file.file_id for file in files)
        if (sentence := refusal()) is not None:
            kept.problems.append(sentence)
        if first is not None:
            st.session_state[CHOSEN] = first
        st.rerun()


def _waiting(line: DeltaGenerator, before: int) -> None:
    """The place among all sessions' files; where this session has gone meanwhile, Streamlit ends the wait from here."""
    if before:
        line.caption(f"Waiting: {before} file{'s' if before > 1 else ''} before yours.")
    else:
        line.empty()


def _choice(kept: Drafts) -> str:
    """Which of several documents is looked at; with a way to remove it."""
    names = kept.names()
    if len(names) == 1:
        return PASTED
    if st.session_state.get(CHOSEN) not in names:  # another page was looked at, or the document was removed
        st.session_state[CHOSEN] = kept.chosen if kept.chosen in names else next(iter(names))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        key = kept.chosen = str(st.selectbox("Look at", list(names), key=CHOSEN, format_func=names.__getitem__))
        if key != PASTED:
            st.button("Remove", icon=":material/delete:", key="remove document", on_click=kept.remove, args=(key,))
    return key


def _text(kept: Drafts, key: str) -> None:
    """The text to be changed and embedded; Ctrl+Enter embeds as the button does."""
    field = f"text of {key}"
    draft = kept.found[key]
    if field not in st.session_state:
        st.session_state[field] = draft.text
    with st.form(f"form {key}", border=False):
        st.text_area(
            "Paste a text" if key == PASTED else "What was read; change it as you like",
            key=field,
            height=170,
            persist_state="session",
            placeholder="Any text that the model has never seen: an article, a page of a report, an e-mail …",
        )
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.form_submit_button(
                "Embed",
                icon=":material/play_arrow:",
                help=f"Ctrl+Enter does the same. At most {MAX_CHARACTERS:,} characters are taken.",
                on_click=partial(_embed, kept, key, field),
            )
            if key == PASTED and draft.asked is None:
                st.form_submit_button(
                    "Try an example", icon=":material/lightbulb:", on_click=partial(_example, kept, field)
                )
            st.caption("The document stays in this session: it is not stored, and no link carries it.")


def _embed(kept: Drafts, key: str, field: str) -> None:
    if kept.ask(key, str(st.session_state.get(field) or "")):
        st.session_state[field] = kept.found[key].text  # as it was taken: cleaned, and cut where it was too long


def _example(kept: Drafts, field: str) -> None:
    st.session_state[field] = EXAMPLE
    kept.found[PASTED] = Draft("Pasted text", EXAMPLE)
    kept.ask(PASTED, EXAMPLE)
