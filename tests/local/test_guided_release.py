"""What a release of local clustering must have, whatever the rows are."""

import math

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study.methods import N_POINTS

UNIT = 2**20


def make(*, n_clusters, bounds, mu):
    return GuidedLloyd(n_clusters=n_clusters, bounds=bounds, mu=mu)


def release(algorithm, rows, *, seed=0):
    found = algorithm.release(
        rows, noise=InsecureSeededNoise(seed), rng=np.random.default_rng(seed)
    )
    check_points(found.points, bounds=algorithm.bounds)
    return found.centres


def some_rows(n, bounds, *, seed=0):
    limits = np.array(bounds)
    return np.random.default_rng(seed).integers(-limits, limits + 1, size=(n, len(bounds)))


def check_points(points, *, bounds):
    assert points.shape[1] == len(bounds)
    assert points.dtype == np.int64
    assert (np.abs(points) <= np.array(bounds)).all()


def check_centres(centres, *, n_clusters, bounds):
    assert centres.shape == (n_clusters, len(bounds))
    assert centres.dtype == np.int64
    assert (np.abs(centres) <= np.array(bounds)).all()


@pytest.mark.parametrize("n_clusters", [1, 2, 7])
@pytest.mark.parametrize("bounds", [(UNIT,), (UNIT, UNIT, UNIT), (UNIT, 3, 741_455)])
@pytest.mark.parametrize("mu", [0.05, 2.0])
def test_shape_type_and_bounds(n_clusters, bounds, mu):
    algorithm = make(n_clusters=n_clusters, bounds=bounds, mu=mu)
    centres = release(algorithm, some_rows(400, bounds))
    check_centres(centres, n_clusters=n_clusters, bounds=bounds)


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("mu", [0.01, 100.0])
def test_fewer_rows_than_clusters(n, mu):
    bounds = (UNIT, UNIT)
    algorithm = make(n_clusters=5, bounds=bounds, mu=mu)
    check_centres(release(algorithm, some_rows(n, bounds)), n_clusters=5, bounds=bounds)


@pytest.mark.parametrize("value", [0, UNIT, -UNIT])
def test_constant_rows(value):
    bounds = (UNIT, UNIT)
    algorithm = make(n_clusters=3, bounds=bounds, mu=1.0)
    rows = np.full((500, 2), value, dtype=np.int64)
    check_centres(release(algorithm, rows), n_clusters=3, bounds=bounds)


def test_an_empty_table_is_not_visible_as_an_error():
    algorithm = make(n_clusters=3, bounds=(UNIT, UNIT), mu=1.0)
    centres = release(algorithm, np.empty((0, 2), dtype=np.int64))
    check_centres(centres, n_clusters=3, bounds=(UNIT, UNIT))


def test_same_seeds_same_centres():
    bounds = (UNIT, UNIT)
    algorithm = make(n_clusters=4, bounds=bounds, mu=1.0)
    rows = some_rows(1000, bounds)
    assert (release(algorithm, rows, seed=3) == release(algorithm, rows, seed=3)).all()


def test_other_noise_other_centres():
    algorithm = make(n_clusters=4, bounds=(UNIT, UNIT), mu=1.0)
    rows = some_rows(1000, (UNIT, UNIT))
    first, second = (
        algorithm.release(rows, noise=InsecureSeededNoise(seed), rng=np.random.default_rng(0))
        for seed in (1, 2)
    )
    assert (first.centres != second.centres).any()


def test_the_stated_number_of_points_is_released():
    algorithm = make(n_clusters=4, bounds=(UNIT, UNIT), mu=1.0)
    rows = some_rows(300, (UNIT, UNIT))
    found = algorithm.release(rows, noise=InsecureSeededNoise(0), rng=np.random.default_rng(0))
    assert found.points.shape == (N_POINTS, 2)


def test_the_rows_are_not_changed():
    bounds = (UNIT, UNIT)
    rows = some_rows(300, bounds)
    before = rows.copy()
    release(make(n_clusters=3, bounds=bounds, mu=1.0), rows)
    assert (rows == before).all()


def mean_loss(rows, centres):
    gaps = (rows[:, np.newaxis] - centres[np.newaxis]) / UNIT
    return float((gaps**2).sum(axis=2).min(axis=1).mean())


def test_beats_random_centres_on_separated_clusters():
    # Four clusters of deviation 0.03 in the corners of a box. Ten draws of random centres have a
    # mean loss near 0.6; a sensible algorithm with this budget is far below half of it.
    bounds = (UNIT,) * 4
    rng = np.random.default_rng(1)
    corners = 0.6 * np.array([[1, 1, 1, 1], [-1, -1, 1, 1], [1, -1, -1, -1], [-1, 1, 1, -1]])
    points = corners[rng.integers(0, 4, 4000)] + 0.03 * rng.standard_normal((4000, 4))
    rows = np.rint(points * UNIT).astype(np.int64)
    algorithm = make(n_clusters=4, bounds=bounds, mu=20.0)
    losses = [mean_loss(rows, release(algorithm, rows, seed=seed)) for seed in range(5)]
    random = [mean_loss(rows, some_rows(4, bounds, seed=seed)) for seed in range(10)]
    assert np.mean(losses) < np.mean(random) / 2


def slack_of(event):
    return sum(getattr(part, "slack", 0.0) for part in event.parts)


@pytest.mark.parametrize("mu", [0.01, 0.03, 0.245, 1.0, 8.0])
@pytest.mark.parametrize("bounds", [(UNIT,), (UNIT,) * 8, (UNIT, 741_455, 3 * UNIT)])
def test_event_costs_mu_and_never_more(mu, bounds):
    algorithm = make(n_clusters=5, bounds=bounds, mu=mu)
    cost = math.hypot(*(1 / part.noise_multiplier for part in algorithm.event.parts))
    assert 0.998 * mu <= cost <= mu
    # Slack is added to mu; with scales of 2^16 units and more it is nothing beside it.
    assert slack_of(algorithm.event) < 1e-6


def test_the_event_is_public():
    # It is computed before any row is seen and is the same afterwards.
    algorithm = make(n_clusters=3, bounds=(UNIT, UNIT), mu=1.0)
    before = algorithm.event
    release(algorithm, some_rows(200, (UNIT, UNIT)))
    assert algorithm.event == before


def test_wrong_columns_are_refused():
    algorithm = make(n_clusters=3, bounds=(UNIT, UNIT), mu=1.0)
    with pytest.raises(ParameterError, match=r"int64 of shape \(n, 2\)"):
        release(algorithm, np.zeros((10, 3), dtype=np.int64))
    with pytest.raises(ParameterError, match="int64"):
        release(algorithm, np.zeros((10, 2)))
