"""The browser tests again and again on a machine that has no time for them: ``python -m tests.support.busy 10``.

As many loops as there are processors run beside them and never pause. It ends with the first repetition that fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
"""Ends with whoever started it, however that ends."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", type=int, nargs="?", default=10)
    parser.add_argument("--loops", type=int, default=os.cpu_count())
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    files = [path for path in Path(__file__).parents[1].rglob("test_*.py") if "playwright" in path.read_text()]
    chosen = ["-m", "browser", "-n", given.workers, "--dist", "loadfile", *sorted(files)]
    tests = [sys.executable, "-m", "pytest", *map(str, chosen)]
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(given.loops)]
    try:
        for turn in range(1, given.times + 1):
            began = time.monotonic()
            status = subprocess.run(tests).returncode
            print(f"Repetition {turn} of {given.times}: status {status}, {time.monotonic() - began:.0f} s", flush=True)
            if status:
                return status
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
