"""``explain``: why two texts are similar. Their cosine as a sum over the model's parts, for a person or as JSON."""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from core.analysis.explained import (
    KIND_NAMES,
    PLACES,
    Baseline,
    TermGrid,
    against_random,
    by_kind,
    rounded_to_sum,
    signed,
    summary,
)
from core.errors import Mistake
from core.model.embedder import Embedder
from core.model.ledger import Explanation, explain
from core.runs.results import read_analysis
from core.runs.run import Run, open_run
from core.runs.steps import command
from precompute.job.step import embedded
from precompute.job.topic_vectors import TopicModel
from precompute.options import add_common, add_topic_model, topic_model

_WIDTH = 100
_LIKE_AN_ID = re.compile(r"[!-~]*[0-9_/:#-][!-~]*")
_NAMED = 3
"""Heads that a line of the table names."""


@dataclass(frozen=True)
class ExplainConfig:
    cache: Path
    run: str
    first: str
    """The id of a document of the run, or a text."""
    second: str
    query: bool = False
    """Whether the first text is a query, read with the model's query prompt."""
    model: TopicModel = field(default_factory=TopicModel)


@dataclass(frozen=True)
class ComparedText:
    """One of the two texts."""

    text: str
    name: str
    """As people are shown it."""


def add_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    for place in ("first", "second"):
        command.add_argument(
            f"--{place}", required=True, metavar="ID_OR_TEXT", help="the id of a document in the run, or a text"
        )
    command.add_argument(
        "--query", action="store_true", help="the first text is a query: put the model's query prompt before it"
    )
    command.add_argument("--json", action="store_true", help="print JSON, for scripts")
    add_topic_model(command)


def explanation_of(options: argparse.Namespace) -> str:
    """What the command prints."""
    config = ExplainConfig(
        options.cache, options.run, options.first, options.second, options.query, topic_model(options)
    )
    return as_json(config) if options.json else as_text(config)


def as_json(config: ExplainConfig) -> str:
    """``cosine``, ``terms`` and ``residual``; the values of the terms and the residual add up to the cosine."""
    run = open_run(config.cache, config.run)
    return json.dumps(_explained(run, config, _both(run, config))[1].as_json(), indent=1, allow_nan=False)


def as_text(config: ExplainConfig) -> str:
    """The sentence first, then the texts, what random pairs have, and a line per layer."""
    run = open_run(config.cache, config.run)
    both = _both(run, config)
    model, found = _explained(run, config, both)
    baseline = stored_baseline(run, found)
    lines = textwrap.wrap(summary(found), _WIDTH)
    lines += ["", f"  first   {both[0].name}", f"  second  {both[1].name}", ""]
    if baseline is not None:
        lines += textwrap.wrap(against_random(found, baseline), _WIDTH)
    else:
        brings = command("layers", run.name)
        lines += textwrap.wrap(f"The baseline of random pairs is not measured yet: run '{brings}'.", _WIDTH)
    lines += ["", *_table(found, baseline), "", *textwrap.wrap(_notes(model, found, config), _WIDTH)]
    return "\n".join(lines)


def _explained(
    run: Run, config: ExplainConfig, both: tuple[ComparedText, ComparedText]
) -> tuple[Embedder, Explanation]:
    model = config.model.load(embedded(run))
    if config.query and not model.info.query_prompt and not model.info.prompt:
        raise Mistake(f"The model '{model.info.name}' has no prompt for queries. Leave out --query.")
    first, second = model.ledgers([text.text for text in both], query=(config.query, False))
    if not (np.linalg.norm(first.output) and np.linalg.norm(second.output)):
        raise Mistake("One of the two texts has an embedding of length 0, which has no cosine. Give another text.")
    return model, explain(first, second)


def stored_baseline(run: Run, found: Explanation) -> Baseline | None:
    """What the step ``layers`` measured on random pairs; None where it is not done, or an older version did it."""
    if not run.manifest().is_done("layers") or not run.has(run.analysis_path("pair_parts")):
        return None
    return Baseline.of(read_analysis(run, "pair_parts").to_pylist(), found.terms)


def _both(run: Run, config: ExplainConfig) -> tuple[ComparedText, ComparedText]:
    embedded(run)
    ids = run.documents(["id"])["id"]
    return _compared(run, ids, "first", config.first), _compared(run, ids, "second", config.second)


def _compared(run: Run, ids: object, place: str, given: str) -> ComparedText:
    if not given.strip():
        raise Mistake(f"The {place} text is empty. Give --{place} the id of a document, or a text.")
    number = int(pc.index(ids, given).as_py())
    if number < 0 and _LIKE_AN_ID.fullmatch(given):
        raise Mistake(
            f"The run '{run.name}' has no document with the id '{given}'. Give --{place} the id of one of its "
            "documents, or a text; to read this word as a text, add a space after it."
        )
    if number < 0:
        return ComparedText(given, f"“{textwrap.shorten(given, 70, placeholder=' …')}”")
    row = run.document_lookup().row(number)
    if not row["text"].strip():
        raise Mistake(f"The document '{given}' has no text. Choose another one.")
    return ComparedText(row["text"], f"{given}: {textwrap.shorten(row['title'], 60, placeholder=' …')}")


def _table(found: Explanation, baseline: Baseline | None) -> list[str]:
    """A line per layer and a last one that adds them up; all numbers shown add up to the cosine shown."""
    shown = rounded_to_sum(found.values, found.cosine)
    grid = TermGrid.of(found.terms, shown)
    usual = TermGrid.of(baseline.terms, rounded_to_sum(baseline.mean, baseline.cosine)) if baseline else None
    columns = ["heads", "feed-forward", "biases", "together", *(["random pairs"] if usual else [])]
    lines = [f"  {'':<12}" + "".join(f"{name:>14}" for name in columns) + "  most from"]

    def line(name: str, numbers: list[float | None], most: str = "") -> str:
        cells = "".join(f"{'' if value is None else signed(value, PLACES):>14}" for value in numbers)
        return f"  {name:<12}{cells}  {most}".rstrip()

    def beside(value: float | None) -> list[float | None]:
        return [] if usual is None else [value]

    lines.append(line("embeddings", [None, None, None, grid.embedding, *beside(usual.embedding if usual else None)]))
    for layer in range(len(grid.heads)):
        order = np.argsort(-grid.heads[layer], kind="stable")[:_NAMED]
        most = ", ".join(f"head {head + 1} {signed(grid.heads[layer, head], PLACES)}" for head in order)
        numbers = [grid.heads[layer].sum(), grid.blocks[layer], grid.biases[layer], grid.layers[layer]]
        lines.append(line(f"layer {layer + 1}", [*numbers, *beside(usual.layers[layer] if usual else None)], most))
    if any(term.kind == "bias" and term.layer is None for term in found.terms):
        numbers = [None, None, grid.final_bias, grid.final_bias]
        lines.append(line("final bias", [*numbers, *beside(usual.final_bias if usual else None)]))
    sums = by_kind(found.terms, shown)
    last = [sums["head"], sums["mlp"], sums["bias"], float(shown.sum())]
    return [*lines, line("all", [*last, *beside(baseline.cosine if baseline else None)])]


def _notes(model: Embedder, found: Explanation, config: ExplainConfig) -> str:
    said = (
        f"{len(found.terms)} terms ({', '.join(KIND_NAMES.values())}); what two terms have in common is split evenly "
        f"between them; residual {abs(found.residual):.0e}. A head's share is direct: what later layers compute "
        "from its output counts as theirs."
    )
    if config.query:
        said += " The first text was read with the model's query prompt."
    later = [note for note in model.info.notes if note.startswith("Stage 3 is")]
    return " ".join([said, *later])
