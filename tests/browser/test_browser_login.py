"""Login in a real browser, against a real OpenID provider on loopback; and what is to be had without it."""

from __future__ import annotations

import re
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

import pytest
from playwright.sync_api import Page, expect

from tests.support import ROOT
from tests.support.browser import eventually, settle
from tests.support.servers import SLOW, free_port

EXPLORE = ("", "head_map", "heat_map", "head_profile")
UNDERSTAND = ("stages", "topics", "aspects", "layers", "attention", "ablation")
PAGES = (*EXPLORE, *UNDERSTAND, "your_document", "retrieval_lab")
COOKIE_SECRET, CLIENT_SECRET = "0123456789abcdef" * 4, "a-secret-that-no-log-may-show"


@dataclass(frozen=True)
class Guarded:
    """A server that wants a login, and what it has said on standard error."""

    address: str
    log: Path


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], str]]:
    """Starts the provider for an app on a port; its address."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node is not installed: there is no OpenID provider to sign in with")
    folder = tmp_path_factory.mktemp("oidc")
    shutil.copytree(
        ROOT / "tests" / "support" / "oidc", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules")
    )
    fetched = subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, timeout=300)
    assert fetched.returncode == 0, fetched.stderr.decode()  # where Node is, nothing is left out
    started: list[subprocess.Popen[str]] = []

    def start(app: int) -> str:
        port = free_port()
        arguments = [str(port), f"http://127.0.0.1:{app}/oauth2callback", CLIENT_SECRET]
        server = subprocess.Popen([node, "server.mjs", *arguments], cwd=folder, stdout=subprocess.PIPE, text=True)
        started.append(server)
        assert server.stdout is not None
        assert any("listening" in line for line in server.stdout), "the provider did not start"
        return f"http://127.0.0.1:{port}"

    yield start
    for server in started:
        server.terminate()
        server.wait(20)
        assert server.stdout is not None
        server.stdout.close()


@pytest.fixture(scope="module")
def guarded(
    provider: Callable[[int], str],
    serve: Callable[..., str],
    planted_cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Guarded:
    folder, port = tmp_path_factory.mktemp("guarded"), free_port()
    secrets = folder / "secrets.toml"
    secrets.write_text(
        f"""[auth]
        redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
        cookie_secret = "{COOKIE_SECRET}"
        client_id = "headscope"
        client_secret = "{CLIENT_SECRET}"
        server_metadata_url = "{provider(port)}/.well-known/openid-configuration"
        client_kwargs = {{ prompt = "login" }}
        """
    )
    address = serve(
        planted_cache,
        port=port,
        log=folder / "log",
        flags=(f"--secrets.files={secrets}",),
        HEADSCOPE_ALLOWED_DOMAINS="example.org",
        HEADSCOPE_STATE=str(folder / "state"),
    )
    return Guarded(address, folder / "log")


def noted(page: Page, guarded: Guarded, *events: str) -> None:
    """The log has these, and names nobody: neither people nor keys."""

    def names_nobody() -> None:
        said = guarded.log.read_text().lower()
        assert " auth=on domains=1 " in said
        assert " warning open " not in said
        for event in events:
            assert f" {event} " in said
        for word in ("ada@", "eve@", "unverified@", COOKIE_SECRET, CLIENT_SECRET):
            assert word not in said

    eventually(page, names_nobody)


def listen(page: Page) -> Callable[[], str]:
    """What comes over the page's websockets, as far as it is text."""
    frames: list[bytes] = []

    def note(frame: str | bytes) -> None:
        frames.append(frame if isinstance(frame, bytes) else frame.encode())

    page.on("websocket", lambda socket: socket.on("framereceived", note))
    return lambda: b"".join(frames).decode("utf-8", "ignore")


def sign_in(page: Page, address: str, person: str, path: str = "", then: str | None = None) -> None:
    """Asks for a path, signs in, and waits for the address that the browser ends at: the first page, or ``then``."""
    page.goto(f"{address}/{path}")
    page.get_by_role("button", name="Sign in").click()
    page.locator("input[name=login]").fill(person)
    page.locator("input[name=password]").fill("anything")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()  # the provider asks whether the app may know the address
    page.wait_for_url(f"{address}/" if then is None else then)


def test_no_page_is_reached_around_the_login(page: Page, guarded: Guarded) -> None:
    """On a server that nobody has visited: the login and nothing else, and no title of a document on the wire."""
    heard = listen(page)
    for path in PAGES:
        page.goto(f"{guarded.address}/{path}?run=planted&head=2&doc=3")
        expect(page.get_by_role("button", name="Sign in")).to_be_visible(timeout=SLOW)
        settle(page)
        expect(page.get_by_text("Page not found")).to_have_count(0)
        expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)
        expect(page.get_by_test_id("stSelectbox")).to_have_count(0)
        assert "Sign in" in heard(), "the frames were seen"
        assert "quagga" not in heard()
        assert "planted" not in heard().replace("run=planted", "")


@pytest.mark.parametrize(
    "path",
    [
        "app/static/app.py",
        "app/static/cache/planted/documents.parquet",
        "media/0123456789abcdef0123456789abcdef01234567.csv",
        "_stcore/bidi-components/map/map.js",
        "component/map/index.html",
        "_stcore/upload_file/nobody/nothing",
        "cache/planted/manifest.json",
        "pages/explore/overview/page.py",
    ],
)
def test_files_are_not_to_be_had_without_the_login(guarded: Guarded, path: str) -> None:
    """Downloads lie under /media by the digest of their content, which only who has the content knows."""
    try:
        body = urllib.request.urlopen(f"{guarded.address}/{path}", timeout=20).read().decode()
    except HTTPError as refusal:
        body = str(refusal)
    empty = "<title>Streamlit</title>" in body  # what every address begins with
    assert empty or re.match("HTTP Error 40[01345]", body)


def test_no_program_drives_the_app_around_the_login(guarded: Guarded) -> None:
    """Streamlit's agent interface is off, as it is unless somebody turns it on."""
    request = urllib.request.Request(f"{guarded.address}/_stcore/agent/interact", b"{}", method="POST")
    request.add_header("Content-Type", "application/json")
    with pytest.raises(HTTPError, match=r"40[134]"):
        urllib.request.urlopen(request, timeout=20)


def shown(address: str) -> str:
    """An address as the page has it: a mark without width keeps Markdown from making a link of it."""
    return re.escape(address).replace("@", "@\u2060?")


def test_of_the_domain_in_and_out_again(page: Page, guarded: Guarded) -> None:
    heard = listen(page)
    sign_in(page, guarded.address, "Ada@Example.ORG")
    expect(page.get_by_text(re.compile(f"Signed in as {shown('Ada@Example.ORG')}"))).to_be_visible(timeout=SLOW)
    expect(page.get_by_test_id("stSidebarNav")).to_be_visible()
    settle(page)
    assert "quagga" in heard(), "what a visitor who has not signed in did not get"
    page.goto(f"{guarded.address}/heat_map")  # a deep link of somebody who is known
    expect(page.get_by_role("heading", name="Topic heat map")).to_be_visible(timeout=SLOW)
    settle(page)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Yes, sign me out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible(timeout=SLOW)
    page.goto(f"{guarded.address}/heat_map")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible(timeout=SLOW)
    settle(page)
    expect(page.get_by_role("heading", name="Topic heat map")).to_have_count(0)
    noted(page, guarded, "info login", "info page", "info logout")


def test_a_cookie_from_before_the_sign_out_opens_nothing(page: Page, guarded: Guarded) -> None:
    sign_in(page, guarded.address, "ada@example.org")
    expect(page.get_by_text("Signed in as")).to_be_visible(timeout=SLOW)
    settle(page)
    kept = page.context.cookies()
    assert "_streamlit_user" in {cookie["name"] for cookie in kept}
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Yes, sign me out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible(timeout=SLOW)
    page.context.add_cookies(kept)  # type: ignore[arg-type]
    page.goto(f"{guarded.address}/heat_map")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible(timeout=SLOW)
    settle(page)
    expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)


def test_after_the_login_the_page_that_was_asked_for(page: Page, guarded: Guarded) -> None:
    asked = "topics?run=planted&doc=3"
    sign_in(page, guarded.address, "ada@example.org", asked, f"{guarded.address}/{asked}")
    expect(page.get_by_role("heading", name="Topics", exact=True)).to_be_visible(timeout=SLOW)
    settle(page)
    page.goto(guarded.address)  # it was remembered for once
    expect(page.get_by_text("Signed in as")).to_be_visible(timeout=SLOW)
    settle(page)
    page.wait_for_function("window.sessionStorage.length === 0", timeout=SLOW)
    # What does not lead to this server is not followed, whoever may have put it there.
    page.evaluate("window.sessionStorage.setItem('headscope: asked for', '//elsewhere.invalid/topics')")
    page.reload()
    expect(page.get_by_text("Signed in as")).to_be_visible(timeout=SLOW)
    settle(page)
    page.wait_for_function("window.sessionStorage.length === 0", timeout=SLOW)  # it was looked at
    settle(page)
    assert page.url.startswith(guarded.address)


@pytest.mark.parametrize("person", ["eve@example.com", "unverified@example.org"])
def test_of_another_domain_refused(page: Page, guarded: Guarded, person: str) -> None:
    sign_in(page, guarded.address, person)
    expect(page.get_by_text("You are not on the list")).to_be_visible(timeout=SLOW)
    settle(page)
    expect(page.get_by_text(re.compile(shown(person)))).to_be_visible()
    expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)
    page.goto(f"{guarded.address}/stages")
    expect(page.get_by_text("You are not on the list")).to_be_visible(timeout=SLOW)
    settle(page)
    expect(page.get_by_role("heading", name="Stages")).to_have_count(0)
    noted(page, guarded, "warning refused")
