"""``headscope COMMAND``: the job's commands, and ``serve``, which opens the app."""

from __future__ import annotations

import argparse
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
            "figure": cli.CommandRow("save a figure for a paper as SVG or PDF", _figure, _figure_options),
            "serve": cli.CommandRow("open the app in the browser", _serve, _serve_options),
        },
        prog,
    )


def _publish(options: argparse.Namespace) -> int:
    def write_html(run: Run, path: Path, texts: str) -> int:
        from headscope.opened import read_as_pages_do
        from pages.shared.one_file.write import write_page

        read_as_pages_do()
        return write_page(run, path, texts)

    return cli.published(options, write_html)


def _figure_options(command: argparse.ArgumentParser) -> None:
    from headscope.figures import FIGURES, THEMES

    add_common(command)
    command.add_argument("name", metavar="FIGURE", help=f"one of: {', '.join(sorted(FIGURES))}")
    command.add_argument(
        "--to", type=Path, required=True, metavar="FILE", help="a file whose name ends with .svg or .pdf"
    )
    command.add_argument(
        "--width", default="column", help="column (88 mm, the default), page (180 mm) or a number of millimetres"
    )
    command.add_argument("--theme", choices=THEMES, default=THEMES[0], help="default: light")
    command.add_argument(
        "--browser", metavar="PATH", help="the browser that draws it (default: the first one installed)"
    )
    chosen = command.add_argument_group("what it shows", "each figure takes some of these")
    chosen.add_argument("--stage", type=int, metavar="N")
    chosen.add_argument("--stages", type=int, nargs="+", metavar="N")
    chosen.add_argument("--head", type=int, metavar="N", help="counting from 1")
    chosen.add_argument("--doc", type=int, metavar="N", help="a document, counting from 0")
    chosen.add_argument("--topics", nargs="+", metavar="TOPIC")
    chosen.add_argument("--per-topic", type=int, metavar="N", help="at most N documents per topic")
    chosen.add_argument("--measure", metavar="NAME")
    chosen.add_argument("--task", metavar="NAME")
    chosen.add_argument("--original", action="store_const", const=True, help="the study's own topics")


def _figure(options: argparse.Namespace) -> int:
    from headscope.opened import OpenedRun
    from headscope.paper import caption_of, save_figure

    names = ("stage", "stages", "head", "doc", "topics", "per_topic", "measure", "task", "original")
    chosen = {name: value for name in names if (value := getattr(options, name)) is not None}
    drawn = OpenedRun(open_run(options.cache, options.run)).figure(options.name, options.theme, **chosen)
    try:
        width: str | float = float(options.width)
    except ValueError:
        width = options.width
    path = save_figure(drawn, options.to, width, browser=options.browser)
    print(f"Wrote {path}. Its caption:\n{caption_of(drawn)}")
    return 0


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
