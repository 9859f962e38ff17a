"""Rows become documents: which column is what, which rows stay, and how many went why."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import chain

from core.errors import Mistake
from precompute.sources import Row, Source, refuse
from precompute.sources.values import Scalar, clean, keeps, scalar, string, title_of
from precompute.steps.embed.corpus_columns import DEFAULTS, Columns, choose_columns, first_rows

REFUSE, NUMBER = "refuse", "number"
DUPLICATE_IDS = (REFUSE, NUMBER)
"""What can be done with an id that a document before has; the command line offers them."""


class Ids:
    """The ids that were given so far, as hashes of 8 bytes: about 70 bytes a document."""

    def __init__(self, duplicates: str) -> None:
        self._duplicates = duplicates
        self._seen: set[int] = set()
        self._copies: Counter[str] = Counter()

    def own(self, key: str, title: str, label: str) -> str:
        """The document's own id: ``key``, or where another document has it ``key#2`` and so on."""
        if self._is_new(key):
            return key
        if self._duplicates == REFUSE:
            raise Mistake(
                f"{label} has more than one document with the id '{key[:80]}', the second titled '{title[:80]}'. Make "
                f"ids unique, name another column with --id-column, or pass --duplicate-ids {NUMBER} to number copies."
            )
        while True:
            self._copies[key] += 1
            numbered = f"{key}#{self._copies[key] + 1}"
            if self._is_new(numbered):
                return numbered

    def _is_new(self, key: str) -> bool:
        before = len(self._seen)
        self._seen.add(hash(key))
        return len(self._seen) > before


OURS = frozenset({*DEFAULTS, "doc", "tokens", "truncated", "label_source", "label_score"})
"""Columns of documents.parquet that a corpus's own extra columns must not overwrite."""

MAX_EXTRA = 64


@dataclass(frozen=True)
class Filters:
    """Which documents stay; a length is that of the stripped text, in characters."""

    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    min_chars: int = 1
    keep_duplicates: bool = False
    skip_bad: bool = False
    duplicate_ids: str = REFUSE
    """One of DUPLICATE_IDS."""

    def __post_init__(self) -> None:
        for name, number in (("--limit", self.limit), ("--sample", self.sample)):
            if number is not None and number < 1:
                raise Mistake(f"{name} must be at least 1, not {number}.")
        if self.duplicate_ids not in DUPLICATE_IDS:
            raise Mistake(f"--duplicate-ids must be {' or '.join(DUPLICATE_IDS)}, not '{self.duplicate_ids}'.")


@dataclass(frozen=True, slots=True)
class Document:
    """One document; ``progress`` is the fraction 0..1 of the source consumed, None where unknown."""

    id: str
    title: str
    text: str
    url: str | None
    topic: str | None
    extra: dict[str, Scalar]
    progress: float | None
    missing: tuple[str, ...] = ()
    """Fields for which the corpus has a column, but not this record."""


@dataclass(frozen=True)
class Counts:
    """What became of the records: ``read`` is the sum of those up to ``kept`` once the iteration has ended."""

    read: int = 0
    bad: int = 0
    short: int = 0
    duplicate: int = 0
    sampled_out: int = 0
    kept: int = 0
    no_id: int = 0
    """Kept ones without a value where the corpus has a column for it; so for the next three."""
    no_title: int = 0
    no_url: int = 0
    no_topic: int = 0
    numbered: int = 0
    """Kept ones whose id another one has, so that it was given a number."""


LEAST_IN_BLOCKS = 10
"""Documents with a topic: fewer can come topic by topic by chance."""


@dataclass
class TopicBlocks:
    """Whether documents come topic by topic, as in a file sorted by its topic column."""

    topics: set[str] = field(default_factory=set)
    documents: int = 0
    last: str | None = None
    mixed: bool = False

    def add(self, topic: str | None) -> None:
        if topic is None:
            return
        self.documents += 1
        self.mixed = self.mixed or (topic != self.last and topic in self.topics)
        self.topics.add(topic)
        self.last = topic

    @property
    def sorted_by_topic(self) -> bool:
        return not self.mixed and self.documents >= max(LEAST_IN_BLOCKS, 2 * len(self.topics))


@dataclass
class _Pass:
    """One reading of the source from its start."""

    source: Source
    columns: Columns
    filters: Filters
    warn: Callable[[str], None] | None = None
    tally: Counter[str] = field(default_factory=Counter)
    extras: set[str] = field(default_factory=set)
    ended: bool = False
    """The limit is reached: records behind it are not counted."""

    def passing(self) -> Iterator[Document]:
        """The documents that pass the filters, up to the limit; after the last one nothing further is read."""
        mapping: dict[str, str] | None = None
        digests: set[bytes] = set()  # 16 bytes in an object in a set: about 100 bytes a document
        passed, blocks, rows = 0, TopicBlocks(), self.source.rows(self._unreadable)
        for row in rows:
            self.tally["read"] += 1
            if mapping is None:
                window = chain([row.columns], first_rows(self.source))
                mapping = choose_columns(self.columns, window, self.source.label)
            text = self._text(row, mapping["text"])
            if text is None:
                continue
            stripped = text.strip()
            if len(stripped) < self.filters.min_chars:
                self.tally["short"] += 1
                continue
            if not self.filters.keep_duplicates:
                digest = hashlib.blake2b(stripped.encode(), digest_size=16).digest()
                if digest in digests:
                    self.tally["duplicate"] += 1
                    continue
                digests.add(digest)
            document = self._document(row, mapping, text)
            blocks.add(document.topic)
            yield document
            passed += 1
            if passed == self.filters.limit:
                if self.warn is not None and blocks.sorted_by_topic:
                    self._warn_of_order(rows, len(blocks.topics))
                return

    def _warn_of_order(self, rows: Iterator[Row], topics: int) -> None:
        """Unless the limit is the end of the source; what is wrong with the row behind it does not matter."""
        self.ended = True
        if self.warn is None or next(rows, None) is None:
            return
        limit = self.filters.limit
        self.warn(
            f"{self.source.label} is sorted by topic: its first {limit:,} documents have {topics:,} "
            f"topic{'s' if topics > 1 else ''} in blocks, and more rows follow. --limit {limit} leaves out the topics "
            f"of those rows. Use --sample {limit} to draw documents from the whole corpus."
        )

    def _unreadable(self, sentence: str) -> None:
        if self.ended:
            return
        self.tally["read"] += 1
        self._bad(sentence)

    def _bad(self, sentence: str) -> None:
        self.tally["bad"] += 1
        if not self.filters.skip_bad:
            refuse(sentence)

    def _text(self, row: Row, column: str) -> str | None:
        """The row's text, or None if it has none; then it is counted."""
        if column not in row.columns:
            self._bad(f"{row.where} has no {column!r}.")
            return None
        value = row.columns[column]
        if value is None:
            self.tally["short"] += 1
            return None
        if not isinstance(value, str):
            self._bad(f"{row.where} has a {column!r} of type {type(value).__name__}, not a string.")
            return None
        return clean(value)

    def _document(self, row: Row, mapping: dict[str, str], text: str) -> Document:
        found = {name: string(row.columns.get(column)) for name, column in mapping.items() if name != "text"}
        taken = set(mapping.values())
        extra = {
            extra_name(name): scalar(value) for name, value in row.columns.items() if name not in taken and keeps(value)
        }
        self.extras.update(extra)
        if len(self.extras) > MAX_EXTRA:
            raise Mistake(
                f"{row.where} brings the number of extra columns to {len(self.extras)}; at most "
                f"{MAX_EXTRA} can be stored. Leave some out of {self.source.label}."
            )
        key = found.get("id") or clean(row.key)
        title = found.get("title") or title_of(text) or key
        missing = tuple(name for name, value in found.items() if value is None)
        return Document(key, title, text, found.get("url"), found.get("topic"), extra, row.progress, missing)


class Corpus:
    """The documents of a source after its filters."""

    def __init__(
        self,
        source: Source,
        columns: Columns = Columns(),  # noqa: B008
        filters: Filters = Filters(),  # noqa: B008
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """``warn`` is called with a sentence where a limit cuts off the topics of a sorted corpus."""
        self.source, self._warn = source, warn
        self.columns = columns
        self.filters = filters
        self._tally: Counter[str] = Counter()

    @property
    def counts(self) -> Counts:
        """Of the latest iteration, so far."""
        return Counts(**{each.name: self._tally[each.name] for each in fields(Counts)})

    def documents(self) -> Iterator[Document]:
        """The documents in the corpus's order; the same again at every call, with the counts starting anew."""
        reading = _Pass(self.source, self.columns, self.filters, self._warn)
        self._tally = reading.tally
        return self._all(reading) if self.filters.sample is None else self._sample(reading, self.filters.sample)

    def _all(self, reading: _Pass) -> Iterator[Document]:
        ids = Ids(self.filters.duplicate_ids)
        for document in reading.passing():
            yield self._kept(document, ids, reading.tally)
        self._refuse_none(reading.tally)

    def _sample(self, reading: _Pass, size: int) -> Iterator[Document]:
        """Two passes, so that the memory is that of the sample's indices and not of its texts."""
        passed = 0
        largest: list[int] = []  # negated keys: a heap whose top is the largest of the smallest
        for index, _ in enumerate(reading.passing()):
            passed += 1
            heapq.heappush(largest, -sample_key(self.filters.seed, index))
            if len(largest) > size:
                heapq.heappop(largest)
        chosen = {(-negated) % 2**64 for negated in largest}
        tally = reading.tally
        tally["sampled_out"] = passed - len(chosen)
        self._refuse_none(tally, len(chosen))
        again = _Pass(self.source, self.columns, self.filters).passing()
        ids = Ids(self.filters.duplicate_ids)
        for index, document in enumerate(again):
            if index in chosen:
                yield self._kept(document, ids, tally)
                if tally["kept"] == len(chosen):
                    return

    def _kept(self, document: Document, ids: Ids, tally: Counter[str]) -> Document:
        """The document with an id of its own; counted, with what it misses."""
        own = ids.own(document.id, document.title, self.source.label)
        tally["kept"] += 1
        for name in document.missing:
            tally[f"no_{name}"] += 1
        if own == document.id:
            return document
        tally["numbered"] += 1
        return replace(document, id=own)

    def _refuse_none(self, tally: Counter[str], left: int | None = None) -> None:
        if tally["kept"] if left is None else left:
            return
        filters = self.filters
        reasons = {
            "bad": ("bad", "fix the bad records"),
            "short": (f"shorter than {filters.min_chars} characters", "lower --min-chars"),
            "duplicate": ("duplicates", "pass --keep-duplicates"),
        }
        removed = {name: reason for name, reason in reasons.items() if tally[name]}
        parts = [f"{tally['read']} read", *(f"{tally[name]} {why}" for name, (why, _) in removed.items())]
        remedy = " or ".join(each for _, each in removed.values()) or "name another source"
        raise Mistake(
            f"No document is left of {self.source.label}: {', '.join(parts)}. {remedy[0].upper()}{remedy[1:]}."
        )


def extra_name(name: str) -> str:
    """The name of an extra column in documents.parquet, with ``corpus_`` before one that would be ours.

    A name that already is such a result is prefixed once more, so that no two columns become one.
    """
    name = clean(name)
    core = name
    while core.startswith("corpus_"):
        core = core.removeprefix("corpus_")
    return f"corpus_{name}" if core in OURS else name


def sample_key(seed: int, index: int) -> int:
    """128 bits: 64 that look random, by which the sample is chosen, then the index itself."""
    digest = hashlib.blake2b(f"{seed}:{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") << 64 | index
