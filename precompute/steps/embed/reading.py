"""The corpus is read once, in order, and laid down a part at a time: who embeds a part needs nothing else of it.

Documents are numbered here, so that their numbers do not depend on which part is finished first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from core.runs.parts import digest_of
from core.runs.run import Run
from precompute.job.fingerprint import part_digest
from precompute.steps.embed.corpus import Corpus, Document
from precompute.steps.embed.staging import Read, documents_path, read_record, stage_documents, write_read_record


class Reader:
    """One reading of a corpus into the staging folder of a run; what lies there already is not written again."""

    def __init__(self, run: Run, corpus: Corpus, inputs: str, part_size: int) -> None:
        self.run = run
        self.inputs = inputs
        self.read: Read | None = None
        """Known once the end was reached."""
        self.shared_by = 1
        """Ranks that share the parts: what one of them has done counts so many times, to tell how far it is."""
        self._corpus, self._size = corpus, part_size
        self._documents: Iterator[Document] = iter(())
        self._fractions: list[float | None] = []

    def open(self, going_on: bool) -> None:
        """Reads the first document, for a corpus without one is refused before an older run is touched.

        If it was read to the end before (``going_on``), and all is still there, it is not read again.
        """
        before = read_record(self.run, self.inputs) if going_on else None
        if before is not None and self._is_there(before):
            self.read = before
            return
        documents = self._corpus.documents()
        self._documents = itertools.chain([next(documents)], documents)

    def numbers(self) -> Iterator[int]:
        """The parts' numbers, each as soon as its documents are there."""
        if self.read is not None:
            yield from range(self.read.parts)
            return
        count = parts = 0
        for number, part in enumerate(_parts(self._documents, self._size)):
            digest = part_digest(self.inputs, ((document.id, document.text) for document in part))
            if digest_of(documents_path(self.run, number)) != digest:
                stage_documents(self.run, number, count, part, digest)
            count, parts = count + len(part), number + 1
            self._fractions.append(self._fraction(part[-1], count))
            yield number
        read = Read(self.inputs, parts, count, asdict(self._corpus.counts))
        write_read_record(self.run, read)
        self.read = read

    def fraction(self, number: int) -> float | None:
        """How much of the corpus there is up to the end of a part, 0 to 1; None where that is not known."""
        if number < 0:
            return 0.0
        if self.read is not None:
            return min(1.0, (number + 1) * self._size / self.read.documents)
        return self._fractions[number] if number < len(self._fractions) else None

    def _is_there(self, read: Read) -> bool:
        there = {path.name for path in self.run.parts_in(documents_path(self.run, 0).parent)}
        return all(documents_path(self.run, number).name in there for number in range(read.parts))

    def _fraction(self, last: Document, count: int) -> float | None:
        wanted = self._corpus.filters.sample or self._corpus.filters.limit
        known = [value for value in (last.progress, count / wanted if wanted else None) if value is not None]
        return min(1.0, max(known)) if known else None


def _parts(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    iterator = iter(documents)
    while part := list(itertools.islice(iterator, size)):
        yield part
