"""The steps of the job, in the order in which ``all`` runs them: read by the job, by ``verify`` and by the pages.

A step's options, config and summary are in ``precompute/steps/<name>/command.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class StepFacts:
    makes: str
    """In a word or two: the run "has no … yet"."""
    help: str
    """What the command does, as ``--help`` says it."""
    tables: tuple[str, ...] = ()
    """Its tables of core.runs.schema.ANALYSIS."""
    newer: tuple[str, ...] = ()
    """Those of its tables that runs of older versions do not have."""
    files: tuple[str, ...] = ()
    """Its other files: their paths in the run, or how these begin."""
    needs: tuple[str, ...] = ("embed",)
    """Steps that must be done before it."""
    all_vectors: bool = False
    """Reads every document's vectors: not for a run that stores those of a sample."""
    from_labels: bool = False
    """Outdated once documents get other labels."""
    in_all: Literal["always", "optional", "on request", "last"] = "always"
    """Whether ``all`` runs it: what is optional can be left out with --without, what is on request comes with --with.
    The last one, ``slim``, has an option of its own."""


STEPS: dict[str, StepFacts] = {
    "embed": StepFacts("vectors", help="embed documents: head vectors at every stage", files=("",), needs=()),
    "search": StepFacts(
        "full-text index",
        help="build a full-text index of titles and texts, for the app's search",
        files=("search.sqlite",),
    ),
    "label": StepFacts(
        "labels",
        help="give every document a topic: the corpus's own, a language model's, the nearest, or one from a file",
        files=("labels/", "aspects/", "documents.parquet"),
        all_vectors=True,
    ),
    "analyse": StepFacts(
        "figures",
        help="compute similarities, probes, profiles and all tables from head vectors",
        tables=(
            "topic_match",
            "mismatches",
            "probe",
            "confusion",
            "profiles",
            "redundancy",
            "groups",
            "control",
            "topic_match_differences",
            "example_match",
            "examples",
            "null",
            "null_summary",
            "untrained",
        ),
        newer=("topic_match_differences", "example_match", "examples", "null", "null_summary", "untrained"),
        files=("topics.parquet", "similarity/", "analysis/original_topics.parquet"),
        all_vectors=True,
        from_labels=True,
    ),
    "project": StepFacts(
        "maps", help="compute maps of head vectors", tables=("maps",), files=("map/",), all_vectors=True
    ),
    "retrieve": StepFacts(
        "retrieval figures",
        help="evaluate ranking by heads: ways to rank, pruning and weights",
        tables=(
            "retrieval",
            "importance",
            "pruning",
            "pruned",
            "pruning_rivals",
            "way_differences",
            "weights",
            "head_weights",
        ),
        newer=("pruning_rivals", "way_differences"),
        files=("retrieval/",),
        all_vectors=True,
        from_labels=True,
        in_all="optional",
    ),
    "layers": StepFacts(
        "layer figures",
        help="compute every measure at every layer, on a sample",
        tables=(
            *("layers", "layer_curves", "layer_profiles", "layer_topics", "layer_documents"),
            *("layer_null", "layer_null_summary"),
            *("parts", "part_topics", "pair_parts", "layer_aspects"),
        ),
        newer=("layer_null", "layer_null_summary", "parts", "part_topics", "pair_parts", "layer_aspects"),
        from_labels=True,
        in_all="optional",
    ),
    "aspects": StepFacts(
        "aspect figures",
        help="measure what each head carries (topic, genre, length and other columns) against random slices",
        tables=("aspects", "aspect_summary", "aspect_values", "aspect_pairs", "aspect_within", "aspect_documents"),
        from_labels=True,
        in_all="optional",
    ),
    "attention": StepFacts(
        "attention figures",
        help="measure what every head of every layer attends to",
        tables=(
            *("attention", "attention_patterns", "attention_scores", "attention_claims"),
            *("relations", "relation_examples"),
        ),
        newer=("attention_scores", "attention_claims", "relations", "relation_examples"),
        in_all="optional",
    ),
    "ablate": StepFacts(
        "ablation figures",
        help="switch heads off inside the model, one by one, and measure what changes",
        tables=("ablation", "ablation_noise", "ablation_moved", "ablation_pruning"),
        newer=("ablation_pruning",),
        from_labels=True,
        in_all="on request",
    ),
    "slim": StepFacts(
        "sample of vectors",
        help="keep only the vectors of a sample, once figures and maps exist",
        files=("heads/",),
        needs=("embed", "analyse", "project"),
        all_vectors=True,
        in_all="last",
    ),
}


def maker_of(table: str) -> str:
    """The step that makes one of the tables of core.runs.schema.ANALYSIS."""
    return next(step for step, facts in STEPS.items() if table in facts.tables)


def made_from_labels() -> tuple[str, ...]:
    """The steps that other labels make outdated."""
    return tuple(step for step, facts in STEPS.items() if facts.from_labels)


def writes(step: str, path: str) -> bool:
    """Whether ``step`` writes a file of a run, by its path in it; a step of another version may write any."""
    facts = STEPS.get(step)
    return facts is None or path.startswith((*facts.files, *(f"analysis/{name}.parquet" for name in facts.tables)))


def command(step: str, run: str, *options: str) -> str:
    """What to type to have ``step`` done."""
    return " ".join(("python -m precompute", step, run, *options))
