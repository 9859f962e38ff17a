"""Which server is asked: OpenAI's own, or anything else that speaks its protocol."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from core.errors import Mistake

OPENAI = "https://api.openai.com/v1"
OWN_HOST = "api.openai.com"


def other_server(base_url: str | None) -> str | None:
    """The address in one spelling, or None for OpenAI's own: prices and answers are the real model's only there."""
    if base_url is None or not base_url.strip():
        return None
    parts = _split(base_url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Mistake(
            "--base-url is not a valid server address. Give one that begins with http:// or https://, such as "
            "http://localhost:8000/v1."
        )
    if parts.username or parts.password or parts.query:
        raise Mistake(
            "--base-url holds a user, a password or a query, which would be written where others can read it. Give "
            "the address alone, and the key in OPENAI_API_KEY."
        )
    if parts.hostname == OWN_HOST:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def address(base_url: str | None) -> str:
    """What requests are sent to, and what a sentence names."""
    return other_server(base_url) or OPENAI


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # a port that is no number is only found here
    except ValueError as error:
        raise Mistake("--base-url is not a valid server address. Give one such as http://localhost:8000/v1.") from error
    return parts
