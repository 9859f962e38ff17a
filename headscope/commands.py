"""``headscope COMMAND``: the job's commands, and ``serve``, which opens the app."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core.runs.backend import backend_at
from core.runs.run import Run, open_run
from core.settings import PROJECT
from precompute import cli
from precompute.options import add_common


def main(arguments: Sequence[str] | None = None, prog: str = "headscope") -> int:
    """The commands of the job, of which ``publish`` can write HTML here; and ``serve``."""
    return cli.main(
        arguments,
        {
            "publish": replace(cli.COMMANDS["publish"], run=_publish),
            "serve": cli.CommandRow("open the app in the browser", _serve, _serve_options),
        },
        prog,
    )


def _publish(options: argparse.Namespace) -> int:
    def write_html(run: Run, path: Path, texts: str) -> int:
        from pages.shared.one_file.write import write_page

        # What is read for the file is read as for a page, and Streamlit remarks that nobody is looking at it.
        logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").setLevel(logging.ERROR)
        return write_page(run, path, texts)

    return cli.published(options, write_html)


def _serve_options(command: argparse.ArgumentParser) -> None:
    add_common(command, run_optional=True)
    command.add_argument("--port", type=int, metavar="N", help="of the server (default: 8501)")
    command.add_argument("--headless", action="store_true", help="do not open a browser")


def _serve(options: argparse.Namespace) -> int:
    asked = ["--server.port", str(options.port)] if options.port else []
    asked += ["--server.headless", "true"] if options.headless else []
    os.environ["HEADSCOPE_CACHE"] = backend_at(options.cache).place
    if options.run:
        os.environ["HEADSCOPE_RUN"] = open_run(options.cache, options.run).name
    os.chdir(PROJECT)  # the theme is in .streamlit/ of the folder that Streamlit is started in
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", "app.py", *asked])
