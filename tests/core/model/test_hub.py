"""A model from the hub, for real but for the hub: a server on loopback speaks as much of its protocol as needed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

ROOT = Path(__file__).resolve().parents[3]
REVISION = "0123456789abcdef0123456789abcdef01234567"
REPO = "owner/tiny"


class Hub(BaseHTTPRequestHandler):
    """One model repository: its listing, and its files with the headers that the client goes by."""

    def __init__(self, folder: Path, asked: list[str], *args: object) -> None:
        self.folder, self.asked = folder, asked
        super().__init__(*args)  # type: ignore[arg-type]

    def log_message(self, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        path = unquote(urlparse(self.path).path)
        names = sorted(file.relative_to(self.folder).as_posix() for file in self.folder.rglob("*") if file.is_file())
        if path.startswith(f"/api/models/{REPO}/tree/"):
            body = json.dumps([{"type": "file", "path": name, **self._facts(name)} for name in names])
            return self._send(body.encode(), {"Content-Type": "application/json"}, with_body)
        if path.startswith(f"/api/models/{REPO}"):
            body = json.dumps({"id": REPO, "sha": REVISION, "siblings": [{"rfilename": name} for name in names]})
            return self._send(body.encode(), {"Content-Type": "application/json"}, with_body)
        name = path.removeprefix(f"/{REPO}/resolve/").partition("/")[2]
        if name in names:
            if with_body:
                self.asked.append(name)
            facts = self._facts(name)
            return self._send(
                (self.folder / name).read_bytes(), {"ETag": f'"{facts["oid"]}"', "X-Repo-Commit": REVISION}, with_body
            )
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound" if REPO not in path else "EntryNotFound")
        self.send_header("Content-Length", "0")
        return self.end_headers()

    def _facts(self, name: str) -> dict[str, object]:
        data = (self.folder / name).read_bytes()
        return {"size": len(data), "oid": hashlib.sha1(data).hexdigest()}

    def _send(self, body: bytes, headers: dict[str, str], with_body: bool) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


@pytest.fixture
def hub(tmp_path: Path, tiny_model: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """The address of a hub with one repository, the repository's folder, and which files were fetched."""
    folder, asked = tmp_path / "repository", []
    folder.mkdir()
    for file in tiny_model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (folder / "modules.json").write_text(
        '[{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}]'
    )
    (folder / "onnx").mkdir()
    for unwanted in ("onnx/model.onnx", "pytorch_model.bin", "modeling_tiny.py", "README.md"):
        (folder / unwanted).write_text("not for us")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Hub, folder, asked))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", folder, asked
    server.shutdown()
    server.server_close()


@pytest.fixture
def embed(tmp_path: Path, write_corpus: Callable[..., Path]) -> Callable[..., subprocess.CompletedProcess[str]]:
    source = write_corpus([{"text": f"harbour violin {number}"} for number in range(4)])

    def run(endpoint: str, model: str = REPO, offline: bool = False) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "precompute", "embed", "run", "--cache", str(tmp_path / "cache"), "--replace"]
        environment = {
            **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_OFFLINE": "1" if offline else "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        return subprocess.run(
            [*command, "--source", str(source), "--model", model, "--quiet"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def test_a_hub_model_is_fetched_used_and_found_again_offline(
    hub: tuple[str, Path, list[str]], embed: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    endpoint, _, asked = hub
    done = embed(endpoint)
    assert done.returncode == 0, done.stderr
    model = json.loads((tmp_path / "cache" / "run" / "manifest.json").read_text())["model"]
    assert (model["name"], model["revision"], model["pooling"]) == (REPO, REVISION, "first")
    assert {"config.json", "model.safetensors", "1_Pooling/config.json", "modules.json"} <= set(asked)
    assert not {"onnx/model.onnx", "pytorch_model.bin", "modeling_tiny.py", "README.md"} & set(asked)
    assert embed("http://127.0.0.1:9", offline=True).returncode == 0


def test_a_repository_that_is_not_there_is_one_sentence(
    hub: tuple[str, Path, list[str]], embed: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    failed = embed(hub[0], "owner/other")
    assert failed.returncode == 2
    assert failed.stderr.count("\n") == 1
    assert failed.stderr.startswith("headscope: The model 'owner/other' could not be fetched from the hub (")


def test_a_repository_with_older_weights_only_gets_those(
    hub: tuple[str, Path, list[str]], embed: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    import torch
    from safetensors.torch import load_file

    endpoint, folder, asked = hub
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    done = embed(endpoint)
    assert done.returncode == 0, done.stderr
    assert "pytorch_model.bin" in asked
