"""Maps against sums over all pairs, planted clusters and openTSNE itself: fitted, placed, turned, judged, sampled."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config as numba_config

from core.analysis.stratify import stratified
from core.errors import Mistake
from core.maps.neighbours import Index, neighbour_graph
from core.maps.place import Placer
from core.maps.quality import kept_by_chance, kept_neighbours, turn_onto
from core.maps.repulsion import RepulsionGrid, attraction, divergence
from core.maps.tsne import (
    METHODS,
    Fitted,
    MapConfig,
    affinities,
    check_perplexity,
    fit,
    fit_cuml,
    fit_opentsne,
    initial,
    neighbours_for,
)

needs_two_cores = pytest.mark.skipif(numba_config.NUMBA_NUM_THREADS < 2, reason="only one core")


@dataclass(frozen=True)
class Planted:
    """``vectors[point, dim]`` in well separated clusters; ``labels[point]`` says which."""

    vectors: np.ndarray
    labels: np.ndarray


def planted(clusters: int, each: int, dim: int = 16, apart: float = 6.0, seed: int = 0) -> Planted:
    chosen = np.random.default_rng(seed)
    labels = np.tile(np.arange(clusters), each)
    vectors = apart * chosen.normal(size=(clusters, dim))[labels] + chosen.normal(size=(len(labels), dim))
    return Planted(vectors.astype(np.float32), labels)


def cloud(count: int, extent: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-extent / 2, extent / 2, (count, 2))


def distances(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    return np.linalg.norm(here[:, None].astype(np.float64) - there[None], axis=2)


def nearest_label(points: np.ndarray, others: np.ndarray, labels: np.ndarray, same: bool = False) -> np.ndarray:
    """The label of the nearest of ``others`` to each point; ``same``: they are the points themselves."""
    found = distances(points, others)
    if same:
        np.fill_diagonal(found, np.inf)
    return labels[found.argmin(axis=1)]


def mistake(call: Any, *arguments: Any) -> str:
    with pytest.raises(Mistake) as caught:
        call(*arguments)
    return str(caught.value)


# Forces


def repelled(here: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The double sum: ``force[point, 2]`` and ``potential[point]``."""
    apart = here[:, None].astype(np.float64) - there[None]
    kernel = 1 / (1 + (apart**2).sum(axis=2))
    return (kernel[:, :, None] ** 2 * apart).sum(axis=1), kernel.sum(axis=1)


@pytest.mark.parametrize("extent", [0.001, 1, 30, 100])
def test_the_grid_gives_the_sum_over_all_pairs(extent: float) -> None:
    points = cloud(1_000, extent)
    force, potential = repelled(points, points)
    found = RepulsionGrid().field(points).at(points)
    assert found.potential == pytest.approx(potential, rel=0.01)
    assert np.linalg.norm(found.force - force) < 0.04 * np.linalg.norm(force)


@pytest.mark.parametrize("shift", [0.0, 40.0])
def test_the_field_of_some_points_is_felt_by_others(shift: float) -> None:
    there, here = cloud(300, 20, seed=1) + shift, cloud(50, 19, seed=2) + shift
    force, potential = repelled(here, there)
    found = RepulsionGrid().field(there).at(here)
    assert found.potential == pytest.approx(potential, rel=0.02)
    assert np.linalg.norm(found.force - force) < 0.03 * np.linalg.norm(force)


def test_two_points_push_each_other_apart() -> None:
    """At distance 2 the potential is 1 + 1/5, the force 2/25."""
    points = np.array([[0.0, 3.0], [2.0, 3.0]])
    found = RepulsionGrid().field(points).at(points)
    assert found.potential == pytest.approx([1.2, 1.2], rel=0.01)
    assert found.force == pytest.approx(np.array([[-0.08, 0], [0.08, 0]]), abs=0.002)


def test_a_long_thin_cloud() -> None:
    points = cloud(200, 1) * [60, 0.01]
    force, potential = repelled(points, points)
    found = RepulsionGrid().field(points).at(points)
    assert found.potential == pytest.approx(potential, rel=0.01)
    assert np.linalg.norm(found.force - force) < 0.03 * np.linalg.norm(force)


@pytest.mark.parametrize("count", [1, 2, 50])
def test_points_at_one_place_feel_no_force(count: int) -> None:
    points = np.full((count, 2), 7.5)
    found = RepulsionGrid().field(points).at(points)
    assert found.potential == pytest.approx([count] * count, rel=1e-3)
    assert np.abs(found.force).max() < 1e-3 * count


def test_points_beyond_the_grid_feel_its_edge() -> None:
    field = RepulsionGrid().field(cloud(100, 10))
    beyond = np.array([[1e6, 0.0], [-1e6, -1e6], [0.0, 30.0]])
    found = field.at(beyond)
    edge = field.at(np.clip(beyond, field.low, field.high))
    assert np.isfinite(found.force).all()
    assert np.array_equal(found.force, edge.force)
    assert np.array_equal(found.potential, edge.potential)


def test_a_grid_is_used_again_for_another_cloud() -> None:
    """The kernel that it keeps is the one of the cloud before only as long as that fits."""
    grid = RepulsionGrid()
    for extent in (0.5, 30, 31, 100, 30, 0.5):
        points = cloud(100, extent, seed=int(extent))
        assert grid.field(points).at(points).potential == pytest.approx(repelled(points, points)[1], rel=0.01)


@needs_two_cores
def test_one_thread_and_two_agree() -> None:
    points = cloud(1_001, 40)
    one, two = (RepulsionGrid(threads=threads).field(points).at(points) for threads in (1, 2))
    assert two.potential == pytest.approx(one.potential, rel=1e-3)
    assert np.abs(two.force - one.force).max() < 1e-3 * np.abs(one.force).max()


def some_graph(rows: int, columns: int, seed: int = 0) -> Any:
    """A sparse matrix whose entries sum to 1; its second row is empty."""
    chosen = np.random.default_rng(seed)
    dense = chosen.random((rows, columns)) * (chosen.random((rows, columns)) < 0.3)
    dense[1] = 0
    return scipy.sparse.csr_matrix(dense / dense.sum()).astype(np.float32)


def test_attraction_is_the_sum_over_the_graph() -> None:
    graph, here, there = some_graph(30, 40), cloud(30, 5, seed=1), cloud(40, 5, seed=2)
    expected = np.zeros((30, 2))
    for i, j in zip(*graph.nonzero(), strict=True):
        apart = here[i] - there[j]
        expected[i] += graph[i, j] / (1 + apart @ apart) * apart
    found = attraction(graph, here, there)
    assert found == pytest.approx(expected, abs=1e-7)
    assert found[1].tolist() == [0, 0]


def test_divergence_and_normaliser_are_the_kl_divergence() -> None:
    points = cloud(25, 4, seed=3)
    graph = some_graph(25, 25)
    graph.setdiag(0)  # stays in the matrix, as a weight of 0 that must not become log 0
    graph /= graph.sum()
    kernel = 1 / (1 + distances(points, points) ** 2)
    np.fill_diagonal(kernel, 0)
    p, q = graph.toarray().astype(np.float64), kernel / kernel.sum()
    expected = (p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum()
    found = divergence(graph, points, points).sum() + np.log(kernel.sum())
    assert found == pytest.approx(expected, rel=1e-5)
    from_grid = RepulsionGrid().field(points).at(points).potential.sum() - len(points)
    assert divergence(graph, points, points).sum() + np.log(from_grid) == pytest.approx(expected, rel=0.01)


# Nearest neighbours


def test_exact_neighbours_are_those_of_all_pairs() -> None:
    vectors = np.random.default_rng(0).normal(size=(150, 5))
    found = neighbour_graph(vectors, 7, exact=True)
    apart = distances(vectors, vectors)
    np.fill_diagonal(apart, np.inf)
    assert np.array_equal(found.points, np.argsort(apart, axis=1)[:, :7])
    assert found.distances == pytest.approx(np.sort(apart, axis=1)[:, :7], abs=1e-3)


def test_cells_find_nearly_all_true_neighbours() -> None:
    vectors = planted(10, 300).vectors
    cells, exact = (neighbour_graph(vectors, 15, exact=exact).points for exact in (False, True))
    found = sum(len(np.intersect1d(some, all_)) for some, all_ in zip(cells, exact, strict=True))
    assert found >= 0.95 * exact.size


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("kinds", [1, 3, 40])
def test_a_point_is_never_its_own_neighbour(exact: bool, kinds: int) -> None:
    """Also among many equal vectors, where it may be missing from its own list."""
    chosen = np.random.default_rng(1)
    vectors = chosen.normal(size=(kinds, 4))[chosen.integers(kinds, size=200)]
    found = neighbour_graph(vectors, 10, exact=exact)
    assert found.points.shape == found.distances.shape == (200, 10)
    assert (found.points >= 0).all()
    assert not (found.points == np.arange(200)[:, None]).any()
    assert all(len(set(row)) == 10 for row in found.points.tolist()), "none twice"
    true = np.linalg.norm(vectors[found.points] - vectors[:, None], axis=2)
    assert found.distances == pytest.approx(true, abs=2e-3)


def test_cells_that_hold_fewer_points_than_asked() -> None:
    """1,000 points in 63 cells, of which 16 are looked through: about 250 points."""
    vectors = np.random.default_rng(2).normal(size=(1_000, 3))
    found = neighbour_graph(vectors, 990, exact=False)
    assert (found.points >= 0).all()
    assert not (found.points == np.arange(1_000)[:, None]).any()
    assert all(len(set(row)) == 990 for row in found.points.tolist())


def test_after_a_search_through_all_cells_the_next_is_as_before() -> None:
    vectors = np.random.default_rng(2).normal(size=(1_000, 3))
    index = Index(vectors, exact=False)
    before = index.search(vectors[:50], 100).points
    index.search(vectors[:50], 990)
    assert np.array_equal(index.search(vectors[:50], 100).points, before)


@pytest.mark.parametrize("exact", [True, False])
def test_no_more_points_than_there_are(exact: bool) -> None:
    vectors = np.random.default_rng(3).normal(size=(6, 2))
    found = Index(vectors, exact=exact).search(vectors, 50)
    assert found.points.shape == (6, 6)
    assert np.array_equal(np.sort(found.points, axis=1), np.tile(np.arange(6), (6, 1)))


@pytest.mark.parametrize(("points", "count"), [(4, 3), (4, 6), (5, 7)])
def test_no_more_neighbours_than_others(points: int, count: int) -> None:
    found = neighbour_graph(np.random.default_rng(4).normal(size=(points, 2)), count)
    assert found.points.shape == (points, points - 1)
    assert [sorted(row) for row in found.points.tolist()] == [
        [other for other in range(points) if other != point] for point in range(points)
    ]


# Fitting


@pytest.fixture(scope="module")
def heads() -> Planted:
    return planted(6, 100)


@dataclass(frozen=True)
class Told:
    fitted: Fitted
    told: list[tuple[int, float]]


@pytest.fixture(scope="module")
def fitted(heads: Planted) -> Told:
    told: list[tuple[int, float]] = []
    return Told(fit_opentsne(heads.vectors, MapConfig(iterations=300), lambda done, kl: told.append((done, kl))), told)


def test_planted_heads_are_apart_on_the_map(heads: Planted, fitted: Told) -> None:
    places = fitted.fitted.coordinates
    assert places.shape == (600, 2)
    assert places.dtype == np.float32
    assert (nearest_label(places, places, heads.labels, same=True) == heads.labels).mean() > 0.95
    apart = distances(places, places)
    same = heads.labels[:, None] == heads.labels
    assert apart[same].mean() < 0.5 * apart[~same].mean()


def test_the_divergence_is_told_every_fifty_iterations_and_falls(fitted: Told) -> None:
    assert [done for done, _ in fitted.told] == [50, 100, 150, 200, 250, 300]
    told = [kl for _, kl in fitted.told]
    assert told[1] > told[2] > told[3] > told[4] > told[5], "a third of 300 is exaggerated"
    assert fitted.fitted.kl == pytest.approx(told[-1], rel=0.01)


def test_a_third_of_the_iterations_draws_neighbours_closer_than_they_should_be() -> None:
    """Long enough for both to settle: without exaggeration, nothing would be left to fall after the first third."""
    told: dict[int, float] = {}
    fit_opentsne(planted(4, 25).vectors, MapConfig(perplexity=20, iterations=900), told.__setitem__)
    assert told[300] == pytest.approx(told[250], rel=0.1), "it has settled"
    assert told[350] < 0.7 * told[300]


@pytest.mark.slow
def test_the_divergence_told_is_that_of_the_map(heads: Planted, fitted: Told) -> None:
    p = affinities(heads.vectors, MapConfig()).toarray()
    assert p.sum() == pytest.approx(1)
    assert p == pytest.approx(p.T)
    q = 1 / (1 + distances(fitted.fitted.coordinates, fitted.fitted.coordinates) ** 2)
    np.fill_diagonal(q, 0)
    q /= q.sum()
    assert fitted.fitted.kl == pytest.approx((p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum(), rel=0.01)


@pytest.mark.slow
def test_as_good_as_opentsne_s_own_forces() -> None:
    import openTSNE

    vectors = planted(4, 75, apart=1.5).vectors  # near enough for the clusters to mix
    theirs = openTSNE.TSNE(perplexity=20, n_iter=500, early_exaggeration_iter=250, random_state=0, n_jobs=1)
    ours = fit_opentsne(vectors, MapConfig(perplexity=20, iterations=750))
    assert ours.kl <= 1.05 * theirs.fit(vectors).kl_divergence


def test_the_same_seed_gives_the_same_map_and_another_another(heads: Planted) -> None:
    vectors = heads.vectors[:150]
    first, again, other = (fit_opentsne(vectors, MapConfig(10, 60, seed=seed)).coordinates for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_vectors_are_left_as_they_were(heads: Planted) -> None:
    vectors = heads.vectors[:60].copy()
    fit_opentsne(vectors, MapConfig(5, 30))
    assert np.array_equal(vectors, heads.vectors[:60])


@pytest.mark.slow
@needs_two_cores
def test_two_threads_make_as_good_a_map(heads: Planted) -> None:
    one, two = (fit_opentsne(heads.vectors, MapConfig(iterations=150, threads=threads)) for threads in (1, 2))
    assert two.kl == pytest.approx(one.kl, rel=0.05)
    assert (nearest_label(two.coordinates, two.coordinates, heads.labels, same=True) == heads.labels).mean() > 0.95


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_vectors_that_are_all_the_same_have_places(value: float) -> None:
    found = fit_opentsne(np.full((40, 8), value, dtype=np.float32), MapConfig(5, 60))
    assert np.isfinite(found.coordinates).all()
    assert np.isfinite(found.kl)


def test_many_duplicates_have_places() -> None:
    vectors = np.repeat(np.random.default_rng(5).normal(size=(3, 8)), 40, axis=0)
    found = fit_opentsne(vectors, MapConfig(5, 90))
    labels = np.repeat(np.arange(3), 40)
    assert np.isfinite(found.coordinates).all()
    assert (nearest_label(found.coordinates, found.coordinates, labels, same=True) == labels).mean() > 0.95


def test_the_fewest_points_that_make_a_map() -> None:
    vectors = np.random.default_rng(6).normal(size=(4, 8)).astype(np.float32)
    found = fit_opentsne(vectors, MapConfig(check_perplexity(None, 4), 60))
    assert found.coordinates.shape == (4, 2)
    assert np.isfinite(found.coordinates).all()


def test_a_map_begins_small_with_the_first_two_components() -> None:
    """A cloud stretched along dimensions 3 and 1 begins with those, up to the sign."""
    chosen = np.random.default_rng(7)
    vectors = chosen.normal(size=(500, 5)) * [1, 20, 1, 50, 1]
    found = initial(vectors, seed=0)
    assert np.std(found[:, 0]) == pytest.approx(1e-4, rel=0.01)
    assert abs(np.corrcoef(found[:, 0], vectors[:, 3])[0, 1]) > 0.99
    assert abs(np.corrcoef(found[:, 1], vectors[:, 1])[0, 1]) > 0.99


# What can be asked for


@pytest.mark.parametrize(("points", "found"), [(4, 1), (10, 3), (91, 30), (10_000, 30)])
def test_perplexity_is_lowered_where_points_are_few(points: int, found: float) -> None:
    perplexity = check_perplexity(None, points)
    assert perplexity == pytest.approx(found)
    assert neighbours_for(perplexity) <= points - 1


@settings(deadline=None)
@given(points=st.integers(4, 1_000_000))
def test_the_largest_perplexity_asks_for_no_more_neighbours_than_there_are(points: int) -> None:
    most = (points - 1) / 3
    assert check_perplexity(most, points) == most
    assert points - 2 <= neighbours_for(most) <= points - 1


@pytest.mark.parametrize("asked", [4, 3.1, 0.5, 0, -1, 1e9, float("nan"), float("inf")])
def test_a_perplexity_that_does_not_fit_is_refused(asked: float) -> None:
    found = mistake(check_perplexity, asked, 10)
    assert f"perplexity of {asked:g} does not fit 10 points" in found
    assert "between 1 and 3" in found
    assert "--perplexity" in found


def test_a_perplexity_that_fits_is_taken_as_it_is() -> None:
    assert check_perplexity(3, 10) == 3
    assert check_perplexity(1, 4) == 1
    assert check_perplexity(50, 1_000) == 50


@pytest.mark.parametrize("asked", [None, 1.0])
@pytest.mark.parametrize("points", [0, 1, 3])
def test_fewer_than_four_points_make_no_map(points: int, asked: float | None) -> None:
    assert f"at least 4 points; this run has {points}." in mistake(check_perplexity, asked, points)


def test_an_unknown_method_is_told_the_known_ones() -> None:
    found = mistake(fit, "umap", np.eye(5), MapConfig())
    assert "'umap'" in found
    assert all(name in found for name in METHODS)


def test_methods_are_found_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setitem(METHODS, "opentsne", lambda *arguments: asked.append(arguments))
    fit("opentsne", np.eye(5), MapConfig())
    assert len(asked) == 1


# cuML, which is not here


def test_without_cuml_the_other_method_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuml", None)
    monkeypatch.setitem(sys.modules, "cuml.manifold", None)
    assert "Use --method opentsne." in mistake(fit_cuml, np.eye(5), MapConfig())


class Cuml:
    """As much of cuml.manifold.TSNE as is asked of it; what it was given is kept in ``given``."""

    given: dict[str, Any]

    def fit_transform(self, vectors: np.ndarray) -> np.ndarray:
        assert vectors.dtype == np.float32
        type(self).given["points"] = len(vectors)
        self.kl_divergence_ = np.float32(0.25)
        return np.full((len(vectors), 2), 7.0)


class NewCuml(Cuml):
    def __init__(self, *, max_iter: int = 1_000, **rest: Any) -> None:
        NewCuml.given = {"max_iter": max_iter, **rest}


class OldCuml(Cuml):
    def __init__(self, *, n_iter: int = 1_000, **rest: Any) -> None:
        OldCuml.given = {"n_iter": n_iter, **rest}


@pytest.mark.parametrize(
    ("version", "name", "other"), [(NewCuml, "max_iter", "n_iter"), (OldCuml, "n_iter", "max_iter")]
)
def test_cuml_is_asked_in_its_own_words(
    monkeypatch: pytest.MonkeyPatch, version: type[Cuml], name: str, other: str
) -> None:
    package, module = ModuleType("cuml"), ModuleType("cuml.manifold")
    module.TSNE = version  # type: ignore[attr-defined]
    package.manifold = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuml", package)
    monkeypatch.setitem(sys.modules, "cuml.manifold", module)
    told: list[tuple[int, float]] = []
    config = MapConfig(perplexity=20, iterations=600, seed=3)
    found = fit("cuml", np.eye(70), config, lambda done, kl: told.append((done, kl)))
    assert version.given[name] == 600
    assert other not in version.given
    expected = {"perplexity": 20, "n_neighbors": 60, "exaggeration_iter": 200, "random_state": 3, "n_components": 2}
    assert expected.items() <= version.given.items()
    assert version.given["points"] == 70
    assert found.coordinates.tolist() == [[7, 7]] * 70
    assert found.coordinates.dtype == np.float32
    assert found.kl == 0.25
    assert told == [(600, 0.25)]


# Placing


@pytest.fixture(scope="module")
def half(heads: Planted) -> np.ndarray:
    """The map of the first 450 points; each cluster has 75 among them."""
    return fit_opentsne(heads.vectors[:450], MapConfig(iterations=300)).coordinates


@pytest.fixture(scope="module")
def placer(heads: Planted, half: np.ndarray) -> Placer:
    return Placer.of(heads.vectors[:450], half)


def test_points_held_out_land_in_their_own_cluster(heads: Planted, half: np.ndarray, placer: Placer) -> None:
    placed = placer.place(heads.vectors[450:])
    assert placed.shape == (150, 2)
    assert placed.dtype == np.float32
    assert (nearest_label(placed, half, heads.labels[:450]) == heads.labels[450:]).mean() > 0.95
    assert distances(placed, half).min(axis=1).max() < 0.1 * np.ptp(half), "not only nearest, but near"


def test_a_fitted_point_placed_again_lands_near_its_place(heads: Planted, half: np.ndarray, placer: Placer) -> None:
    moved = np.linalg.norm(placer.place(heads.vectors[:450]) - half, axis=1)
    assert np.median(moved) < 0.02 * np.ptp(half)


def test_a_point_finds_its_place_though_its_neighbours_are_all_over_the_map() -> None:
    """Vectors and places that have nothing to do with each other: the middle of the neighbours' is nowhere near."""
    chance = np.random.default_rng(9)
    vectors, places = chance.normal(size=(200, 8)), chance.uniform(-50, 50, size=(200, 2))
    moved = np.linalg.norm(Placer.of(vectors, places).place(vectors) - places, axis=1)
    assert moved.max() < 5


def test_each_is_placed_by_itself(heads: Planted, placer: Placer) -> None:
    together = placer.place(heads.vectors[450:470])
    one_by_one = np.concatenate([placer.place(heads.vectors[doc : doc + 1]) for doc in range(450, 470)])
    assert one_by_one == pytest.approx(together, abs=1e-3)


def perplexity_five(apart: np.ndarray) -> np.ndarray:
    """``p[neighbour]`` of Gaussian neighbours at distances ``apart`` whose entropy is log 5, by halving."""
    low, high = 0.0, 1e6
    for _ in range(200):
        beta = (low + high) / 2
        p = np.exp(-beta * (apart**2 - apart.min() ** 2))
        p /= p.sum()
        entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
        low, high = (beta, high) if entropy > np.log(5) else (low, beta)
    return p


def test_a_placed_point_is_at_the_bottom_of_its_own_divergence(
    heads: Planted, half: np.ndarray, placer: Placer
) -> None:
    """A step in any direction makes ``sum p log (1 + d²) + log sum 1 / (1 + d²)`` larger."""
    placed = placer.place(heads.vectors[450:480]).astype(np.float64)
    angles = np.radians(np.arange(0, 360, 45))
    steps = 0.3 * np.column_stack([np.cos(angles), np.sin(angles)])
    for vector, place in zip(heads.vectors[450:480], placed, strict=True):
        apart = distances(vector[None], heads.vectors[:450])[0]
        nearest = np.argsort(apart)[:15]
        p = perplexity_five(apart[nearest])
        kernel = 1 / (1 + distances(np.vstack([place, place + steps]), half) ** 2)
        cost = -np.log(kernel[:, nearest]) @ p + np.log(kernel.sum(axis=1))
        assert cost[0] < cost[1:].min()


def test_nothing_to_place(placer: Placer) -> None:
    found = placer.place(np.empty((0, 16), dtype=np.float32))
    assert found.shape == (0, 2)
    assert found.dtype == np.float32


def test_a_point_far_from_all_others_has_a_place_near_the_map(half: np.ndarray, placer: Placer) -> None:
    found = placer.place(np.full((1, 16), 1e4))
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 2 * np.abs(half).max()


def test_placing_among_fewer_points_than_neighbours() -> None:
    vectors = np.random.default_rng(8).normal(size=(5, 3))
    found = Placer.of(vectors, 10 * vectors[:, :2]).place(vectors)
    assert found.shape == (5, 2)
    assert np.isfinite(found).all()


def test_the_map_stays_where_it_is(heads: Planted, half: np.ndarray, placer: Placer) -> None:
    before = half.copy()
    placer.place(heads.vectors[450:])
    assert np.array_equal(placer.coordinates, before)


# Turning


def rotation(degrees: float, reflected: bool = False) -> np.ndarray:
    """Rows times this matrix are turned by ``degrees``; the first axis is mirrored before that."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.diag([-1.0 if reflected else 1.0, 1.0]) @ np.array([[c, s], [-s, c]])


@pytest.mark.parametrize("reflected", [False, True])
@pytest.mark.parametrize("degrees", [0, 30, 90, 180, 299])
def test_a_turned_map_is_turned_back(degrees: float, reflected: bool) -> None:
    other = cloud(80, 50, seed=9) + np.array([100, -3])
    turned = (other @ rotation(degrees, reflected) + [-40, 7]).astype(np.float32)
    found = turn_onto(turned, other)
    assert found.coordinates == pytest.approx(other - other.mean(axis=0), abs=1e-4)
    assert found.coordinates.dtype == np.float32
    assert found.after == pytest.approx(1)


def test_how_well_a_map_follows_another_worked_out_by_hand() -> None:
    """A cross turned by 90° has no overlap with itself before, and all of it after."""
    cross = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    found = turn_onto(cross @ rotation(90), cross)
    assert found.before == pytest.approx(0, abs=1e-12)
    assert found.after == pytest.approx(1)
    against = turn_onto(-cross, cross)
    assert (against.before, against.after) == (pytest.approx(-1), pytest.approx(1))


def test_a_map_turned_onto_itself_is_only_centred() -> None:
    own = cloud(50, 20, seed=10) + 5
    assert turn_onto(own, own).coordinates == pytest.approx(own - own.mean(axis=0), abs=1e-5)


POINTS = st.lists(st.tuples(*[st.floats(-100, 100, width=32)] * 4), min_size=1, max_size=30)


@settings(deadline=None)
@given(POINTS)
def test_turning_stretches_nothing_and_never_follows_less(points: list[tuple[float, ...]]) -> None:
    both = np.array(points)
    found = turn_onto(both[:, :2], both[:, 2:])
    assert distances(found.coordinates, found.coordinates) == pytest.approx(
        distances(both[:, :2], both[:, :2]), abs=1e-3
    )
    assert found.after >= found.before - 1e-9
    assert found.before >= -1 - 1e-9
    assert found.after <= 1 + 1e-9


@pytest.mark.parametrize(("own", "other"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_maps_whose_points_are_all_at_one_place(own: float, other: float) -> None:
    spread = cloud(10, 1)
    found = turn_onto(3 + own * spread, 3 + other * spread)
    assert found.coordinates == pytest.approx(own * (spread - spread.mean(axis=0)), abs=1e-6)
    assert (found.before, found.after) == (0, 0)


# Neighbours kept


def test_a_map_that_is_the_vectors_keeps_all() -> None:
    points = cloud(300, 10)
    assert kept_neighbours(points, points) == 1
    assert kept_neighbours(points, 5 * points @ rotation(33) + 2) == pytest.approx(1, abs=0.01)


def test_a_shuffled_map_keeps_what_chance_keeps() -> None:
    points = cloud(1_000, 10)
    chance = kept_by_chance(1_000)
    assert chance == 10 / 999
    # 10,000 tries with 1 in 100: a standard deviation of about 0.001
    assert kept_neighbours(points, np.random.default_rng(11).permutation(points)) == pytest.approx(chance, abs=0.005)


def test_half_of_the_neighbours_kept() -> None:
    """Groups of eleven, ten neighbours each; on the map five of a group and six of the next are together, and so on."""
    chosen = np.random.default_rng(12)
    groups, number = np.repeat(np.arange(20), 11), np.tile(np.arange(11), 20)
    vectors = np.column_stack([1_000 * groups, np.zeros(220)]) + chosen.normal(size=(220, 2))
    together = (groups + (number < 5)) % 20
    coordinates = np.column_stack([1_000 * together, np.zeros(220)]) + chosen.normal(size=(220, 2))
    # Of the six, each keeps the other five; of the five, the other four.
    assert kept_neighbours(vectors, coordinates) == pytest.approx((6 * 5 + 5 * 4) / (11 * 10))


@pytest.mark.parametrize(("points", "chance"), [(1, 1.0), (5, 1.0), (11, 1.0), (21, 0.5), (101, 0.1)])
def test_what_chance_keeps(points: int, chance: float) -> None:
    assert kept_by_chance(points) == chance


def test_fewer_than_ten_neighbours() -> None:
    points = cloud(5, 1)
    assert kept_neighbours(points, cloud(5, 1, seed=1)) == 1, "all the others are among the nearest"


# A sample by topic


@st.composite
def some_labels(draw: st.DrawFn) -> np.ndarray:
    """Topics of very different sizes, their documents in any order; -1 is among them."""
    sizes = draw(st.lists(st.sampled_from([1, 1, 1, 2, 3, 10, 60]), min_size=1, max_size=8))
    labels = np.repeat(np.arange(len(sizes)) - 1, sizes)
    return np.random.default_rng(draw(st.integers(0, 9))).permutation(labels)


LABELS = some_labels()


@settings(deadline=None)
@given(LABELS, st.integers(0, 100), st.integers(0, 3))
def test_a_sample_has_its_size_and_its_order(labels: np.ndarray, count: int, seed: int) -> None:
    found = stratified(labels, count, seed)
    assert len(found) == min(count, len(labels))
    assert (np.diff(found) > 0).all(), "sorted, and none twice"
    assert np.isin(found, np.arange(len(labels))).all()
    assert np.array_equal(found, stratified(labels, count, seed))


@settings(deadline=None)
@given(LABELS, st.integers(1, 80))
def test_every_topic_has_its_share(labels: np.ndarray, count: int) -> None:
    """Within one of the exact share, unless the small ones' right to one document takes from the large."""
    found = labels[stratified(labels, count)]
    topics, sizes = np.unique(labels, return_counts=True)
    exact = sizes * min(1.0, count / len(labels))
    shares = np.array([(found == topic).sum() for topic in topics])
    assert (shares <= sizes).all()
    assert (shares < exact + 1 + 1e-9).all()
    if count < len(topics) or (exact >= 1).all():
        assert (np.abs(shares - exact) < 1 + 1e-9).all()


@settings(deadline=None)
@given(LABELS, st.integers(1, 80))
def test_no_topic_is_without_a_document_if_there_are_enough(labels: np.ndarray, count: int) -> None:
    if count >= len(np.unique(labels)):
        assert set(labels[stratified(labels, count)].tolist()) == set(labels.tolist())


def test_shares_worked_out_by_hand() -> None:
    """8 of 60, 25 and 15 documents: 4.8, 2 and 1.2; of 96, 2, 1 and 1: the three small ones get one each."""
    labels = np.repeat([0, 1, 2], [60, 25, 15])
    assert np.bincount(labels[stratified(labels, 8)]).tolist() == [5, 2, 1]
    labels = np.repeat([0, 1, 2, 3], [96, 2, 1, 1])
    assert np.bincount(labels[stratified(labels, 10)]).tolist() == [7, 1, 1, 1]


def test_another_seed_chooses_other_documents() -> None:
    labels = np.zeros(1_000, dtype=int)
    assert not np.array_equal(stratified(labels, 10, seed=0), stratified(labels, 10, seed=1))


def test_documents_of_one_topic_have_the_same_chance() -> None:
    """2,000 samples of 2 from 8: each document is in 500 of them, give or take five times 19."""
    drawn = np.bincount(np.concatenate([stratified(np.zeros(8, dtype=int), 2, seed) for seed in range(2_000)]))
    assert drawn == pytest.approx(np.full(8, 500), abs=97)
