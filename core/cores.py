"""How many processors this process may use."""

from __future__ import annotations

import os


def cores() -> int:
    """Those that the system lets it use (a container's share of them, by affinity); where it does not say, all."""
    asked = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    return len(asked(0)) if asked is not None else os.cpu_count() or 1
