"""Takes the README's pictures again: ``make screenshots``."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SHOTS = {
    "overview-light": ("light", "/?head=5&doc=18", ".hs-cards"),
    "head-map-light": ("light", "/head_map", ".head-map canvas"),
    "heat-map-light": ("light", "/heat_map?doc=18", ".hs-heat-map canvas"),
}
"""The picture's name: the scheme, the view, and what must be there before it is taken. The front page comes first."""


def main() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    app = subprocess.Popen([*command, "--server.address=127.0.0.1"], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(f"{address}/_stcore/health")
        _take(address)
    finally:
        app.terminate()
        app.wait(20)


def _wait_for(url: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url, timeout=2).read()
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("The app did not start.")


def _take(address: str) -> None:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--enable-unsafe-swiftshader"])
        for name, (scheme, view, there) in SHOTS.items():
            page = browser.new_page(
                viewport={"width": 1400, "height": 1180},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page.goto(address + view)
            page.locator(there).first.wait_for(timeout=60_000)
            page.wait_for_timeout(4_000)  # charts fade in
            page.screenshot(path=ROOT / "docs" / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
