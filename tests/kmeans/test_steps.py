"""Steps that leave most points alone, against naive twins that compare every point every time."""

import numpy as np
import pytest

from splitmeans.kernels import steps
from splitmeans.kernels.points import as_points
from splitmeans.kmeans.lloyd import tolerance_of
from splitmeans.kmeans.relocation import relocated
from splitmeans.kmeans.steps import Sums, nearest_of_all, steps_to_rest


def naive_steps(points, weights, start, *, tolerance):
    """Lloyd's steps in double precision, all points compared with all centres."""
    centres, labels = start.copy(), np.full(len(points), -1)
    for _ in range(300):
        squared = np.square(points[:, np.newaxis] - centres).sum(axis=2)
        found = squared.argmin(axis=1)
        if (found == labels).all():
            break
        labels = found
        member = labels[:, np.newaxis] == np.arange(len(centres))
        totals = weights @ member
        sums = (member * weights[:, np.newaxis]).T @ points
        moved = sums / np.where(totals > 0, totals, 1.0)[:, np.newaxis]
        lost = np.flatnonzero(totals == 0)
        moved[lost] = points[np.argsort(-weights * squared.min(axis=1))[: len(lost)]]
        shift = float(np.square(moved - centres).sum())
        centres = moved
        if shift <= tolerance:
            break
    return centres, loss_of(points, weights, centres)


def loss_of(points, weights, centres):
    gaps = points[:, np.newaxis] - centres
    return float(weights @ np.square(gaps).sum(axis=2).min(axis=1))


def dense(points):
    return points.features(np.arange(points.n))


def mixed(n, *, p, levels, seed):
    """Points with p numbers and columns of levels that go with them."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(6, size=n)
    numbers = rng.uniform(-2, 2, (6, p))[kinds] + rng.normal(0, 0.5, (n, p))
    codes = np.empty((n, len(levels)), dtype=np.int32)
    for at, width in enumerate(levels):
        codes[:, at] = (kinds + rng.integers(3, size=n)) % width
    return as_points(
        numbers,
        rng.exponential(size=n) + 0.01,
        codes=codes,
        levels=levels,
        spans=tuple(1.0 + 0.5 * at for at in range(len(levels))),
    )


FORMS = [
    (1, 1, ()),
    (300, 3, ()),
    (1025, 9, ()),
    (700, 2, (3, 5)),
    (513, 0, (4, 4, 7)),
    (600, 1, (500,)),
]


@pytest.mark.parametrize(("n", "p", "levels"), FORMS)
def test_nearest_centres_are_those_of_the_naive_twin(n, p, levels):
    points = mixed(n, p=p, levels=levels, seed=n)
    centres = np.random.default_rng(1).normal(size=(9, points.n_features))
    squared = np.square(dense(points)[:, np.newaxis] - centres).sum(axis=2)
    found, loss, _ = nearest_of_all(points, centres)
    nearest, second = np.sort(np.sqrt(squared), axis=1).T[:2]
    assert found.labels.tolist() == squared.argmin(axis=1).tolist()
    assert (found.upper >= nearest).all()
    assert found.upper == pytest.approx(nearest, rel=1e-3)
    assert (found.lower <= second).all()
    assert found.lower == pytest.approx(second, rel=1e-3)
    assert loss == pytest.approx(points.weights @ squared.min(axis=1))


@pytest.mark.parametrize(("n", "p", "levels"), FORMS[1:])
@pytest.mark.parametrize("k", [2, 8, 24])
def test_steps_end_where_those_of_the_naive_twin_do(n, p, levels, k):
    points = mixed(n, p=p, levels=levels, seed=k)
    start = dense(points)[np.random.default_rng(k).choice(n, 3 * k, replace=False)]
    start = np.unique(start, axis=0)[:k]
    tolerance = tolerance_of(points)
    expected, expected_loss = naive_steps(dense(points), points.weights, start, tolerance=tolerance)
    found, loss, known = steps_to_rest(points, start=start, tolerance=tolerance)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert loss == pytest.approx(expected_loss)
    squared = np.square(dense(points)[:, np.newaxis] - found).sum(axis=2)
    assert known.labels.tolist() == squared.argmin(axis=1).tolist()
    two = np.sort(np.sqrt(squared), axis=1)
    assert (known.upper >= two[:, 0]).all()
    assert (known.lower <= two[:, 1]).all()


@pytest.mark.parametrize(("n", "p", "levels"), [(900, 4, ()), (900, 2, (6,))])
def test_what_is_known_of_other_centres_changes_nothing(n, p, levels):
    """From centres at rest two are put elsewhere: with and without what was known, the same."""
    points = mixed(n, p=p, levels=levels, seed=5)
    start = dense(points)[:60:3].copy()
    rest, _, known = steps_to_rest(points, start=start, tolerance=0.0)
    moved = rest.copy()
    moved[[2, 7]] = dense(points)[[500, 501]]
    cold, cold_loss, _ = steps_to_rest(points, start=moved, tolerance=0.0)
    warm, warm_loss, _ = steps_to_rest(
        points, start=moved, tolerance=0.0, known=known.copy(), known_of=rest
    )
    np.testing.assert_allclose(warm, cold, atol=1e-9)
    assert warm_loss == pytest.approx(cold_loss)


def test_ties_go_to_the_lowest_index():
    found, _, _ = nearest_of_all(
        as_points(np.zeros((1, 1)), np.ones(1)), np.array([[5.0], [1], [-1]])
    )
    assert found.labels.tolist() == [1]


def test_values_beyond_single_precision_are_compared_all_the_same():
    points = as_points(np.array([[1e25], [1.1e25], [-3e25]]), np.ones(3))
    centres, loss, _ = steps_to_rest(points, start=np.array([[2e25], [-1e25]]), tolerance=0.0)
    np.testing.assert_allclose(centres.ravel(), [1.05e25, -3e25])
    assert loss == pytest.approx(2 * (0.05e25) ** 2)


def test_a_centre_without_points_starts_anew_where_the_loss_is_largest():
    points = as_points(np.array([[0.0], [1], [10], [11], [30]]), np.ones(5))
    start = np.array([[0.0], [12.0], [1e6]])  # nothing is near the last one
    centres, left, _ = steps_to_rest(points, start=start, tolerance=0.0)
    assert sorted(centres.ravel().tolist()) == [0.5, 10.5, 30.0]
    assert left == pytest.approx(1.0)


def test_sums_of_what_is_left_keep_their_digits():
    """A heavy point leaves a cluster of light ones, whose mean it must not blur."""
    points = as_points(np.array([[1e6], [1.0], [2.0]]), np.array([1e12, 1e-9, 1e-9]))
    everyone, before, labels = np.arange(3), *np.array([[-1, -1, -1], [0, 0, 0]], dtype=np.int32)
    sums, left = np.zeros((2, 3)), np.zeros(2)
    given = (points.numbers, points.codes, points.firsts, points.spans, points.weights)
    assert steps.carry(*given, everyone, everyone, before, labels, sums, left) == 3
    labels[0] = 1
    assert steps.carry(*given, everyone[:1], everyone, before, labels, sums, left) == 1
    found = Sums(sums[:, :-2], sums[:, -2], sums[:, -1])
    np.testing.assert_allclose(found.means(np.zeros((2, 1))), [[1.5], [1e6]], rtol=1e-12)
    assert found.counts.tolist() == [2, 1]


def test_codes_are_moved_like_the_features_they_stand_for():
    points = mixed(800, p=2, levels=(5, 40), seed=2)
    features = dense(points)
    same = as_points(features, points.weights)
    start = features[np.random.default_rng(0).choice(800, 12, replace=False)]
    found, expected = relocated(points, start), relocated(same, start)
    assert loss_of(features, points.weights, found) == pytest.approx(
        loss_of(features, points.weights, expected)
    )
