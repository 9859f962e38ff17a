"""A real S3 server on loopback (moto's), behind a door that can be shut, fall silent, be slow or drop a connection."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from tests.support.servers import free_port


class S3Server:
    """``address`` is the door's; ``environment`` is what a client needs to come in."""

    def __init__(self, **settings: str) -> None:
        self._port = free_port()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self._port)],
            env={**os.environ, **settings},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(900):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
                break
            time.sleep(0.1)
        self.requests: list[str] = []
        """The first line of each connection's requests, as far as the door has seen them."""
        self.cut_after: int | None = None
        """Bytes of clients' data after which the connection is dropped, and no other is let in."""
        self.stall_after: int | None = None
        """Bytes after which nothing is passed on any more; ``stalled`` is set then."""
        self.stalled = threading.Event()
        self.rate: int | None = None
        """Bytes of answers per second, where they are slow."""
        self._speaking = threading.Event()
        self._speaking.set()
        self._door = free_port()
        self.open()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._door}",
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": "a-secret-that-nobody-may-see",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def make_bucket(self, name: str) -> None:
        from pyarrow import fs

        keys = {"access_key": "tester", "secret_key": "x", "region": "us-east-1"}
        there = {"endpoint_override": f"127.0.0.1:{self._port}", "scheme": "http"}
        fs.S3FileSystem(**keys, **there, allow_bucket_creation=True).create_dir(name)

    def open(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", self._door))
        threading.Thread(target=self._serve, args=(self._listening,), daemon=True).start()
        self._connections: list[socket.socket] = []

    def shut(self) -> None:
        """Connections are refused from now on."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Connections are accepted and never answered; those that were begun meanwhile are dropped at the end."""
        self._speaking.clear()
        try:
            yield
        finally:
            held, self._connections = self._connections, []
            self._speaking.set()
            for connection in held:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.shut()
        self._process.kill()
        self._process.wait()

    def _serve(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                self._connections.append(client)
                server = socket.create_connection(("127.0.0.1", self._port))
                threading.Thread(target=self._relay, args=(client, server), daemon=True).start()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        """Both ways, until one of them ends; a process that has thousands of requests has no file left open by them."""
        back = threading.Thread(target=self._pass, args=(server, client, False), daemon=True)
        back.start()
        self._pass(client, server, True)
        back.join()
        for each in (client, server):
            each.close()
        with contextlib.suppress(ValueError):
            self._connections.remove(client)

    def _pass(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(16384 if self.rate else 65536):
                if counted:
                    line = data.split(b"\r\n", 1)[0].decode("latin-1")
                    if line.endswith("HTTP/1.1"):
                        self.requests.append(line)
                    if self.cut_after is not None:
                        self.cut_after -= len(data)
                        if self.cut_after < 0:
                            break
                    if self.stall_after is not None:
                        self.stall_after -= len(data)
                        if self.stall_after < 0:
                            self.stalled.set()
                            while source.recv(65536):
                                pass
                            break
                self._speaking.wait()
                if self.rate is not None and not counted:
                    time.sleep(len(data) / self.rate)
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
