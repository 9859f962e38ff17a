"""The app's figures of an opened run: one table from a name to what draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import Mistake, listed
from core.model.stages import HEADS, check_head, check_stage
from core.runs.results import require
from core.runs.steps import maker_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from core.runs.tables import Row, Tables
    from headscope.opened import OpenedRun

THEMES = ("light", "dark")


def draw(opened: OpenedRun, name: str, theme: str, choices: Mapping[str, Any]) -> go.Figure:
    """The figure of that name; ``choices`` are what its function takes besides the run and the theme."""
    if name not in FIGURES:
        raise Mistake(f"There is no figure '{name}'. There are: {listed(sorted(FIGURES))}.")
    if theme not in THEMES:
        raise Mistake(f"There is no theme '{theme}'. There are: {listed(THEMES)}.")
    made = FIGURES[name]
    known = choices_of(name)
    if unknown := [choice for choice in choices if choice not in known]:
        offered = f"It takes: {listed(known)}." if known else "It takes none."
        raise Mistake(f"The figure '{name}' has no choice '{unknown[0]}'. {offered}")
    figure = made(opened, theme, **choices)
    from pages.shared.paper.caption import caption, figure_command, run_facts

    usual = dict(zip(choices_of(name), made.__defaults__ or (), strict=True))  # said too: they may change one day
    shown = {**usual, **choices, **({"theme": theme} if theme != THEMES[0] else {})}
    remake = figure_command(opened.name, name, shown, f"{name.replace(' ', '-')}.pdf")
    told = caption([summary_of(name)], figure, run_facts(opened.name, opened.manifest), remake)
    return figure.update_layout(meta={"caption": told})


def summary_of(name: str) -> str:
    """What the figure of that name shows: the first line of what draws it."""
    return str(FIGURES[name].__doc__).partition("\n")[0]


def choices_of(name: str) -> tuple[str, ...]:
    """What may be chosen of the figure of that name."""
    code = FIGURES[name].__code__
    return code.co_varnames[2 : code.co_argcount]


def heat_map(opened: OpenedRun, theme: str, stage: int = 3, topics: Any = None, per_topic: int = 120) -> go.Figure:
    """Fig. 6: cosine of each head's slice of each document with the document's own topic."""
    from core.analysis import heat_map as cells
    from core.runs.labels import label_codes
    from core.runs.results import read_own_similarity
    from pages.shared.figures.heat_map import heat_map_figure

    require(opened.run, opened.manifest, "analyse")
    check_stage(stage, opened.stages)
    names = opened.topics
    if unknown := [topic for topic in topics or () if topic not in names]:
        raise Mistake(f"There is no topic '{unknown[0]}'. There are: {listed(names)}.")
    labels = label_codes(opened.run.documents(["topic"])["topic"], names)
    if not (labels >= 0).any():
        raise Mistake(
            f"No document of the run '{opened.name}' has a topic of the list. Label them, then analyse again."
        )
    own = read_own_similarity(opened.run, stage, labels, len(names))
    chosen = None if topics is None else [names.index(topic) for topic in topics]
    return heat_map_figure(cells.heat_map(own, labels, chosen, per_topic), names, theme)


def maps(opened: OpenedRun, theme: str, stages: Any = None, doc: int | None = None) -> go.Figure:
    """Fig. 3–5, small: a map of all head vectors at each stage, coloured by head.

    With ``doc``, that document's heads are numbered.
    """
    from core.runs.results import read_places, read_preview
    from pages.shared.figures.maps import stage_maps_figure

    require(opened.run, opened.manifest, "project")
    shown = tuple(opened.stages if stages is None else stages)
    for stage in shown:
        check_stage(stage, opened.stages)
    places = read_preview(opened.run, 2_500).places
    own = None if doc is None else {stage: read_places(opened.run, stage)[doc] for stage in shown}
    return stage_maps_figure({stage: places[stage] for stage in shown}, opened.shape, theme, own, height=360)


def probe(opened: OpenedRun, theme: str) -> go.Figure:
    """Table 1: how well a probe tells heads apart; error bars are 95 % intervals."""
    from pages.understand.stages.figures import probe_figure

    return probe_figure(_tables(opened), theme)


def redundancy(opened: OpenedRun, theme: str, stage: int = 1) -> go.Figure:
    """CKA of all pairs of heads, similar heads next to each other."""
    from pages.understand.stages.figures import matrix_figure

    check_stage(stage, opened.stages)
    heads = opened.shape.heads
    cka, order = np.full((heads, heads), np.nan), np.zeros(heads, dtype=int)
    for row in _tables(opened).pick("redundancy", stage=stage):
        cka[row["head"] - 1, row["other"] - 1] = np.nan if row["cka"] is None else row["cka"]
        order[row["position"]] = row["head"] - 1
    return matrix_figure(cka, order.tolist(), opened.shape, theme, "CKA")


def random_slices(opened: OpenedRun, theme: str, measure: str = "names", head: int | None = None) -> go.Figure:
    """One measure of every head at every stage, with the range of random slices in grey.

    ``head`` is numbered.
    """
    from core.analysis.head_measures import TITLES
    from pages.shared.figures.random_slices import slices_figure

    if measure not in TITLES:
        raise Mistake(f"There is no measure '{measure}'. There are: {listed(TITLES)}.")
    if head is not None:
        check_head(head, opened.shape.heads)
    found = _tables(opened)
    if not found.rows.get("null_summary"):
        opened.tables["null_summary"]  # says what brings it
        raise Mistake(f"The run '{opened.name}' has too few labelled documents to compare with random slices.")
    return slices_figure(found, measure, theme, head)


def topic_match(opened: OpenedRun, theme: str, stage: int = 3) -> go.Figure:
    """§3.5: how often the labelled topic is among the nearest, for the full embedding, poolings and the best head."""
    from core.analysis.similarity import POOLINGS
    from core.analysis.topic_match import WITHIN, by_construction
    from pages.understand.topics.figures import rates_figure, rates_of

    check_stage(stage, opened.stages)
    rows = _tables(opened).pick("topic_match", stage=stage, slicing=HEADS)
    if not rows:
        raise Mistake(
            f"No document of the run '{opened.name}' has a topic of the list. Label them, then analyse again."
        )
    found = {(row["head"] if row["method"] == "head" else row["method"], row["within"]): row for row in rows}
    heads = sorted({row["head"] for row in rows if row["method"] == "head"})
    best = max(heads, key=lambda head: (found[head, 1]["rate"], -head))
    within = tuple(k for k in WITHIN if not by_construction(found["full", k]))
    methods: dict[object, str] = {"full": "full embedding", **{name: name for name in POOLINGS}}
    return rates_figure(rates_of(found, methods | {best: f"best head ({best})"}, within, stage), theme)


def topics(opened: OpenedRun, theme: str, stage: int = 3, original: bool = False) -> go.Figure:
    """Fig. 1: cosines of the topics' names.

    The run's own topics, or with ``original`` the study's 39.
    """
    from core.analysis.merging import topic_similarity
    from core.analysis.redundancy import cluster_order
    from core.runs.results import read_topics
    from core.runs.shares import full_topics
    from pages.understand.topics.figures import map_figure

    require(opened.run, opened.manifest, "analyse")
    check_stage(stage, opened.stages)
    found = read_topics(opened.run, original)
    cosine = topic_similarity(full_topics(opened.run, found, stage))
    return map_figure(found.names, cosine, cluster_order(cosine), theme)


def retrieval(opened: OpenedRun, theme: str, stage: int = 1, task: str | None = None) -> go.Figure:
    """Retrieval by every way to rank with all heads; error bars are 95 % intervals."""
    from core.retrieval.tasks import TASKS
    from pages.use.retrieval_lab.figures import ways_figure

    rows = _rows(opened, "retrieval", stage)
    task = _task(rows, task)
    chosen = TASKS[task]
    found = [row for row in rows if (row["task"], row["metric"], row["k"]) == (task, chosen.metric, chosen.places)]
    return ways_figure(found, theme, f"{chosen.metric} among the first {chosen.places}")


def pruning(opened: OpenedRun, theme: str, stage: int = 1, task: str | None = None) -> go.Figure:
    """Retrieval with fewer and fewer heads, on held-out queries."""
    from pages.use.retrieval_lab.figures import curve_figure

    kept = _rows(opened, "pruned", stage)
    task = _task(kept, task)
    row = next(row for row in kept if row["task"] == task)
    curve = [one for one in _rows(opened, "pruning", stage) if (one["task"], one["way"]) == (task, row["way"])]
    return curve_figure(curve, row["heads"], theme, f"{row['metric']} among the first {row['k']}")


def head_vectors(opened: OpenedRun, theme: str, doc: int = 0, stage: int = 1, head: int = 1) -> go.Figure:
    """One document's vectors, one row per head.

    ``head`` is framed.
    """
    from pages.explore.overview.figures import head_vectors_figure

    check_stage(stage, opened.stages)
    check_head(head, opened.shape.heads)
    rows = opened.run.document_vectors(stage, doc).astype(np.float32)
    return head_vectors_figure(rows.reshape(opened.shape.heads, -1), head, theme)


def whose(opened: OpenedRun, theme: str) -> go.Figure:
    """The parts of the embedding's length: embeddings, heads by layer, feed-forward blocks and biases."""
    from pages.shared.figures.whose import whose_figure

    opened.tables["parts"]  # says what brings it
    return whose_figure(_rows(opened, "parts"), theme)


FIGURES: dict[str, Callable[..., go.Figure]] = {
    "heat map": heat_map,
    "maps": maps,
    "probe": probe,
    "redundancy": redundancy,
    "random slices": random_slices,
    "topic match": topic_match,
    "topics": topics,
    "retrieval": retrieval,
    "pruning": pruning,
    "head vectors": head_vectors,
    "whose": whose,
}


def _tables(opened: OpenedRun) -> Tables:
    from core.runs.results import read_tables

    return read_tables(opened.run)


def _rows(opened: OpenedRun, table: str, stage: int | None = None) -> list[Row]:
    from core.runs.results import read_analysis

    require(opened.run, opened.manifest, maker_of(table))
    rows: list[Row] = read_analysis(opened.run, table).to_pylist()
    if stage is not None:
        check_stage(stage, opened.stages)
        rows = [row for row in rows if row["stage"] == stage]
    return rows


def _task(rows: list[Row], task: str | None) -> str:
    known = list(dict.fromkeys(row["task"] for row in rows))
    if not known or task not in (None, *known):
        raise Mistake(f"There is no task '{task}'. There are: {listed(known) or 'none'}.")
    return task or known[0]
