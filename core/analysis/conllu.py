"""Sentences with dependency arcs, as CoNLL-U files have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.errors import Mistake

OWN = Path(__file__).with_name("treebank.conllu")
"""Written for this project."""
_COLUMNS = 10


@dataclass(frozen=True)
class SyntacticWord:
    """Words are numbered from 0 here."""

    form: str
    head: int | None
    """None for the root."""
    deprel: str
    antecedent: int | None = None
    distractor: int | None = None
    """Another word of the antecedent's number and gender."""
    space: bool = True
    """Whether a space follows."""


@dataclass(frozen=True)
class Sentence:
    words: tuple[SyntacticWord, ...]
    line: int
    """Where it begins in its file, from 1."""

    @property
    def text(self) -> str:
        return "".join(word.form + " " * word.space for word in self.words).rstrip()

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Each word's characters ``[start, end)`` in ``text``."""
        spans, start = [], 0
        for word in self.words:
            spans.append((start, start + len(word.form)))
            start += len(word.form) + word.space
        return spans

    def shuffled(self, order: Sequence[int]) -> Sentence:
        """The same words in another order, spaces between all; without relations."""
        return Sentence(tuple(SyntacticWord(self.words[word].form, None, "_") for word in order), self.line)


def read_treebank(path: Path = OWN) -> list[Sentence]:
    """The sentences of a CoNLL-U file; multiword tokens and empty nodes are skipped."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(
            f"The treebank '{path.name}' could not be read ({error}). Give a CoNLL-U file in UTF-8."
        ) from error
    sentences = [_sentence(path.name, block) for block in _blocks(lines)]
    if not sentences:
        raise Mistake(f"The treebank '{path.name}' has no sentences. Give a CoNLL-U file.")
    return sentences


def _blocks(lines: list[str]) -> Iterator[list[tuple[int, str]]]:
    """The numbered lines of each sentence, comments left out."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*lines, ""], start=1):
        if not line.strip():
            if block:
                yield block
            block = []
        elif not line.startswith("#"):
            block.append((number, line))


def _sentence(name: str, block: list[tuple[int, str]]) -> Sentence:
    words: list[SyntacticWord] = []
    ranges: list[tuple[int, int, list[str]]] = []
    numbers: list[int] = []

    def wrong(number: int, what: str) -> Mistake:
        return Mistake(f"Line {number} of the treebank '{name}' {what}. Fix the file (CoNLL-U).")

    for number, line in block:
        cells = line.split("\t")
        if len(cells) != _COLUMNS:
            raise wrong(number, f"has {len(cells)} columns instead of {_COLUMNS}, separated by tabs")
        first, dash, last = cells[0].partition("-")
        if dash and first.isdecimal() and last.isdecimal():
            ranges.append((int(first) - 1, int(last), cells))
        if dash or "." in cells[0]:
            continue
        if cells[0] != str(len(words) + 1):
            raise wrong(number, f"has the word number '{cells[0]}' where {len(words) + 1} is expected")
        if not cells[6].isdecimal():
            raise wrong(number, f"has '{cells[6]}' as HEAD, which is not a word number")
        misc = dict(part.partition("=")[::2] for part in cells[9].split("|"))
        marks = {key.lower(): misc[key] for key in ("Antecedent", "Distractor") if key in misc}
        for key, value in marks.items():
            if not value.isdecimal() or value == "0":
                raise wrong(number, f"has '{value}' as {key}, which is not a word number")
        head = int(cells[6]) - 1 if cells[6] != "0" else None
        indices = {key: int(value) - 1 for key, value in marks.items()}
        words.append(SyntacticWord(cells[1], head, cells[7], **indices, space=misc.get("SpaceAfter") != "No"))
        numbers.append(number)
    if not words:
        raise wrong(block[0][0], "begins a sentence without words")
    for index, (number, word) in enumerate(zip(numbers, words, strict=True)):
        for other in (word.head, word.antecedent, word.distractor):
            if other is not None and (other >= len(words) or other == index):
                raise wrong(number, f"points to word {other + 1}, which is not another word of its sentence")
    for start, end, cells in ranges:  # don't = do + n't: the pieces are written without a space
        if "".join(word.form for word in words[start:end]) == cells[1]:
            words[start : end - 1] = [replace(word, space=False) for word in words[start : end - 1]]
        if "SpaceAfter=No" in cells[9].split("|"):
            words[end - 1 : end] = [replace(word, space=False) for word in words[end - 1 : end]]
    return Sentence(tuple(words), block[0][0])
