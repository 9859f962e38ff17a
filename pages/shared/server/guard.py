"""What stands before every request, Streamlit's own addresses included: middleware around the whole app.

- the host name must be one of ours, and a websocket or a change must come from a page of ours (DNS rebinding, CSRF);
- with ``[auth]``, everything but the empty front end and the way in needs a login, before a byte of the body is read;
- a login that has ended is taken out of the request, so that Streamlit sees a visitor who has not signed in;
- uploads and messages have limits;
- answers carry the headers that tell a browser what the page may do, and cookies are ``Secure`` behind TLS.
"""

from __future__ import annotations

import ipaddress
import json
import re
import secrets
import socket
import time
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from functools import cache, lru_cache
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.auth_util import get_cookie_with_chunks
from streamlit.web.server.server_util import get_cookie_secret, is_allowed_origin
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value

from core.errors import Mistake
from core.settings import Settings, read_settings
from pages.shared.server.access import Gate, find_gate, may_enter
from pages.shared.server.headers import HEADERS
from pages.shared.server.index_page import asks_for_page, send_page
from pages.shared.server.packed import front_end_file, packed
from pages.shared.server.sign_outs import SignOuts
from pages.shared.server.uploads import Upload, UploadsUnderWay

LOGIN_COOKIE = "_streamlit_user"
STRANGERS_MESSAGE, SMALLEST_MESSAGE = 100_000, 5_000_000
"""Bytes of a websocket message: before the login it holds a click on "Sign in", after it perhaps a pasted text."""
_UPLOADS = "/_stcore/upload_file/"
_PROBES = ("/healthz", "/_stcore/health")
_OPEN = (*_PROBES, "/_stcore/host-config", "/_stcore/stream")
_GUARDED = ("/_stcore", "/media", "/component", "/app/static")
_FIGURES = ("/metrics", "/_stcore/metrics")
_WAY_IN_AND_OUT = ("/auth/login", "/auth/logout", "/oauth2callback")
_FRAMING = 64 * 1024
"""Bytes of a request around the file in it, where it does not say its length."""


@dataclass(frozen=True)
class Login:
    """A login that is valid, by Streamlit's own cookie; a large one comes in ``parts``, each signed by itself."""

    user: Mapping[str, Any]
    parts: tuple[bytes, ...]


@dataclass(frozen=True)
class Rules:
    """What holds for a request; ``gate`` is None where the settings are wrong and nobody comes in."""

    settings: Settings | None
    gate: Gate | None

    def lets_in(self, login: Login | None) -> bool:
        if self.gate is None or self.settings is None:
            return False
        if self.gate.is_open:
            return True
        domains, trusted = self.settings.allowed_domains, self.settings.trusted_providers
        return login is not None and may_enter(login.user, domains, trusted)


@lru_cache(maxsize=1)
def _rules(_second: int) -> Rules:
    try:
        settings = read_settings()
    except Mistake:
        return Rules(None, None)
    try:
        return Rules(settings, find_gate(settings))
    except Mistake:
        return Rules(settings, None)


def rules_now() -> Rules:
    """Looked up once a second: a page is a hundred requests."""
    return _rules(int(time.monotonic()))


class Guard:
    """The middleware; one for the server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._coming = UploadsUnderWay()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        rules, headers, path = rules_now(), Headers(scope=scope), _path(scope)
        answer = _answering(scope, rules, headers, send)
        if refusal := _misdirected(scope, rules, headers, path):
            await _refuse(scope, receive, answer, 403, refusal)
            return
        cookies = HTTPConnection(scope).cookies
        login = find_login(cookies, rules)
        if path in _WAY_IN_AND_OUT:
            if path == "/auth/logout" and login is not None and rules.settings is not None:
                sign_outs(rules.settings.state).add(login.parts)
        elif login is None:
            _forget_login(scope, cookies)
        if scope["type"] == "websocket":
            await self._watched(scope, receive, answer, rules, cookies, login)
        elif path in _FIGURES and not _has_token(rules, headers) and (_needs_token(rules) or not rules.lets_in(login)):
            await _refuse(scope, receive, answer, 401, "Metrics need a login, or HEADSCOPE_METRICS_TOKEN.")
        elif path not in _FIGURES and not _is_open(scope, path) and not rules.lets_in(login):
            await _refuse(scope, receive, answer, 401, "Sign in first.")
        elif scope["method"] == "PUT" and path.startswith(_UPLOADS) and rules.settings is not None:
            with self._coming.room(_upload(path, headers, rules.settings), rules.settings) as refusal:
                if refusal:
                    await _refuse(scope, receive, answer, 413, refusal)
                else:
                    await self._app(scope, receive, answer)
        elif asks_for_page(scope) and rules.lets_in(login):  # a login page has no sidebar to leave room for
            await send_page(self._app, scope, receive, answer)
        elif file := front_end_file(scope, path):
            await (await packed(file, headers))(scope, receive, answer)
        else:
            await self._app(scope, receive, answer)

    async def _watched(
        self, scope: Scope, receive: Receive, send: Send, rules: Rules, cookies: dict[str, str], login: Login | None
    ) -> None:
        """A websocket: messages have a limit, and end with the login that it was opened with."""
        most = STRANGERS_MESSAGE
        if rules.settings is not None and rules.lets_in(login):
            most = max(SMALLEST_MESSAGE, rules.settings.upload_mb * 10**6)
        _limit_messages(receive, most)
        over = False

        async def next_message() -> Message:
            nonlocal over
            message = await receive()
            if message["type"] == "websocket.receive" and login is not None and not find_login(cookies, rules_now()):
                await send({"type": "websocket.close", "code": 1008})
                over = True
                return {"type": "websocket.disconnect", "code": 1008}
            return message

        async def answer(message: Message) -> None:
            if not over:
                await send(message)

        await self._app(scope, next_message, answer)


def find_login(cookies: Mapping[str, str], rules: Rules) -> Login | None:
    """Who has signed in, as Streamlit itself reads its cookie: signed, for this address, not too old, not ended."""
    if rules.gate is None or rules.settings is None or rules.gate.is_open or LOGIN_COOKIE not in cookies:
        return None
    secret, days = get_cookie_secret(), rules.settings.login_hours / 24
    parts: dict[str, bytes] = {}

    def signed(name: str) -> bytes | None:
        value = cookies.get(name, "").encode("latin-1", "replace")
        content = decode_signed_value(secret, name, value, days)
        if content is not None:
            # Without the signature: it can be spelt in more than one way.
            parts[name] = name.encode() + b"=" + value.rpartition(b".")[0]
        return content

    found = get_cookie_with_chunks(signed, LOGIN_COOKIE)
    if len(parts) > 1:
        del parts[LOGIN_COOKIE]  # it holds the number of the others, and is the same for everybody of that second
    if not found or sign_outs(rules.settings.state).has(parts.values()):
        return None
    try:
        user = json.loads(found)
    except ValueError:
        return None
    if not isinstance(user, dict) or user.get("is_logged_in") is not True or user.get("origin") != rules.gate.origin:
        return None
    return Login(user, tuple(parts.values()))


@cache
def sign_outs(folder: Path) -> SignOuts:
    """One for the life of the process."""
    return SignOuts(folder)


def is_our_host(host: str | None, allowed: tuple[str, ...], origin: str = "") -> bool:
    """Whether a Host header names this server.

    An IP address does: a page that somebody else's name has led to (DNS rebinding) is asked for by that name.
    """
    try:
        parsed = urlsplit(f"//{host}")
        name, _ = parsed.hostname, parsed.port
    except ValueError:
        return False
    if not host or not name or parsed.netloc != host or "@" in host:
        return False
    name = name.rstrip(".")
    if "*" in allowed or name in allowed or name in _own_names() or name == urlsplit(origin).hostname:
        return True
    if name.endswith(".localhost") or any(name.endswith(each[1:]) for each in allowed if each.startswith("*.")):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@cache
def _own_names() -> frozenset[str]:
    name = socket.gethostname().lower()
    shown = str(config.get_option("browser.serverAddress") or "").lower()
    return frozenset({"localhost", name, name.split(".")[0], shown} - {""})


def _path(scope: Scope) -> str:
    """Without ``server.baseUrlPath``, below which Streamlit's own addresses are."""
    base = str(config.get_option("server.baseUrlPath") or "").strip("/")
    path: str = scope["path"]
    return path.removeprefix(f"/{base}") if base else path


def _misdirected(scope: Scope, rules: Rules, headers: Headers, path: str) -> str | None:
    if path in _PROBES:  # a balancer asks by whatever name it has, and learns nothing else
        return None
    host = headers.get("host")
    allowed = rules.settings.allowed_hosts if rules.settings else ()
    if not is_our_host(host, allowed, rules.gate.origin if rules.gate else ""):
        name = re.sub(r":\d+$", "", host or "")
        if not re.fullmatch(r"[A-Za-z0-9.-]{1,253}", name):
            return "The request does not name a valid host."
        return (
            f"This server does not answer to the host name '{name}'. Whoever runs it can allow it with "
            f"HEADSCOPE_ALLOWED_HOSTS={name}."
        )
    origin = headers.get("origin")
    changes = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
    if changes and origin is not None and not _is_same(origin, host) and not is_allowed_origin(origin):
        return "The request comes from a page of another server. A proxy must pass on the Host header unchanged."
    return None


def _is_same(origin: str, host: str | None) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == (host or "").lower()
    except ValueError:
        return False


def _is_open(scope: Scope, path: str) -> bool:
    """What anybody may ask for: the front end, which is the same for every app and holds nothing, and the way in."""
    if path in _OPEN:
        return True
    if any(path == each or path.startswith(f"{each}/") for each in _GUARDED):
        return False
    return scope["method"] in ("GET", "HEAD")


def _needs_token(rules: Rules) -> bool:
    """With a token, an app that is open to everybody still shows its figures to monitoring alone."""
    return bool(rules.settings and rules.settings.metrics_token and rules.gate and rules.gate.is_open)


def _has_token(rules: Rules, headers: Headers) -> bool:
    token = rules.settings.metrics_token if rules.settings else None
    given = headers.get("authorization", "").encode("latin-1")
    return token is not None and secrets.compare_digest(given, f"Bearer {token}".encode("latin-1"))


def _upload(path: str, headers: Headers, settings: Settings) -> Upload:
    length = headers.get("content-length", "")
    most = settings.upload_mb * 2**20 + _FRAMING
    return Upload(path.removeprefix(_UPLOADS).split("/")[0], int(length) if length.isdecimal() else most)


def _limit_messages(receive: Receive, most: int) -> None:
    """Messages above the limit end the connection as soon as their length is known.

    Uvicorn has one limit for all connections, which Streamlit sets to 200 MB; the connection's own is reached through
    what it receives by.
    """
    connection = getattr(getattr(receive, "__self__", None), "conn", None)
    if connection is not None and hasattr(connection, "max_message_size"):
        connection.max_message_size = most


def _forget_login(scope: MutableMapping[str, Any], cookies: Mapping[str, str]) -> None:
    """Cookies are told apart as Starlette does it, which strips more than spaces from their names."""
    if any(name.startswith(LOGIN_COOKIE) for name in cookies):
        scope["headers"] = [
            (name, _without_login(value) if name == b"cookie" else value) for name, value in scope["headers"]
        ]


def _without_login(cookies: bytes) -> bytes:
    parts = cookies.decode("latin-1").split(";")
    return ";".join(each for each in parts if not each.strip().startswith(LOGIN_COOKIE)).encode("latin-1")


def _answering(scope: Scope, rules: Rules, headers: Headers, send: Send) -> Send:
    """Adds what every answer says."""
    origin = rules.gate.origin if rules.gate else ""
    schemes = (scope.get("scheme", ""), headers.get("x-forwarded-proto", "").split(",")[0], urlsplit(origin).scheme)
    seconds = rules.settings.login_hours * 3600 if rules.settings else 0

    async def answer(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            found = MutableHeaders(raw=list(message.get("headers", ())))
            cookies = [_cookie(value, "https" in schemes, seconds) for value in found.getlist("set-cookie")]
            del found["set-cookie"]
            for cookie in cookies:
                found.append("set-cookie", cookie)
            for name, value in HEADERS.items():
                found[name] = value
            message = {**message, "headers": found.raw}
        await send(message)

    return answer


def _cookie(text: str, secure: bool, seconds: int) -> str:
    """A cookie of Streamlit's, which makes them for 30 days and for any scheme."""
    try:
        name = next(iter(SimpleCookie(text)), "")
    except CookieError:
        name = ""
    if name.startswith(LOGIN_COOKIE) and not re.search(r"max-age=0\b", text, re.IGNORECASE):
        text = re.sub(r"(?i)max-age=\d+", f"Max-Age={seconds}", text)
    return text if not secure or re.search(r"(?i);\s*secure\b", text) else f"{text}; Secure"


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, sentence: str) -> None:
    """Without reading the body. A stranger's connection ends, so that they cannot go on sending it."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = {"Cache-Control": "no-store"}
    if status != 413:  # of the reader's own browser, which is to see the answer
        headers["Connection"] = "close"
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    await PlainTextResponse(f"{sentence}\n", status, headers)(scope, receive, send)


MIDDLEWARE = (Middleware(Guard),)
