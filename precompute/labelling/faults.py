"""What went wrong with a request, and what is to be done about it."""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

import openai

from precompute.labelling.config import AskConfig
from precompute.labelling.endpoint import address
from precompute.labelling.guarded import Refused
from precompute.labelling.secret import KEY, Secret


class Remedy(Enum):
    AGAIN = auto()
    """The same request may do better a little later."""
    SIMPLER = auto()
    """The server may understand it with less in it."""
    SKIP = auto()
    """The server will never answer for this document: unlabelled, with the reason."""
    GIVE_UP = auto()
    """It will not get better, and it is not known whose fault it is: failed this time."""
    STOP = auto()
    """No document will be answered."""


@dataclass(frozen=True)
class Fault:
    remedy: Remedy
    sentence: str
    """Without the key, in one line."""
    wait: float | None = None
    """Seconds that the server asks to wait."""
    complaint: str = ""
    """What the server said, in small letters; for code, not for people."""


_KEPT = "What has been paid for is kept: start the same command again afterwards."
_STOPS = {
    401: f"does not accept the key. Put a valid one into {KEY}.",
    402: "requires payment. Check the account's credit.",
    403: f"does not allow this with the key in {KEY}. Use a key that may use the model.",
    404: "does not know the model or the address. Check --label-model, and whether --base-url ends in /v1.",
}
_AGAIN = {408, 409, 425, 429}
_OUT_OF_CREDIT = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_ABOUT_THE_DOCUMENT = (
    ("content_policy", "the server refused the document by its content policy"),
    ("content policy", "the server refused the document by its content policy"),
    ("content_filter", "the server's content filter refused the document"),
    ("content management policy", "the server's content filter refused the document"),
    ("invalid_prompt", "the server refused the document by its content policy"),
    ("context_length", "the document is too long for the model"),
    ("context length", "the document is too long for the model"),
    ("context size", "the document is too long for the model"),
    ("too long", "the document is too long for the model"),
    ("string_above_max_length", "the document is too long for the model"),
)
_COMPLAINTS = {400, 422, 500, 501}
"""With these servers say that they do not know a part of the request; llama.cpp and its kin say it with 500."""


def fault_of(error: Exception, config: AskConfig, secret: Secret) -> Fault:
    """Every exception of the client; one that it is not meant to raise is raised again by the caller."""
    where = f"The server at {address(config.base_url)}"
    if isinstance(error, Refused):
        return Fault(Remedy.STOP, f"{where} {secret.clean(error)}. {_KEPT}")
    if not isinstance(error, openai.APIStatusError):
        timed_out = isinstance(error, openai.APITimeoutError | TimeoutError)
        said = (
            f"took longer than {config.timeout:g} s"
            if timed_out
            else "cannot be reached or stopped in the middle of its answer"
        )
        return Fault(Remedy.AGAIN, f"{where} {said}.")
    status, said = error.status_code, secret.clean(_message(error))
    codes = f"{error.code} {error.type} {error.param}".lower()
    complaint = f"{codes} {_message(error)}".lower()
    sentence = f"{where} answered with HTTP {status}: {said.rstrip('.')}."
    if status in _STOPS:
        return Fault(Remedy.STOP, f"{where} {_STOPS[status]} {_KEPT} (HTTP {status}: {said})")
    if status == 429 and any(code in codes for code in _OUT_OF_CREDIT):
        return Fault(Remedy.STOP, f"{where} says that the account is out of credit. Top it up. {_KEPT} ({said})")
    if status in (400, 413, 422) and (reason := about_the_document(complaint)) is not None:
        return Fault(Remedy.SKIP, f"{reason}: {said}")
    if status == 413:
        return Fault(Remedy.SKIP, f"the document is too long for the server: {said}")
    if status in _COMPLAINTS and any(word in complaint for word in ("response_format", "json_schema", "structured")):
        return Fault(Remedy.SIMPLER, sentence, complaint=complaint)
    if status in _AGAIN or status >= 500:
        return Fault(Remedy.AGAIN, sentence, wait=retry_after(error.response.headers))
    return Fault(Remedy.SIMPLER if status in _COMPLAINTS else Remedy.GIVE_UP, sentence, complaint=complaint)


def about_the_document(complaint: str) -> str | None:
    """Why a server will not answer for one document, if that is what it says in its code or its words."""
    return next((reason for words, reason in _ABOUT_THE_DOCUMENT if words in complaint), None)


def _message(error: openai.APIStatusError) -> str:
    """The server's own words, without what the client puts around them."""
    body = error.body
    if isinstance(body, Mapping):
        said = body.get("message") or body.get("detail") or body.get("error")
        if said:
            return str(said)
    return str(body or error.response.reason_phrase or "no reason given")


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``Retry-After`` as seconds or as a date; None if not said."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        at = email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
    return max(0.0, at - (time.time() if now is None else now))
