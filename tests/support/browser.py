"""The app in Chromium: a browser that is patient, and how to wait for what a page shows."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.support.servers import SLOW

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

UNWANTED = (
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect", "TcpPortRandomizationWin", "OptimizationHints",
    "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch",
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup",
)  # fmt: skip
"""Features of Chromium. The last two draw pages of their own under an address bar that nobody sees: about a quarter of
what it costs to open a page. The others are those that Playwright 1.65 switches off: Chromium heeds one list."""
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-unsafe-swiftshader", f"--disable-features={','.join(UNWANTED)}",
]  # fmt: skip
"""Of Chromium; ``--enable-unsafe-swiftshader`` is WebGL without a graphics card."""
SLOW_WIRE = """
{
  let state = SEED;
  const chance = () => {  // mulberry32
    state = (state + 0x6D2B79F5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const inOrder = () => {
    const waiting = [];
    let due = 0;
    return (deliver) => {
      waiting.push(deliver);
      const now = performance.now(), pause = chance() < 0.03 ? 1000 : 20 + 80 * chance();
      due = Math.max(due, now) + pause;
      setTimeout(() => waiting.shift()(), due - now);  // whichever is due: timers are rounded, and may change places
    };
  };
  window.WebSocket = class extends WebSocket {
    #received = inOrder();
    #sent = inOrder();
    constructor(...given) {
      super(...given);
      this.addEventListener('message', (event) => {
        if (!event.isTrusted) return;
        event.stopImmediatePropagation();
        const late = Object.assign(new MessageEvent('message', {data: event.data}), {answers: asked.sent});
        this.#received(() => this.readyState === WebSocket.OPEN && this.dispatchEvent(late));
      });
    }
    send(data) {
      this.#sent(() => {
        if (asked.isRequest(data)) asked.sent++;
        super.send(data);
      });
    }
  };
}
"""
"""For ``SLOW_WIRE=seed``: a websocket's messages come late, in order, some of them long after the one before.
Who waits for one part of a page and then reads another one fails nearly always then, not once in a few hundred runs.
A run that the server began before it had a request is not that request's answer."""
WATCH = """
window.asked = {answered: false, begun: false, last: 0, requests: 0, sent: 0};
{
  const fields = function* (bytes) {  // of a protobuf message: number, and value (or where the field's own bytes are)
    for (let at = 0; at < bytes.length;) {
      const number = () => {
        let value = 0;
        for (let times = 1; ; times *= 128) {
          const byte = bytes[at++];
          value += (byte % 128) * times;
          if (byte < 128) return value;
        }
      };
      const tag = number(), value = number();  // Streamlit has numbers and what has a length in these places
      if (tag % 8 === 2) at += value;
      yield [tag >> 3, tag % 8 === 2 ? bytes.subarray(at - value, at) : value];
    }
  };
  asked.isRequest = (data) => {
    const [field, state] = fields(data).next().value ?? [];
    return field === 11 && ![...fields(state)].some(([own, value]) => own === 6 && value);  // rerun_script, by no timer
  };
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener('message', ({data, answers = asked.requests}) => {
        asked.last = performance.now();
        for (const [field, value] of fields(new Uint8Array(data))) {
          if (field === 4) Object.assign(asked, {answered: false, begun: answers === asked.requests});  // new_session
          if (field === 6 && value !== 2) asked.answered = asked.begun;  // script_finished, and not for another run
        }
      });
    }
    send(data) {
      asked.last = performance.now();
      if (asked.isRequest(data)) Object.assign(asked, {answered: false, begun: false, requests: asked.requests + 1});
      super.send(data);
    }
  };
}
"""
"""Knows of every run that a page asks for whether it has ended: reads the first bytes of Streamlit's messages.
The page's own marks say "not running" before the first run, between two runs, and while a request is on its way.
A fragment's timer asks on its own account, and gets no answer at all where a run has removed the fragment meanwhile."""
SETTLED = """(call) => {
  if (asked.call !== call) Object.assign(asked, {call, last: performance.now()});  // a click is sent a moment after it
  const app = document.querySelector('[data-testid=stApp]');
  return asked.answered && performance.now() - asked.last > 100
    && app?.dataset.testScriptState === 'notRunning' && app.dataset.testConnectionState === 'CONNECTED'
    && document.querySelector('[data-testid=stMain] :is(h1, h2, h3)')
    && !document.querySelector('[data-stale=true], [data-testid=stSkeleton], [data-testid=stAppSkeleton]');
}"""


TOUR_CLOSED = "try { localStorage.setItem('headscope: tour', 'closed'); } catch { /* a page without storage */ }"


STORED = "cookies,file_systems,indexeddb,local_storage,service_workers"
"""What no test finds of another one. Files that the browser has fetched are not among it."""


class Windows:
    """Chromium for this worker, and the contexts that stay open for the ordinary pages of all its tests.

    A process that has run Streamlit's and Plotly's scripts once has them compiled: a page that is opened in it costs
    half of what it costs in a new one. So one empty page of the servers' site stays open for as long as its context
    lives; what a test leaves behind (pages, cookies, storage, permissions) does not.
    """

    def __init__(self, running: contextlib.ExitStack) -> None:
        from playwright.sync_api import Locator, LocatorAssertions, expect, sync_playwright  # type: ignore[attr-defined]

        expect.set_options(timeout=SLOW)
        for kind in (Locator, LocatorAssertions):
            _wait_for_one(kind)
        path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        assert path, "Chromium is missing: 'make chromium' installs it where it may."
        playwright = running.enter_context(sync_playwright())
        flags = [*FLAGS, "--process-per-site"]
        self.browser: Browser = playwright.chromium.launch(executable_path=path, args=flags, timeout=SLOW)
        running.callback(self.browser.close)
        self.browser.new_context = _patient(self.browser.new_context)  # type: ignore[method-assign]
        self._staying: dict[str, Page] = {}

    @contextlib.contextmanager
    def page(self, reader: str = "first", width: int = 1400, **options: Any) -> Iterator[Page]:
        """A page of a context that is for this reader alone."""
        if reader not in self._staying:
            self._staying[reader] = self._stay(self.browser.new_context(**options))
        stays = self._staying[reader]
        context = stays.context
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 1000 if width > 1000 else 900})
        yield page
        for left in context.pages:
            if left != stays:
                left.close()
        context.clear_cookies()
        context.clear_permissions()
        session = context.new_cdp_session(stays)
        session.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": STORED})
        session.detach()

    def _stay(self, context: BrowserContext) -> Page:
        page = context.new_page()
        page.route("**", lambda request: request.fulfill(body=""))
        page.goto("http://127.0.0.1/")  # nobody is asked; all servers are of this site, whatever their port
        return page


class BrowserPlugin:
    """Ends the browser before a file without one: while it runs, nothing else in this thread can run a loop."""

    def __init__(self) -> None:
        self._running = contextlib.ExitStack()
        self._windows: Windows | None = None

    def windows(self) -> Windows:
        if self._windows is None:
            self._windows = Windows(self._running)
        return self._windows

    @pytest.hookimpl(trylast=True)  # after the fixtures' own ends
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        if nextitem is None or (nextitem.path != item.path and not nextitem.get_closest_marker("browser")):
            self._windows = None
            self._running.close()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(BrowserPlugin(), "headscope-browser")


@pytest.fixture(scope="module")
def windows(pytestconfig: pytest.Config) -> Windows:
    plugin = pytestconfig.pluginmanager.get_plugin("headscope-browser")
    assert isinstance(plugin, BrowserPlugin)
    return plugin.windows()


@pytest.fixture(scope="module")
def browser(windows: Windows) -> Browser:
    return windows.browser


def _wait_for_one(kind: type) -> None:
    """Whatever is done with an element waits until there is one of its kind.

    While a run is on its way, Streamlit has what is from before below what is new, if the place in the page is another
    one. Playwright waits for elements that are missing, but refuses two of them at once.
    """

    def patient(act: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(act)
        def acts(*args: Any, **options: Any) -> Any:
            from playwright.sync_api import Error

            late = time.monotonic() + SLOW / 1000
            while True:
                try:
                    return act(*args, **options)
                except (AssertionError, Error) as error:
                    if "strict mode violation" not in str(error) or time.monotonic() > late:
                        raise
                time.sleep(0.1)

        return acts

    for name, act in list(vars(kind).items()):
        if callable(act) and not name.startswith("_") and not hasattr(act, "__wrapped__"):
            setattr(kind, name, patient(act))


def _patient(make: Callable[..., Any]) -> Callable[..., Any]:
    """Whatever a test opens waits as long as it takes, and knows when it is settled.

    Playwright's own half a minute is short on a busy machine.

    It is a reader who asked for no motion: the grey bars that shimmer while a page comes are drawn without a graphics
    card, which took up to half of what it costs to open a page. The tour is closed, unless it is a ``first_visit``.
    """

    def made(*args: Any, first_visit: bool = False, **options: Any) -> Any:
        opened = make(*args, **{"reduced_motion": "reduce", **options})
        opened.set_default_timeout(SLOW)
        if seed := os.environ.get("SLOW_WIRE"):
            opened.on("page", _slow_requests)
            opened.add_init_script(SLOW_WIRE.replace("SEED", str(int(seed))))
        opened.add_init_script(WATCH)
        if not first_visit:
            opened.add_init_script(TOUR_CLOSED)
        return opened

    return made


def _slow_requests(page: Page) -> None:
    conditions = {"offline": False, "latency": 150, "downloadThroughput": -1, "uploadThroughput": -1}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", conditions)


@pytest.fixture
def page(browser: Browser, windows: Windows) -> Iterator[Page]:
    with windows.page() as opened:
        yield opened


@pytest.fixture
def stranger(browser: Browser, windows: Windows) -> Iterator[Page]:
    """Somebody else's page of the same size: it shares nothing with ``page``."""
    with windows.page("second") as opened:
        yield opened


@pytest.fixture
def phone(browser: Browser, windows: Windows) -> Iterator[Page]:
    with windows.page("touching", width=420, has_touch=True) as opened:
        yield opened


def narrow(page: Page, scheme: Literal["light", "dark"] = "light") -> Page:
    """The page, as wide as a phone."""
    page.set_viewport_size({"width": 420, "height": 900})
    page.emulate_media(color_scheme=scheme)
    return page


def settle(page: Page) -> None:
    """Waits until all that was asked of the server is answered and drawn.

    The last run has come to its end, the page has a heading, nothing on it is from before, and no part of it is still
    on its way (each is a grey bar until then).

    What a component puts off (a field that waits for more keys) is not known here: a test waits for what it asserts.
    """
    page.wait_for_function(SETTLED, arg=uuid.uuid4().hex, polling=30)  # by its frames, it would draw them all the while


def draw_all(page: Page) -> None:
    """Has every figure drawn, as for a printer; otherwise one is drawn when it comes near."""
    settle(page)

    def drawn() -> None:
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator(".hs-figure:not([data-drawn])").count() == 0

    eventually(page, drawn)


def eventually(page: Page, check: Callable[[], None]) -> None:
    """Repeats a check until it holds, for what a locator cannot wait for: a layout is drawn in several passes."""
    late = time.monotonic() + SLOW / 1000
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > late:
                raise
        page.wait_for_timeout(100)


def still(locator: Locator) -> dict[str, float]:
    """Where an element is on the screen, once it stays there: a page scrolls, and its parts come one by one."""
    found: list[dict[str, float]] = []

    def stays() -> None:
        before = locator.bounding_box()
        locator.page.wait_for_timeout(50)
        after = locator.bounding_box()
        assert after is not None
        assert after == before
        found.append({name: float(value) for name, value in after.items()})  # type: ignore[arg-type]

    eventually(locator.page, stays)
    return found[-1]


def fits(page: Page, width: int) -> None:
    """Nothing on the page is wider than the screen."""
    page.wait_for_function(
        "width => { const main = document.querySelector('[data-testid=stMain]');"
        " return Math.max(document.documentElement.scrollWidth, main.scrollWidth) <= width"
        " && main.scrollWidth <= main.clientWidth; }",
        arg=width,
    )


def choose(page: Page, label: str, option: str | None) -> None:
    """Takes an option of a select box, or its last."""
    from playwright.sync_api import TimeoutError as Late

    box = page.get_by_role("combobox", name=label)
    wanted = page.get_by_role("option", name=option, exact=True) if option else page.get_by_role("option").last
    box.scroll_into_view_if_needed()
    settle(page)
    for _ in range(SLOW // 10_000):
        page.wait_for_timeout(500)  # a list that opens while the page still scrolls closes again
        box.click()
        try:
            wanted.click(timeout=10_000)
        except Late:  # it has closed after all: once more
            continue
        return
    raise AssertionError(f"The list '{label}' did not offer '{option}'.")


class Fingers:
    """Fingers on a page of a context with ``has_touch``, as the browser gets them from a screen."""

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._at: list[tuple[float, float]] = []

    def put(self, *places: tuple[float, float]) -> None:
        self._at = list(places)
        self._send("touchStart", self._at)

    def move(self, *places: tuple[float, float], steps: int = 8) -> None:
        before = self._at
        for step in range(1, steps + 1):
            share = step / steps
            between = [
                (x0 + (x1 - x0) * share, y0 + (y1 - y0) * share)
                for (x0, y0), (x1, y1) in zip(before, places, strict=True)
            ]
            self._send("touchMove", between)
        self._at = list(places)

    def lift(self) -> None:
        self._send("touchEnd", [])

    def tap(self, place: tuple[float, float]) -> None:
        self.put(place)
        self.lift()

    def _send(self, kind: str, places: list[tuple[float, float]]) -> None:
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
