"""The parts of the Retrieval lab: what is found, how good that is on all queries, and what the job measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.bootstrap import Interval, ratios
from core.analysis.cautions import Caution
from core.analysis.document_profile import Reliability
from core.retrieval.cautions import all_cautions, retrieval_cautions
from core.retrieval.findings import pruned_sentence, weights_sentence
from core.retrieval.metrics import METRICS, Relevance, measured
from core.retrieval.tasks import TASKS, TOPIC_MATCH
from core.retrieval.turned import TurnedHeads, TurnedRanking
from core.retrieval.ways import DEPTH, WAYS, Heads, Ranking, Seen, rank
from core.runs.parquet import RowLookup
from core.runs.tables import Row
from pages.shared.cards import Card, cards
from pages.shared.data import documents, head_index, row_of, tables, vector_docs
from pages.shared.embedding import WhyText
from pages.shared.figures.table import cell, figure_table, number
from pages.shared.glossary import why
from pages.shared.heads_in_address import heads_named
from pages.shared.notices import among, shows_mistakes
from pages.shared.show import downloads, figure, theme
from pages.shared.text import drawn, plain, safe, shortened
from pages.shared.url import linked
from pages.shared.why_similar import choose_why, corpus_text, why_similar
from pages.use.retrieval_lab.controls import LabView, question_text
from pages.use.retrieval_lab.data import (
    OUTPUT,
    bench,
    corpus_rows,
    has_rest,
    judge,
    question_rows,
    rows,
    share_rows,
)
from pages.use.retrieval_lab.export import take_turned_away
from pages.use.retrieval_lab.figures import aspects_figure, curve_figure, importance_figure, votes_figure, ways_figure

SHOWN = 10


@shows_mistakes
def results_section(shown: LabView, seen: Seen) -> None:
    """Both rankings with the heads that are on; nothing but these sums is computed when a switch moves."""
    question = shown.question
    st.subheader("What they find", anchor=False)
    docs = vector_docs(shown.state)
    assert shown.state.manifest is not None
    can_be_found = question.relevant
    if shown.state.manifest.is_sampled:
        can_be_found &= frozenset(docs.tolist())
    wanted = len(can_be_found)
    to_find = f" {wanted} document{'s' if wanted != 1 else ''} should be found, marked ✓." if wanted else ""
    st.caption(f"For “{question_text(question)}”.{to_find}{among(shown.state)}")
    table, results = documents(shown.state), []
    for column, way, side in zip(st.columns(2, gap="medium"), shown.ways, ("left", "right"), strict=True):
        with column:
            st.markdown(f"##### {plain(way)}", help=WAYS[way].sentence)
            found = ranked(way, seen, shown.heads, row_of(shown.state, question.own))
            found = replace(found, docs=docs[found.docs])
            _cards(table, found, question.relevant, shown.weights)
            _votes(table, found, way, side, shown.reliability)
            results += found.docs.tolist()
    _why(shown, list(dict.fromkeys(results)))


def _why(shown: LabView, results: list[int]) -> None:
    """Any of the results, and why the model finds it near the question."""
    question = shown.question
    doc = choose_why(shown.state, results, "Why this result?")
    if doc is not None:
        asked = WhyText(shortened(question.text, 90), question.text, query=question.own < 0)
        if question.own >= 0:
            asked = corpus_text(shown.state, question.own)
        why_similar(shown.state, asked, corpus_text(shown.state, doc))


def ranked(way: str, seen: Seen, heads: Heads, own: int, count: int = SHOWN) -> Ranking:
    """The best documents; one that is the question itself is not among them."""
    found = rank(way, seen, heads, count + 1)
    others = found.docs != own
    return Ranking(found.docs[others][:count], found.scores[others][:count], found.by_head[others][:count])


def _cards(table: RowLookup, found: Ranking, relevant: frozenset[int], weights: np.ndarray) -> None:
    items = []
    for place, (doc, score, given) in enumerate(zip(found.docs.tolist(), found.scores, found.by_head, strict=True), 1):
        row = table.row(doc)
        mark = "✓ " if doc in relevant else ""
        meta = [row["topic"], f"{score:.3f}", _most(given, weights)]
        items.append(Card(f"{place}. {mark}{row['title']}", meta, row["text"]))
    cards(items)


def _most(given: np.ndarray, weights: np.ndarray) -> str:
    """The heads that gave a document most: together half of what it got."""
    on = np.flatnonzero((weights > 0) & (given > 0))
    if not len(on):
        return "no head gave it anything"
    order = on[np.argsort(-given[on], kind="stable")]
    enough = int(np.searchsorted(given[order].cumsum(), given[order].sum() / 2)) + 1
    return "most from " + heads_named(sorted(int(head) + 1 for head in order[: min(enough, 5)]))


_RELIABILITY = (
    " Below each head's number: for how many of 100 documents of the corpus its nearest topic is the right one; paler "
    "= less reliable. The ranking does not use it; the preset ‘By reliability’ does."
)


def _votes(table: RowLookup, found: Ranking, way: str, side: str, reliability: Reliability | None) -> None:
    titles = table.rows(found.docs, ["title"])["title"].to_pylist()

    def data() -> pa.Table:
        ranks, heads = found.by_head.shape
        return pa.table(
            {
                "place": np.repeat(np.arange(1, ranks + 1), heads),
                "doc": np.repeat(found.docs + 1, heads),
                "head": np.tile(np.arange(1, heads + 1), ranks),
                "given": found.by_head.reshape(-1),
            }
        )

    figure(
        votes_figure(found.by_head, [drawn(shortened(title, 60)) for title in titles], theme(), reliability),
        f"votes-{side}",
        data,
        caption=f"What each head gave each document by ‘{way}’.{_RELIABILITY if reliability is not None else ''}",
        alt=f"Documents by heads: what each head gave each of the first {len(titles)} documents by {way}.",
    )


_PLACES = (1, 3, 5, 10, 20, DEPTH)


@shows_mistakes
def metrics_section(shown: LabView) -> None:
    """The table for the current heads, against all heads and against each other, paired by query."""
    assert shown.task is not None
    st.subheader("How good that is on all queries", anchor=False, help=why("interval"))
    found = bench(shown.state, shown.stage, shown.task)
    places = linked(
        st.segmented_control,
        "Among the first",
        "k",
        _PLACES,
        TASKS[shown.task].places,
        required=True,
        help="Documents of a ranking that are looked at.",
    )
    measured = {}
    for way in dict.fromkeys(shown.ways):
        judged = judge(shown.state, shown.stage, shown.task, way)
        depth = min(places, judged.answers.relevant.shape[1] - 1) or 1
        everyone = judged.measured(judged.total(np.ones(judged.heads)), depth)[:, :, -1]
        measured[way] = (judged.measured(judged.total(shown.weights), depth)[:, :, -1], everyone)
    first, second = (measured[way] for way in shown.ways)
    columns = {
        f"{shown.ways[0]}, these heads": _means(first[0]),
        f"{shown.ways[1]}, these heads": _means(second[0]),
        "difference": _means(second[0] - first[0]),
        f"{shown.ways[0]}: these less all heads": _means(first[0] - first[1]),
    }
    lines = [
        (
            f'<span title="{safe(sentence)}">{safe(metric)}</span>',
            [_metric_cell(values, at) for values in columns.values()],
        )
        for at, (metric, sentence) in enumerate(METRICS.items())
    ]
    st.html(figure_table([safe(name) for name in columns], -1, lines))
    judged_by = f"{len(found.aspects)} of {found.of:,}" if len(found.aspects) < found.of else f"all {found.of:,}"
    st.caption(
        f"{TASKS[shown.task].sentence} By {judged_by} queries, among the first {places}; 95 % intervals, differences "
        "paired by query. Heads that were chosen by these same queries look better here than they are: the curve "
        f"below uses held-out queries.{_among_fewer(shown)}"
    )
    downloads("retrieval-metrics", lambda: _metrics_table(columns))
    counts = sorted(set(found.aspects.tolist()))
    if len(counts) > 1:
        _by_aspects(shown, found.aspects, counts, {way: values[0] for way, values in measured.items()}, places)


def _among_fewer(shown: LabView) -> str:
    """Fewer documents are easier to search: figures of a sample are not those of the corpus."""
    assert shown.state.manifest is not None
    if not shown.state.manifest.is_sampled or shown.task == TOPIC_MATCH:
        return among(shown.state)
    return f"{among(shown.state)} That is easier than among all, of which the figures below are."


def _by_aspects(
    shown: LabView, aspects: np.ndarray, counts: list[int], measured: dict[str, np.ndarray], places: int
) -> None:
    metric = list(METRICS).index("success")
    lines: dict[str, list[Row]] = {}
    for way, values in measured.items():
        lines[way] = []
        for count in counts:
            of = _means(values[:, aspects == count])
            row = {"value": of.value[metric], "low": of.low[metric], "high": of.high[metric]}
            lines[way].append({**row, "queries": int((aspects == count).sum())})
    figure(
        aspects_figure(counts, lines, theme(), f"success among the first {places}"),
        "retrieval-by-aspects",
        lambda: pa.Table.from_pylist(
            [
                {"way": way, "aspects": count, **row}
                for way, rows in lines.items()
                for count, row in zip(counts, rows, strict=True)
            ]
        ),
        caption="The more documents a query asks for, the harder it is to find them all with one vector.",
        alt="Success by the number of documents that a query asks for, a line for each way.",
    )


def _means(values: np.ndarray) -> Interval:
    """Of ``values[metric, query]``; a query that has no such metric does not count."""
    known = ~np.isnan(values.T)
    return ratios(np.where(known, values.T, 0), known.astype(np.float32))


def _metric_cell(values: Interval, at: int) -> str:
    if np.isnan(values.value[at]):
        return "–"
    low, high = number(float(values.low[at])), number(float(values.high[at]))
    return f"{number(float(values.value[at]))}<small>{low} to {high}</small>"


def _metrics_table(columns: dict[str, Interval]) -> pa.Table:
    found: list[dict[str, object]] = []
    for name, values in columns.items():
        for at, metric in enumerate(METRICS):
            figures = {key: float(getattr(values, key)[at]) for key in ("value", "low", "high")}
            found.append({"what": name, "metric": metric, **figures})
    return pa.Table.from_pylist(found)


def _rivals_path(shown: LabView) -> Path:
    """Runs of older versions have no such table."""
    return shown.state.run.analysis_path("pruning_rivals")


@shows_mistakes
def pruning_section(shown: LabView) -> None:
    """The curve from all heads to one, on queries that had no part in the choice."""
    assert shown.task is not None
    found = rows(shown.state, "pruned", stage=shown.stage, task=shown.task)
    st.subheader("Which heads can be pruned", anchor=False, help=why("interval", "activation"))
    if not found:
        st.info("There are too few queries to choose by one half of them and tell of the other.")
        return
    ways = [row["way"] for row in found]
    way = ways[0]
    if len(ways) > 1:
        way = linked(st.segmented_control, "Let go by", "pruned", ways, ways[0], required=True)
    row = next(row for row in found if row["way"] == way)
    what = f"{row['metric']} among the first {row['k']}"
    assert shown.state.manifest is not None
    rivals = rows(shown.state, "pruning_rivals") if shown.state.run.has(_rivals_path(shown)) else []
    st.markdown(plain(pruned_sentence(row, shown.state.manifest.shape, shown.stage, rivals, given=_cautions(shown))))
    wanted = {"stage": shown.stage, "task": shown.task, "way": way}
    curve = rows(shown.state, "pruning", **wanted)
    figure(
        curve_figure(curve, row["heads"], theme(), what),
        "pruning-curve",
        pa.Table.from_pylist(curve),
        caption=f"Chosen by {row['chosen_by']} queries, shown for the {row['told_of']} others. Shaded: 95 % "
        "intervals over the queries; for random order, 95 % of 20 orders.",
        alt="The metric as heads go one by one, in three orders.",
    )
    importance = rows(shown.state, "importance", **wanted)
    figure(
        importance_figure(importance, theme(), row["metric"]),
        "head-importance",
        pa.Table.from_pylist(importance),
        caption="What is lost when one head alone goes, on all queries; filled: heads of the smallest set that is "
        "enough. A head whose work others do as well loses nothing by itself.",
        alt="What is lost without each head, with intervals.",
    )


def _cautions(shown: LabView) -> list[Caution]:
    """What neither the labels nor the queries of this task can show."""
    ranked_by = rows(shown.state, "retrieval", task=shown.task)
    return all_cautions(tables(shown.state), ranked_by) if shown.state.analysed else retrieval_cautions(ranked_by)


@shows_mistakes
def ways_section(shown: LabView) -> None:
    """Every way to rank with all heads."""
    assert shown.task is not None
    metric, places = TASKS[shown.task].metric, TASKS[shown.task].places
    found = rows(shown.state, "retrieval", stage=shown.stage, task=shown.task, metric=metric, k=places)
    st.subheader("All ways, all heads", anchor=False, help=why("interval", "chance"))
    figure(
        ways_figure(found, theme(), f"{metric} among the first {places}"),
        "ways",
        pa.Table.from_pylist(found),
        caption=f"{found[0]['queries'] if found else 0} queries, 95 % intervals.",
        alt="One metric for every way to rank, with intervals and chance.",
    )


@shows_mistakes
def weights_section(shown: LabView) -> None:
    """Learned weights against uniform ones and MRAG's scores."""
    assert shown.task is not None
    found = rows(shown.state, "weights", stage=shown.stage, task=shown.task)
    if not found:
        return
    st.subheader("What weights gain", anchor=False, help=why("interval"))
    st.markdown(plain(weights_sentence(found)))
    lines = [(safe(_KINDS[row["kind"]]), [cell(row, "value"), _gained(row)]) for row in found]
    metric = TASKS[shown.task]
    columns = [f"{metric.metric} among the first {metric.places}", "gained over uniform weights"]
    st.html(figure_table([safe(name) for name in columns], -1, lines))
    st.caption(
        "Weights for the mean of head cosines, learned on one half of the queries (regularised towards 1, how strongly "
        "by cross-validation) and shown for the other. They are a preset above."
    )


_KINDS = {"uniform": "uniform", "mrag": "MRAG's head scores", "learned": "learned"}


def _gained(row: Row) -> str:
    return "–" if row["kind"] == "uniform" else cell(row, "gained")


REST = "rest"


@shows_mistakes
def turned_section(shown: LabView) -> None:
    """At stage 4: the model's own embedding with heads turned up and down, what it finds and how good that is."""
    st.subheader("The model's own embedding, heads turned up and down", anchor=False)
    rest = has_rest(shown.state) and bool(
        linked(
            lambda label, _, **looks: int(st.toggle(label, **looks)),
            "Keep the rest",
            REST,
            (0, 1),
            1,
            help="What the embedding has beside the shares of this layer's heads: earlier layers, feed-forward blocks "
            "and biases. With it and all weights 1, this is the model's embedding.",
        )
    )
    st.caption(
        f"{'rest + ' if rest else ''}Σ weight × share, ranked by cosine. Query and documents are turned alike."
        + ("" if has_rest(shown.state) else " The rest is left out, since this run does not store stage 3.")
    )
    index, question = head_index(shown.state, shown.stage), shown.question
    assert index.space is not None
    turned = TurnedHeads(index.space, shown.weights, rest)
    asked, corpus = question_rows(shown.state, question), corpus_rows(shown.state)
    found = turned.rank(asked, corpus, SHOWN, row_of(shown.state, question.own))
    docs = vector_docs(shown.state)[found.docs]
    left, right = st.columns(2, gap="medium")
    with left:
        _cards(documents(shown.state), Ranking(docs, found.scores, found.by_head), question.relevant, shown.weights)
    with right:
        _turned_parts(shown, replace(found, docs=docs))
        if shown.task is not None:
            _turned_metrics(shown, turned)
    take_turned_away(shown.state, turned)


def _turned_parts(shown: LabView, found: TurnedRanking) -> None:
    titles = documents(shown.state).rows(found.docs, ["title"])["title"].to_pylist()
    heads = found.by_head.shape[1]
    table = pa.table(
        {
            "place": np.arange(1, len(found.docs) + 1),
            "doc": found.docs + 1,
            "cosine": found.scores,
            "rest": found.rest,
            **{f"head {head + 1}": found.by_head[:, head] for head in range(heads)},
        }
    )
    figure(
        votes_figure(found.by_head, [drawn(shortened(title, 60)) for title in titles], theme(), shown.reliability),
        "turned",
        table,
        caption="What each head adds to each document's cosine; with what the rest adds (in the data), the parts add "
        "up to it.",
        alt=f"Documents by heads: what each head adds to the cosine of each of the first {len(titles)} documents.",
    )


def _turned_metrics(shown: LabView, turned: TurnedHeads) -> None:
    """These weights against the same sum with all weights 1, paired by query."""
    assert shown.task is not None
    own = bench(shown.state, shown.stage, shown.task)
    other = bench(shown.state, OUTPUT, shown.task) if has_rest(shown.state) else None
    queries = share_rows(own.queries, None if other is None else other.queries)
    searched = share_rows(own.index.vectors, None if other is None else other.index.vectors)
    answers = Relevance.of(own.asked.relevant, own.asked.topics)
    places = TASKS[shown.task].places

    def reached(heads: TurnedHeads) -> np.ndarray:
        return measured(heads.ranked(queries, searched, own.asked.own, places), answers)[:, :, -1]

    these, usual = reached(turned), reached(replace(turned, weights=np.ones_like(turned.weights)))
    whole = "the model's own" if turned.rest else "all weights 1"
    columns = {"these weights": _means(these), whole: _means(usual), "difference": _means(these - usual)}
    lines = [
        (
            f'<span title="{safe(sentence)}">{safe(metric)}</span>',
            [_metric_cell(values, at) for values in columns.values()],
        )
        for at, (metric, sentence) in enumerate(METRICS.items())
    ]
    st.html(figure_table([safe(name) for name in columns], -1, lines))
    st.caption(
        f"By {len(own.aspects)} queries ({TASKS[shown.task].title}), among the first {places}; 95 % intervals, "
        "differences paired by query. Weights that were chosen by these same queries look better here than they are."
    )
