"""A hub on loopback for data sets: as much of its protocol as publishing and fetching need."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlparse

REVISION = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class HubStore:
    """Data sets by name: their files, and whether they are private; what was asked with which token."""

    token: str = "hf_test"
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


class DataSetHub(BaseHTTPRequestHandler):
    def __init__(self, store: HubStore, *args: object) -> None:
        self.store = store
        super().__init__(*args)  # type: ignore[arg-type]

    def log_message(self, *args: object) -> None:
        pass

    @property
    def _path(self) -> str:
        return unquote(urlparse(self.path).path)

    def _may(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.store.token}"

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def do_POST(self) -> None:
        body, path = self._body(), self._path
        self.store.asked.append(f"POST {path}")
        if not self._may():
            return self._send(b'{"error": "Invalid token"}', 401)
        if path == "/api/repos/create":
            asked = json.loads(body)
            repo = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            self.store.files.setdefault(repo, {})
            hidden = asked.get("private", asked.get("visibility") == "private")
            self.store.private.setdefault(repo, bool(hidden))
            return self._json({"url": f"{self._address}/datasets/{repo}", "name": repo, "id": repo})
        if path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        if path.endswith(".git/info/lfs/objects/batch"):
            return self._json(
                {"transfer": "basic", "objects": [self._room(one) for one in json.loads(body)["objects"]]}
            )
        repo = "/".join(path.split("/")[3:5])
        if "/preupload/" in path:
            files = [
                {"path": one["path"], "uploadMode": self._mode(one["path"]), "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            return self._json({"files": files})
        if "/commit/" in path:
            for line in body.splitlines():
                self._commit(repo, json.loads(line))
            url = f"{self._address}/datasets/{repo}/commit/{REVISION}"
            return self._json({"commitUrl": url, "commitOid": REVISION, "success": True})
        return self._send(b"", 404)

    @property
    def _address(self) -> str:
        host, port = self.server.server_address[:2]
        return f"http://{host!s}:{port}"

    @staticmethod
    def _mode(path: str) -> str:
        return "lfs" if path.endswith((".parquet", ".sqlite")) else "regular"

    def _room(self, one: dict[str, Any]) -> dict[str, Any]:
        oid = one["oid"]
        action = {"upload": {"href": f"{self._address}/upload/{oid}"}}
        return {"oid": oid, "size": one["size"], "authenticated": True, "actions": action}

    def _commit(self, repo: str, line: dict[str, Any]) -> None:
        value = line["value"]
        if line["key"] == "file":
            self.store.files[repo][value["path"]] = base64.b64decode(value["content"])
        elif line["key"] == "lfsFile":
            self.store.files[repo][value["path"]] = self.store.blobs[value["oid"]]

    def do_PUT(self) -> None:
        data = self._body()
        digest = hashlib.sha256(data).hexdigest()
        assert self._path == f"/upload/{digest}"
        self.store.blobs[digest] = data
        self._send(b"")

    def do_HEAD(self) -> None:
        self._read(with_body=False)

    def do_GET(self) -> None:
        self._read(with_body=True)

    def _read(self, with_body: bool) -> None:
        path = self._path
        self.store.asked.append(f"{self.command} {path}")
        parts = path.strip("/").split("/")
        in_api = parts[:2] == ["api", "datasets"]
        repo = "/".join(parts[2:4] if in_api else parts[1:3])
        files = self.store.files.get(repo)
        if files is None or (self.store.private.get(repo) and not self._may()):
            return self._send(b"", 404, {"X-Error-Code": "RepoNotFound"}, with_body)
        if in_api:
            listed = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
            return self._json({"id": repo, "sha": REVISION, "siblings": listed}, with_body)
        name = "/".join(parts[5:])  # datasets/USER/NAME/resolve/REVISION/…
        if name not in files:
            return self._send(b"", 404, {"X-Error-Code": "EntryNotFound"}, with_body)
        tag = hashlib.sha1(files[name]).hexdigest()
        return self._send(files[name], 200, {"ETag": f'"{tag}"', "X-Repo-Commit": REVISION}, with_body)

    def _json(self, found: object, with_body: bool = True) -> None:
        self._send(json.dumps(found).encode(), 200, {"Content-Type": "application/json"}, with_body)

    def _send(
        self, body: bytes, status: int = 200, headers: dict[str, str] | None = None, with_body: bool = True
    ) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


class HubServer:
    """The server, its address, and what it holds."""

    def __init__(self) -> None:
        self.store = HubStore()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(DataSetHub, self.store))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
