"""Variances of few numbers each, moved towards what all groups have in common (Smyth 2004, as in limma)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_STEPS = 50


@dataclass(frozen=True)
class ModeratedVariance:
    """Both ``[group]``."""

    variance: np.ndarray
    freedom: np.ndarray
    """Degrees of freedom: the group's own and what the other groups add."""


def moderated(variance: np.ndarray, freedom: np.ndarray) -> ModeratedVariance:
    """Of ``variance[group]``, all above 0, with ``freedom[group]``.

    True variances are taken to scatter around a common one, by an inverse chi-squared distribution whose degrees of
    freedom are estimated from how much the logarithms of ``variance`` differ beyond chance. Where they do not, all
    groups get the pooled variance.
    """
    from scipy.special import digamma, polygamma

    together = np.full(len(variance), float((variance * freedom).sum() / freedom.sum()))
    pooled = ModeratedVariance(together, np.full(len(variance), float(freedom.sum())))
    if len(variance) < 2:
        return pooled
    logs = np.log(variance) - digamma(freedom / 2) + np.log(freedom / 2)
    beyond_chance = float(logs.var(ddof=1) - polygamma(1, freedom / 2).mean())
    if beyond_chance <= 0:
        return pooled
    prior = 2 * _inverse_trigamma(beyond_chance)
    common = np.exp(logs.mean() + digamma(prior / 2) - np.log(prior / 2))
    shrunk = (prior * common + freedom * variance) / (prior + freedom)
    return ModeratedVariance(shrunk, np.minimum(prior + freedom, pooled.freedom))


def _inverse_trigamma(value: float) -> float:
    """The number whose trigamma is ``value``, by Newton's method on its reciprocal, which is nearly a line."""
    from scipy.special import polygamma

    at = 0.5 + 1 / value
    for _ in range(_STEPS):
        here = float(polygamma(1, at))
        step = here * (1 - here / value) / float(polygamma(2, at))
        at += step
        if -step / at < 1e-8:
            break
    return at
