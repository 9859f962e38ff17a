"""``python -m benchmarks.one_file [RUN]``: the first picture of a published HTML file against the app's.

The same run, the same Chromium, a fresh context each time, in turns: seconds from the start of the navigation until the
map of stage 1 is drawn. Without a name, on the demo of this folder's cache. Target: at most 1.5 times the app's.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.app_browser import chromium, first_drawn, served
from benchmarks.result import Result
from core.runs.run import open_run
from core.settings import PROJECT
from headscope.opened import read_as_pages_do
from pages.shared.one_file.write import write_page

ROUNDS = 5
MOST = 1.5


def main(cache: Path, name: str) -> list[Result]:
    read_as_pages_do()
    with tempfile.TemporaryDirectory() as folder, served("app.py", cache) as app, chromium() as browser:
        file = Path(folder) / "run.html"
        size = write_page(open_run(cache, name), file)
        urls = {"app": f"{app}/head_map?run={name}", "file": file.as_uri()}
        found = first_drawn(browser, urls, ROUNDS)
    ratio = found["file"] / found["app"]
    print(f"  {name}: {size / 1e6:.2f} MB")
    return [Result("first picture of the file", f"{ratio:.2f} × the app's", f"{MOST} ×", ratio <= MOST)]


if __name__ == "__main__":
    for result in main(PROJECT / "cache", sys.argv[1] if len(sys.argv) > 1 else "demo"):
        print(f"{result.what}: {result.measured} (target {result.target}){'' if result.reached else '  MISSED'}")
