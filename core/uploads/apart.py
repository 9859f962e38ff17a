"""A file parsed in a process of its own, so that what it does to the parser it does not do to the app.

A made-up PDF can keep a parser busy for hours, fill the memory, or crash a library written in C; other people are
using the app meanwhile. The bytes go over a pipe and the texts come back over one: nothing is written to the disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from core.errors import Mistake
from core.uploads.uploaded import Uploaded, shown

SECONDS = 45.0
MEMORY = 2_000_000_000
"""Bytes of address space; a 20 MB document takes some hundred."""
_PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "LANG")
"""Of the environment; the app's keys and tokens are none of a parser's business."""


def apart(name: str, data: bytes, seconds: float = SECONDS) -> list[Uploaded]:
    """What parse_upload gives for the file, or its Mistake."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "core.uploads", name.encode("utf-8", "replace").decode("utf-8")],
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            cwd=Path(__file__).resolve().parent.parent.parent,
            env={key: os.environ[key] for key in _PASSED_ON if key in os.environ},
            check=False,
        )
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise Mistake(
            f"{shown(name)} takes longer than {seconds:.0f} seconds to read. Save it in a simpler form, or paste the "
            "text."
        ) from error
    except ValueError as error:  # it ended without a word
        raise Mistake(f"{shown(name)} cannot be read: it breaks the program that tries. Paste its text.") from error
    if "mistake" in answer:
        raise Mistake(answer["mistake"])
    return [Uploaded(each["name"], each["text"], tuple(each["notes"])) for each in answer["texts"]]
