"""The way in: paste, upload, or an example. What was read is shown and can be changed before it is embedded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import Mistake, listed
from core.settings import setting
from core.uploads import MAX_BYTES, MAX_CHARACTERS, READERS, Watch, pasted, read_upload, unwatched
from pages.shared.notices import show_problem
from pages.shared.server.uploads import let_go, refusal
from pages.shared.text import plain

MOST = 20
"""Documents that a session keeps."""
PASTED = "pasted"
_KEY = "your documents"

EXAMPLE = """The night ferry left the harbour an hour late, because the wind had turned. On the upper deck a group of \
nurses on their way home from a congress talked about a vaccine that no longer needs a refrigerator: the powder keeps \
for half a year in a drawer, even in places where the electricity fails every afternoon. One of them had taken part in \
the trial. Of four thousand volunteers in eleven villages, she said, only nine fell ill after the second dose.

Below, in the bar, the television showed the last minutes of the match. Nobody watched. The captain had just told them \
that the port on the other side was on strike, and that the ship would wait outside until the council and the union \
had met again. The cook shrugged, put another pot of fish soup on the stove, and asked who would like garlic in it."""


class UploadedFile(Protocol):
    """What Streamlit hands over for an uploaded file, as far as it is used here."""

    name: str

    def getvalue(self) -> bytes: ...


@dataclass(frozen=True)
class OwnDocument:
    """A document before it is embedded."""

    name: str
    text: str
    notes: tuple[str, ...] = ()
    asked: str | None = None
    """The text as it was when somebody pressed Embed; None before."""


@dataclass
class OwnDocuments:
    """All documents of a session by their keys, in the order in which they came."""

    found: dict[str, OwnDocument] = field(default_factory=lambda: {PASTED: OwnDocument("Pasted text", "")})
    problems: list[str] = field(default_factory=list)
    """What went wrong last, a sentence each."""
    chosen: str = PASTED
    compared: str = ""
    """Which was looked at last, and beside which: a widget's own state does not outlive the change of the page."""
    uploads: int = 0
    """How often files were taken: the uploader is a new, empty one each time, and keeps no bytes."""

    def take(self, files: Sequence[UploadedFile], most: int = MAX_BYTES, watch: Watch = unwatched) -> str | None:
        """Reads files of at most ``most`` bytes; the key of the first text, or None where none could be read.

        ``watch`` is told how many files of others come first. If it raises, nothing is lost: the same files may be
        given again.
        """
        self.problems, first = [], None
        for number, file in enumerate(files):
            try:
                texts = read_upload(file.name, file.getvalue(), most, watch)
            except Mistake as mistake:
                self.problems.append(str(mistake))
                continue
            keys = [f"upload {self.uploads} {number} {place}" for place in range(len(texts))]
            room = MOST - len(self.found.keys() - keys)
            self.found |= {
                key: OwnDocument(text.name, text.text, text.notes)
                for key, text in zip(keys[:room], texts, strict=False)
            }
            first = first or next(iter(keys[:room]), None)
            if room < len(texts):
                self.problems.append(f"Only {MOST - 1} documents are kept at a time. Remove some, and add the rest.")
                break
        self.uploads += 1
        return first

    def ask(self, key: str, text: str) -> bool:
        """Notes that a text is to be embedded, cleaned as an upload would be; False where there is nothing in it."""
        self.problems = []
        try:
            clean = pasted(text)
        except Mistake as mistake:
            self.problems = [str(mistake)]
            return False
        draft = self.found[key]
        notes = clean.notes if key == PASTED else tuple(dict.fromkeys((*draft.notes, *clean.notes)))
        self.found[key] = replace(draft, text=clean.text, notes=notes, asked=clean.text)
        return True

    def remove(self, key: str) -> None:
        self.problems = []
        self.found.pop(key, None)
        if PASTED not in self.found:
            self.found = {PASTED: OwnDocument("Pasted text", ""), **self.found}

    def names(self) -> dict[str, str]:
        """What each document is called; those of the same name are numbered."""
        names: dict[str, str] = {}
        for key, draft in self.found.items():
            name, count = draft.name, 2
            while name in names.values():
                name, count = f"{draft.name} ({count})", count + 1
            names[key] = name
        return names


def own_documents() -> OwnDocuments:
    """This session's documents."""
    found: OwnDocuments = st.session_state.setdefault(_KEY, OwnDocuments())
    return found


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
    kept = own_documents()
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


def _uploads(kept: OwnDocuments) -> None:
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


def _choice(kept: OwnDocuments) -> str:
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


def _text(kept: OwnDocuments, key: str) -> None:
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


def _embed(kept: OwnDocuments, key: str, field: str) -> None:
    if kept.ask(key, str(st.session_state.get(field) or "")):
        st.session_state[field] = kept.found[key].text  # as it was taken: cleaned, and cut where it was too long


def _example(kept: OwnDocuments, field: str) -> None:
    st.session_state[field] = EXAMPLE
    kept.found[PASTED] = OwnDocument("Pasted text", EXAMPLE)
    kept.ask(PASTED, EXAMPLE)
