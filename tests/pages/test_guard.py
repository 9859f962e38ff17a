"""What a server with a login takes from whom, by real requests: attacks on it, and the people it is for.

The server believes that it is behind a proxy, at https://heads.example.org; requests say so in Host and Origin.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from streamlit.auth_util import set_cookie_with_chunks
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from core.settings import read_settings
from pages.shared.server import guard
from pages.shared.server.guard import _cookie, is_our_host
from pages.shared.server.headers import HEADERS
from pages.shared.server.sign_outs import SignOuts
from pages.shared.server.uploads import MOST_FILES_OF_A_SESSION
from tests.conftest import SLOW, free_port

SECRET, TOKEN, NAME = "0123456789abcdef" * 4, "a-token-for-prometheus", "heads.example.org"
HOURS, MB = 2, 2**20
ADA = {"email": "ada@example.org", "email_verified": True, "sub": "1", "iat": 1}
HEAD = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n'
TAIL = b"\r\n--b--\r\n"


@dataclass(frozen=True)
class Server:
    port: int
    state: Path

    def ask(
        self,
        method: str,
        path: str,
        cookies: dict[str, str] | None = None,
        body: bytes | Iterator[bytes] | None = None,
        **headers: str,
    ) -> tuple[int, dict[str, str], bytes]:
        """Status 0 where the server ended the connection while the body was being sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        pairs = "; ".join(f"{name}={value}" for name, value in (cookies or {}).items())
        try:
            connection.request(method, path, body, {"Host": NAME, "Cookie": pairs, **headers})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        except (ConnectionResetError, BrokenPipeError):
            return 0, {}, b""
        finally:
            connection.close()

    def status(self, method: str, path: str, cookies: dict[str, str] | None = None, **headers: str) -> int:
        return self.ask(method, path, cookies, None, **headers)[0]

    def xsrf(self) -> str:
        _, headers, _ = self.ask("GET", "/_stcore/health")
        found = re.match("_streamlit_xsrf=([^;]+)", headers["set-cookie"])
        assert found
        return found[1]

    def put(self, session: str, file: str, size: int, cookies: dict[str, str], whole: bool = True) -> int:
        """Uploads a file of that size, as Streamlit's front end does; not ``whole``: in pieces, without a length."""
        token, body = self.xsrf(), HEAD + b"x" * size + TAIL
        status, _, _ = self.ask(
            "PUT",
            f"/_stcore/upload_file/{session}/{file}",
            {**cookies, "_streamlit_xsrf": token},
            body if whole else iter([body]),
            **{"X-Xsrftoken": token, "Content-Type": "multipart/form-data; boundary=b"},
        )
        return status

    def figure(self, name: str) -> float:
        _, _, text = self.ask("GET", "/metrics", Authorization=f"Bearer {TOKEN}")
        return float(re.search(rf"^{name} (\S+)$", text.decode(), re.MULTILINE)[1])  # type: ignore[index]

    @asynccontextmanager
    async def socket(self, cookies: dict[str, str], origin: str = f"https://{NAME}") -> AsyncIterator[ClientConnection]:
        token = self.xsrf()
        pairs = "; ".join(f"{k}={v}" for k, v in {**cookies, "_streamlit_xsrf": token}.items())
        async with (
            asyncio.timeout(SLOW / 1000),
            connect(
                f"ws://{NAME}/_stcore/stream",
                host="127.0.0.1",
                port=self.port,
                origin=origin,  # type: ignore[arg-type]
                additional_headers={"Cookie": pairs},
                subprotocols=["streamlit", token],  # type: ignore[list-item]
                max_size=None,
                proxy=None,
            ) as opened,
        ):
            yield opened


async def run(socket: ClientConnection) -> tuple[str, str]:
    """Runs the page; the session's name, and all that the server sent."""
    question = BackMsg()
    question.rerun_script.query_string = ""
    await socket.send(question.SerializeToString())
    session, shown = "", ""
    async for raw in socket:
        assert isinstance(raw, bytes)
        message = ForwardMsg.FromString(raw)
        shown += str(message)
        session = session or message.new_session.initialize.session_id
        if message.WhichOneof("type") == "script_finished":
            break
    return session, shown


def cookie(age: float = 0.0, secret: str = SECRET, origin: str = f"https://{NAME}", **claims: Any) -> dict[str, str]:
    """A login as Streamlit writes it, by its own function; ``age`` in hours."""
    user = {**ADA, **claims, "origin": origin, "is_logged_in": True, "provider": "default"}
    then = time.time() - 3600 * age
    with mock.patch("itsdangerous.timed.time.time", return_value=then):
        return {"_streamlit_user": create_signed_value(secret, "_streamlit_user", json.dumps(user)).decode()}


def write_secrets(path: Path) -> Path:
    path.write_text(
        f"""[auth]
        redirect_uri = "https://{NAME}/oauth2callback"
        cookie_secret = "{SECRET}"
        client_id = "c"
        client_secret = "s"
        server_metadata_url = "http://127.0.0.1:9/none"
        """
    )
    return path


@pytest.fixture(scope="module")
def start(
    serve: Callable[..., str], planted_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Server]:
    folder = tmp_path_factory.mktemp("guarded")
    secrets = write_secrets(folder / "secrets.toml")

    def begin() -> Server:
        port = free_port()
        serve(
            planted_cache,
            port=port,
            flags=(f"--secrets.files={secrets}", "--server.disconnectedSessionTTL=1"),
            HEADSCOPE_ALLOWED_DOMAINS="example.org",
            HEADSCOPE_LOGIN_HOURS=str(HOURS),
            HEADSCOPE_METRICS_TOKEN=TOKEN,
            HEADSCOPE_STATE=str(folder / "state"),
            HEADSCOPE_UPLOAD_MB="1",
            HEADSCOPE_UPLOADS_MB="8",
        )
        return Server(port, folder / "state")

    return begin


@pytest.fixture(scope="module")
def server(start: Callable[[], Server]) -> Server:
    return start()


STRANGERS = {
    "nobody": {},
    "forged": cookie(secret="another secret, just as long as ours"),
    "of another server": cookie(origin="https://elsewhere.example.org"),
    "too old": cookie(age=HOURS + 0.1),
    "of another domain": cookie(email="eve@example.com"),
    "not verified": cookie(email_verified=False),
    "not said to be verified": cookie(email_verified=None),
    "not JSON": {"_streamlit_user": create_signed_value(SECRET, "_streamlit_user", "ada").decode()},
}


@pytest.mark.parametrize("who", STRANGERS)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/_stcore/upload_file/session/file"),
        ("DELETE", "/_stcore/upload_file/session/file"),
        ("PUT", "/_stcore%2Fupload_file/session/file"),
        ("GET", "/media/0123456789abcdef.csv"),
        ("GET", "/component/map/index.html"),
        ("GET", "/_stcore/bidi-components/map/map.js"),
        ("GET", "/app/static/app.py"),
        ("POST", "/_stcore/agent/interact"),
        ("GET", "/_stcore/agent/openapi.json"),
        ("GET", "/_stcore/metrics"),
        ("GET", "/metrics"),
        ("POST", "/"),
    ],
)
def test_nothing_is_to_be_had_before_the_login(server: Server, who: str, method: str, path: str) -> None:
    assert server.status(method, path, STRANGERS[who]) == 401


@pytest.mark.parametrize("path", ["/", "/head_map", "/healthz", "/_stcore/health", "/_stcore/host-config"])
def test_the_way_in_is_open(server: Server, path: str) -> None:
    assert server.status("GET", path) == 200


@pytest.mark.parametrize("path", ["/media/0123456789abcdef.csv", "/_stcore/bidi-components/map/map.js"])
def test_who_has_signed_in_passes(server: Server, path: str) -> None:
    assert server.status("GET", path, cookie()) == 404, "the file is not there, and that is all that is wrong"


def test_figures_are_for_those_who_have_the_token_or_a_login(server: Server) -> None:
    for path in ("/metrics", "/_stcore/metrics"):
        assert server.status("GET", path, Authorization=f"Bearer {TOKEN}") == 200
        assert server.status("GET", path, cookie()) == 200
        for wrong in ("Bearer ", f"Bearer {TOKEN}x", TOKEN, f"Basic {TOKEN}", "Bearer é"):
            assert server.status("GET", path, Authorization=wrong) == 401


def test_thirty_uploads_of_twenty_megabytes_before_the_login(server: Server) -> None:
    """By somebody whose websocket is open, with Streamlit's own token against forged requests."""

    async def attack() -> None:
        async with server.socket({}) as socket:
            session, shown = await run(socket)
            assert session
            assert "Sign in" in shown
            before = server.figure("process_resident_memory_bytes")
            for number in range(30):
                assert await asyncio.to_thread(server.put, session, f"f{number}", 20 * MB, {}) in (0, 401)
            assert server.figure("headscope_upload_bytes") == 0
            assert server.figure("process_resident_memory_bytes") < before + 60 * MB

    asyncio.run(attack())


def test_what_is_uploaded_after_the_login_has_limits_and_goes_with_its_session(server: Server) -> None:
    """Of 8 MB a session may hold 2; then everybody leaves, and nobody comes."""
    ada, size = cookie(), 9 * MB // 10

    async def upload() -> None:
        async with server.socket(ada) as one, server.socket(ada) as two, server.socket(ada) as three:
            names = [(await run(each))[0] for each in (one, two, three)]
            put = lambda *rest, **more: asyncio.to_thread(server.put, *rest, **more)  # noqa: E731
            assert await put(names[0], "a", size, ada) == 204
            assert await put(names[0], "b", size, ada, whole=False) == 204
            assert await put(names[0], "c", size, ada) == 413
            assert await put(names[0], "c", size, ada, whole=False) == 413
            assert server.figure("headscope_upload_bytes") == 2 * size
            for number in range(MOST_FILES_OF_A_SESSION):
                assert await put(names[1], f"f{number}", 1, ada) == 204
            assert await put(names[1], "another", 1, ada) == 413
            assert await put(names[2], "a", 2 * MB, ada) == 413, "more than a file may have"
            assert await put(names[2], "a", size, ada) == 204

    asyncio.run(upload())
    wait_for(lambda: server.figure("headscope_upload_bytes") == 0)


def test_all_sessions_together_have_a_limit(server: Server) -> None:
    ada, size = cookie(), 9 * MB // 10

    async def upload() -> list[int]:
        async with AsyncExitStack() as stack:
            opened = [await stack.enter_async_context(server.socket(ada)) for _ in range(5)]
            names = [(await run(each))[0] for each in opened]
            return [await asyncio.to_thread(server.put, name, file, size, ada) for name in names for file in "ab"]

    wait_for(lambda: server.figure("headscope_upload_bytes") == 0)
    found = asyncio.run(upload())
    assert found == [204] * 8 + [413] * 2


def wait_for(done: Callable[[], bool]) -> None:
    until = time.monotonic() + SLOW / 1000
    while not done():
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.parametrize(("who", "most"), [("nobody", 100_000), ("ada", 5_000_000)])
def test_a_message_that_is_too_long_is_refused_by_its_length_alone(server: Server, who: str, most: int) -> None:
    """The head of a frame is sent, and nothing of what it announces; one that is within the limit is waited for."""

    async def announce(length: int) -> int | None:
        async with server.socket({} if who == "nobody" else cookie()) as socket:
            await run(socket)
            socket.transport.write(b"\x82\xff" + struct.pack(">Q", length) + bytes(4))
            try:
                async with asyncio.timeout(1 if length <= most else SLOW / 1000):
                    await socket.wait_closed()
            except TimeoutError:
                socket.transport.abort()
            return socket.close_code

    assert asyncio.run(announce(most + 1)) == 1009
    assert asyncio.run(announce(150_000_000)) == 1009
    assert asyncio.run(announce(most)) != 1009


def test_signing_out_ends_the_login_for_every_copy_of_its_cookie(server: Server, start: Callable[[], Server]) -> None:
    ada, other = cookie(iat=2), cookie(iat=3)
    value = ada["_streamlit_user"]
    # The last letter of a signature holds bits that no one reads: another letter, and the signature is still right.
    twin = {"_streamlit_user": value[:-1] + chr(ord(value[-1]) + 1)}

    async def sign_out() -> None:
        async with server.socket(ada) as socket:
            assert "quagga" in (await run(socket))[1]
            assert server.status("GET", "/media/x.csv", ada) == 404
            status, headers, _ = await asyncio.to_thread(server.ask, "GET", "/auth/logout", ada)
            assert status == 302
            assert "_streamlit_user" in headers["set-cookie"]
            with pytest.raises(ConnectionClosed, match="1008"):  # the tab that was open, by its next message
                await run(socket)
        async with server.socket(ada) as socket:
            shown = (await run(socket))[1]
            assert "Sign in" in shown
            assert "quagga" not in shown
        async with server.socket(other) as socket:
            assert "quagga" in (await run(socket))[1], "somebody else"

    asyncio.run(sign_out())
    for each in (server, start()):  # a server that begins later knows of it
        assert each.status("GET", "/media/x.csv", ada) == 401
        assert each.status("GET", "/media/x.csv", twin) == 401
        assert each.status("GET", "/media/x.csv", other) == 404
    assert value not in (server.state / "signed-out").read_text()


def test_parts_of_two_ended_logins_do_not_make_a_third(server: Server) -> None:
    """A login with many claims is several cookies, each signed by itself."""
    one, two, third = (large_cookie(number) for number in (1, 2, 3))
    assert len(one) > 2
    mixed = {**one, "_streamlit_user_1": two["_streamlit_user_1"]}
    assert server.status("GET", "/media/x.csv", mixed) == 404, "Streamlit itself would take it"
    for ended in (one, two):
        assert server.status("GET", "/media/x.csv", ended) == 404
        assert server.status("GET", "/auth/logout", ended) == 302
    for wrong in (one, two, mixed, {**third, "_streamlit_user_2": one["_streamlit_user_2"]}):
        assert server.status("GET", "/media/x.csv", wrong) == 401
    assert server.status("GET", "/media/x.csv", third) == 404


def large_cookie(number: int) -> dict[str, str]:
    cookies: dict[str, str] = {}
    sign = lambda name, value: create_signed_value(SECRET, name, value)  # noqa: E731
    user = {**ADA, "groups": [sha256(f"{number} {each}".encode()).hexdigest() for each in range(200)]}
    set_cookie_with_chunks(
        lambda name, value: cookies.update({name: sign(name, value).decode()}),
        sign,
        "_streamlit_user",
        {**user, "origin": f"https://{NAME}", "is_logged_in": True, "provider": "default"},
        cookie_attr_size=100,
    )
    return cookies


@pytest.mark.parametrize("before", ["", " ", "\t", "a=b; ", "a; ", "\xa0", "\x85", "\x1f", "; ;"])
def test_no_spelling_of_the_cookie_is_left_in_a_request(before: str) -> None:
    cookies = f"{before}_streamlit_user=x;_streamlit_user_1=y; _streamlit_user_tokens=z; _streamlit_xsrf=t"
    scope = {"type": "http", "headers": [(b"host", b"h"), (b"cookie", cookies.encode("latin-1"))]}
    guard._forget_login(scope, HTTPConnection(scope).cookies)
    left = HTTPConnection(scope).cookies
    assert not [name for name in left if name.startswith("_streamlit_user")]
    assert left["_streamlit_xsrf"] == "t"


def test_a_server_that_cannot_write_remembers_until_it_stops(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = SignOuts(tmp_path / "file" / "state")
    found.add([b"ada"])
    assert found.has([b"eve", b"ada"])
    assert not found.has([b"eve"])
    assert not found.is_kept()


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost:8501", True),
        ("127.0.0.1:8501", True),
        ("192.168.0.7", True),
        ("[::1]:8501", True),
        ("Heads.Example.org", True),
        ("heads.example.org.:443", True),
        ("a.lab.example.org", True),
        ("app.localhost", True),
        ("lab.example.org", False),
        ("evil.example.com", False),
        ("heads.example.org.evil.example.com", False),
        ("notlocalhost", False),
        ("127.0.0.1.evil.example.com", False),
        ("evil.example.com@localhost", False),
        ("localhost/evil", False),
        ("localhost:x", False),
        ("[::1", False),
        ("", False),
        (None, False),
    ],
)
def test_names_of_this_server(host: str | None, ours: bool) -> None:
    assert is_our_host(host, ("*.lab.example.org",), "https://heads.example.org") is ours


def test_a_star_is_any_name_but_no_nonsense() -> None:
    assert is_our_host("evil.example.com", ("*",))
    assert not is_our_host("localhost/evil", ("*",))


def test_another_name_gets_a_sentence(server: Server) -> None:
    status, _, said = server.ask("GET", "/", Host="evil.example.com:8501")
    assert (status, said.decode()) == (
        403,
        "This server does not answer to the host name 'evil.example.com'. Whoever runs it can allow it with "
        "HEADSCOPE_ALLOWED_HOSTS=evil.example.com.\n",
    )
    assert server.status("GET", "/", Host="<script>") == 403
    assert server.status("GET", "/healthz", Host="app") == 200, "a balancer has names of its own"
    assert server.status("GET", "/", Host=f"127.0.0.1:{server.port}") == 200


@pytest.mark.parametrize("origin", ["https://evil.example.com", "http://localhost:3000", "null", "https://["])
def test_a_page_of_another_server_opens_no_websocket_and_changes_nothing(server: Server, origin: str) -> None:
    async def open_() -> None:
        async with server.socket(cookie(), origin):
            pass

    with pytest.raises(InvalidStatus, match="403"):
        asyncio.run(open_())
    assert server.status("DELETE", "/_stcore/upload_file/a/b", cookie(), Origin=origin) == 403


@pytest.mark.parametrize("path", ["/", "/healthz", "/media/x", "/static/none.js", "/_stcore/health", "/_stcore/%00"])
def test_every_answer_says_what_a_page_may_do(server: Server, path: str) -> None:
    _, headers, _ = server.ask("GET", path)
    assert {name: headers.get(name.lower()) for name in HEADERS} == HEADERS


def test_cookies_are_for_tls_alone_and_no_older_than_the_login(server: Server) -> None:
    assert "; Secure" in server.ask("GET", "/_stcore/health")[1]["set-cookie"]
    login = "_streamlit_user=abc; HttpOnly; Max-Age=2592000; Path=/; SameSite=lax"
    assert _cookie(login, True, 7200) == "_streamlit_user=abc; HttpOnly; Max-Age=7200; Path=/; SameSite=lax; Secure"
    assert _cookie(login.replace("2592000", "0"), False, 7200) == login.replace("2592000", "0")
    assert _cookie("_streamlit_xsrf=a; Max-Age=9; secure", True, 7200) == "_streamlit_xsrf=a; Max-Age=9; secure"


@pytest.mark.parametrize(("token", "given", "status"), [("", "", 200), (TOKEN, "", 401), (TOKEN, TOKEN, 200)])
def test_a_token_closes_the_figures_of_an_open_server(
    token: str, given: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSCOPE_METRICS_TOKEN", token)
    guard._rules.cache_clear()
    client = TestClient(guard.Guard(PlainTextResponse("figures")), base_url="http://localhost")
    assert client.get("/metrics", headers={"Authorization": f"Bearer {given}"}).status_code == status
    assert client.get("/").status_code == 200
    guard._rules.cache_clear()


def test_a_token_is_not_quoted() -> None:
    with pytest.raises(Exception, match="at least 16") as caught:
        read_settings({"HEADSCOPE_METRICS_TOKEN": "hush"})
    assert "hush" not in str(caught.value)
