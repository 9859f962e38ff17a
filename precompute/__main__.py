"""``python -m precompute``: the job's commands, with ``publish --html`` where the app's files are installed, too."""

import importlib.util
import sys

PROG = "python -m precompute"

if importlib.util.find_spec("headscope"):
    from headscope.commands import main

    sys.exit(main(prog=PROG))
else:  # an image of the job alone
    from precompute import cli

    sys.exit(cli.main(prog=PROG))
