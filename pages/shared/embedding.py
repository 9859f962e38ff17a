"""Documents through a run's own model: loaded once a process, used by one job at a time, never by a page's own thread.

A document and what came of it are kept by the session that brought it, and by nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import numpy as np
import streamlit as st

from core.errors import Mistake
from core.model.attention import Attended, Matrix
from core.model.chunks import Chunk, Reach, chunks, reach
from core.model.head_words import HeadWords, head_words
from core.model.ledger import Explanation, explain
from core.model.one_head_off import OneHeadOff, one_head_off
from core.model.stages import SHARE, split_heads
from core.runs.manifest import Manifest
from core.settings import setting
from pages.shared.data import RunState
from pages.shared.notices import show_problem
from pages.shared.queue import Queue, Ticket
from pages.shared.server.log import Stopwatch, event
from pages.shared.server.metrics import count, observe
from pages.shared.server.visit import note_problem, session_id
from pages.shared.text import plain

if TYPE_CHECKING:
    from core.model.embedder import Embedder

SECONDS = 120.0
"""A document's time limit, from when the model is loaded and it is its turn."""
MOST_CHUNKS = 64
MOST_TOKENS = 128
"""Of a matrix of attention: more could not be told apart, and every session keeps its own."""
_MOST_MODELS = 2
_MOST_KEPT = 64
"""Results of a session that are kept; the oldest go."""
_AT_ONCE = 0.8
"""Seconds that a page waits before it says that it waits: most documents are there by then."""
_KEPT = "documents through the model"
_BEGINNING, _QUERY = _ANSWERS = ("beginning", "query")
"""Jobs without which a page shows nothing; all others add something to it."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class EmbeddedText:
    """One text as a run's model reads it, in one part or several."""

    parts: tuple[Chunk, ...]
    """First the beginning, as far as the model reads in one piece; then, if asked for, all chunks."""
    vectors: dict[int, np.ndarray]
    """By stage ``[part, head, dim]``, float32, not normalised."""
    reach: Reach


@dataclass(frozen=True)
class WhyText:
    """One of two texts that are compared."""

    name: str
    text: str
    query: bool = False
    """Whether the model's query prompt goes before it."""
    doc: int | None = None
    """Which document of the corpus it is, if it is one."""


@dataclass
class ModelPool:
    """What all sessions share: the queue and the models. Only the worker's thread touches the models."""

    queue: Queue = field(default_factory=Queue)
    models: dict[str, Embedder] = field(default_factory=dict)

    def model(self, manifest: Manifest, ticket: Ticket[Any]) -> Embedder:
        """The run's own model, from the disk at its first use; the clock runs from when it is there."""
        record = manifest.model
        kept = ("revision", "layer", "pooling", "prompt", "query_prompt", "max_tokens", "dtype")
        shares = SHARE in manifest.stages
        key = repr([*(record.get(name) for name in kept), *(["shares"] if shares else [])])
        if key not in self.models:
            from core.model.same_model import Whereabouts, run_model

            ticket.check(f"Loading the model {record['name']} …")
            found = run_model(
                manifest.model, Whereabouts(device=setting("HEADSCOPE_DEVICE"), fetch=False), shares=shares
            )
            while len(self.models) >= _MOST_MODELS:
                del self.models[next(iter(self.models))]
            self.models[key] = found
        self.models[key] = self.models.pop(key)  # the one used last goes last
        ticket.start_clock()
        return self.models[key]


@st.cache_resource(show_spinner=False)
def model_pool() -> ModelPool:
    return ModelPool()


def _leave(tickets: WeakSet[Ticket[Any]]) -> None:
    for ticket in list(tickets):
        if not ticket.over:
            ticket.cancel(abandoned=True)


@st.cache_resource(show_spinner=False, scope="session", on_release=_leave)
def _pending() -> WeakSet[Ticket[Any]]:
    """This session's tickets, held by nothing but the session: when the browser has gone, its jobs are taken back."""
    return WeakSet()


def reading(state: RunState, text: str, begun: EmbeddedText | None = None) -> EmbeddedText | None:
    """The text through the run's model; None, and how far it is, while it is not there yet.

    Its beginning, as far as the model reads in one piece; given that, as ``begun``, all its chunks as well.
    """
    kind, work = _reading(state, text, begun)
    return _result(kind, state, text, work)


def begin_reading(state: RunState, texts: Sequence[str]) -> None:
    """Texts that will be looked at go to the model one after another, so that they are there by then."""
    for text in texts:
        kind, work = _reading(state, text)
        with suppress(Mistake):  # the queue is full: each is asked for again when it is looked at
            _ticket(kind, state, text, work)


def _reading(
    state: RunState, text: str, begun: EmbeddedText | None = None
) -> tuple[str, Callable[[Ticket[EmbeddedText]], EmbeddedText]]:
    manifest = state.manifest
    assert manifest is not None
    session = session_id()

    def work(ticket: Ticket[EmbeddedText]) -> EmbeddedText:
        model = model_pool().model(manifest, ticket)
        clock, outcome, tokens, parts = Stopwatch(), "failed", None, None
        try:
            found = read(model, text, begun, manifest.stages, ticket)
            outcome, tokens, parts = "ok", found.reach.total, len(found.parts)
        finally:
            count("headscope_documents_total", outcome)
            observe("headscope_document_seconds", clock.seconds)
            event(
                "document",
                run=state.run.name,
                tokens=tokens,
                parts=parts,
                ms=clock.ms,
                outcome=outcome,
                session=session,
            )
        return found

    return _BEGINNING if begun is None else "chunks", work


def embedded_query(state: RunState, text: str) -> dict[int, np.ndarray] | None:
    """A query through the run's model, with its prompt for queries: by stage ``[head, dim]``; None until then."""
    manifest = state.manifest
    assert manifest is not None

    def work(ticket: Ticket[dict[int, np.ndarray]]) -> dict[int, np.ndarray]:
        model = model_pool().model(manifest, ticket)
        ticket.check("Embedding the query …")
        found, shape = model.embed([text], query=True), model.info.shape
        return {stage: split_heads(found.stage(stage), stage, shape)[0] for stage in manifest.stages}

    return _result(_QUERY, state, text, work)


def attended(state: RunState, text: str) -> Attended | None:
    """Where each head looks in the text; None while that is not there yet."""
    manifest = state.manifest
    assert manifest is not None

    def work(ticket: Ticket[Attended]) -> Attended:
        model = model_pool().model(manifest, ticket)
        ticket.check("Reading the attention …")
        return model.attended(text)

    return _result("attended", state, text, work)


def attention_matrix(state: RunState, text: str, layer: int) -> Matrix | None:
    """Where each head of a layer looks from every token of the text's beginning; None while that is not there yet."""
    manifest = state.manifest
    assert manifest is not None

    def work(ticket: Ticket[Matrix]) -> Matrix:
        model = model_pool().model(manifest, ticket)
        ticket.check("Reading the attention …")
        found = model.attention_matrix(text, layer, MOST_TOKENS)
        return replace(found, weights=found.weights.astype(np.float16))

    return _result(f"attention at layer {layer}", state, text, work)


def explained(state: RunState, first: WhyText, second: WhyText) -> Explanation | None:
    """The cosine of two texts as a sum over the model's parts; None while that is not there yet."""
    manifest = state.manifest
    assert manifest is not None

    def work(ticket: Ticket[Explanation]) -> Explanation:
        model = model_pool().model(manifest, ticket)
        ticket.check("Taking both embeddings apart …")
        one, other = model.ledgers([first.text, second.text], query=(first.query, second.query))
        if not (one.output.any() and other.output.any()):
            raise Mistake("One of the two texts has an embedding of length 0, which has no cosine. Choose another.")
        return explain(one, other)

    return _result(f"why {first.query} {second.query}", state, _joined(first, second), work)


def head_in_both(state: RunState, first: WhyText, second: WhyText, layer: int, head: int) -> HeadWords | None:
    """Which words make up one head's value in that sum; ``layer`` and ``head`` from 1, None while it is not there."""
    manifest = state.manifest
    assert manifest is not None

    def work(ticket: Ticket[HeadWords]) -> HeadWords:
        model = model_pool().model(manifest, ticket)
        ticket.check("Comparing word by word …")
        found = model.word_pairs(first.text, second.text, layer, head, query=(first.query, second.query))
        pieces = (model.pieces(first.text, query=first.query), model.pieces(second.text, query=second.query))
        return head_words((first.text, second.text), pieces, found)

    kind = f"words {first.query} {second.query} layer {layer} head {head}"
    return _result(kind, state, _joined(first, second), work)


def without_head(state: RunState, text: WhyText, layer: int, head: int) -> OneHeadOff | None:
    """A text's embedding with one head switched off in the model, and how far it moved; None while it is not there."""
    manifest = state.manifest
    assert manifest is not None

    def work(ticket: Ticket[OneHeadOff]) -> OneHeadOff:
        model = model_pool().model(manifest, ticket)
        ticket.check(f"Switching off layer {layer} head {head} …")
        return one_head_off(model, text.text, layer, head, query=text.query, check=ticket.check)

    return _result(f"without layer {layer} head {head} {text.query}", state, text.text, work)


def _joined(first: WhyText, second: WhyText) -> str:
    return f"{len(first.text)} {first.text}{second.text}"


def attended_already(state: RunState, text: str) -> Attended | None:
    """The same, if this session has it; nothing is started or shown."""
    ticket: Ticket[Attended] | None = st.session_state.get(_KEPT, {}).get(_key("attended", state, text))
    return None if ticket is None else ticket.result


def read(
    model: Embedder, text: str, begun: EmbeddedText | None, stages: tuple[int, ...], ticket: Ticket[EmbeddedText]
) -> EmbeddedText:
    """The work of ``reading``, in the worker's thread: a batch at a time, with a look at the ticket between."""
    ticket.check("Counting tokens …")
    if begun is None:
        seen = reach(text, model.tokens, model.info.prompt)
        parts = [Chunk(0, len(text) if seen.end is None else seen.end, text, seen.seen)]
    else:
        parts = chunks(text, model.tokens, model.info.prompt, at_most=MOST_CHUNKS)
    done = 0

    def on_batch(documents: int, _: int) -> None:
        nonlocal done
        done += documents
        ticket.check(f"Embedding: {done} of {len(parts)} parts", done / len(parts))

    ticket.check(f"Embedding: 0 of {len(parts)} parts" if len(parts) > 1 else "Embedding …")
    found, shape = model.embed([part.text for part in parts], on_batch=on_batch), model.info.shape
    vectors = {stage: split_heads(found.stage(stage), stage, shape) for stage in stages}
    if begun is None:
        return EmbeddedText(tuple(parts), vectors, seen)
    joined = {stage: np.concatenate([begun.vectors[stage], vectors[stage]]) for stage in stages}
    return EmbeddedText((*begun.parts, *parts), joined, begun.reach)


def _key(kind: str, state: RunState, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"{kind} {state.run.name} {state.version} {digest}"


def _ticket(kind: str, state: RunState, text: str, work: Callable[[Ticket[Result]], Result]) -> Ticket[Result]:
    """The session's own for this job: one that it has, or a new one at the end of the queue."""
    kept: dict[str, Ticket[Any]] = st.session_state.setdefault(_KEPT, {})
    key = _key(kind, state, text)
    ticket: Ticket[Result] | None = kept.get(key)
    if ticket is None or ticket.abandoned:
        ticket = kept[key] = model_pool().queue.submit(work, SECONDS, detail=kind not in _ANSWERS)
        _pending().add(ticket)
        for old in list(kept)[:-_MOST_KEPT]:
            kept.pop(old).cancel()
    return ticket


def _result(kind: str, state: RunState, text: str, work: Callable[[Ticket[Result]], Result]) -> Result | None:
    try:
        ticket = _ticket(kind, state, text, work)
    except Mistake as mistake:
        note_problem(mistake, "queue")
        st.warning(plain(mistake), icon=":material/hourglass_disabled:")
        return None
    if not ticket.wait(_AT_ONCE):
        _watch(ticket)
        return None
    if ticket.problem:
        show_problem(ticket.problem, "embedding")
        st.button(
            "Try again",
            icon=":material/refresh:",
            key=f"again {kind}",
            on_click=_forget,
            args=(_key(kind, state, text),),
        )
        return None
    return ticket.result


def _forget(key: str) -> None:
    st.session_state[_KEPT].pop(key, None)


@st.fragment(run_every=0.5)
def _watch(ticket: Ticket[Any]) -> None:
    """How far a job is, twice a second; the page goes on when it is over."""
    if ticket.over:
        st.rerun()
    if before := model_pool().queue.before(ticket):
        said = f"Waiting: {before} document{'s' if before > 1 else ''} ahead of yours."
    else:
        said = ticket.doing or "Starting …"
    st.progress(ticket.fraction, text=plain(said))
    st.button("Cancel", icon=":material/close:", key=f"cancel {id(ticket)}", on_click=ticket.cancel)
