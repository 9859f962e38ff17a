"""Labels from GPT-4o, or whatever speaks its protocol: what it will cost, the asking, and the answers as labels."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from core.analysis.wording import plural
from core.errors import Mistake
from core.runs.schema import LABELS
from precompute.job.documents import texts
from precompute.labelling.config import AskConfig, Estimate, Tally
from precompute.labelling.endpoint import other_server
from precompute.labelling.prompt import PROMPT_VERSION, TOPIC
from precompute.labelling.secret import find_secret
from precompute.steps.label.config import LabelJob, SourceLabels

if TYPE_CHECKING:
    from precompute.labelling.answers import AnswerStore

_ROWS = 10_000
"""Labels that are collected as Python objects before they become a piece of a table."""


def inputs(job: LabelJob) -> dict[str, object]:
    asking = job.config.asking
    aspect = {} if job.config.aspect == TOPIC else {"definitions": list(job.definitions)}
    return aspect | {
        "prompt": PROMPT_VERSION,
        "model": asking.model,
        "server": other_server(asking.base_url),
        "excerpt_tokens": asking.excerpt_tokens,
    }


def make(job: LabelJob) -> SourceLabels | None:
    """Asks about every document that has not been asked about before."""
    from precompute.labelling.answers_there import answers_at
    from precompute.labelling.ask import estimate

    config = AskConfig(
        topics=job.topics, aspect=job.config.aspect, definitions=job.definitions, **asdict(job.config.asking)
    )
    with answers_at(job.run.cache) as answers:
        job.meter.say("counting tokens")
        plan = estimate(texts(job.run), config, answers, job.config.batch)
        job.config.spending.announce(planned(plan, config.model, job.config.batch))
        if job.config.dry_run:
            return None
        if plan.reused >= plan.documents:  # without a key or a server, too
            spent = None if plan.cost is None else 0.0
            nothing = Tally(plan.documents, plan.documents, 0, 0, plan.documents, spent, 0, 0, None)
            return _collected(job, config, answers, nothing)
        find_secret(config.base_url)  # a key that is missing is told before anybody is asked to agree
        if plan.cost and not job.config.spending.approve(plan.cost):
            raise Mistake(
                "No request was sent and nothing was spent. Pass --yes to continue, or --max-cost to set a limit."
            )
        return _collected(job, config, answers, _asked(job, config, answers))


def _asked(job: LabelJob, config: AskConfig, answers: AnswerStore) -> Tally:
    from precompute.labelling.ask import ask
    from precompute.labelling.batch import ask_batch, waiting

    if not job.config.batch and (promised := waiting(texts(job.run), config, answers)):
        raise Mistake(
            f"{promised:,} of the documents are in a batch that is under way and will be billed. Use --batch "
            "to collect it."
        )
    job.meter.restart()
    show = partial(_show, job)
    try:
        if job.config.batch:
            again = partial(texts, job.run)
            return ask_batch(again, job.documents, config, answers, show, job.config.poll_seconds)
        return ask(texts(job.run), job.documents, config, answers, show)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(
            f"{answers.count():,} answers are paid for and kept in {answers.path.name}; the run's labels are as they "
            "were. Start the same command again to continue."
        ) from stop


def planned(plan: Estimate, model: str, batch: bool) -> str:
    """What is known before anything is spent."""
    said = [f"{plan.documents:,} documents"]
    if plan.reused:
        said.append(f"{plan.reused:,} of them answered before")
    if plan.reused >= plan.documents:
        return f"{', '.join(said)}: nothing to ask, nothing to pay."
    price = (
        f"price of {model} unknown"
        if plan.cost is None
        else f"about ${plan.cost:,.2f} with {model}{', as a batch' if batch else ''} (prices of {plan.prices_of})"
    )
    return f"{', '.join(said)}; about {plan.tokens:,} tokens to send and receive; {price}."


def _show(job: LabelJob, tally: Tally) -> None:
    left = max(0, tally.documents - tally.done)
    spent = "" if tally.spent is None else f", ${tally.spent:,.2f} spent"
    said = f"{tally.labelled:,} labelled, {tally.failed:,} failed{spent}, {left:,} left"
    job.meter.at(tally.done / max(1, tally.documents), said)


def _collected(job: LabelJob, config: AskConfig, answers: AnswerStore, tally: Tally) -> SourceLabels:
    """The answers as labels; what has none yet says why."""
    from precompute.labelling.ask import answer_of

    missing, cost = 0, 0.0
    unasked = f"not asked: {tally.stopped}" if tally.stopped else "not answered: the server failed each time"
    pieces, rows = [LABELS.empty_table()], _no_rows()
    for doc, text in enumerate(texts(job.run)):
        answer = answer_of(text, config, answers)
        missing += answer is None and bool(text.strip())
        cost += (answer.cost or 0.0) if answer else 0.0
        topic = answer.topic if answer else None
        reason = answer.reason if answer else unasked if text.strip() else "the document is empty"
        rows["doc"].append(doc)
        rows["topic"].append(topic)
        rows["score"].append(answer.confidence if answer and topic is not None else None)
        rows["reason"].append(None if topic is not None else reason or "no reason was given")
        if len(rows["doc"]) == _ROWS:
            pieces.append(pa.table(rows, schema=LABELS))
            rows = _no_rows()
    pieces.append(pa.table(rows, schema=LABELS))
    remedy = "Start the same command again to continue."
    notes = []
    if missing:
        unanswered = f"{plural(missing, 'document has', 'documents have')} no answer because the server failed."
        notes.append(f"{tally.stopped or unanswered} {remedy}")
    if tally.spent is not None:
        notes.append(f"This time ${tally.spent:,.2f} was spent; {tally.reused:,} answers were reused.")
    asking, server = job.config.asking, other_server(config.base_url)
    return SourceLabels(
        pa.concat_tables(pieces),
        unfinished=unasked if missing else "",
        notes=tuple(notes),
        counts={
            "reused": tally.reused,
            "not_asked": missing,
            "prompt_tokens": tally.prompt_tokens,
            "completion_tokens": tally.completion_tokens,
        },
        options={
            "model": asking.model,
            **({"server": server} if server else {}),
            "excerpt_tokens": asking.excerpt_tokens,
            **({"batch": True} if job.config.batch else {}),
            "dollars": None if tally.spent is None else round(cost, 6),
        },
    )


def _no_rows() -> dict[str, list[object]]:
    return {name: [] for name in LABELS.names}
