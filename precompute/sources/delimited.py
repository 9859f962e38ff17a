"""Comma- and tab-separated values with a header line."""

import csv
import io
from collections.abc import Iterator

from core.errors import Mistake
from precompute.sources import files
from precompute.sources.files import SourceFile, UnpackedReader
from precompute.sources.row import OnBad, Row


def read_csv(file: SourceFile, on_bad: OnBad) -> Iterator[Row]:
    """A row for each record of a ``.csv`` file."""
    return _read(file, on_bad, ",")


def read_tsv(file: SourceFile, on_bad: OnBad) -> Iterator[Row]:
    """A row for each record of a ``.tsv`` file."""
    return _read(file, on_bad, "\t")


def _read(file: SourceFile, on_bad: OnBad, delimiter: str) -> Iterator[Row]:
    # The limit is the module's, not the reader's; the default of 131,072 characters is too short for documents.
    csv.field_size_limit(files.MAX_RECORD)
    with UnpackedReader(file) as stream:
        lines = _Lines(stream)
        # Strict, since otherwise a quote that is never closed swallows the rest of the file without a word.
        records = csv.reader(lines, delimiter=delimiter, strict=True)
        header: list[str] | None = None
        while True:
            number = lines.count + 1
            where = f"{file.name} line {number}"
            lines.too_long = False
            try:
                record = next(records, None)
            except csv.Error as error:
                if header is None:
                    raise _no_header(file, str(error)) from error
                on_bad(f"{where} begins a record that cannot be read ({error}).")
                continue
            if record is None:
                return
            if lines.too_long:
                on_bad(f"{where} begins a record with a line longer than {files.MAX_RECORD:,} characters.")
            elif not record:
                continue
            elif header is None:
                header = _header(file, record)
            elif _broken_utf8(record):
                on_bad(f"{where} is not valid UTF-8.")
            elif len(record) > len(header):
                on_bad(f"{where} has {len(record)} fields, but the header has {len(header)}.")
            else:
                missing: list[str | None] = [None] * (len(header) - len(record))
                columns: dict[str, object] = dict(zip(header, [*record, *missing], strict=True))
                yield Row(columns, where, f"{file.name}:{number}", stream.fraction())


class _Lines:
    """The text's lines for the csv module; one that is too long becomes a blank one and is told by a flag."""

    def __init__(self, stream: UnpackedReader) -> None:
        # Broken bytes become lone surrogates, so that the record that holds them can be told from its neighbours.
        self._text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self.count = 0
        self.too_long = False

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._text.readline(files.MAX_RECORD + 1)
        if not line:
            raise StopIteration
        self.count += 1
        if len(line) <= files.MAX_RECORD:
            return line
        self.too_long = True
        while line and not line.endswith(("\n", "\r")):
            line = self._text.readline(files.MAX_RECORD)
        return "\n"


def _header(file: SourceFile, names: list[str]) -> list[str]:
    names = [name.strip() for name in names]
    if _broken_utf8(names):
        raise _no_header(file, "not valid UTF-8")
    for number, name in enumerate(names, start=1):
        if not name:
            raise _no_header(file, f"column {number} has no name")
        if name in names[: number - 1]:
            raise _no_header(file, f"two columns are named {name!r}")
    return names


def _no_header(file: SourceFile, problem: str) -> Mistake:
    return Mistake(f"The header line of {file.name} cannot be used ({problem}). Give each column a name.")


def _broken_utf8(fields: list[str]) -> bool:
    try:
        "".join(fields).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
