"""``python -m precompute``: the job's commands, with ``publish --html`` where the app's files are installed, too."""

import importlib.util
import sys

if importlib.util.find_spec("headscope"):
    from headscope.commands import main
else:  # an image of the job alone
    from precompute.cli import main

sys.exit(main(prog="python -m precompute"))
