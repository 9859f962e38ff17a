"""Search in a run that has no index: its first documents are looked through."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from core.runs.parquet import GROUP_ROWS, RowLookup
from core.search.index import MOST_FOUND, Found

MOST_SCANNED = 20_000
"""Documents that are looked through: more would keep a reader waiting."""


def scan(documents: RowLookup, words: str, most: int = MOST_SCANNED) -> Found:
    """Those whose title or text has all of the ``words``, wherever in them; of the first ``most`` documents."""
    count, found = min(len(documents), most), []
    for first in range(0, count, GROUP_ROWS):
        rows = documents.rows(np.arange(first, min(first + GROUP_ROWS, count)), ["title", "text"])
        hit = np.ones(len(rows), dtype=bool)
        for word in words.split():
            either = [pc.match_substring(rows[column], word, ignore_case=True) for column in ("title", "text")]
            hit &= pc.or_(*either).to_numpy(zero_copy_only=False)
        found.append(first + np.flatnonzero(hit))
    docs = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
    return Found(docs[:MOST_FOUND], searched=count if count < len(documents) else None)
