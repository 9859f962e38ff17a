"""Who makes the parts of a run: one table, from which ``--engine`` is chosen."""

from precompute.engines import local, on_ray, ranks
from precompute.engines.task import Engine, Hands, Task

__all__ = ["ENGINES", "Engine", "Hands", "Task"]

ENGINES: dict[str, Engine] = {
    "local": Engine("this machine, one process a GPU", local.run),
    "ranks": Engine(
        "many processes, each started with its rank by torchrun, srun or sbatch --array", ranks.run, ranks.enter, True
    ),
    "ray": Engine("a Ray cluster", on_ray.run),
}
