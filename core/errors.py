"""Errors that people are shown: one sentence with a remedy."""

from __future__ import annotations

from collections.abc import Sequence


class Mistake(Exception):
    """What was wrong, the value, and what to do, in one sentence; shown as it is, without a traceback."""

    @property
    def sentences(self) -> tuple[str, ...]:
        return (str(self),)


class Mistakes(Mistake):
    """Several at once: nobody has to fix one to learn of the next."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self._sentences = tuple(sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        return self._sentences


class RemoteMistake(Mistake):
    """The object store did not do what it was asked to."""


class NoAnswer(RemoteMistake):
    """The object store cannot be reached, or does not reply."""


def listed(names: object) -> str:
    """Known names for the end of a sentence: ``a, b, c``."""
    return ", ".join(str(name) for name in names)  # type: ignore[attr-defined]
