"""A query set: what people ask, and the documents that should be found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import Mistake

MOST = 20_000
_LONGEST = 20_000
"""Letters of a query; a line may have ten times as many."""


@dataclass(frozen=True)
class Query:
    """``relevant`` are documents of the run, each once; ``aspects`` how many things are asked for at once."""

    text: str
    relevant: tuple[int, ...]
    aspects: int


def read_queries(path: Path, ids: Sequence[str]) -> tuple[Query, ...]:
    """JSON lines with ``query``, ``relevant`` (document ids of the run) and, if known, ``aspects``.

    ``aspects`` is the number of relevant documents where it is not given.
    """
    if not path.is_file():
        raise Mistake(f"There is no file '{path}'. Check --queries.")
    docs: dict[str, int] = {}
    copies: Counter[str] = Counter()
    for doc, key in enumerate(ids):
        if docs.setdefault(key, doc) != doc:
            copies[key] += 1
    found: list[Query] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                if len(found) == MOST:
                    raise Mistake(f"{path.name} has more than {MOST:,} queries. Split it.")
                found.append(_query(line, f"Line {number} of {path.name}", docs, copies))
    except UnicodeDecodeError as error:
        raise Mistake(f"{path.name} is not valid UTF-8, so no query can be read. Save it as UTF-8.") from error
    if not found:
        raise Mistake(f"{path.name} has no queries. Give one line of JSON per query, with 'query' and 'relevant'.")
    return tuple(found)


def _query(line: str, where: str, docs: Mapping[str, int], copies: Mapping[str, int]) -> Query:
    if len(line) > 10 * _LONGEST:
        raise Mistake(f"{where} is longer than {10 * _LONGEST:,} characters. Shorten it.")
    try:
        given: Any = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Mistake(f"{where} is not JSON. Correct it, or leave the line out.") from error
    if not isinstance(given, dict):
        raise Mistake(f"{where} is not a JSON object with 'query' and 'relevant'. Correct it.")
    text, relevant = given.get("query"), given.get("relevant")
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
        raise Mistake(f"{where} has no query of 1 to {_LONGEST:,} characters. Give its text under 'query'.")
    if not isinstance(relevant, list) or not relevant:
        raise Mistake(f"{where} has no relevant documents. Give their ids under 'relevant', at least one.")
    keys = list(dict.fromkeys(str(key) for key in relevant))
    unknown = [key for key in keys if key not in docs]
    if unknown:
        raise Mistake(f"{where} names the document '{unknown[0][:80]}', which this run does not have. Check its ids.")
    if several := next((key for key in keys if key in copies), None):
        raise Mistake(
            f"{where} names the document '{several[:80]}', an id that {1 + copies[several]} documents of this run "
            "have. Embed the corpus again with unique ids, or with --duplicate-ids number."
        )
    aspects = given.get("aspects", len(keys))
    if type(aspects) is not int or aspects < 1:
        raise Mistake(f"{where} has {aspects!r:.40} as aspects. Give a whole number of at least 1, or leave it out.")
    return Query(text.strip(), tuple(docs[key] for key in keys), aspects)
