"""The image without Docker: the Dockerfile's own steps, replayed in a clean folder, and the app they end in.

Replayed as written, with the image's folders in a temporary one: the build context that .dockerignore leaves; every
COPY, ENV and WORKDIR of the stages ``demo`` and ``app``; the RUN that makes the demo (its cache mount is warm: the
run is that of other tests, with quickly made maps) and the one that makes the bytecode; USER, CMD and HEALTHCHECK. The
process has no right to write anywhere but in its /tmp.

Not replayed: the installation of packages (a fresh virtual environment points to those of the tests instead), useradd,
and the stage ``gpu``. For those the image must be built.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.dockerfile import Instruction, environment, ignore_patterns, is_ignored, stages
from tests.support.servers import free_port

ROOT = Path(__file__).resolve().parents[2]
STAGES = stages((ROOT / "Dockerfile").read_text())
FOLDERS = re.compile(r"(?<![\w./-])/(app|cache|demo|models|opt/venv|tmp)(?![\w-])")
"""Of the image: in a replay they are below a folder of ours."""
QUICKLY = "--iterations 90 --without retrieve layers aspects attention"
"""As ``analysed_cache`` was made; with the image's own number the maps would be made again, for most of a minute."""
PATIENCE = 90


def only(stage: str, name: str) -> Instruction:
    (found,) = [it for it in STAGES[stage] if it.name == name]
    return found


@dataclass(frozen=True)
class Image:
    """The replayed stages, each with a file system of its own below ``root``; ``context`` is what a build is given."""

    root: Path
    context: Path

    def inside(self, stage: str, text: str) -> str:
        """A path, or a command with paths, of a stage as it is here."""
        return FOLDERS.sub(lambda found: f"{self.root}/{stage}{found[0]}", text)

    def folder(self, name: str) -> Path:
        """Of the finished app."""
        return self.root / "app" / name

    def environment(self, stage: str) -> dict[str, str]:
        """As the container has it: nothing of this machine's but the rest of PATH. Tests ask no network."""
        found = {name: self.inside(stage, value) for name, value in environment(STAGES[stage]).items()}
        path = found["PATH"].replace("$PATH", "/usr/bin:/bin")
        home = self.inside(stage, "/tmp")
        return {"HOME": home, "TMPDIR": home, "HF_HUB_OFFLINE": "1", **found, "PATH": path}

    def copy(self, stage: str, it: Instruction) -> None:
        """COPY from the context or from a stage before; folders are copied by content, as Docker does."""
        *sources, target = it.words()
        goal = Path(self.inside(stage, target if target.startswith("/") else f"/app/{target}"))
        for source in sources:
            path = Path(self.inside(it.flags["from"], source)) if "from" in it.flags else self.context / source
            if path.is_dir():
                shutil.copytree(path, goal, dirs_exist_ok=True)
            else:
                place = goal / path.name if target.endswith("/") else goal
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)

    def run(self, stage: str, command: str) -> None:
        done = subprocess.run(
            ["sh", "-ec", self.inside(stage, command)],
            cwd=self.inside(stage, "/app"),
            env=self.environment(stage),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def image(analysed_cache: Path) -> Iterator[Image]:
    """The stages demo and app, replayed; what they made is no longer writable."""
    folder = Path(tempfile.mkdtemp(prefix="headscope-image-"))  # pytest's own folder is closed to other users
    image = Image(folder / "root", folder / "context")
    try:
        folder.chmod(0o755)
        make_context(image.context)
        make_venv(folder / "venv")
        for stage in ("demo", "app"):
            for name in ("app", "opt", "tmp"):
                (image.root / stage / name).mkdir(parents=True)
            (image.root / stage / "tmp").chmod(0o777)
            (image.root / stage / "opt/venv").symlink_to(folder / "venv")
        shutil.copytree(analysed_cache, image.root / "demo/demo")
        for stage in ("demo", "app"):
            replay(image, stage)
        subprocess.run(["chmod", "-R", "a-w,a+rX", image.folder("app"), image.folder("cache")], check=True)
        yield image
    finally:
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
        shutil.rmtree(folder)


def make_context(folder: Path) -> None:
    patterns = ignore_patterns(ROOT)
    for top in ROOT.iterdir():
        inside = [top] if top.is_file() else top.rglob("*") if is_wanted(top.name, patterns) else []
        for path in inside:
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and not is_ignored(name, patterns):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, folder / name)


def is_wanted(folder: str, patterns: list[str]) -> bool:
    """Whether anything of a folder can be in the context: caches and virtual environments are not walked through."""
    return any(pattern.split("/")[0] == f"!{folder}" for pattern in patterns)


def make_venv(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "the-tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    # A console script names its Python in its first line: pip would have written this one.
    script = folder / "bin/streamlit"
    script.write_text(f"#!{folder}/bin/python\nfrom streamlit.web.cli import main\nmain()\n")
    script.chmod(0o755)


def replay(image: Image, stage: str) -> None:
    for it in STAGES[stage]:
        if it.name == "COPY":
            image.copy(stage, it)
        elif it.name == "WORKDIR":
            assert it.rest == "/app"
        elif it.name == "RUN" and "useradd" not in it.rest:
            image.run(stage, it.rest.replace("all demo ", f"all demo {QUICKLY} "))


def as_user(number: str) -> list[str]:
    """What to put before a command: the image's user may read what tests may (a venv below /root), but not write."""
    if os.geteuid():
        return []
    right = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--bounding-set=-all,+dac_read_search"]
    return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", *right]


@dataclass(frozen=True)
class Container:
    process: subprocess.Popen[bytes]
    port: int


def at_port(image: Image, port: int) -> dict[str, str]:
    """The image's environment with another port, as a Hugging Face Space has one (7860)."""
    environment = image.environment("app")
    assert environment["STREAMLIT_SERVER_PORT"] == "8501"
    return {**environment, "STREAMLIT_SERVER_PORT": str(port)}


@pytest.fixture(scope="module")
def container(image: Image) -> Iterator[Container]:
    """The image's CMD, as its USER."""
    port = free_port()
    command = [word.replace("0.0.0.0", "127.0.0.1") for word in only("app", "CMD").words()]
    process = subprocess.Popen(
        [*as_user(only("app", "USER").rest), *command],
        cwd=image.folder("app"),
        env=at_port(image, port),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield Container(process, port)
    process.kill()
    process.wait()


def healthy(image: Image, container: Container) -> bool:
    name, _, rest = only("app", "HEALTHCHECK").rest.partition(" ")
    assert name == "CMD"
    command = Instruction("CMD", {}, rest).words()
    done = subprocess.run(command, env=at_port(image, container.port), cwd=image.folder("app"), capture_output=True)
    return done.returncode == 0


def test_the_replayed_image_is_healthy_shows_the_demo_and_stops(image: Image, container: Container) -> None:
    before = files(image)
    assert not healthy(image, Container(container.process, 1)), "a health check that nobody answers must fail"
    until = time.monotonic() + PATIENCE
    while not healthy(image, container):
        assert container.process.poll() is None, "the app has ended"
        assert time.monotonic() < until, "the app did not become healthy"
        time.sleep(0.3)
    if not os.geteuid():
        status = Path(f"/proc/{container.process.pid}/status").read_text()
        assert re.search(r"^Uid:\s+10001\s+10001", status, re.MULTILINE)
    shown = asyncio.run(first_page(container.port))
    assert "Overview" in shown
    assert "all-MiniLM-L6-v2" in shown
    assert files(image) == before, "the app wrote into the image"
    container.process.send_signal(signal.SIGTERM)
    assert container.process.wait(20) in (0, -signal.SIGTERM)


def files(image: Image) -> dict[str, int]:
    found = [path for name in ("app", "cache") for path in image.folder(name).rglob("*") if path.is_file()]
    return {str(path): path.stat().st_mtime_ns for path in found}


async def first_page(port: int) -> str:
    """All that the server sends a browser for the first page, as text; an exception on the page is a failure."""
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
    from websockets.asyncio.client import connect

    shown = ""
    async with asyncio.timeout(PATIENCE), connect(f"ws://127.0.0.1:{port}/_stcore/stream", max_size=None) as socket_:
        question = BackMsg()
        question.rerun_script.query_string = ""
        await socket_.send(question.SerializeToString())
        async for raw in socket_:
            message = ForwardMsg.FromString(raw)
            assert message.delta.new_element.WhichOneof("type") != "exception", str(message)
            shown += str(message)
            if message.WhichOneof("type") == "script_finished":
                break
    return shown


def test_the_replayed_image_holds_no_more_than_it_should(image: Image) -> None:
    top = {path.name for path in image.folder("app").iterdir()}
    assert top - {"__pycache__"} == {
        ".streamlit", "LICENSE", "THIRD_PARTY.md", "app.py", "core", "deploy", "headscope", "pages", "precompute",
        "sbom.cdx.json",
    }  # fmt: skip
    assert [path.name for path in image.folder("cache").iterdir()] == ["demo"]
    assert list((image.folder("app") / "core/runs/__pycache__").glob("run.*.pyc")), (
        "nothing can be compiled once it is read-only"
    )
