"""Topic lists: the study's 25, the 39 they were merged from, the corpus's own, or a file's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from core.errors import Mistake

AUTO, LABELS = "auto", "labels"
MOST = 500
"""Topics in one list: beyond, a similarity table would outgrow the vectors it is made from."""


@cache
def _study() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("topics.json").read_text(encoding="utf-8"))
    return found


def merged() -> tuple[str, ...]:
    """The study's 25 topics."""
    return tuple(_study()["merged"])


def original() -> tuple[str, ...]:
    """FineWeb's 39 topics, which the study merged into 25."""
    return tuple(row["topic"] for row in _study()["original"])


def merged_into() -> dict[str, str]:
    """Which of the 25 each of the 39 went into, by our reading of the names."""
    return {row["topic"]: row["merged_into"] for row in _study()["original"]}


TOPIC_LISTS = {"merged": merged, "original": original}


def choose_topics(asked: str, labels: Iterable[str | None]) -> tuple[str, ...]:
    """The topics that documents are compared with.

    ``asked`` is 'auto' (the study's 25 if no label is beyond them, else the labels), 'labels', a name of TOPIC_LISTS,
    or a file with one topic per line. Labels come most frequent first.
    """
    counts = Counter(label for label in labels if label is not None)
    if asked == AUTO:
        if len(counts) == 1 and not set(counts) <= set(merged()):
            return (*counts, *merged())  # one topic alone compares with nothing
        asked = "merged" if set(counts) <= set(merged()) else LABELS
    if asked in TOPIC_LISTS:
        return TOPIC_LISTS[asked]()
    if asked == LABELS:
        topics: Sequence[str] = sorted(counts, key=lambda topic: (-counts[topic], topic))
        if not topics:
            raise Mistake(
                "No document of this run has a topic, so its labels give no list of topics. "
                "Leave --topics out, or give a file with one topic per line."
            )
        if len(topics) < 2:
            raise Mistake(
                f"All labels of this run are '{topics[0]}', and one topic leaves nothing to compare. "
                "Give 'merged', or a file with at least two topics, one per line."
            )
    else:
        topics = _read(Path(asked))
    if len(topics) > MOST:
        raise Mistake(
            f"There are {len(topics):,} different topics, and at most {MOST} can be compared. Give a file with one "
            "topic per line with --topics, or 'merged' for the study's 25."
        )
    return tuple(topics)


def _read(path: Path) -> list[str]:
    known = ", ".join((AUTO, LABELS, *TOPIC_LISTS))
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except FileNotFoundError as error:
        raise Mistake(
            f"There is no list of topics '{path}'. Give one of {known}, or a file with one topic per line."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(
            f"The list of topics '{path}' cannot be read as text. Give a file with one topic per line."
        ) from error
    topics = list(dict.fromkeys(line for line in lines if line))
    if len(topics) < 2:
        raise Mistake(f"The list of topics '{path}' has {len(topics)} of them. Give at least two, one per line.")
    return topics
