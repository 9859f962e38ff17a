"""A retrieval task in BEIR's layout: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv`` in one folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import Mistake

CORPUS, QUERIES, RELEVANCE = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv"


@dataclass(frozen=True)
class BeirTask:
    """Texts, and for every query the documents (their places) that answer it; queries without any are left out."""

    name: str
    documents: tuple[str, ...]
    queries: tuple[str, ...]
    relevant: tuple[tuple[int, ...], ...]


def read_beir(folder: Path) -> BeirTask:
    """Reads the three files. A document's text is its title and its text; a score above 0 means relevant."""
    for name in (CORPUS, QUERIES, RELEVANCE):
        if not (folder / name).is_file():
            raise Mistake(f"'{folder}' has no {name}. A task is a folder with {CORPUS}, {QUERIES} and {RELEVANCE}.")
    docs: dict[str, int] = {}
    texts: list[str] = []
    for where, row in _rows(folder / CORPUS):
        key = _id(row, where)
        if key in docs:
            raise Mistake(f"{where} has the id '{key[:80]}' a second time. Ids must be unique.")
        docs[key] = len(texts)
        texts.append(f"{row.get('title') or ''} {row.get('text') or ''}".strip())
    asked = {_id(row, where): str(row.get("text") or "") for where, row in _rows(folder / QUERIES)}
    relevant: dict[str, list[int]] = {key: [] for key in asked}
    for number, line in enumerate((folder / RELEVANCE).read_text(encoding="utf-8-sig").splitlines(), start=1):
        parts = line.split("\t")
        if not line.strip() or (number == 1 and not parts[-1].strip().lstrip("-").isdecimal()):
            continue  # the header
        where = f"Line {number} of {RELEVANCE}"
        if len(parts) != 3 or not parts[2].strip().lstrip("-").isdecimal():
            raise Mistake(f"{where} is not a query, a document and a score with tabs between them. Correct it.")
        query, doc, score = (part.strip() for part in parts)
        if query not in asked or doc not in docs:
            unknown = f"query '{query[:80]}'" if query not in asked else f"document '{doc[:80]}'"
            raise Mistake(f"{where} names the {unknown}, which is in neither {QUERIES} nor {CORPUS}. Check its ids.")
        if int(score) > 0:
            relevant[query].append(docs[doc])
    known = [key for key, found in relevant.items() if found]
    if not known:
        raise Mistake(f"'{folder}' has no query with a relevant document. Check {RELEVANCE}.")
    return BeirTask(
        folder.name,
        tuple(texts),
        tuple(asked[key] for key in known),
        tuple(tuple(dict.fromkeys(relevant[key])) for key in known),
    )


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"Line {number} of {path.name}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise Mistake(f"{where} is not JSON. Correct it, or leave the line out.") from error
            if not isinstance(row, dict):
                raise Mistake(f"{where} is not a JSON object with _id and text. Correct it.")
            yield where, row


def _id(row: dict[str, Any], where: str) -> str:
    if "_id" not in row:
        raise Mistake(f"{where} has no _id. Give every document and query one.")
    return str(row["_id"])
