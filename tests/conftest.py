"""What several tests share: tiny models saved to disk, corpora, the command line, and the app in a browser."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page
    from streamlit.testing.v1 import AppTest

    from tests.support.s3_server import S3Server

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports huggingface_hub: no test may ask the network
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers that use every core at once wait for each other

# Whoever starts the tests in the background may have told them to ignore Ctrl-C; the jobs that they start must not.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asserts a time, and a second run of the same code tries the same examples.
settings.register_profile("headscope", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headscope")

ROOT = Path(__file__).resolve().parent.parent
WORDS = ("harbour", "violin", "enzyme", "glacier", "verdict", "orchard", "satellite", "loom")
HUGE = "huge"
"""The one word whose documents overflow float16 in the model of ``huge_model``."""
MAX_TOKENS = 128
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
WATCH = """
window.asked = {answered: false, begun: false, last: 0};
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', ({data}) => {
      const bytes = new Uint8Array(data);
      let at = 0;
      const number = () => {
        let value = 0;
        for (let times = 1; ; times *= 128) {
          const byte = bytes[at++];
          value += (byte % 128) * times;
          if (byte < 128) return value;
        }
      };
      let field = number() >> 3;
      while (field === 1 || field === 2) {  // hash and metadata
        const size = number();
        at += size;
        field = number() >> 3;
      }
      asked.last = performance.now();
      if (field === 4) asked.begun = true;  // new_session
      if (field === 6 && number() !== 2) asked.answered = asked.begun;  // script_finished, and not for another run
    });
  }
  send(data) {
    asked.last = performance.now();
    if (data[0] === 90) Object.assign(asked, {answered: false, begun: false});  // rerun_script
    super.send(data);
  }
};
"""
"""Knows of every run that a page asks for whether it has ended: reads the first bytes of Streamlit's messages.
The page's own marks say "not running" before the first run, between two runs, and while a request is on its way."""
SETTLED = """(call) => {
  if (asked.call !== call) Object.assign(asked, {call, last: performance.now()});  // a click is sent a moment after it
  const app = document.querySelector('[data-testid=stApp]');
  return asked.answered && performance.now() - asked.last > 100
    && app?.dataset.testScriptState === 'notRunning' && app.dataset.testConnectionState === 'CONNECTED'
    && document.querySelector('[data-testid=stMain] :is(h1, h2, h3)')
    && !document.querySelector('[data-stale=true], [data-testid=stSkeleton], [data-testid=stAppSkeleton]');
}"""
SLOW = 180_000
"""Milliseconds to wait for something that will come: generous, for a loaded machine; no test asserts a time."""
MARKS = {
    "browser": {"browser"},
    "ray": {"cluster"},
    "slow": {
        "start_job", "serve", "served", "s3_server", "hub",
        "demo_cache", "analysed_cache", "retrieved_cache", "hostile_cache",
    },
}  # fmt: skip
"""Fixtures that mark every test that uses them, itself or by another one."""
REAL = ("all-MiniLM-L6-v2", "SmolLM2-135M")
"""Models with all their weights: a test that has one of them among its parameters is slow."""
LONGEST = (
    "browser_your_document", "browser_map_more", "browser_heat_map", "browser_login", "browser_untrusted", "dockerfile",
    "browser_pages", "browser_demo", "browser_head_map", "browser", "browser_attention", "browser_retrieval_lab",
    "browser_layers", "browser_take_away", "metrics", "load", "memory", "hub", "engines_ray", "real_models", "embed",
    "page_heat_map", "analyse", "faults", "remote", "engines", "cli",
)  # fmt: skip
"""Files that take long, the longest first: a worker that began one in the end would be waited for by the others."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses by the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))
    for item in items:
        for mark, fixtures in MARKS.items():
            if fixtures & set(getattr(item, "fixturenames", ())):
                item.add_marker(mark)
        if any(model in item.name for model in REAL):
            item.add_marker("slow")


@pytest.fixture(autouse=True)
def _no_process(request: pytest.FixtureRequest) -> None:
    """What ``make test-fast`` promises."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("This test starts a process: mark it as slow.")

    if "not slow" in request.config.option.markexpr:
        request.getfixturevalue("monkeypatch").setattr(subprocess.Popen, "__init__", refuse)


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of 2 layers, 4 heads and hidden size 32 with random weights, and its tokenizer."""
    return _save_model(tmp_path_factory.mktemp("models") / "tiny", seed=0, layers=2)


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same architecture with other weights."""
    return _save_model(tmp_path_factory.mktemp("models") / "other", seed=1, layers=2)


@pytest.fixture(scope="session")
def huge_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stage 1 of a document made of the word "huge" is beyond 65504; that of any other is far below."""
    return _save_model(tmp_path_factory.mktemp("models") / "huge", seed=0, layers=1, overflow=True)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Models this small lose a hundredfold to threads that wait for each other on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def demo_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the demo run, by the real default model."""

    def make(cache: Path) -> None:
        from precompute.steps.embed.step import EmbedConfig, run

        run(EmbedConfig(cache, "demo"))

    return made_once(tmp_path_factory, "demo-cache", make)


@pytest.fixture(scope="session")
def analysed_cache(demo_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo run by the real default model, with its figures and quickly made maps."""

    def make(cache: Path) -> None:
        from precompute.steps.analyse import step as analyse
        from precompute.steps.project import step as project
        from precompute.steps.project.config import ProjectConfig

        shutil.copytree(demo_cache / "demo", cache / "demo")
        analyse.run(analyse.AnalyseConfig(cache, "demo"))
        project.run(ProjectConfig(cache, "demo", iterations=90))

    return made_once(tmp_path_factory, "analysed-cache", make)


@pytest.fixture(scope="session")
def retrieved_cache(analysed_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, its heads judged by 20 of the demo's queries and by its topics."""

    def make(cache: Path) -> None:
        from precompute.steps.retrieve import step as retrieve

        shutil.copytree(analysed_cache / "demo", cache / "demo")
        lines = retrieve.DEMO_QUERIES.read_text(encoding="utf-8").splitlines()[::7][:20]
        (cache / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
        retrieve.run(retrieve.RetrieveConfig(cache, "demo", cache / "queries.jsonl", limit=24))

    return made_once(tmp_path_factory, "retrieved-cache", make)


@pytest.fixture(scope="session")
def hostile_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run 'hostile' in which every text is out to do harm, with figures, maps and two sources of labels."""

    def make(cache: Path) -> None:
        from tests.support.hostile import write_hostile

        write_hostile(cache)

    return made_once(tmp_path_factory, "hostile-cache", make)


def made_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that takes long to make, for all workers together: the first makes it, the others wait."""
    root = temporary.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder, making = root / name, root / f"{name}.making"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(making, ignore_errors=True)  # of a worker that has failed
            making.mkdir()
            make(making)
            making.rename(folder)
    return folder


@pytest.fixture(scope="session")
def bare_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run 'bare' of planted vectors without any labels, analysed, without maps; four heads on two."""
    import numpy as np

    from core.model.shape import ModelShape
    from precompute.steps.analyse import step as analyse
    from tests.support.synthetic import PlantedTopics, write_run

    cache = tmp_path_factory.mktemp("bare")
    shape = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
    vectors = np.random.default_rng(0).normal(size=(40, 32))
    write_run(cache, "bare", shape, lambda stage, first, count: vectors[first : first + count] + stage, [None] * 40)
    analyse.run(analyse.AnalyseConfig(cache, "bare", model=PlantedTopics(shape, {})))
    return cache


@pytest.fixture(scope="session")
def planted_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run 'planted' of 12 documents with vectors alone; the word quagga is in all of them and nowhere else."""
    import numpy as np

    from core.model.shape import ModelShape
    from tests.support.synthetic import write_run

    cache = tmp_path_factory.mktemp("planted")
    shape = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
    vectors = np.random.default_rng(0).normal(size=(12, 32))
    texts = [f"The quagga number {number} grazes." for number in range(12)]
    write_run(
        cache, "planted", shape, lambda stage, first, count: vectors[first : first + count] + stage, [None] * 12,
        texts=texts,
    )  # fmt: skip
    return cache


@pytest.fixture(scope="session", autouse=True)
def _installed_once() -> None:
    """An AppTest looks through all installed packages for components: more work than most pages are, so once is enough.

    Nothing is installed while tests run; a server of the browser tests looks for itself.
    """
    if "streamlit" in sys.modules:  # or no test of this worker opens a page
        from streamlit.components.v2 import manifest_scanner

        manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def app_at(page: str, patience: float = 120) -> AppTest:
    """The app, about to show the page of that file."""
    from streamlit.testing.v1 import AppTest
    from streamlit.util import calc_hash

    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=patience)
    app._page_hash = calc_hash(Path(page).parent.name)  # before a first run AppTest would take the file's name for it
    return app


def page_at(cache: Path, page: str, monkeypatch: pytest.MonkeyPatch, patience: float = 60, **address: str) -> AppTest:
    """A page of the app on a cache, at an address, without a browser."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(cache))
    app = app_at(page, patience)
    for name, value in address.items():
        app.query_params[name] = value
    app.run()  # the page at once, as by a link: a run of the Overview before it would cost as much again
    assert not app.exception
    return app


@pytest.fixture
def write_corpus(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows as JSON lines and returns the file; a string is written as it is."""

    def write(rows: list[Any], name: str = "corpus.jsonl") -> Path:
        path = tmp_path / "corpora" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return write


@pytest.fixture(scope="session")
def some_rows() -> Callable[..., list[dict[str, Any]]]:
    """``count`` rows with different texts of ``words`` words each, always the same ones."""

    def rows(count: int, words: int = 6) -> list[dict[str, Any]]:
        chosen = random.Random(7)
        return [
            {"id": f"d{number}", "text": f"{number} {' '.join(chosen.choices(WORDS, k=words))}", "n": number}
            for number in range(count)
        ]

    return rows


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """``python -m precompute …`` within this process."""

    def call(*arguments: object) -> Outcome:
        from precompute.cli import main

        capfd.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as exit_:  # argparse
            status = int(exit_.code or 0)
        return Outcome(status, *capfd.readouterr())

    return call


@pytest.fixture
def start_job() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts ``python -m precompute …`` (or ``python -c script …``) as a process of its own.

    A ``cold`` one imports all that it needs itself, for tests of what that says or takes.
    """
    from tests.support.warm import WarmPopen

    started: list[subprocess.Popen[str]] = []

    def start(
        *arguments: object,
        script: str | None = None,
        cold: bool = sys.platform != "linux",
        preexec_fn: Callable[[], None] | None = None,
    ) -> subprocess.Popen[str]:
        program = ["-m", "precompute"] if script is None else ["-c", script]
        popen = subprocess.Popen if cold or preexec_fn else WarmPopen
        process = popen(
            [sys.executable, *program, *(str(argument) for argument in arguments)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # two jobs at once share two cores
            preexec_fn=preexec_fn,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def finish() -> Callable[[subprocess.Popen[str]], Outcome]:
    """Waits for a job and returns what it left behind."""

    def wait(process: subprocess.Popen[str]) -> Outcome:
        out, err = process.communicate(timeout=300)
        return Outcome(process.returncode, out, err)

    return wait


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A real S3 server on loopback."""
    from tests.support.s3_server import S3Server

    server = S3Server()
    yield server
    server.close()


@pytest.fixture
def address(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Of an empty cache in a bucket of its own; what the store says is believed for no time at all."""
    from core.remote import breaker, lease, mirror

    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HEADSCOPE_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setattr(mirror, "FRESH", 0.0)
    monkeypatch.setattr(mirror, "AGAIN", 0.0)
    monkeypatch.setattr(breaker, "SILENCE", 30.0)  # a busy machine is not a silent store
    monkeypatch.setattr(lease, "SETTLED", 0.05)
    bucket = f"bucket-{uuid.uuid4().hex[:12]}"
    s3_server.make_bucket(bucket)
    return f"s3://{bucket}/some/where"


@pytest.fixture
def here(address: str, tmp_path: Path) -> Path:
    """That cache as the machine that builds it has it."""
    from core.remote.mirror import cache_at

    return cache_at(address, tmp_path / "mirror")


@pytest.fixture
def elsewhere(address: str, tmp_path: Path) -> Path:
    """The same as another machine has it, that has fetched nothing yet."""
    from core.remote.mirror import cache_at

    return cache_at(address, tmp_path / "another")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=SLOW)
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "Chromium is missing: 'make chromium' installs it where it may."
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=SLOW)
        launched.new_context = _patient(launched.new_context)  # type: ignore[method-assign]
        launched.new_page = _patient(launched.new_page)  # type: ignore[method-assign]
        yield launched
        launched.close()


def _patient(make: Callable[..., Any]) -> Callable[..., Any]:
    """Whatever a test opens waits as long as it takes, and knows when it is settled.

    Playwright's own half a minute is short on a busy machine.

    It is a reader who asked for no motion: the grey bars that shimmer while a page comes are drawn without a graphics
    card, which took up to half of what it costs to open a page.
    """

    def made(*args: Any, **options: Any) -> Any:
        opened = make(*args, **{"reduced_motion": "reduce", **options})
        opened.set_default_timeout(SLOW)
        opened.add_init_script(WATCH)
        return opened

    return made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    """Starts the app (or another ``script``) on a cache and returns its address; it ends with the test's file.

    ``log`` is a file for what it says; ``flags`` and variables of the ``environment`` are added.
    """
    with contextlib.ExitStack() as running:
        yield functools.partial(_start_server, running)


@pytest.fixture(scope="session")
def served() -> Iterator[Callable[[Path], str]]:
    """The address of the app on a cache that several files look at: one server for all of them."""
    with contextlib.ExitStack() as running:
        # On a busy machine the model's threads wait for each other.
        yield functools.cache(functools.partial(_start_server, running, OMP_NUM_THREADS="1"))


def _start_server(
    running: contextlib.ExitStack,
    cache: Path,
    script: str = "app.py",
    port: int | None = None,
    log: Path | None = None,
    flags: tuple[str, ...] = (),
    **environment: str,
) -> str:
    port = port or free_port()
    flags = ("--server.headless=true", f"--server.port={port}", "--server.address=127.0.0.1", *flags)
    with open(log or os.devnull, "wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", script, *flags, "--server.fileWatcherType=none"],
            cwd=ROOT,
            env={**os.environ, "HEADSCOPE_CACHE": str(cache), "PYTHONPATH": str(ROOT), **environment},
            stdout=said,
            stderr=said,
        )
    running.callback(_end_server, process)
    address = f"http://127.0.0.1:{port}"
    late = time.monotonic() + 3 * SLOW / 1000
    while time.monotonic() < late:
        assert process.poll() is None, "the app has ended"
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).read()
            return address
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the app did not start")


def _end_server(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:  # a page that is still at work, on a machine that has no time for it
        process.kill()
        process.wait()


def free_port() -> int:
    """One that nobody gets before a slow server has it: the system gives others only from 32,768 on."""
    while True:
        port = random.SystemRandom().randrange(12_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def settle(page: Page) -> None:
    """Waits until all that was asked of the server is answered and drawn.

    The last run has come to its end, the page has a heading, nothing on it is from before, and no part of it is still
    on its way (each is a grey bar until then).

    What a component puts off (a field that waits for more keys) is not known here: a test waits for what it asserts.
    """
    page.wait_for_function(SETTLED, arg=uuid.uuid4().hex)


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
        before, _ = locator.bounding_box(), locator.page.wait_for_timeout(50)
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


def _save_model(folder: Path, seed: int, layers: int, overflow: bool = False) -> Path:
    import torch
    from transformers import BertConfig, BertModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    vocabulary = _save_tokenizer(folder)
    torch.manual_seed(seed)
    model = BertModel(
        BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=layers,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=MAX_TOKENS,
        )
    )
    if overflow:
        _make_overflow(model, vocabulary[HUGE])
    model.save_pretrained(folder)
    return folder


def _make_overflow(model: Any, word: int) -> None:
    """Dimension 0 is large for one word alone, and the value projection multiplies it by 20,000.

    After the embeddings' norm that word has about √31 ≈ 5.6 there, so about 110,000; the others, whose part in
    dimension 0 is nil, stay within a few thousands.
    """
    import torch

    with torch.no_grad():
        for table in (model.embeddings.position_embeddings, model.embeddings.token_type_embeddings):
            table.weight[:, 0] = 0
        words = model.embeddings.word_embeddings.weight
        words[:, 0] = 0
        words[word, 0] = 1_000
        model.encoder.layer[0].attention.self.value.weight[:, 0] = 20_000


def _save_tokenizer(folder: Path) -> dict[str, int]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, HUGE, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=MAX_TOKENS,
    ).save_pretrained(folder)
    return vocabulary
