"""JSON lines: one object a line."""

import codecs
import json
from collections.abc import Iterator

from precompute.sources import files, json_array
from precompute.sources.files import SourceFile, UnpackedReader
from precompute.sources.row import OnBad, Row


def read(file: SourceFile, on_bad: OnBad) -> Iterator[Row]:
    """A row for each line that is not blank."""
    with UnpackedReader(file) as stream:
        yield from _rows(file, stream, on_bad)


def read_json(file: SourceFile, on_bad: OnBad) -> Iterator[Row]:
    """A ``.json`` file, which is either JSON lines or one array of objects."""
    with UnpackedReader(file) as stream:
        if stream.peek().removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
            yield from json_array.rows(file, stream, on_bad)
        else:
            yield from _rows(file, stream, on_bad)


def _rows(file: SourceFile, stream: UnpackedReader, on_bad: OnBad) -> Iterator[Row]:
    for number, line in stream.lines():
        where = f"{file.name} line {number}"
        if line is None:
            on_bad(f"{where} is longer than {files.MAX_RECORD:,} bytes.")
            continue
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
            if not line.strip():
                continue
        try:
            value = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError:
            on_bad(f"{where} is not valid UTF-8.")
        except json.JSONDecodeError as error:
            on_bad(f"{where} is not valid JSON ({error.msg} at column {error.colno}).")
        except (ValueError, RecursionError) as error:  # a number of over 4,300 digits, or thousands of brackets
            on_bad(f"{where} is not JSON that can be read ({error}).")
        else:
            if isinstance(value, dict):
                yield Row(value, where, f"{file.name}:{number}", stream.fraction())
            else:
                on_bad(f"{where} is JSON but not an object ({type(value).__name__}).")
