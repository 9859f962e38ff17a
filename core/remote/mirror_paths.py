"""Folders of a cache by their names: runs, and drafts of them (core.runs.draft)."""

from __future__ import annotations

from core.runs.files import is_run_name

_DRAFT, _ANEW = ".building-", ".building-replace-"


def is_shared(top: str) -> bool:
    """Whether the folder is kept in the store, too; locks and what a mirror keeps for itself are not."""
    return is_run_name(top) or top.startswith(_DRAFT)


def is_copy(top: str) -> bool:
    """Whether it is a draft that began as a copy of the run: the store has only what is new in it."""
    return top.startswith(_DRAFT) and not top.startswith(_ANEW)


def run_of(top: str) -> str:
    """The run that a folder is, or is a draft of."""
    return top.split("-", 2)[2] if top.startswith(_DRAFT) else top


def is_draft_of(top: str, name: str) -> bool:
    return top.startswith(_DRAFT) and run_of(top) == name


def anew(name: str) -> str:
    """The draft in which a run is embedded anew."""
    return f"{_ANEW}{name}"
