"""Which share of the parts is this process's: by torchrun's variables, or by Slurm's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import Mistake

_HOW = "Start it with torchrun, srun or sbatch --array, or set RANK and WORLD_SIZE."


@dataclass(frozen=True)
class RankPlace:
    """Rank ``rank`` (from 0) of ``world``; ``local`` counts within the machine."""

    rank: int
    world: int
    local: int = 0


def place_of(environment: Mapping[str, str]) -> RankPlace:
    """RANK and WORLD_SIZE, where they are set; else Slurm's task, its place in the array, or both together."""
    if "RANK" in environment or "WORLD_SIZE" in environment:
        place = RankPlace(*(_number(environment, name) for name in ("RANK", "WORLD_SIZE")))
        return _checked(RankPlace(place.rank, place.world, _number(environment, "LOCAL_RANK", 0)))
    if "SLURM_PROCID" not in environment and "SLURM_ARRAY_TASK_ID" not in environment:
        raise Mistake(f"--engine ranks does not know which rank this is. {_HOW}")
    tasks, task = _number(environment, "SLURM_NTASKS", 1), _number(environment, "SLURM_PROCID", 0)
    if tasks > 1 and "SLURM_JOB_ID" in environment and "SLURM_STEP_ID" not in environment:
        raise Mistake(
            f"The job has {tasks} tasks, and this command is started once for all of them. Put srun before it."
        )
    jobs, job = 1, 0
    if "SLURM_ARRAY_TASK_ID" in environment:
        jobs, job = _in_array(environment)
    return _checked(RankPlace(job * tasks + task, jobs * tasks, _number(environment, "SLURM_LOCALID", 0)))


def _in_array(environment: Mapping[str, str]) -> tuple[int, int]:
    """How many jobs the array has, and which this is, from 0."""
    count, here, first = (_number(environment, f"SLURM_ARRAY_TASK_{name}") for name in ("COUNT", "ID", "MIN"))
    step = _number(environment, "SLURM_ARRAY_TASK_STEP", 1)
    last = _number(environment, "SLURM_ARRAY_TASK_MAX", first + (count - 1) * step)
    if step < 1 or last != first + (count - 1) * step or (here - first) % step:
        raise Mistake(
            f"The array's numbers are not a plain range ({count} from {first} to {last}), so their order is not "
            "known. Use --array=0-7, for example; finished parts are not repeated."
        )
    return count, (here - first) // step


def _number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    value = environment.get(name)
    if value is None and default is not None:
        return default
    try:
        return int(value or "")
    except ValueError:
        raise Mistake(f"{name} is {value!r}, and must be a whole number. {_HOW}") from None


def _checked(place: RankPlace) -> RankPlace:
    if not 0 <= place.rank < place.world:
        raise Mistake(f"Rank {place.rank} of {place.world} does not exist: ranks count from 0. {_HOW}")
    return place
