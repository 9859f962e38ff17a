"""What ``core.uploads.apart`` starts: a file's name and bytes come in, its texts go out as JSON, within limits."""

from __future__ import annotations

import contextlib
import json
import os
import sys

from core.errors import Mistake
from core.uploads.apart import MEMORY, SECONDS
from core.uploads.read import parsed


def main() -> None:
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):  # Windows has no such limits
        import resource

        os.nice(5)  # the app's readers come first
        resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS), int(SECONDS) + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    suffix, name = json.loads(sys.stdin.buffer.readline())
    answers: list[dict[str, object]]
    try:
        found = parsed(suffix, name, sys.stdin.buffer.read())
        answers = [{"name": each.name, "text": each.text, "notes": each.notes} for each in found]
    except Mistake as mistake:
        answers = [{"mistake": str(mistake)}]
    except MemoryError:
        said = f"{name} takes more than {MEMORY / 1e6:.0f} MB of memory to read. Save it more simply, or paste it."
        answers = [{"mistake": said}]
    for answer in answers:
        sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


if __name__ == "__main__":
    main()
