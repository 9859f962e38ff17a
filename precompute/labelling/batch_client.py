"""The Batch API's calls, with the server's failures as sentences."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import IO, TypeVar

import openai

from core.errors import Mistake
from precompute.labelling.batch_files import ENDPOINT
from precompute.labelling.config import AskConfig
from precompute.labelling.endpoint import address
from precompute.labelling.faults import Remedy, fault_of
from precompute.labelling.guarded import waiting_client
from precompute.labelling.secret import find_secret

ENDED = ("completed", "failed", "expired", "cancelled")
_UPLOAD_SECONDS = 600.0
_MARK = "headscope"
"""The batch's metadata that holds our own name for it."""
_LOOKED_AT = 1_000
"""Batches of the account, the newest first, among which a lost one is looked for."""
_LATER = "Start the same command again later: batches continue on the server and are picked up again."

T = TypeVar("T")


@dataclass(frozen=True)
class State:
    """Of a batch at the server."""

    status: str
    finished: int
    """Requests that are over, answered or not."""
    output_file: str | None
    error_file: str | None
    message: str
    """What the server says of a batch that failed as a whole; in one line, without the key."""


class BatchClient:
    def __init__(self, config: AskConfig) -> None:
        self._config = config
        self.secret = find_secret(config.base_url)
        # Here the library's own retries will do: nothing but the batch itself is paid for.
        self._openai = openai.OpenAI(
            api_key=self.secret.reveal(),
            base_url=address(config.base_url),
            max_retries=config.tries - 1,
            timeout=config.timeout,
            http_client=waiting_client(),
        )

    def upload(self, file: IO[bytes]) -> str:
        file.seek(0)
        client = self._openai.with_options(timeout=max(_UPLOAD_SECONDS, self._config.timeout))
        return self._told(lambda: client.files.create(file=("questions.jsonl", file), purpose="batch")).id

    def create(self, file_id: str, submission: str) -> str:
        """The new batch's id. Never sent twice blindly: one whose creation timed out may be there, and be paid for."""
        once = self._openai.with_options(max_retries=0)
        for attempt in range(self._config.tries):
            try:
                return once.batches.create(
                    input_file_id=file_id,
                    endpoint=ENDPOINT,
                    completion_window="24h",
                    metadata={_MARK: submission},
                ).id
            except openai.OpenAIError as error:
                fault = fault_of(error, self._config, self.secret)
            if fault.remedy is not Remedy.AGAIN:
                break
            time.sleep(max(self._config.backoff * 2**attempt, fault.wait or 0.0))
            if (found := self.find(submission)) is not None:
                return found
        raise Mistake(fault.sentence if fault.remedy is Remedy.STOP else f"{fault.sentence} {_LATER}") from None

    def find(self, submission: str) -> str | None:
        """The id of the batch that we named so, if the server has it."""

        def look() -> str | None:
            for batch in islice(self._openai.batches.list(limit=100), _LOOKED_AT):
                if (batch.metadata or {}).get(_MARK) == submission:
                    return batch.id
            return None

        return self._told(look)

    def state(self, batch_id: str) -> State:
        batch = self._told(lambda: self._openai.batches.retrieve(batch_id))
        counts, errors = batch.request_counts, (batch.errors.data if batch.errors else None) or []
        return State(
            status=str(batch.status),
            finished=(counts.completed or 0) + (counts.failed or 0) if counts else 0,
            output_file=batch.output_file_id,
            error_file=batch.error_file_id,
            message=self.secret.clean(errors[0].message or errors[0].code) if errors else "",
        )

    def fetch(self, file_id: str, into: IO[bytes]) -> None:
        """Downloads a file, from the beginning again if the connection breaks."""

        def download() -> None:
            into.seek(0)
            into.truncate()
            with self._openai.files.with_streaming_response.content(file_id) as response:
                for piece in response.iter_bytes():
                    into.write(piece)

        for attempt in range(self._config.tries):
            try:
                self._told(download)
                break
            except Mistake:
                raise
            except Exception as error:  # the library does not wrap what happens in mid-download
                if attempt + 1 == self._config.tries:
                    kind = type(error).__name__
                    raise Mistake(f"A batch's answers could not be fetched completely ({kind}). {_LATER}") from None
                time.sleep(self._config.backoff * 2**attempt)
        into.seek(0)

    def close(self) -> None:
        self._openai.close()

    def _told(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except openai.OpenAIError as error:
            fault = fault_of(error, self._config, self.secret)
        raise Mistake(fault.sentence if fault.remedy is Remedy.STOP else f"{fault.sentence} {_LATER}")
