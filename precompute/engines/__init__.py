"""Who makes the parts of a run: one table, from which ``--engine`` is chosen."""

from precompute.engines import local
from precompute.engines.task import Engine, Task

__all__ = ["ENGINES", "Engine", "Task"]

ENGINES: dict[str, Engine] = {
    "local": Engine("this machine", local.run),
}
