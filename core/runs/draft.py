"""A new version of a run, made beside the one that people read, and put into its place when it is finished."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from core.errors import Mistake
from core.remote.errors import RemoteMistake
from core.remote.mirror_publish import publish as publish_there
from core.remote.mirrors import mirror_at
from core.runs.files import is_regular, replacing, write_mistake
from core.runs.replace import bring_back, put_in_place, remove
from core.runs.run import Run

ANEW = "replace"
"""The kind of draft in which a run is embedded anew; others begin as a copy, and are named by their command."""
_MADE_FROM = "made-from.json"
"""The manifest that the run had when the draft was begun; what has none is no draft, but a run that was replaced."""
_NOT_COPIED = (_MADE_FROM, ".lock")


@dataclass(frozen=True)
class Draft(Run):
    """A folder ``cache/.building-<kind>-<name>``: a run's name begins with no dot, so that no reader is shown it."""

    kind: str = ANEW

    @property
    def folder(self) -> Path:
        return self.cache / f".building-{self.kind}-{self.real_name}"

    def remove(self) -> None:
        """Empties it, and marks it as a draft."""
        super().remove()
        self.mark()

    def mark(self) -> None:
        of = Run(self.cache, self.name)
        with replacing(self.folder / _MADE_FROM) as temporary:
            temporary.write_bytes(_manifest_of(of))

    def is_begun(self) -> bool:
        return is_regular(self.inside(self.folder / _MADE_FROM)) and self.exists()

    def is_of(self, run: Run) -> bool:
        """Whether the run is still as it was when the draft was begun as a copy of it."""
        try:
            return self.is_begun() and (self.folder / _MADE_FROM).read_bytes() == _manifest_of(run)
        except OSError:
            return False

    def is_untouched(self) -> bool:
        """Whether no step has begun in this copy: it says no more than the run does."""
        made_from = self.folder / _MADE_FROM
        return is_regular(made_from) and made_from.read_bytes() == _manifest_of(self)


def drafts(run: Run) -> list[Draft]:
    """The new versions of a run that are being made, or were when their job was stopped."""
    found = []
    for kind in _kinds(run):
        with contextlib.suppress(Mistake):  # a link that leads elsewhere
            found.append(Draft(run.cache, run.name, kind))
    return [draft for draft in found if draft.is_begun()]


def is_being_renewed(run: Run) -> bool:
    """Whether a job is making a new version while people read this one; no where that cannot be asked."""
    try:
        return bool(drafts(run)) and run.is_locked()
    except RemoteMistake:
        return False


def clear_up(run: Run) -> None:
    """What a killed job has left: an exchange is ended, a copy of what the run no longer is goes; under its lock."""
    try:
        bring_back(run.aside, _place(run), run.exists())
        (run.folder / _MADE_FROM).unlink(missing_ok=True)
    except OSError as error:
        raise write_mistake(run.folder, error) from error
    for kind in _kinds(run):
        draft = Draft(run.cache, run.name, kind)
        if not (draft.is_begun() if kind == ANEW else draft.is_of(run)):
            remove(draft.folder)


def copied(run: Run, kind: str) -> Draft:
    """A draft with all that the run has; or the one that an earlier, interrupted start has begun.

    Files are shared by hard links where the file system has them: no file of a run is ever written to, only replaced.
    """
    draft = Draft(run.cache, run.name, kind)
    if draft.is_of(run):
        draft.refuse_links()
        return draft
    remove(draft.folder)
    try:
        for folder, folders, files in os.walk(run.folder):
            copy = draft.folder / Path(folder).relative_to(run.folder)
            copy.mkdir()
            for name in (*folders, *files):
                _copy(Path(folder, name), copy / name)
        draft.mark()  # last: a copy that is not whole is no draft
    except OSError as error:
        remove(draft.folder)
        raise write_mistake(draft.folder, error) from error
    except Mistake:
        remove(draft.folder)
        raise
    return draft


def publish(draft: Draft) -> None:
    """Makes the draft the run; whoever has files of the old one open reads on in them."""
    run = Run(draft.cache, draft.name)
    if (mirror := mirror_at(run.cache)) is not None:
        publish_there(mirror, draft.folder.name)
    try:
        old = put_in_place(draft.folder, _place(run), run.aside)
    except OSError as error:
        raise write_mistake(run.folder, error) from error
    # Only now: killed before, it is a draft that the next start finishes.
    (run.folder / _MADE_FROM).unlink(missing_ok=True)
    remove(old)


def _kinds(run: Run) -> list[str]:
    """Of the drafts' folders that are there; a command's name has no dash, so that they are this run's alone."""
    pattern = re.compile(rf"\.building-([a-z]+)-{re.escape(run.real_name)}")
    try:
        return sorted(found[1] for path in run.cache.iterdir() if (found := pattern.fullmatch(path.name)))
    except OSError:  # the cache has gone
        return []


def _place(run: Run) -> Path:
    """Where the run lies, if its name is a link to another folder of the cache."""
    return run.folder.resolve()


def _copy(path: Path, to: Path) -> None:
    if path.is_symlink():
        os.symlink(os.readlink(path), to)
    elif path.is_file() and path.name not in _NOT_COPIED:
        try:
            os.link(path, to)
        except OSError:  # a file system without links, or somebody else's file
            shutil.copy2(path, to)


def _manifest_of(run: Run) -> bytes:
    with contextlib.suppress(OSError):
        return (run.folder / "manifest.json").read_bytes()
    return b""
