"""HTTP for the answers of an untrusted server: limited in size, and from no other host than the one asked.

Without a limit a broken or hostile server fills the memory; with a redirect it sends documents, and the key, elsewhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import openai

MOST_OF_AN_ANSWER = 10**6
"""Bytes. An answer is a topic and a number; a model that thinks aloud still stays below."""
MOST_OF_A_FILE = 500 * 10**6
"""Bytes of a batch's answers: 10 kB for each of its 50,000 requests. They go to the disk."""
_PLAIN = "identity"


class Refused(openai.OpenAIError):
    """An answer that is not taken; the message goes on after "The server …". The library does not try again."""


class _Limited(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """A body, up to a number of bytes."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._most, self._got = stream, most, 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            yield self._counted(piece)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield self._counted(piece)

    def _counted(self, piece: bytes) -> bytes:
        self._got += len(piece)
        if self._got > self._most:
            raise Refused(
                f"answered with more than {self._most / 1e6:g} MB, far more than any answer needs. Check --base-url"
            )
        return piece

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()


def guard(response: httpx2.Response) -> None:
    """Called before a body is read, and before a redirect is followed."""
    if response.headers.get("content-encoding", "").strip().lower() not in ("", _PLAIN):
        raise Refused("answered with compressed data, although it was asked not to. Turn compression off there")
    if response.has_redirect_location:
        _refuse_elsewhere(response.request.url, response.headers["location"])
    most = MOST_OF_A_FILE if response.request.url.path.endswith("/content") else MOST_OF_AN_ANSWER
    response.stream = _Limited(response.stream, most)


def _refuse_elsewhere(asked: httpx2.URL, location: str) -> None:
    """A redirect stays within the server; from http to https of the same host and, by default, port it may go."""
    try:
        target = asked.join(location)
    except httpx2.InvalidURL:
        raise Refused("redirects to an address that is not valid. Check --base-url") from None
    upgraded = asked.copy_with(scheme="https") if asked.scheme == "http" else asked
    if (target.scheme, target.netloc) not in {(url.scheme, url.netloc) for url in (asked, upgraded)}:
        where = target.netloc.decode("ascii", "replace") or f"a {target.scheme} address"
        raise Refused(f"redirects to {where}, which is not followed. Give the address to use with --base-url")


async def _guard(response: httpx2.Response) -> None:
    guard(response)


def waiting_client(**settings: Any) -> httpx2.Client:
    return openai.DefaultHttpxClient(headers={"accept-encoding": _PLAIN}, event_hooks={"response": [guard]}, **settings)


def async_client(**settings: Any) -> httpx2.AsyncClient:
    return openai.DefaultAsyncHttpxClient(
        headers={"accept-encoding": _PLAIN}, event_hooks={"response": [_guard]}, **settings
    )
