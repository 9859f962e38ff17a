"""The documents of this session, pasted or uploaded, as they are edited. Kept by the session alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import streamlit as st

from core.errors import Mistake
from core.uploads import MAX_BYTES, Watch, pasted, read_upload, unwatched

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


class File(Protocol):
    """What Streamlit hands over for an uploaded file, as far as it is used here."""

    name: str

    def getvalue(self) -> bytes: ...


@dataclass(frozen=True)
class Draft:
    """A document before it is embedded."""

    name: str
    text: str
    notes: tuple[str, ...] = ()
    asked: str | None = None
    """The text as it was when somebody pressed Embed; None before."""


@dataclass
class Drafts:
    """All documents of a session by their keys, in the order in which they came."""

    found: dict[str, Draft] = field(default_factory=lambda: {PASTED: Draft("Pasted text", "")})
    problems: list[str] = field(default_factory=list)
    """What went wrong last, a sentence each."""
    chosen: str = PASTED
    compared: str = ""
    """Which was looked at last, and beside which: a widget's own state does not outlive the change of the page."""
    uploads: int = 0
    """How often files were taken: the uploader is a new, empty one each time, and keeps no bytes."""

    def take(self, files: Sequence[File], most: int = MAX_BYTES, watch: Watch = unwatched) -> str | None:
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
                key: Draft(text.name, text.text, text.notes) for key, text in zip(keys[:room], texts, strict=False)
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
            self.found = {PASTED: Draft("Pasted text", ""), **self.found}

    def names(self) -> dict[str, str]:
        """What each document is called; those of the same name are numbered."""
        names: dict[str, str] = {}
        for key, draft in self.found.items():
            name, count = draft.name, 2
            while name in names.values():
                name, count = f"{draft.name} ({count})", count + 1
            names[key] = name
        return names


def drafts() -> Drafts:
    """This session's documents."""
    found: Drafts = st.session_state.setdefault(_KEY, Drafts())
    return found
