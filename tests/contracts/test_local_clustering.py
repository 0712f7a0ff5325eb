"""What every local clustering algorithm must do, whichever it is."""

import math

import dp_accounting
import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.local.algorithms import make_local
from splitmeans.local.dplsf_paper import DplsfPaper
from splitmeans.local.methods import METHODS
from splitmeans.privacy.events import (
    ComposedEvent,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PureEvent,
)
from splitmeans.privacy.noise import InsecureSeededNoise

UNIT = 2**20
DELTA = 1e-5


def _gaussian_tree(*, n_clusters, bounds, epsilon):
    whole = tuple(int(bound) for bound in bounds)
    return DplsfPaper(
        n_clusters=n_clusters, bounds=whole, epsilon=epsilon, delta=DELTA, sums="gaussian"
    )


def _named(method):
    return lambda **parameters: make_local(method, **parameters)


def _tight(method):
    return lambda *, epsilon, **parameters: make_local(method, mu=epsilon, **parameters)


# Written out: `test_every_form_of_every_method_has_its_suite` compares them with the records.
PUBLISHED = ("dplsf", "dplloyd", "plain")
TIGHT_METHODS = ("guided-lloyd", "dplsf", "dplloyd")
ALGORITHMS = (
    {method: _named(method) for method in PUBLISHED}
    | {"gaussian tree": _gaussian_tree}
    | {f"tight {method}": _tight(method) for method in TIGHT_METHODS}
)
TIGHT = [name for name in ALGORITHMS if name.startswith("tight")]
PRIVATE = [name for name in ALGORITHMS if name != "plain"]


@pytest.fixture(params=list(ALGORITHMS))
def make(request):
    return ALGORITHMS[request.param]


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


def test_every_form_of_every_method_has_its_suite():
    """A form that is registered and not here is held to nothing."""
    published = {name for name, method in METHODS.items() if method.published is not None}
    # Without privacy there is no budget, and so no tight form of its own.
    tight = {name for name, method in METHODS.items() if method.facts.is_private and method.tight}
    assert set(PUBLISHED) == published
    assert set(TIGHT_METHODS) == tight
    assert {*PUBLISHED, *TIGHT_METHODS} == set(METHODS)


@pytest.mark.parametrize("n_clusters", [1, 2, 7])
@pytest.mark.parametrize("bounds", [(UNIT,), (UNIT, UNIT, UNIT), (UNIT, 3, 741_455)])
@pytest.mark.parametrize("epsilon", [0.05, 2.0])
def test_shape_type_and_bounds(make, n_clusters, bounds, epsilon):
    algorithm = make(n_clusters=n_clusters, bounds=bounds, epsilon=epsilon)
    centres = release(algorithm, some_rows(400, bounds))
    check_centres(centres, n_clusters=n_clusters, bounds=bounds)


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.01, 100.0])
def test_fewer_rows_than_clusters(make, n, epsilon):
    bounds = (UNIT, UNIT)
    algorithm = make(n_clusters=5, bounds=bounds, epsilon=epsilon)
    check_centres(release(algorithm, some_rows(n, bounds)), n_clusters=5, bounds=bounds)


@pytest.mark.parametrize("value", [0, UNIT, -UNIT])
def test_constant_rows(make, value):
    bounds = (UNIT, UNIT)
    algorithm = make(n_clusters=3, bounds=bounds, epsilon=1.0)
    rows = np.full((500, 2), value, dtype=np.int64)
    check_centres(release(algorithm, rows), n_clusters=3, bounds=bounds)


@pytest.mark.parametrize("name", PRIVATE)
def test_an_empty_table_is_not_visible_as_an_error(name):
    algorithm = ALGORITHMS[name](n_clusters=3, bounds=(UNIT, UNIT), epsilon=1.0)
    centres = release(algorithm, np.empty((0, 2), dtype=np.int64))
    check_centres(centres, n_clusters=3, bounds=(UNIT, UNIT))


def test_same_seeds_same_centres(make):
    bounds = (UNIT, UNIT)
    algorithm = make(n_clusters=4, bounds=bounds, epsilon=1.0)
    rows = some_rows(1000, bounds)
    assert (release(algorithm, rows, seed=3) == release(algorithm, rows, seed=3)).all()


@pytest.mark.parametrize("name", PRIVATE)
def test_other_noise_other_centres(name):
    algorithm = ALGORITHMS[name](n_clusters=4, bounds=(UNIT, UNIT), epsilon=1.0)
    rows = some_rows(1000, (UNIT, UNIT))
    first, second = (
        algorithm.release(rows, noise=InsecureSeededNoise(seed), rng=np.random.default_rng(0))
        for seed in (1, 2)
    )
    assert (first.centres != second.centres).any()


@pytest.mark.parametrize("name", list(METHODS))
def test_the_stated_number_of_points_is_released(name):
    """Whoever reads a release knows how many points to expect, from the method's record."""
    algorithm = make_local(name, n_clusters=4, bounds=(UNIT, UNIT), mu=1.0)
    rows = some_rows(300, (UNIT, UNIT))
    found = algorithm.release(rows, noise=InsecureSeededNoise(0), rng=np.random.default_rng(0))
    assert found.points.shape == (METHODS[name].facts.n_points, 2)


def test_the_rows_are_not_changed(make):
    bounds = (UNIT, UNIT)
    rows = some_rows(300, bounds)
    before = rows.copy()
    release(make(n_clusters=3, bounds=bounds, epsilon=1.0), rows)
    assert (rows == before).all()


def mean_loss(rows, centres):
    gaps = (rows[:, np.newaxis] - centres[np.newaxis]) / UNIT
    return float((gaps**2).sum(axis=2).min(axis=1).mean())


def test_beats_random_centres_on_separated_clusters(make):
    # Four clusters of deviation 0.03 in the corners of a box. Ten draws of random centres have a
    # mean loss near 0.6; a sensible algorithm with this budget is far below half of it.
    bounds = (UNIT,) * 4
    rng = np.random.default_rng(1)
    corners = 0.6 * np.array([[1, 1, 1, 1], [-1, -1, 1, 1], [1, -1, -1, -1], [-1, 1, 1, -1]])
    points = corners[rng.integers(0, 4, 4000)] + 0.03 * rng.standard_normal((4000, 4))
    rows = np.rint(points * UNIT).astype(np.int64)
    algorithm = make(n_clusters=4, bounds=bounds, epsilon=20.0)
    losses = [mean_loss(rows, release(algorithm, rows, seed=seed)) for seed in range(5)]
    random = [mean_loss(rows, some_rows(4, bounds, seed=seed)) for seed in range(10)]
    assert np.mean(losses) < np.mean(random) / 2


def basic_composition(event):
    """Add up (epsilon, delta), independently of the library's accountant."""
    match event:
        case LaplaceEvent(noise_multiplier=multiplier):
            return 1 / multiplier, 0.0
        case GaussianEvent(noise_multiplier=multiplier, delta=delta):
            return dp_accounting.get_epsilon_gaussian(multiplier, delta), delta
        case PureEvent(epsilon=epsilon):
            return epsilon, 0.0
        case NonPrivateEvent():
            return math.inf, 1.0
        case ComposedEvent(parts=parts):
            costs = [basic_composition(part) for part in parts]
            return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)
    raise AssertionError(f"unexpected event {event}")


@pytest.mark.parametrize("name", [name for name in PRIVATE if name not in TIGHT])
@pytest.mark.parametrize("epsilon", [0.01, 0.245, 0.25, 1.0, 1.3, 20.0])
@pytest.mark.parametrize("bounds", [(UNIT,), (UNIT,) * 8, (UNIT, 741_455, 3 * UNIT)])
def test_event_costs_epsilon_and_never_more(name, epsilon, bounds):
    algorithm = ALGORITHMS[name](n_clusters=5, bounds=bounds, epsilon=epsilon)
    cost, delta = basic_composition(algorithm.event)
    assert cost <= epsilon
    # Rounding scales up loses next to nothing: 1/1024 on count scales of one or more.
    assert cost >= 0.998 * epsilon
    assert delta == (DELTA if name == "gaussian tree" else 0.0)


def mu_of(event):
    """Return the Gaussian privacy of an event; pure costs count as if they were Gaussian."""
    match event:
        case LaplaceEvent(noise_multiplier=multiplier):
            return 1 / multiplier
        case PureEvent(epsilon=epsilon):
            return epsilon
        case GaussianEvent(noise_multiplier=multiplier):
            return 1 / multiplier
        case ComposedEvent(parts=parts) if all(isinstance(part, GaussianEvent) for part in parts):
            return math.hypot(*(mu_of(part) for part in parts))
        case ComposedEvent(parts=parts):
            return sum(mu_of(part) for part in parts)
    raise AssertionError(f"unexpected event {event}")


def slack_of(event):
    return sum(getattr(part, "slack", 0.0) for part in event.parts)


@pytest.mark.parametrize("name", TIGHT)
@pytest.mark.parametrize("mu", [0.01, 0.03, 0.245, 1.0, 8.0])
@pytest.mark.parametrize("bounds", [(UNIT,), (UNIT,) * 8, (UNIT, 741_455, 3 * UNIT)])
def test_tight_event_costs_mu_and_never_more(name, mu, bounds):
    algorithm = ALGORITHMS[name](n_clusters=5, bounds=bounds, epsilon=mu)
    assert 0.998 * mu <= mu_of(algorithm.event) <= mu
    # Slack is added to epsilon; with scales of 2^16 units and more it is nothing beside it.
    assert slack_of(algorithm.event) < 1e-6


def test_plain_has_no_finite_cost():
    algorithm = make_local("plain", n_clusters=5, bounds=(UNIT,), epsilon=1.0)
    assert basic_composition(algorithm.event)[0] == math.inf


def test_the_event_is_public(make):
    # It is computed before any row is seen and is the same afterwards.
    algorithm = make(n_clusters=3, bounds=np.array([UNIT, UNIT]), epsilon=1.0)
    before = algorithm.event
    release(algorithm, some_rows(200, (UNIT, UNIT)))
    assert algorithm.event == before


def test_wrong_columns_are_refused(make):
    algorithm = make(n_clusters=3, bounds=(UNIT, UNIT), epsilon=1.0)
    with pytest.raises(ParameterError, match=r"int64 of shape \(n, 2\)"):
        release(algorithm, np.zeros((10, 3), dtype=np.int64))
    with pytest.raises(ParameterError, match="int64"):
        release(algorithm, np.zeros((10, 2)))


def test_an_unknown_method_is_refused():
    with pytest.raises(ParameterError, match="method must be one of 'guided-lloyd', 'dplsf'"):
        make_local("kmeans", n_clusters=2, bounds=(UNIT,), epsilon=1.0)


def test_exactly_one_of_epsilon_and_mu_is_given():
    with pytest.raises(ParameterError, match="one of epsilon and mu must be given, got None"):
        make_local("dplsf", n_clusters=2, bounds=(UNIT,))
    with pytest.raises(ParameterError, match=r"must be given, got 1\.0 and 2\.0"):
        make_local("dplsf", n_clusters=2, bounds=(UNIT,), epsilon=1.0, mu=2.0)


def test_guided_lloyd_has_no_published_form():
    with pytest.raises(ParameterError, match="use tight accounting"):
        make_local("guided-lloyd", n_clusters=2, bounds=(UNIT,), epsilon=1.0)
