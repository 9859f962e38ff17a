"""A batch's files: questions as lines of JSON on the way out, answers as lines of JSON on the way back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Literal, TextIO

from precompute.labelling.client import Reply, reply_of
from precompute.labelling.config import AskConfig
from precompute.labelling.guarded import MOST_OF_AN_ANSWER
from precompute.labelling.request import AskedQuestion, Dialect, body

MOST_REQUESTS, MOST_BYTES = 50_000, 100 * 10**6
"""Of one batch. OpenAI takes 50,000 requests and, by now, 200 MB; it took 100 MB for long, and others still do."""
ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"


@dataclass(frozen=True)
class Line:
    """An answer of a batch: a reply, or an error."""

    key: str
    reply: Reply | None
    status: int
    """HTTP's, for this one request; 0 where it was never sent."""
    error: Mapping[str, Any]


def line_of(asked: AskedQuestion, config: AskConfig, dialect: Dialect) -> bytes:
    request = {
        "custom_id": asked.key,
        "method": "POST",
        "url": ENDPOINT,
        "body": body(config, asked.sent, dialect),
    }
    return json.dumps(request, ensure_ascii=False).encode() + b"\n"


class BatchChunk:
    """Lines for one batch, as many as it may have."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.keys: dict[str, None] = {}
        self.reserved = 0.0
        self._bytes = 0

    def takes(self, line: bytes) -> bool:
        return len(self.keys) < MOST_REQUESTS and self._bytes + len(line) <= MOST_BYTES

    def clear(self) -> None:
        """For the next batch."""
        self.file.seek(0)
        self.file.truncate()
        self.keys.clear()
        self.reserved, self._bytes = 0.0, 0

    def add(self, key: str, line: bytes, reserved: float) -> None:
        self.file.write(line)
        self.keys[key] = None
        self.reserved += reserved
        self._bytes += len(line)


def read_lines(file: TextIO) -> Iterator[Line]:
    """Answers and errors; a line that is neither is passed over, and its question counts as unanswered."""
    for text in iter(lambda: file.readline(MOST_OF_AN_ANSWER), ""):
        try:
            row = json.loads(text)
            key, response = row["custom_id"], row.get("response") or {}
            error = response.get("body", {}).get("error") or row.get("error") or {}
            status = int(response.get("status_code") or 0)
            reply = reply_of(response["body"]) if status == 200 else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        yield Line(str(key), reply, status, error if isinstance(error, Mapping) else {"message": error})
