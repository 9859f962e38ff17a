"""What a run cannot show, and why: nothing is recommended that rests on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from core.analysis.agreement import Compared
from core.analysis.examples import LEAST_EXAMPLES
from core.analysis.topic_match import WITHIN, by_construction
from core.analysis.wording import percent, percents, plural
from core.model.stages import HEADS
from core.runs.tables import Row, Tables

CEILING = 0.995
"""From here on a share or a metric has no room left to differ in."""
TOPIC_MATCH, SAME_TOPIC = "topic match", "same topic"
"""What labels decide about; the same names as in core.retrieval.tasks.TASKS."""


@dataclass(frozen=True)
class Caution:
    """``sentence`` says what cannot be concluded and what to do, ``evidence`` has the numbers."""

    sentence: str
    evidence: str
    rules_out: tuple[str, ...] = ()
    """Tasks about which nothing is claimed, neither of heads nor of ways to rank, at ``stages``."""
    stages: tuple[int, ...] = ()


def cautions(tables: Tables, compared: Iterable[Compared] = ()) -> list[Caution]:
    """What the labels and the topic match of a run cannot show; ``compared`` are its sources of labels."""
    return [*_labels(tables), *_few_topics(tables), *_limits_of_topic_match(tables), *_constant_sources(compared)]


def ruled_out(given: Sequence[Caution], task: str, stage: int) -> Caution | None:
    """The first caution that forbids a claim about the task at a stage."""
    return next((caution for caution in given if task in caution.rules_out and stage in caution.stages), None)


def _labels(tables: Tables) -> Iterator[Caution]:
    """A single label, or too few documents for each."""
    counts = {row["topic"]: row["documents"] for row in tables.rows.get("topics", ()) if row["documents"] > 0}
    if not counts:
        return
    few, middle = sum(count < LEAST_EXAMPLES for count in counts.values()), median(counts.values())
    by_labels, stages = (TOPIC_MATCH, SAME_TOPIC), tuple(tables.manifest.stages)
    if len(counts) == 1:
        (topic,) = counts
        yield Caution(
            "All labelled documents have the same topic, so nothing can be concluded about topics, and neither a stage "
            "nor a head is recommended. Use documents of several topics; --sample draws them from the whole corpus.",
            f"{tables.labelled:,} of {tables.labelled:,} labelled documents: {topic}",
            by_labels,
            stages,
        )
    elif middle < LEAST_EXAMPLES:
        yield Caution(
            f"The median topic has {_documents(middle)}, too few to conclude anything about topics: neither a stage "
            f"nor a head is recommended. Use at least {LEAST_EXAMPLES} documents per topic, or fewer topics.",
            f"{few:,} of {len(counts):,} topics have fewer than {LEAST_EXAMPLES} documents; {tables.labelled:,} "
            "documents labelled",
            by_labels,
            stages,
        )


def _documents(count: float) -> str:
    return f"{count:g} document{'' if count == 1 else 's'}"


def _few_topics(tables: Tables) -> Iterator[Caution]:
    rows = tables.pick("topic_match", stage=tables.manifest.stages[0], slicing=HEADS, method="full")
    trivial = [row["within"] for row in rows if by_construction(row)]
    if trivial:
        topics = _topics(rows)
        nearest = joined(trivial)
        yield Caution(
            f"The run has {plural(topics, 'topic')}, so the labelled topic is always among the nearest {nearest}: "
            "these shares cannot be compared with the study's, which chose among 25. Compare the nearest topic alone.",
            f"{plural(topics, 'topic')}; among the nearest {nearest} 100 % by construction",
        )


def _topics(rows: Sequence[Row]) -> int:
    """In the list, from what naming one at random reaches."""
    return round(1 / next(row["chance"] for row in rows if row["within"] == WITHIN[0]))


def _limits_of_topic_match(tables: Tables) -> Iterator[Caution]:
    """Stages at which the full embedding finds no topic, or each."""
    rows = {
        stage: row
        for stage in tables.manifest.stages
        if (row := tables.one("topic_match", stage=stage, slicing=HEADS, method="full", within=1)) is not None
    }
    at_chance = {stage: row for stage, row in rows.items() if row["low"] <= row["chance"]}
    at_ceiling = {stage: row for stage, row in rows.items() if row["rate"] >= CEILING and stage not in at_chance}
    if tables.labels.circular:  # all of them are, and a finding of its own says why
        at_ceiling = {}
    for found, sentence in (
        (
            at_chance,
            "the full embedding is not shown to find the labelled topic more often than chance, so topic match says "
            "nothing about its heads. Check that the names of the topics describe the labels (--topics).",
        ),
        (
            at_ceiling,
            "the full embedding finds the labelled topic of nearly every document, so topic match cannot show what a "
            "head adds. Use more topics, or topics that are closer to each other.",
        ),
    ):
        if found:
            yield Caution(
                f"At {named_stages(list(found))} {sentence}",
                "; ".join(
                    f"stage {stage}: {percent(row['rate'], 1)} ({percents(row['low'], row['high'], 1)}), chance "
                    f"{percent(row['chance'], 1)}"
                    for stage, row in found.items()
                ),
                (TOPIC_MATCH,),
                tuple(found),
            )


def _constant_sources(compared: Iterable[Compared]) -> Iterator[Caution]:
    pairs = list(compared)
    for source in dict.fromkeys(source for pair in pairs for source in pair.constant):
        mine = [pair for pair in pairs if source in pair.constant]
        yield Caution(
            f"The labels of '{source}' are one topic for all documents, so Cohen's kappa says nothing about how far "
            "other labels agree with them. Label the documents by another source, or with other topics (--topics).",
            "; ".join(
                f"{pair.first} and {pair.second}: {pair.agreement.documents:,} documents labelled by both, "
                f"{percent(pair.agreement.share, 1)} alike"
                for pair in mine
            ),
        )


def named_stages(stages: Sequence[int]) -> str:
    """``stage 1``, ``stages 2 and 3``."""
    return f"{'stage' if len(stages) == 1 else 'stages'} {joined(stages)}"


def joined(numbers: Sequence[int]) -> str:
    """``1, 2 and 3``."""
    words = [str(number) for number in numbers]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
