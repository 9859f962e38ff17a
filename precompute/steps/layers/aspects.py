"""Every aspect of the corpus read from every head of every layer: the rows of ``layer_aspects``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.analysis.aspect_probe import ACCURACY, probe_aspects
from core.analysis.near_duplicates import first_of_each
from core.machine import cores
from core.model.share_space import ShareSpace
from core.runs.aspects import Aspect
from precompute.job.step import Rows, add
from precompute.steps.analyse.tables import number
from precompute.steps.aspects.sample import AspectSample, sampled

SLICINGS = 40
"""Random slicings per layer and stage; the step ``aspects`` has 200 at the run's own layer."""


def layer_aspects(aspects: Sequence[Aspect], docs: np.ndarray, texts: Sequence[str]) -> AspectSample:
    """Of the sweep's documents ``docs`` with their ``texts``, one of each group of near-duplicates.

    ``AspectSample.docs`` are then places in the sweep's sample, not documents of the run.
    """
    of_sample = [Aspect(each.name, each.source, each.values, each.codes[docs]) for each in aspects]
    places = np.random.default_rng(7).permutation(len(docs))
    places = places[first_of_each([texts[place] for place in places.tolist()])]
    found = (sampled(each, places) for each in of_sample)
    return AspectSample(places, tuple(each for each in found if each is not None))


def add_layer_aspects(
    rows: Rows,
    layer: int,
    stage: int,
    vectors: np.ndarray,
    sample: AspectSample,
    heads: int,
    seed: int,
    space: ShareSpace | None,
) -> None:
    """From ``vectors[place, width]`` of one ``layer`` (from 1) and ``stage``; ``space`` is that of stage 4."""
    if heads < 2:
        return
    for group in sample.alike():
        chosen = [sample.aspects[at] for at in group]
        mine = vectors[sample.docs[chosen[0].rows]]
        found = probe_aspects(
            mine, [each.codes for each in chosen], heads, SLICINGS, seed, threads=cores(), space=space
        )
        for each, probed in zip(chosen, found, strict=True):
            values, compared = probed.values[ACCURACY], probed.compared[ACCURACY]
            for head in range(1 + heads):
                add(
                    rows,
                    layer=layer,
                    stage=stage,
                    aspect=each.aspect.name,
                    head=head,
                    value=values.value[head],
                    low=number(values.low[head]),
                    high=number(values.high[head]),
                    p_adjusted=compared.adjusted[head - 1] if head else None,
                    verdict=compared.verdicts[head - 1] if head else None,
                    documents=len(each.codes),
                    chance=probed.chance(ACCURACY),
                    slicings=SLICINGS,
                    slices=compared.null.mean(),
                    slices_sd=compared.null.std(),
                )
