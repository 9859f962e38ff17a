"""``headscope COMMAND``: the job's commands, and ``serve``, which opens the app."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from core.settings import PROJECT
from precompute import cli


def main(arguments: Sequence[str] | None = None, prog: str = "headscope") -> int:
    """As ``python -m precompute``, with ``serve``."""
    return cli.main(arguments, {"serve": cli.CommandRow("open the app in the browser", _serve, _serve_options)}, prog)


def _serve_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--port", type=int, metavar="N", help="of the server (default: 8501)")
    command.add_argument("--headless", action="store_true", help="do not open a browser")
    command.set_defaults(cache=None)


def _serve(options: argparse.Namespace) -> int:
    asked = ["--server.port", str(options.port)] if options.port else []
    asked += ["--server.headless", "true"] if options.headless else []
    os.chdir(PROJECT)  # the theme is in .streamlit/ of the folder that Streamlit is started in
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", "app.py", *asked])
