"""From vectors to a map: t-SNE by openTSNE with the forces of core/maps/repulsion.py, or by cuML on a GPU."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import Mistake, listed

EARLY_EXAGGERATION = 12.0
METRICS = ("euclidean", "cosine")
LIMIT = 320_000
"""Points that are fitted; the study's number. Beyond, a sample is fitted and the rest is placed."""


@dataclass(frozen=True)
class MapConfig:
    """How a map is made; the same seed and one thread give the same coordinates."""

    perplexity: float = 30.0
    iterations: int = 750
    """The first third of them with the attraction exaggerated."""
    seed: int = 0
    threads: int = 1

    @property
    def early(self) -> int:
        return self.iterations // 3


@dataclass(frozen=True)
class Fitted:
    """``coordinates[point, 2]`` and the KL divergence that is left."""

    coordinates: np.ndarray
    kl: float


OnIteration = Callable[[int, float], None]
"""Told the iterations done and the KL divergence, every fifty iterations."""
_EVERY = 50


def neighbours_for(perplexity: float) -> int:
    """How many nearest neighbours a perplexity asks for."""
    return int(3 * perplexity)


def check_perplexity(asked: float | None, points: int) -> float:
    """``asked``, or without it 30, or what ``points`` allow if they are few; too large a one is refused."""
    most = (points - 1) / 3
    if most < 1:
        raise Mistake(f"A map needs at least 4 points; this run has {points}. Embed more documents.")
    if asked is None:
        return min(MapConfig.perplexity, float(most))
    if not 1 <= asked <= most:
        raise Mistake(
            f"A perplexity of {asked:g} does not fit {points:,} points: give one between 1 and {int(most):,} with "
            "--perplexity, or leave it out."
        )
    return asked


def fit_opentsne(vectors: np.ndarray, config: MapConfig, on_iteration: OnIteration | None = None) -> Fitted:
    """The map of ``vectors[point, dim]`` by openTSNE."""
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PrecomputedAffinities

    from core.maps.repulsion import RepulsionGrid, attraction, divergence

    graph = affinities(vectors, config)
    attracting, own = graph.astype(np.float32), len(vectors)
    grid, done = RepulsionGrid(threads=config.threads), 0

    def gradient(exaggeration: float) -> Callable[..., tuple[float, np.ndarray]]:
        def gradient(
            embedding: np.ndarray, *_: Any, should_eval_error: bool = False, **__: Any
        ) -> tuple[float, np.ndarray]:
            places = np.asarray(embedding)
            repulsion = grid.field(places).at(places)
            normaliser = float(repulsion.potential.sum(dtype=np.float64)) - own
            pull = attraction(attracting, places, places)
            kl = 0.0
            if should_eval_error:
                kl = float(divergence(attracting, places, places).sum()) + float(np.log(normaliser))
            return kl, (exaggeration * pull - repulsion.force / normaliser).astype(np.float64)

        return gradient

    def tell(iteration: int, kl: float, _: np.ndarray) -> None:
        if on_iteration is not None:
            on_iteration(done + iteration, kl)

    # openTSNE would multiply the graph itself by the exaggeration: with the forces above it is left at 1.
    layout = TSNEEmbedding(
        initial(vectors, config.seed),
        PrecomputedAffinities(graph, normalize=False),
        n_jobs=config.threads,
        random_state=config.seed,
        callbacks=tell,
        callbacks_every_iters=_EVERY,
    )
    for iterations, exaggeration, momentum in (
        (config.early, EARLY_EXAGGERATION, 0.5),
        (config.iterations - config.early, 1.0, 0.8),
    ):
        layout = layout.optimize(
            iterations,
            exaggeration=1,
            momentum=momentum,
            learning_rate=own / exaggeration,
            negative_gradient_method=gradient(exaggeration),
        )
        done += iterations
    return Fitted(np.asarray(layout, dtype=np.float32), float(layout.kl_divergence))


def affinities(vectors: np.ndarray, config: MapConfig) -> Any:
    """The graph of neighbours as a symmetric sparse matrix that sums to 1."""
    from openTSNE.affinity import joint_probabilities_nn

    from core.maps.neighbours import neighbour_graph

    found = neighbour_graph(vectors, neighbours_for(config.perplexity), config.threads)
    return joint_probabilities_nn(found.points, found.distances, [config.perplexity], n_jobs=config.threads)


def initial(vectors: np.ndarray, seed: int) -> np.ndarray:
    """The first two principal components, scaled to a small cloud, with a breath of noise so that equals can part."""
    from openTSNE.initialization import pca, random

    if vectors.shape[1] < 2 or np.ptp(vectors, axis=0).max() == 0:  # there are not two directions to begin with
        return np.asarray(random(len(vectors), random_state=seed))
    return np.asarray(pca(vectors.astype(np.float32, copy=False), random_state=seed, add_jitter=True))


def fit_cuml(vectors: np.ndarray, config: MapConfig, on_iteration: OnIteration | None = None) -> Fitted:
    """The map of ``vectors[point, dim]`` by cuML, on a GPU."""
    try:
        from cuml.manifold import TSNE
    except ImportError as error:
        raise Mistake(
            "cuML is not installed here: it needs an NVIDIA GPU and the package 'cuml-cu12'. Use --method opentsne."
        ) from error
    # cuML renamed 'n_iter' to 'max_iter', as scikit-learn did.
    iterations = "max_iter" if "max_iter" in inspect.signature(TSNE).parameters else "n_iter"
    model = TSNE(
        n_components=2,
        perplexity=config.perplexity,
        n_neighbors=neighbours_for(config.perplexity),
        early_exaggeration=EARLY_EXAGGERATION,
        exaggeration_iter=config.early,
        learning_rate_method="adaptive",
        method="fft",
        init="pca",
        random_state=config.seed,
        output_type="numpy",
        **{iterations: config.iterations},
    )
    coordinates = np.asarray(model.fit_transform(vectors.astype(np.float32, copy=False)), dtype=np.float32)
    kl = float(model.kl_divergence_)
    if on_iteration is not None:  # cuML says nothing on its way
        on_iteration(config.iterations, kl)
    return Fitted(coordinates, kl)


METHODS: dict[str, Callable[[np.ndarray, MapConfig, OnIteration | None], Fitted]] = {
    "opentsne": fit_opentsne,
    "cuml": fit_cuml,
}


def fit(method: str, vectors: np.ndarray, config: MapConfig, on_iteration: OnIteration | None = None) -> Fitted:
    """The map of ``vectors[point, dim]`` by the method of that name."""
    if method not in METHODS:
        raise Mistake(f"There is no map method '{method}'. Choose one of {listed(METHODS)}.")
    return METHODS[method](vectors, config, on_iteration)
