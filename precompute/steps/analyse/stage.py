"""One stage's figures: two passes over its parts, then what is computed from what they added up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analysis.auc import Histograms
from core.analysis.examples import Examples
from core.analysis.probe import Samples, probes
from core.analysis.redundancy import Moments
from core.analysis.similarity import full_vectors, head_norms, pooled, refuse_not_finite, similarity
from core.analysis.topic_match import Mismatches, mismatches, nearest_is_own, ranks
from core.model.shape import ModelShape
from core.model.share_space import ShareSpace
from core.model.stages import HEADS, SLICINGS, cut
from core.runs.files import replacing
from core.runs.labels import own
from core.runs.run import Run
from core.runs.schema import DIGEST, similarity_schema
from precompute.job.progress import OnProgress
from precompute.job.step import Rows
from precompute.job.vectors import StageVectors
from precompute.steps.analyse import null_tables, tables
from precompute.steps.analyse.untrained import UntrainedTwin

_CHUNK = 1_000
"""Documents that are worked on at a time, however large a part is."""


@dataclass(frozen=True)
class StageInputs:
    stage: int
    shape: ModelShape
    topics: tuple[str, ...]
    topic_vectors: np.ndarray
    """``[topic, width]``."""
    labels: np.ndarray
    """``[doc]``: indices of topics, -1 for none."""
    centre: bool
    samples: Samples | None
    """What the probe sees; None where there are too few documents or heads for one."""
    compared: np.ndarray
    """Documents on which heads are compared with random slices, in random order; see null_tables.choose_documents."""
    untrained: UntrainedTwin | None
    seed: int
    digest: str
    space: ShareSpace | None = None
    """Of stage 4."""


@dataclass(frozen=True)
class CorpusSums:
    """What the first pass collects: the mean over all documents, and each topic's examples."""

    mean: np.ndarray
    """``[width]``."""
    topics: np.ndarray
    """``[topic, width]``: sums of centred documents."""
    documents: np.ndarray
    """``[topic]``: how many they are."""

    def examples(self, heads: int) -> Examples:
        width = len(self.mean)
        return Examples(self.topics.reshape(-1, heads, width // heads).astype(np.float32), self.documents)


@dataclass
class SliceSums:
    """What the second pass collects for one way of slicing: a few numbers a document and head, never their vectors."""

    histograms: Histograms
    samples: np.ndarray
    """``[sample, dim]``: the vectors of the probe."""
    ranks: list[np.ndarray] = field(default_factory=list)
    """``[doc, method]`` of labelled documents: the full embedding, the heads, the poolings."""
    own: list[np.ndarray] = field(default_factory=list)
    """``[doc, 1 + head]`` of labelled documents."""
    similarity: np.ndarray = field(default_factory=lambda: np.zeros(()))
    """``[1 + head, topic]``: sums over all documents."""


@dataclass(frozen=True)
class StageSums:
    """What the second pass has collected."""

    slices: dict[str, SliceSums]
    moments: Moments
    activation: np.ndarray
    """``[2, 1 + head]``: sums over documents of the norm and of its square."""
    mismatches: list[Mismatches]
    compared: np.ndarray
    """``[doc, width]``: the vectors of ``StageInputs.compared``, in that order."""
    example_hits: list[np.ndarray]
    """``[doc, 1 + head]`` of labelled documents whose topic has enough examples."""


def analyse_stage(run: Run, inputs: StageInputs, on_progress: OnProgress) -> dict[str, Rows]:
    """The rows of every table of one stage; its similarities are written on the way."""
    samples, docs = inputs.samples, len(inputs.labels)
    vectors = StageVectors(run, inputs.stage)
    corpus = _corpus_sums(run, vectors, inputs, on_progress)
    sums = _collect(run, vectors, inputs, corpus, on_progress)
    compared = null_tables.compare(
        inputs, sums.compared, corpus.mean, lambda share: on_progress(0.3 + 0.2 * share, "heads against random slices")
    )
    on_progress(0.5, "head × head redundancy")
    found = {
        **compared.rows,
        "example_match": tables.example_match(inputs.stage, sums.example_hits, corpus.examples(1)),
        "examples": tables.examples(inputs.stage, inputs.topics, corpus.mean, corpus.topics, corpus.documents, docs),
        **tables.redundancy(inputs.stage, sums.moments.redundancy(), inputs.shape, inputs.seed),
        "mismatches": tables.mismatches(inputs.stage, inputs.topics, sums.mismatches),
    }
    labelled = inputs.labels[inputs.labels >= 0]
    control = tables.Control(inputs.stage)
    match: Rows = {}
    differences: Rows = {}
    profile_rows: Rows = {}
    probe_rows: Rows = {}
    confusion_rows: Rows = {}
    on_progress(0.55, "the probe")
    probed = probes({slicing: sums.slices[slicing].samples for slicing in SLICINGS}, samples, seed=inputs.seed)
    for (slicing, split), probe_of in probed.items():
        tables.add_probe(probe_rows, confusion_rows, inputs.stage, slicing, split, probe_of)
        control.probe(slicing, split, probe_of)
    on_progress(0.9, "topic match")
    for slicing in SLICINGS:
        part = sums.slices[slicing]
        if len(labelled):
            match_of = tables.topic_match(part.ranks, labelled, len(inputs.topics), inputs.seed)
            tables.add_topic_match(match, inputs.stage, slicing, match_of)
            tables.add_differences(differences, inputs.stage, slicing, part.ranks, inputs.seed)
            control.topic_match(slicing, match_of, part.ranks)
    # Random slices first: a head's alignment is judged against theirs.
    on_progress(0.95, "head profiles")
    for slicing in reversed(SLICINGS):
        part = sums.slices[slicing]
        profile_of = tables.profile(part.own, labelled, len(inputs.topics), inputs.seed, part.similarity / docs)
        control.profile(slicing, profile_of)
        tables.add_profiles(
            profile_rows,
            inputs,
            slicing,
            profile_of,
            part.histograms.auc(),
            sums.activation if slicing == HEADS else None,
            control.random_alignment,
            compared.verdicts.get(slicing),
        )
    return {
        **found,
        "topic_match": match,
        "topic_match_differences": differences,
        "probe": probe_rows,
        "confusion": confusion_rows,
        "profiles": profile_rows,
        "control": control.rows(),
    }


def _chunks(vectors: StageVectors) -> Iterator[tuple[int, np.ndarray]]:
    """``(first document, rows[doc, width])`` in float32."""
    first = 0
    for part in vectors:
        for start in range(0, len(part), _CHUNK):
            yield first + start, part[start : start + _CHUNK].astype(np.float32)
        first += len(part)


def _corpus_sums(run: Run, vectors: StageVectors, inputs: StageInputs, on_progress: OnProgress) -> CorpusSums:
    """Over all documents; refuses vectors that are not finite."""
    topics, docs = len(inputs.topics), len(inputs.labels)
    total = np.zeros((topics, inputs.topic_vectors.shape[1]))
    everything = np.zeros(total.shape[1])
    for first, rows in _chunks(vectors):
        refuse_not_finite(rows, inputs.shape.heads, inputs.stage, first, run.rebuild)
        everything += rows.sum(axis=0, dtype=np.float64)
        labels = inputs.labels[first : first + len(rows)]
        member = np.arange(topics)[:, None] == labels
        total += member.astype(np.float32) @ rows
        on_progress(0.1 * (first + len(rows)) / docs, "checking the vectors")
    mean = everything / docs
    counts = np.bincount(inputs.labels[inputs.labels >= 0], minlength=topics)
    return CorpusSums(mean, total - counts[:, None] * mean, counts)


def _collect(
    run: Run, vectors: StageVectors, inputs: StageInputs, corpus: CorpusSums, on_progress: OnProgress
) -> StageSums:
    mean = corpus.mean
    heads, topics, samples = inputs.shape.heads, len(inputs.topics), inputs.samples
    dim = inputs.topic_vectors.shape[1] // heads
    sums = StageSums(
        slices={
            slicing: SliceSums(Histograms(1 + heads, topics), np.empty((len(samples or ()), dim), dtype=np.float32))
            for slicing in SLICINGS
        },
        moments=Moments(mean, heads),
        activation=np.zeros((2, 1 + heads)),
        mismatches=[],
        compared=np.empty((len(inputs.compared), len(mean)), dtype=np.float32),
        example_hits=[],
    )
    centre, examples = mean.astype(np.float32), corpus.examples(heads)
    place = np.argsort(inputs.compared, kind="stable")
    shift = mean.astype(np.float32) if inputs.centre else np.float32(0)
    names, space = inputs.topic_vectors - shift, inputs.space
    topic_slices = {slicing: cut(names, heads, slicing, space) for slicing in SLICINGS}
    full_topics = full_vectors(names.reshape(topics, heads, dim), space)
    schema = similarity_schema(1 + heads, topics)
    path = run.similarity_path(inputs.stage)
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(
            temporary,
            schema.with_metadata({DIGEST: inputs.digest}),
            compression="none",
            use_dictionary=False,
            write_page_checksum=True,
        ) as writer,
    ):
        for first, rows in _chunks(vectors):
            docs = np.arange(first, first + len(rows), dtype=np.int32)
            labels = inputs.labels[first : first + len(rows)]
            sums.moments.add(rows, first)
            here = slice(*np.searchsorted(inputs.compared[place], [first, first + len(rows)]))
            sums.compared[place[here]] = rows[inputs.compared[place[here]] - first]
            centred = (rows - centre).reshape(len(rows), heads, dim)
            sums.example_hits.append(_example_hits(centred, labels, examples, space))
            norms = head_norms(rows.reshape(len(rows), heads, dim), space)
            full = full_vectors((rows - shift).reshape(len(rows), heads, dim), space), full_topics
            sums.activation[:] += norms.sum(axis=0), (norms**2).sum(axis=0)
            for slicing in SLICINGS:
                values = _slice(
                    sums.slices[slicing],
                    rows,
                    slicing,
                    labels,
                    topic_slices[slicing],
                    shift,
                    first,
                    samples,
                    full,
                    space,
                )
                if slicing == HEADS:
                    writer.write_table(_similarity_rows(docs, values, schema))
                    wrong = mismatches(values[:, 0], labels)
                    sums.mismatches.append(
                        Mismatches(first + wrong.docs, wrong.label, wrong.nearest, wrong.rank, wrong.margin)
                    )
            on_progress(0.1 + 0.2 * (first + len(rows)) / len(inputs.labels), "similarity to topics")
    return sums


def _slice(
    sums: SliceSums,
    rows: np.ndarray,
    slicing: str,
    labels: np.ndarray,
    topics: np.ndarray,
    shift: np.ndarray | np.float32,
    first: int,
    samples: Samples | None,
    full: tuple[np.ndarray, np.ndarray],
    space: ShareSpace | None,
) -> np.ndarray:
    """Adds some documents, cut one way, to ``sums``; returns their similarities ``[doc, 1 + head, topic]``."""
    heads = topics.shape[1]
    if samples is not None:
        chosen = samples.within(first, len(rows))
        # As they are, not centred: what a head's vectors have in common is what the probe goes by.
        sums.samples[chosen] = cut(rows, heads, slicing, space)[samples.docs[chosen] - first, samples.heads[chosen]]
    docs = cut(rows - shift, heads, slicing, space)
    values = similarity(docs, topics, full)
    sums.similarity = sums.similarity + values.sum(axis=0, dtype=np.float64)
    known = labels >= 0
    if known.any():
        methods = np.concatenate([values, pooled(docs, topics, values, space is not None)], axis=1)[known]
        sums.ranks.append(ranks(methods, labels[known]))
        sums.own.append(own(values[known], labels[known]))
        sums.histograms.add(values[known], labels[known])
    return values


def _example_hits(centred: np.ndarray, labels: np.ndarray, examples: Examples, space: ShareSpace | None) -> np.ndarray:
    """``[doc, 1 + head]`` of the documents whose topic has enough examples: whether it is the nearest one."""
    chosen = np.flatnonzero((labels >= 0) & np.append(examples.usable, False)[labels])
    return nearest_is_own(examples.with_full(centred[chosen], labels[chosen], space), labels[chosen])


def _similarity_rows(docs: np.ndarray, values: np.ndarray, schema: pa.Schema) -> pa.Table:
    flat = pa.array(values.astype(np.float16).reshape(-1))
    column = pa.FixedSizeListArray.from_arrays(flat, type=schema.field("values").type)
    return pa.Table.from_arrays([pa.array(docs), column], schema=schema)
