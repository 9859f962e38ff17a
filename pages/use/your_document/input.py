"""The input form: paste, upload, or an example. The text can be edited before all documents are embedded together.

The form folds to one line when there is an answer. A new upload opens a text to change, and leaves the answer alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import listed
from core.settings import setting
from core.uploads import MAX_CHARACTERS, READERS
from pages.shared.notices import show_problem
from pages.shared.server.uploads import let_go, refusal
from pages.shared.text import plain
from pages.use.your_document.documents import PASTED, OwnDocument, OwnDocuments, own_documents

EXAMPLE = """The night ferry left the harbour an hour late, because the wind had turned. On the upper deck a group of \
nurses on their way home from a congress talked about a vaccine that no longer needs a refrigerator: the powder keeps \
for half a year in a drawer, even in places where the electricity fails every afternoon. One of them had taken part in \
the trial. Of four thousand volunteers in eleven villages, she said, only nine fell ill after the second dose.

Below, in the bar, the television showed the last minutes of the match. Nobody watched. The captain had just told them \
that the port on the other side was on strike, and that the ship would wait outside until the council and the union \
had met again. The cook shrugged, put another pot of fish soup on the stove, and asked who would like garlic in it."""


EDITED, FORM, MOVED = "edited document", "the form is open", "another answer is to be shown"
"""Keys of the form's choice among several documents, and of the form; their values are never in the address."""


@dataclass(frozen=True)
class Chosen:
    """A document as it is embedded."""

    key: str
    name: str
    text: str


def document_input() -> list[Chosen]:
    """Shows the form; returns the embedded documents."""
    kept = own_documents()
    if FORM not in st.session_state:
        st.session_state[FORM] = not kept.answered
    label = "Change the text or add documents" if kept.answered else "Paste or upload documents"
    with st.expander(label, key=FORM, on_change="rerun", icon=":material/edit_document:"):
        _uploads(kept)
        key = _choice(kept)
        _text(kept, key)
    # Outside the form: what went wrong is seen when it has folded, too.
    for problem in kept.problems:
        show_problem(problem, "upload")
    for note in kept.found[key].notes:
        st.caption(f":material/info: {plain(note)}")
    names = kept.names()
    return [Chosen(key, names[key], kept.found[key].asked or "") for key in kept.answered]


def _uploads(kept: OwnDocuments) -> None:
    megabytes: int = setting("HEADSCOPE_UPLOAD_MB")
    files = st.file_uploader(
        f"Upload documents, up to {megabytes} MB each",
        type=[suffix.removeprefix(".") for suffix in READERS],
        accept_multiple_files=True,
        max_upload_size=megabytes,
        key=f"files {kept.uploads}",
        help=f"Files that end in {listed(READERS)}. They are read in memory for this session only and never written to "
        "the server's disk.",
    )
    if files:
        with st.spinner(f"Reading {plain(', '.join(file.name for file in files))} …"):
            first = kept.take(files, megabytes * 1_000_000, partial(_waiting, st.empty()))
        let_go(file.file_id for file in files)
        if (sentence := refusal()) is not None:
            kept.problems.append(sentence)
        if first is not None:
            st.session_state[EDITED] = first
        st.rerun()


def _waiting(line: DeltaGenerator, before: int) -> None:
    """The place among all sessions' files; where this session has gone meanwhile, Streamlit ends the wait from here."""
    if before:
        line.caption(f"Waiting: {before} file{'s' if before > 1 else ''} ahead of yours.")
    else:
        line.empty()


def _choice(kept: OwnDocuments) -> str:
    """Which of several documents is in the form; with a way to remove it."""
    names = kept.names()
    if len(names) == 1:
        return PASTED
    if st.session_state.get(EDITED) not in names:  # another page was looked at, or the document was removed
        st.session_state[EDITED] = kept.edited if kept.edited in names else next(iter(names))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        key = kept.edited = str(st.selectbox("Text to change", list(names), key=EDITED, format_func=names.__getitem__))
        if key != PASTED:
            st.button("Remove", icon=":material/delete:", key="remove document", on_click=kept.remove, args=(key,))
    return key


def _text(kept: OwnDocuments, key: str) -> None:
    """The text to be changed and embedded; Ctrl+Enter embeds as the button does."""
    field = _field(key)
    draft = kept.found[key]
    if field not in st.session_state:
        st.session_state[field] = draft.text
    together = len({*kept.waiting, key})
    with st.form(f"form {key}", border=False):
        st.text_area(
            "Paste a text" if key == PASTED else "What was read; change it as you like",
            key=field,
            height=170,
            persist_state="session",
            placeholder="Any text that the model has never seen: an article, a page of a report, an e-mail …",
        )
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            # No tooltip: the form folds under the pointer, and a tooltip would stay over the answer.
            st.form_submit_button(
                f"Embed all {together}" if together > 1 else "Embed",
                icon=":material/play_arrow:",
                on_click=partial(_embed, kept, key),
            )
            if key == PASTED and draft.asked is None:
                st.form_submit_button("Try an example", icon=":material/lightbulb:", on_click=partial(_example, kept))
            st.caption(
                f"Ctrl+Enter embeds too. At most {MAX_CHARACTERS:,} characters per document. Documents stay in this "
                "session: they are not stored, and no link contains them."
            )


def _field(key: str) -> str:
    return f"text of {key}"


def _embed(kept: OwnDocuments, key: str) -> None:
    """The text in the form, and all others that were not embedded yet."""
    if not _ask(kept, key):
        return
    for other in kept.waiting:
        _ask(kept, other)
    kept.chosen = key
    st.session_state[FORM], st.session_state[MOVED] = False, True


def _ask(kept: OwnDocuments, key: str) -> bool:
    text = str(st.session_state.get(_field(key), kept.found[key].text) or "")
    if not kept.ask(key, text):
        return False
    st.session_state[_field(key)] = kept.found[key].text  # as it was taken: cleaned, and cut where it was too long
    return True


def _example(kept: OwnDocuments) -> None:
    st.session_state[_field(PASTED)] = EXAMPLE
    kept.found[PASTED] = OwnDocument("Pasted text", EXAMPLE)
    _embed(kept, PASTED)
