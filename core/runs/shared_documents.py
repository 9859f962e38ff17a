"""Which documents two runs have in common: those with the same text, whatever their ids."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from core.runs.run import Run


def shared_documents(one: Run, other: Run) -> np.ndarray:
    """``[pair, 2]``: the numbers, from 0, of each text that both runs have, in order of the first run.

    Ids do not decide: corpora without any number their rows, and row 7 of two corpora is not the same document. Where
    a run has a text several times, its first copy with the same id counts, or its first copy.
    """
    places: dict[bytes, int] = {}
    with_id: dict[tuple[bytes, str], int] = {}
    for doc, (id_, text) in enumerate(_texts(other)):
        places.setdefault(text, doc)
        with_id.setdefault((text, id_), doc)
    found: dict[int, int] = {}
    for doc, (id_, text) in enumerate(_texts(one)):
        if text in places:
            found.setdefault(with_id.get((text, id_), places[text]), doc)
    return np.array(sorted((mine, theirs) for theirs, mine in found.items()), dtype=np.int64).reshape(-1, 2)


def _texts(run: Run) -> Iterator[tuple[str, bytes]]:
    """Each document's id, and its text as a digest: the texts of two large corpora need not be held at once."""
    table = run.documents(["id", "text"])
    for batch in table.to_batches(max_chunksize=4_096):
        for id_, text in zip(batch["id"].to_pylist(), batch["text"].to_pylist(), strict=True):
            yield id_, blake2b(text.encode(), digest_size=16).digest()
