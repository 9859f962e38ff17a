"""A real HTTP server on loopback that speaks OpenAI's protocol, keeps books, and misbehaves on demand.

What goes wrong is drawn from a hash of the document and of how often it has been asked about: the same in every run.
``python -m tests.support.openai_server --delay 0.2`` prints its address and serves until it is ended.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

COMPLETION_TOKENS = 12
ENOUGH = 64 * 2**20
"""Bytes that an endless answer ends after all with, for clients that take everything."""
TOPICS = ("Cooking", "Sports", "Astronomy")


@dataclass(frozen=True)
class Response:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    paid: bool = False
    """The model has worked, and its tokens are billed once the answer is out."""
    cut: bool = False
    """The connection ends in the middle of the body."""
    hang: bool = False
    """No answer at all until the client goes away."""
    endless: bool = False
    """The body goes on until the client goes away, or to ENOUGH bytes."""


@dataclass(frozen=True)
class Seen:
    """A chat request that arrived."""

    document: str
    """The user's message."""
    attempt: int
    at: float
    fault: str | None
    body: Mapping[str, Any]
    authorization: str


Fault = Callable[["OpenAIServer", Mapping[str, Any], str], Response]


def error_response(status: int, message: str, code: str | None = None, **headers: str) -> Response:
    body = {"error": {"message": message, "type": code or "error", "code": code, "param": None}}
    return Response(status, json.dumps(body).encode(), {name.replace("_", "-"): text for name, text in headers.items()})


def _says(content: str | None, finish: str = "stop", refusal: str | None = None) -> Fault:
    """A fault that is paid for: the model says something else."""
    return lambda server, body, authorization: server.completion(body, content, finish, refusal)


FAULTS: dict[str, Fault] = {
    "429": lambda server, body, key: error_response(429, f"Slow down, {key}.", retry_after=server.retry_after),
    "quota": lambda server, body, key: error_response(429, "You exceeded your current quota.", "insufficient_quota"),
    "500": lambda server, body, key: error_response(500, f"The server had an error, {key}."),
    "401": lambda server, body, key: error_response(401, f"Incorrect API key provided: {key}.", "invalid_api_key"),
    "403": lambda server, body, key: error_response(403, f"Not allowed with {key[:24]}.", "forbidden"),
    "404": lambda server, body, key: error_response(404, "The model does not exist.", "model_not_found"),
    "400": lambda server, body, key: error_response(400, f"Something about {key} is wrong."),
    "policy": lambda server, body, key: error_response(400, f"Rejected, {key}.", "content_policy_violation"),
    "too long": lambda server, body, key: error_response(
        400, "This model's maximum context length is 10 tokens, reduce max_tokens.", "context_length_exceeded"
    ),
    "hang": lambda server, body, key: Response(hang=True),
    "endless": lambda server, body, key: Response(200, endless=True),
    "endless error": lambda server, body, key: Response(500, endless=True),
    "packed": lambda server, body, key: Response(
        200, gzip.compress(server.completion(body, "{}").body), {"content-encoding": "gzip"}
    ),
    "nested": lambda server, body, key: Response(200, b"[" * 100_000),
    "redirect": lambda server, body, key: Response(307, b"", {"location": server.elsewhere}),
    "garbage": lambda server, body, key: Response(200, b"<html>gateway</html>"),
    "dropped": lambda server, body, key: Response(200, server.completion(body, "{}").body, cut=True),
    "truncated": _says('{"topic": "Coo'),
    "wrong enum": _says('{"topic": "Alchemy", "confidence": 0.9}'),
    "empty": _says(None),
    "length": _says('{"topic": "Cooking"', "length"),
    "content filter": _says(None, "content_filter"),
    "refusal": lambda server, body, key: server.completion(body, None, "stop", f"I cannot help with {key}."),
}


class OpenAIServer:
    """A context manager. ``faults`` maps names of FAULTS to the share of requests that they befall."""

    def __init__(
        self,
        topics: Sequence[str] = TOPICS,
        faults: Mapping[str, float] | None = None,
        *,
        seed: int = 0,
        delay: float = 0.0,
        retry_after: str = "0",
        unknown: Sequence[str] = (),
        plain: bool = False,
        batch_ends: Sequence[str] = (),
        batch_polls: int = 1,
    ) -> None:
        """``unknown``: fields of a request that the server does not know. ``plain``: answers come in a code fence.
        ``batch_ends``: how one batch after the other ends, if not 'completed'."""
        self.topics, self.faults, self.seed, self.delay = tuple(topics), dict(faults or {}), seed, delay
        self.retry_after, self.unknown, self.plain = retry_after, tuple(unknown), plain
        self.batch_ends, self.batch_polls = list(batch_ends), batch_polls
        self.elsewhere = ""
        """Where requests are redirected to."""
        self.streamed = 0
        """Bytes of endless answers that were taken."""
        self.seen: list[Seen] = []
        self.paid: Counter[str] = Counter()
        self.prompt_tokens = self.completion_tokens = 0
        self.under_way = self.busiest = 0
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.calls: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()
        self._started = threading.Event()

    # What the model says

    def topic_of(self, document: str) -> str:
        """The first topic of the list whose name occurs in the document, or else the first."""
        return next(
            (topic for topic in self.topics if json.dumps(topic, ensure_ascii=False)[1:-1] in document), self.topics[0]
        )

    def completion(
        self, body: Mapping[str, Any], content: str | None, finish: str = "stop", refusal: str | None = None
    ) -> Response:
        prompt = len(body["messages"][-1]["content"]) // 4 + 1
        total = prompt + COMPLETION_TOKENS
        answer = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish,
                    "message": {"role": "assistant", "content": content, "refusal": refusal},
                }
            ],
            "usage": {"prompt_tokens": prompt, "completion_tokens": COMPLETION_TOKENS, "total_tokens": total},
        }
        return Response(200, json.dumps(answer).encode(), paid=True)

    def _draw(self, document: str, attempt: int) -> str | None:
        digest = hashlib.sha256(f"{self.seed}:{attempt}:{document}".encode()).digest()
        drawn = int.from_bytes(digest[:8], "big") / 2**64
        for name, share in self.faults.items():
            drawn -= share
            if drawn < 0:
                return name
        return None

    def _chat(self, body: Mapping[str, Any], authorization: str) -> Response:
        document = body["messages"][-1]["content"]
        attempt = self._attempts[document]
        self._attempts[document] += 1
        key = authorization.removeprefix("Bearer ")
        fault = self._draw(document, attempt)
        strange = next((name for name in self.unknown if name in body), None)
        self.seen.append(Seen(document, attempt, time.monotonic(), strange or fault, body, authorization))
        if strange:
            return error_response(
                400, f"Unsupported parameter: '{strange}' is not supported with {key}.", "unsupported_parameter"
            )
        if fault:
            return FAULTS[fault](self, body, key)
        said = json.dumps({"topic": self.topic_of(document), "confidence": 0.75}, ensure_ascii=False)
        return self.completion(body, f"```json\n{said}\n```" if self.plain else said)

    def _bill(self, body: Mapping[str, Any], response: Response) -> None:
        usage = json.loads(response.body)["usage"]
        self.paid[body["messages"][-1]["content"]] += 1
        self.prompt_tokens += usage["prompt_tokens"]
        self.completion_tokens += usage["completion_tokens"]

    # Files and batches

    def _upload(self, data: bytes, content_type: str) -> Response:
        boundary = b"--" + content_type.split("boundary=")[1].strip('"').encode()
        for part in data.split(boundary):
            head, _, content = part.partition(b"\r\n\r\n")
            if b'name="file"' in head:
                return self._json(self._file(content.removesuffix(b"\r\n")))
        return error_response(400, "no file")

    def _file(self, content: bytes) -> dict[str, Any]:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "created_at": 1,
            "filename": "f",
            "purpose": "batch",
        }

    def _create_batch(self, asked: Mapping[str, Any]) -> Response:
        name = f"batch_{len(self.batches)}"
        lines = self.files[asked["input_file_id"]].count(b"\n")
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "status": "validating",
            "created_at": 1,
            "request_counts": {"total": lines, "completed": 0, "failed": 0},
            **asked,
            "polls": 0,
        }
        return self._json(self.batches[name])

    def _poll(self, batch: dict[str, Any], authorization: str) -> Response:
        batch["polls"] += 1
        if batch["status"] in ("validating", "in_progress"):
            batch["status"] = "in_progress"
            if batch["polls"] >= self.batch_polls:
                self._work(batch, self.batch_ends.pop(0) if self.batch_ends else "completed", authorization)
        return self._json(batch)

    def _work(self, batch: dict[str, Any], end: str, authorization: str) -> None:
        """A batch that is 'completed' has all its lines answered, one that is 'expired' or 'cancelled' half of them."""
        batch["status"] = end
        lines = self.files[batch["input_file_id"]].splitlines()
        if end == "failed":
            batch["errors"] = {"object": "list", "data": [{"code": "token_limit", "message": "Too many are queued."}]}
            return
        out: list[bytes] = []
        errors: list[bytes] = []
        for number, line in enumerate(lines):
            asked = json.loads(line)
            row: dict[str, Any] = {
                "id": f"line-{number}",
                "custom_id": asked["custom_id"],
                "response": None,
                "error": None,
            }
            if end != "completed" and number >= len(lines) // 2:
                row["error"] = {"code": f"batch_{end}", "message": f"The batch was {end}."}
                errors.append(json.dumps(row).encode())
                continue
            response = self._chat(asked["body"], authorization)
            if response.hang or response.cut:
                response = error_response(500, "lost")
            row["response"] = {"status_code": response.status, "request_id": "r", "body": json.loads(response.body)}
            if response.paid:
                self._bill(asked["body"], response)
            (out if response.status == 200 else errors).append(json.dumps(row).encode())
        batch["request_counts"] = {"total": len(lines), "completed": len(out), "failed": len(errors)}
        for field_name, rows in (("output_file_id", out), ("error_file_id", errors)):
            if rows:
                batch[field_name] = self._file(b"".join(row + b"\n" for row in rows))["id"]

    # HTTP

    def _route(self, method: str, target: str, headers: Mapping[str, str], data: bytes) -> Response:
        address = urlsplit(target)
        parts = address.path.removeprefix("/v1/").split("/")
        authorization = headers.get("authorization", "")
        self.calls[f"{method} {parts[0]}"] += 1
        match method, parts:
            case "POST", ["chat", "completions"]:
                return self._chat(json.loads(data), authorization)
            case "POST", ["files"]:
                return self._upload(data, headers["content-type"])
            case "GET", ["files", name, "content"]:
                return Response(200, self.files[name], {"content-type": "application/octet-stream"})
            case "POST", ["batches"]:
                return self._create_batch(json.loads(data))
            case "GET", ["batches", name] if name in self.batches:
                return self._poll(self.batches[name], authorization)
            case "GET", ["batches"]:
                after = parse_qs(address.query).get("after", [None])[0]
                rows = list(self.batches.values())[::-1]
                names = [row["id"] for row in rows]
                start = names.index(after) + 1 if after in names else 0
                page = rows[start : start + 20]
                more = start + 20 < len(rows)
                return self._json(
                    {"object": "list", "data": page, "has_more": more, "last_id": page[-1]["id"] if page else None}
                )
        return error_response(404, f"There is no {method} {address.path}.")

    @staticmethod
    def _json(value: Mapping[str, Any]) -> Response:
        return Response(200, json.dumps(value).encode())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
                method, target, _ = first.split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
                data = await _read_body(reader, headers)
                is_chat = target.endswith("/chat/completions")
                self.under_way += is_chat
                self.busiest = max(self.busiest, self.under_way)
                try:
                    response = self._route(method, target, headers, data)
                    if is_chat and self.delay:
                        await asyncio.sleep(self.delay)
                    await self._send(response, reader, writer)
                finally:
                    self.under_way -= is_chat
                if response.paid:
                    self._bill(json.loads(data), response)
        writer.close()

    async def _send(self, response: Response, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if response.hang:
            await reader.read(1)  # the client's going away
            raise ConnectionResetError
        if response.endless:
            await self._stream(response, writer)
            return
        headers = {"content-type": "application/json", "content-length": str(len(response.body)), **response.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        body = response.body[: len(response.body) // 2] if response.cut else response.body
        writer.write(f"HTTP/1.1 {response.status} X\r\n{head}\r\n".encode("latin-1") + body)
        await writer.drain()
        if response.cut:
            writer.close()
            raise ConnectionResetError

    async def _stream(self, response: Response, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {response.status} X\r\ncontent-length: {ENOUGH}\r\n\r\n".encode())
        while self.streamed < ENOUGH:
            writer.write(b" " * 2**16)
            await writer.drain()
            self.streamed += 2**16

    async def _run(self, port: int = 0) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=2**20, backlog=512)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def __enter__(self) -> OpenAIServer:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding") == "chunked":
        data = b""
        while size := int(await reader.readline(), 16):
            data += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return data
    return await reader.readexactly(int(headers.get("content-length", 0)))


def main() -> None:
    parser = argparse.ArgumentParser(description="A server that speaks OpenAI's protocol, for tests.")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--topics", nargs="+", default=TOPICS)
    options = parser.parse_args()
    with OpenAIServer(options.topics, delay=options.delay) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
