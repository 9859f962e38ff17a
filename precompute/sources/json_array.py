"""One JSON array of objects, read item by item with bounded memory."""

import codecs
import json
import re
from collections.abc import Iterator

from core.errors import Mistake
from precompute.sources import files
from precompute.sources.files import SourceFile, UnpackedReader
from precompute.sources.row import OnBad, Row

CHUNK = 2**16
_BLANK = re.compile(r"[ \t\r\n]*")


def rows(file: SourceFile, stream: UnpackedReader, on_bad: OnBad) -> Iterator[Row]:
    """A row for each item. Broken JSON ends the reading whatever on_bad does: there is no next line to go on from."""
    window = _Window(stream)
    window.skip()  # the opening bracket
    number = 0
    more = window.peek() != "]"
    while more:
        number += 1
        where = f"{file.name} item {number}"
        value, text = window.item(where)
        if not _is_utf8(text):
            on_bad(f"{where} is not valid UTF-8.")
        elif isinstance(value, dict):
            yield Row(value, where, f"{file.name}:{number}", stream.fraction())
        else:
            on_bad(f"{where} is JSON but not an object ({type(value).__name__}).")
        mark = window.peek()
        if mark not in (",", "]"):
            raise _broken(where, "no comma or closing bracket after it")
        more = mark == ","
        if more:
            window.skip()
    window.skip()
    if window.peek():
        raise _broken(file.name, "it goes on after the array's closing bracket")


class _Window:
    """The part of the text that is in memory, and the place in it."""

    def __init__(self, stream: UnpackedReader) -> None:
        self._stream = stream
        # Broken bytes become lone surrogates, so that the item that holds them can be told from its neighbours.
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._decode = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._ended = False

    def peek(self) -> str:
        """The next character that is not white space, or "" at the end."""
        while True:
            self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._grow()

    def skip(self) -> None:
        """Pass over the character that peek tells."""
        self.peek()
        self._at += 1

    def item(self, where: str) -> tuple[object, str]:
        """The next value, and its text."""
        self.peek()
        while True:
            problem = "it ends in the middle"
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                problem = error.msg if error.pos < len(self._text) else problem
            except (ValueError, RecursionError) as error:
                problem = str(error)
            else:
                # A number at the very end of the window may have more digits outside it.
                if end < len(self._text) or self._ended:
                    text, self._at = self._text[self._at : end], end
                    return value, text
            if self._ended:
                raise _broken(where, problem)
            if len(self._text) - self._at > files.MAX_RECORD:
                raise _broken(where, f"{problem}, or it is longer than {files.MAX_RECORD:,} characters")
            self._grow()

    def _grow(self) -> None:
        # At least doubling keeps the repeated parsing of one long item linear in its length.
        chunk = self._stream.read(max(CHUNK, len(self._text) - self._at))
        self._ended = not chunk
        self._text = self._text[self._at :] + self._decoder.decode(chunk, final=self._ended)
        self._at = 0


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _broken(where: str, problem: str) -> Mistake:
    return Mistake(f"{where} is not valid JSON ({problem}). Fix the file, or convert it to JSON lines.")
