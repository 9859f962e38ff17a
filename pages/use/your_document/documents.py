"""The documents of a session: what was pasted and uploaded, and what of it is embedded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import streamlit as st

from core.errors import Mistake
from core.uploads import MAX_BYTES, Watch, pasted, read_upload, unwatched

MOST = 20
"""Documents per session, at most."""
PASTED = "pasted"
_KEY = "your documents"


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
    edited: str = PASTED
    chosen: str = PASTED
    compared: str = ""
    """Which is in the form, whose answer was looked at last, and beside which: a widget's own state is lost when the
    page changes."""
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

    @property
    def waiting(self) -> list[str]:
        """Texts that are not embedded yet."""
        return [key for key, draft in self.found.items() if draft.asked is None and draft.text.strip()]

    @property
    def answered(self) -> list[str]:
        return [key for key, draft in self.found.items() if draft.asked is not None]

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
