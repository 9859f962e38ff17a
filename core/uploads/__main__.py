"""What ``core.uploads.apart`` starts: a file's bytes come in, its texts go out as JSON, within limits."""

from __future__ import annotations

import contextlib
import json
import sys

from core.errors import Mistake
from core.uploads.apart import MEMORY, SECONDS
from core.uploads.read import parse_upload


def main(name: str) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS), int(SECONDS) + 5))
    try:
        data = sys.stdin.buffer.read()
        found = parse_upload(name, data, most=len(data))  # whoever started this has looked at its size
        answer: dict[str, object] = {"texts": [{"name": f.name, "text": f.text, "notes": f.notes} for f in found]}
    except Mistake as mistake:
        answer = {"mistake": str(mistake)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
