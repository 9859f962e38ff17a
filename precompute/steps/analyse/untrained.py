"""The untrained twin: the run's architecture with random weights, over a sample of the same documents.

What it shows as well was not learned: random weights already make heads distinguishable.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import Mistake
from core.model.embedder import Embedded
from core.model.share_space import ShareSpace
from core.model.stages import SHARE
from core.runs.manifest import Manifest
from core.runs.run import Run
from precompute.job.topic_vectors import TopicModel

DOCUMENTS = 200
"""At most: they tell separable from not, and a second model's pass stays short."""
_MOST_PARAMETERS_ON_CPU = 1_000_000_000
"""Beyond, a pass over the sample takes longer than everything else that 'analyse' does."""

_BYTES = 4
"""Of a parameter: the twin is made in float32 at most."""


@dataclass(frozen=True)
class UntrainedTwin:
    """``documents[stage][doc, width]`` of the first documents of the sample, and ``topics[stage][topic, width]``."""

    documents: dict[int, np.ndarray]
    topics: dict[int, np.ndarray]
    space: ShareSpace | None = None
    """Its own, where the run has stage 4."""


class TooLarge(Mistake):
    """The twin would take too much memory or time."""


def untrained_twin(
    run: Run, manifest: Manifest, compared: np.ndarray, topics: Sequence[str], model: TopicModel, seed: int
) -> UntrainedTwin | str:
    """The twin's vectors; or a sentence that says why it was not computed."""
    try:
        embedder = model.untrained(manifest, seed, fits)
    except TooLarge as mistake:
        return str(mistake)
    except Mistake:  # its words may name folders, and this goes into the run
        return "The model could not be built with random weights."
    texts = run.document_lookup().rows(compared[:DOCUMENTS], ["text"])["text"].to_pylist()
    documents, names = embedder.embed(texts), embedder.embed(list(topics))
    space = embedder.share_space() if SHARE in manifest.stages else None
    return UntrainedTwin(_stages(documents, manifest), _stages(names, manifest), space)


def fits(parameters: int, device: str) -> None:
    """Raises ``TooLarge`` before anything is allocated."""
    if device == "cpu" and parameters > _MOST_PARAMETERS_ON_CPU:
        raise TooLarge(f"Its {parameters:,} parameters take too long on a CPU; run 'analyse' on a GPU.")
    if parameters * _BYTES > _free(device):
        raise TooLarge(f"A second copy of its {parameters:,} parameters does not fit into the memory of {device}.")


def _free(device: str) -> int:
    if device != "cpu":
        import torch

        return int(torch.cuda.mem_get_info(device)[0]) if device.startswith("cuda") else sys.maxsize
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # not known on this system
        return sys.maxsize


def _stages(found: Embedded, manifest: Manifest) -> dict[int, np.ndarray]:
    return {stage: found.stage(stage) for stage in manifest.stages}
