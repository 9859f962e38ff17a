"""A run, opened to be read: lazy, read-only, in a folder or in an object store."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from core.cache_address import is_address, is_run_name
from core.errors import Mistake, listed
from core.model.stages import check_head, check_stage
from core.remote.mirror import cache_at, default_cache
from core.runs.files import MANIFEST
from core.runs.manifest import Manifest
from core.runs.results import require
from core.runs.run import Run, row_among
from core.runs.run import open_run as _open
from core.runs.schema import ANALYSIS
from core.runs.steps import STEPS, command, maker_of
from core.settings import setting

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from core.analysis.findings import Finding
    from core.model.embedder import Embedded, Embedder
    from core.model.shape import ModelShape
    from headscope.map_widget import MapWidget


def open_run(name: str, cache: str | Path | None = None) -> OpenedRun:
    """Opens a run of the cache, or the run in a folder or at an address.

    ``name`` is a run's name, a run's folder, or an address with the run's name at its end (``s3://bucket/prefix/demo``);
    ``hf:USER/NAME`` is fetched from the Hugging Face Hub into the cache, unless it is there.
    Without ``cache``, names are looked up where the app looks them up: HEADSCOPE_CACHE, or ``cache/`` of the project.

    >>> open_run("example").name
    'example'
    >>> open_run("exmaple")
    Traceback (most recent call last):
    core.errors.Mistake: There is no run 'exmaple' in the cache. There are: example.
    """
    if str(name).startswith("hf:"):
        from precompute.publish.command import fetched

        place = default_cache() if cache is None else cache_at(cache, setting("HEADSCOPE_MIRROR"))
        return OpenedRun(_open(place, fetched(str(name), place)))
    if cache is None and not is_run_name(name):
        cache, _, name = str(name).rstrip("/").rpartition("/")
        if not is_address(f"{cache}/"):
            cache = Path(cache or ".").expanduser().absolute()
            if not (cache / name / MANIFEST).is_file():
                raise Mistake(f"'{cache / name}' is not a run: it has no {MANIFEST}. Give a run's folder or its name.")
    place = default_cache() if cache is None else cache_at(cache, setting("HEADSCOPE_MIRROR"))
    return OpenedRun(_open(place, name))


def read_as_pages_do() -> None:
    """Before something is read as for a page: Streamlit would remark that nobody is looking at it."""
    logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").setLevel(logging.ERROR)


class OpenedRun:
    """What a run holds. Documents count from 0, as rows of arrays do; heads, layers and stages count from 1."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.manifest: Manifest = run.manifest()
        """What the run is made from, and which steps are done."""
        require(run, self.manifest, "embed")

    def __repr__(self) -> str:
        stages = listed(self.stages)
        documents = f"{int(self.manifest.corpus['documents']):,}"
        return f"<run '{self.name}': {documents} documents, {self.shape.heads} heads, stages {stages}>"

    @property
    def name(self) -> str:
        return self._run.name

    @property
    def model(self) -> Mapping[str, Any]:
        """The model and how it was read.

        >>> run = open_run("example")
        >>> run.model["heads"], run.model["layer"], run.model["pooling"]
        (4, 2, 'mean')
        """
        return MappingProxyType(dict(self.manifest.model))

    @property
    def shape(self) -> ModelShape:
        """Layers, heads, key/value heads, hidden size and head width."""
        return self.manifest.shape

    @property
    def stages(self) -> tuple[int, ...]:
        """The stages whose vectors the run stores."""
        return self.manifest.stages

    @cached_property
    def documents(self) -> pd.DataFrame:
        """All documents with their texts, one row per document; for some columns only, see ``read_documents``.

        >>> open_run("example").documents.loc[:2, ["id", "topic"]]
           id    topic
        0  d0  harbour
        1  d1   violin
        2  d2  glacier
        """
        return self.read_documents()

    def read_documents(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Some columns of the documents. In a large run, leave out ``text``.

        >>> open_run("example").read_documents(["topic"])["topic"].value_counts().to_dict()
        {'harbour': 12, 'violin': 12, 'glacier': 12}
        """
        known = [*self._document_columns]
        if unknown := [name for name in columns or () if name not in known]:
            raise Mistake(f"The documents have no column '{unknown[0]}'. There are: {listed(known)}.")
        return self._run.documents(columns).to_pandas()

    @property
    def _document_columns(self) -> list[str]:
        from core.runs.schema import documents_schema

        names: list[str] = documents_schema(self.manifest.corpus["extra"]).names
        return names

    @cached_property
    def vector_docs(self) -> np.ndarray:
        """The documents that have vectors: all, unless the run stores those of a sample."""
        return self._run.vector_docs()

    def vectors(self, stage: int) -> np.ndarray:
        """The head vectors ``[doc, head, dim]`` as they are stored, not normalised.

        Row ``i`` belongs to document ``vector_docs[i]``; ``[:, 10]`` is head 11.

        >>> open_run("example").vectors(stage=1).shape
        (36, 4, 8)
        """
        check_stage(stage, self.stages)
        parts = list(self._run.finite_vectors(stage))
        return np.concatenate(parts).reshape(len(self.vector_docs), self.shape.heads, -1)

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """The topics that documents are compared with.

        >>> open_run("example").topics
        ('glacier', 'harbour', 'violin')
        """
        from core.runs.results import read_topics

        require(self._run, self.manifest, "analyse")
        return read_topics(self._run).names

    @property
    def similarity(self) -> StageSimilarity:
        """By stage, the cosines ``[doc, 1 + head, topic]`` with the topics' names; index 0 is the full embedding.

        >>> run = open_run("example")
        >>> run.similarity[3].shape  # 36 documents, full embedding and 4 heads, 3 topics
        (36, 5, 3)
        """
        return StageSimilarity(self)

    @property
    def tables(self) -> RunTables:
        """The run's tables by name, as pandas data frames.

        >>> run = open_run("example")
        >>> "probe" in run.tables, "ablation" in run.tables
        (True, False)
        >>> list(run.tables["groups"].columns)[:3]
        ['stage', 'within', 'between']
        """
        return RunTables(self._run, self.manifest)

    @cached_property
    def findings(self) -> list[Finding]:
        """What the run's figures say, in sentences with their numbers, as in the app and in ``report``.

        >>> {"about", "sentence", "evidence"} <= set(vars(open_run("example").findings[0]))
        True
        """
        from pages.shared.run_findings import run_findings

        return run_findings(self._run)

    def nearest(self, doc: int, head: int = 0, stage: int = 1, count: int = 10) -> pd.DataFrame:
        """The documents nearest to ``doc`` by cosine, in one head or (0) in the full embedding.

        >>> open_run("example").nearest(0, head=2, stage=1, count=3).columns.tolist()
        ['doc', 'id', 'title', 'topic', 'similarity']
        """
        from core.retrieval.nearest import nearest_by

        if head:
            check_head(head, self.shape.heads)
        row = row_among(self.vector_docs, doc)
        if row < 0:
            raise Mistake(f"Document {doc} has no vectors in the run '{self.name}'. Choose one of vector_docs.")
        index = self._index(stage)
        found = nearest_by(index.cosines_in(head, index.vectors[row]), row, count)
        docs = self.vector_docs[found.docs]
        rows = self._run.document_lookup().rows(docs, ["doc", "id", "title", "topic"]).to_pandas()
        return rows.assign(similarity=found.similarity)

    def _index(self, stage: int) -> Any:
        """The vectors of one stage, ready to be compared; those of the stage asked for last are held."""
        from core.retrieval.head_index import HeadIndex
        from core.runs.shares import space_of

        kept: dict[int, HeadIndex] = self.__dict__.setdefault("_indexes", {})
        if stage not in kept:
            check_stage(stage, self.stages)
            kept.clear()
            space = space_of(self._run, self.manifest, stage)
            parts = self._run.finite_vectors(stage)
            kept[stage] = HeadIndex.of(parts, self.shape.heads, len(self.vector_docs), space)
        return kept[stage]

    @cached_property
    def _embedder(self) -> Embedder:
        from core.model.same_model import run_model
        from core.model.stages import SHARE

        return run_model(self.manifest.model, shares=SHARE in self.stages)

    def embed(self, texts: Sequence[str], query: bool = False) -> EmbeddedTexts:
        """Embeds texts with the run's own model, in the run's own way; imports torch and loads the model once.

        >>> run = open_run("example")
        >>> found = run.embed(["harbour violin", "glacier"])
        >>> found.vectors(stage=1).shape, found.embedding.shape
        ((2, 4, 8), (2, 32))
        """
        if isinstance(texts, str):
            raise Mistake("embed() takes a list of texts. Write embed([text]).")
        return EmbeddedTexts(self._embedder.embed(list(texts), query=query), self.shape.heads)

    def explain(self, first: int | str, second: int | str) -> Explained:
        """Why two documents (by their number) or texts are similar: their cosine as a sum over the model's parts.

        >>> found = open_run("example").explain(0, "glacier violin")
        >>> bool(abs(found.terms["value"].sum() - found.cosine) < 1e-6)
        True
        """
        from core.analysis.explained import summary
        from core.model.ledger import explain

        both = [self._text(one) for one in (first, second)]
        found = explain(*self._embedder.ledgers(both))
        terms = found.as_json()["terms"]
        import pandas as pd

        frame = pd.DataFrame(terms).astype({"layer": "Int64", "head": "Int64"})
        return Explained(found.cosine, frame, found.residual, summary(found))

    def _text(self, given: int | str) -> str:
        text = given
        if not isinstance(given, str):
            count = int(self.manifest.corpus["documents"])
            if not 0 <= given < count:
                raise Mistake(f"Document {given} does not exist (this run has documents 0–{count - 1}).")
            text = self._run.document_lookup().row(int(given), ["text"])["text"]
        if not str(text).strip():
            raise Mistake("One of the two texts is empty. Give another document or text.")
        return str(text)

    def figure(self, name: str, theme: str = "light", **choices: Any) -> go.Figure:
        """One of the app's figures, drawn by the same code; an unknown name lists the known ones.

        >>> run = open_run("example")
        >>> run.figure("heat map", stage=3).data[0].type
        'heatmap'
        >>> run.figure("heat")
        Traceback (most recent call last):
        core.errors.Mistake: There is no figure 'heat'. There are: head vectors, heat map, maps, probe, pruning, \
random slices, redundancy, retrieval, topic match, topics, whose.
        """
        from headscope.figures import draw

        return draw(self, name, theme, choices)

    def map(self, stage: int | None = None, heads: Sequence[int] | None = None, colour: str = "head") -> MapWidget:
        """The app's head map as a widget of a notebook; it needs the package ``anywidget``.

        ``selected`` holds the documents inside a lasso or box, or the one that was clicked; see ``MapWidget``.

        >>> shown = open_run("example").map(stage=1, heads=[2])
        >>> shown.selected, shown.heads, shown.colour
        ([], [2], 'head')
        """
        from headscope.map_widget import map_widget

        return map_widget(self, stage, heads, colour)

    @property
    def run(self) -> Run:
        """The run as ``core`` knows it."""
        return self._run


@dataclass(frozen=True)
class EmbeddedTexts:
    """Texts embedded by a run's model, float32, not normalised."""

    embedded: Embedded
    heads: int

    def vectors(self, stage: int) -> np.ndarray:
        """``[text, head, dim]``."""
        rows = self.embedded.stage(stage)
        return rows.reshape(len(rows), self.heads, -1)

    @property
    def embedding(self) -> np.ndarray:
        """The model's own embedding ``[text, hidden]``, normalised, as sentence-transformers returns it."""
        rows = self.embedded.output
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


@dataclass(frozen=True)
class Explained:
    """The cosine of two texts as a sum."""

    cosine: float
    terms: pd.DataFrame
    """``kind, layer, head, value``; the values and the residual add up to the cosine."""
    residual: float
    sentence: str


class StageSimilarity(Mapping[int, np.ndarray]):
    """``similarity[stage]``, read when it is asked for."""

    def __init__(self, opened: OpenedRun) -> None:
        self._opened = opened

    def __getitem__(self, stage: int) -> np.ndarray:
        from core.runs.results import read_similarity

        check_stage(stage, self._opened.stages)
        return np.concatenate(list(read_similarity(self._opened.run, stage, len(self._opened.topics))))

    def __iter__(self) -> Iterator[int]:
        return iter(self._opened.stages)

    def __len__(self) -> int:
        return len(self._opened.stages)


class RunTables(Mapping[str, "pd.DataFrame"]):
    """The tables that a run has, each read when it is asked for."""

    def __init__(self, run: Run, manifest: Manifest) -> None:
        self._run, self._manifest = run, manifest

    def _has(self, name: str) -> bool:
        return self._manifest.is_done(maker_of(name)) and self._run.has(self._run.analysis_path(name))

    def __contains__(self, name: object) -> bool:
        return name in ANALYSIS and self._has(str(name))

    def __getitem__(self, name: str) -> pd.DataFrame:
        from core.runs.results import read_analysis

        if name not in ANALYSIS:
            raise Mistake(f"There is no table '{name}'. There are: {listed(self)}.")
        if not self._has(name):
            brings = command(maker_of(name), self._run.name, *(["--again"] if self._is_older(name) else []))
            raise Mistake(f"The run '{self._run.name}' has no table '{name}' yet. Run '{brings}'.")
        return read_analysis(self._run, name).to_pandas()

    def _is_older(self, name: str) -> bool:
        """Whether the step is done, but by a version that did not make this table."""
        return self._manifest.is_done(maker_of(name))

    def __iter__(self) -> Iterator[str]:
        return (name for facts in STEPS.values() for name in facts.tables if self._has(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<tables: {listed(self)}>"
