"""Who makes the parts of a run: one table, from which ``--engine`` is chosen."""

from pathlib import Path

from core.remote.mirror import mirror_at
from precompute.engines import local, on_ray, ranks, store_ranks
from precompute.engines.task import EmbedTask, Engine, Resources

__all__ = ["ENGINES", "EmbedTask", "Engine", "Resources", "engine_at"]

ENGINES: dict[str, Engine] = {
    "local": Engine("this machine, one process per GPU", local.run),
    "ranks": Engine(
        "many processes, each started with its rank by torchrun, srun or sbatch --array", ranks.run, ranks.enter, True
    ),
    "ray": Engine("a Ray cluster", on_ray.run),
}


def engine_at(name: str, cache: Path) -> Engine:
    """The engine for a cache; ranks that have no file system in common are led by the first of them."""
    engine = ENGINES[name]
    return (
        Engine(engine.help, store_ranks.lead, engine.enter)
        if engine.shared and mirror_at(cache) is not None
        else engine
    )
