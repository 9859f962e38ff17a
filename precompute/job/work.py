"""What a command works on: the run itself, or a new version of it while people read the old one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from core.runs.replace import ANEW, NewVersion, begin_copy, clear_up, discard, publish
from core.runs.run import Run


class Work:
    """A command's work on a run, under its lock; ``at`` is what it reads and writes."""

    def __init__(self, run: Run, command: str, shared: bool = False) -> None:
        self.run, self.command, self.shared = run, command, shared
        self.at = run
        with self._alone():
            clear_up(run)

    def anew(self) -> NewVersion:
        """Where the run is embedded anew, from nothing or from where a start before this one was stopped."""
        draft = NewVersion(self.run.cache, self.run.name, ANEW)
        draft.refuse_links()
        self.at = draft
        return draft

    def begin(self, *steps: str) -> Run:
        """Where what these steps have made is made again: in the run itself, if readers see nothing of it yet."""
        made = self.at.manifest().steps
        if self.at is self.run and any(step in made and made[step].state != "running" for step in steps):
            self.at = begin_copy(self.run, self.command)
        return self.at

    def end(self) -> None:
        """The new version takes the run's place; what another start of this command has left is not wanted then."""
        if isinstance(self.at, NewVersion):
            with self._alone():
                if not self.shared or self.at.is_begun():  # another may have been faster
                    publish(self.at)
                clear_up(self.run)
        else:
            discard(NewVersion(self.run.cache, self.run.name, self.command).folder)

    def leave_to_others(self) -> None:
        """This job's share is done; the one that ends last puts the new version in place."""
        self.at = self.run

    def _alone(self) -> contextlib.AbstractContextManager[object]:
        return self.run.turn("beginning", wait=True) if self.shared else contextlib.nullcontext()

    def leave(self) -> None:
        """Something went wrong: what was begun stays for the next start."""
        if not self.shared and isinstance(self.at, NewVersion) and self.at.is_untouched():
            discard(self.at.folder)


_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


@contextlib.contextmanager
def working_on(run: Run, command: str, shared: bool = False) -> Iterator[Work]:
    """Locks the run; what was begun beside it takes its place when all is done, and stays for the next start if not.

    A step of ``all`` takes part in the work that ``all`` has begun: readers get its steps' results together.
    """
    outer = _WORK.get()
    if outer is not None and outer.run == run:
        yield outer
        return
    with run.lock(shared):
        work = Work(run, command, shared)
        token = _WORK.set(work)
        try:
            yield work
        except BaseException:
            work.leave()
            raise
        finally:
            _WORK.reset(token)
        work.end()
