import itertools
import time
from dataclasses import dataclass

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.synopsis import classes as classes_module
from splitmeans.synopsis.classes import LatentClasses, fit_classes
from splitmeans.synopsis.many import draw_labels, latent_points
from splitmeans.synopsis.raking import raked


@dataclass
class Users:
    """An estimator that counts plain labels, shape (n, S), and adds noise to each pair."""

    labels: np.ndarray
    n_local_clusters: tuple
    deviation: float = 0.0

    def one(self, party):
        return np.bincount(self.labels[:, party], minlength=self.n_local_clusters[party])

    def joint(self, parties):
        i, j = parties
        shape = self.n_local_clusters[i], self.n_local_clusters[j]
        cells = np.ravel_multi_index((self.labels[:, i], self.labels[:, j]), shape)
        table = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        noise = np.random.default_rng([i, j]).standard_normal(shape)
        return table + self.deviation * noise


def tables_of(estimator):
    pairs = itertools.combinations(range(len(estimator.n_local_clusters)), 2)
    return {pair: np.maximum(estimator.joint(pair), 0.0) for pair in pairs}


def classes(*, n, shape, n_classes, seed=0, purity=0.85):
    """Draw users of hidden classes, with labels independent given the class."""
    rng = np.random.default_rng(seed)
    z = rng.integers(n_classes, size=n)
    home = np.stack([rng.permutation(max(k, n_classes))[:n_classes] % k for k in shape])
    labels = [
        np.where(rng.random(n) < purity, home[i][z], rng.integers(k, size=n))
        for i, k in enumerate(shape)
    ]
    return np.stack(labels, axis=1), z


def weighted_pair(labels, weights, pair, shape):
    table = np.zeros((shape[pair[0]], shape[pair[1]]))
    np.add.at(table, (labels[:, pair[0]], labels[:, pair[1]]), weights)
    return table


# ---- the fit ----


def naive_step(tables, shape, shares, profiles):
    """One step of expectation maximisation, cell by cell."""
    expected = [np.zeros_like(profile) for profile in profiles]
    for (i, j), table in tables.items():
        for a, b in np.ndindex(table.shape):
            joint = shares * profiles[i][a] * profiles[j][b]
            expected[i][a] += table[a, b] * joint / joint.sum()
            expected[j][b] += table[a, b] * joint / joint.sum()
    new_shares = np.sum([item.sum(axis=0) for item in expected], axis=0)
    return new_shares / new_shares.sum(), [item / item.sum(axis=0) for item in expected]


def test_matrix_steps_equal_naive_steps(monkeypatch):
    shape, n_classes = (2, 3, 4), 2
    rng = np.random.default_rng(0)
    pairs = itertools.combinations(range(3), 2)
    tables = {(i, j): rng.gamma(1.0, size=(shape[i], shape[j])) for i, j in pairs}
    tables = {pair: table / table.sum() for pair, table in tables.items()}

    monkeypatch.setattr(classes_module, "_STEPS", 0)
    start = fit_classes(tables, shape, n_classes=2, rng=np.random.default_rng(1), n_starts=1)
    monkeypatch.setattr(classes_module, "_STEPS", 3)
    fast = fit_classes(tables, shape, n_classes=2, rng=np.random.default_rng(1), n_starts=1)

    shares, profiles = start.shares, list(start.profiles)
    for _ in range(3):
        shares, profiles = naive_step(tables, shape, shares, profiles)
    np.testing.assert_allclose(fast.shares, shares, rtol=1e-8)
    for found, expected in zip(fast.profiles, profiles, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert fast.shares.shape == (n_classes,)


def test_more_steps_never_lower_the_likelihood(monkeypatch):
    labels, _ = classes(n=5000, shape=(4, 5, 6), n_classes=3)
    tables = tables_of(Users(labels, (4, 5, 6)))
    found = []
    for steps in (0, 20, 40, 80):
        monkeypatch.setattr(classes_module, "_STEPS", steps)
        fit = fit_classes(tables, (4, 5, 6), n_classes=3, rng=np.random.default_rng(0), n_starts=1)
        found.append(fit.log_likelihood)
    assert found == sorted(found)


def test_hidden_classes_are_found():
    shape = (6,) * 5
    labels, z = classes(n=50_000, shape=shape, n_classes=4, purity=0.9)
    fit = fit_classes(
        tables_of(Users(labels, shape)), shape, n_classes=4, rng=np.random.default_rng(0)
    )
    true_shares = np.sort(np.bincount(z) / len(z))
    np.testing.assert_allclose(np.sort(fit.shares), true_shares, atol=0.01)
    # Each class has one home label per party, with 0.9 + 0.1/6 of its users.
    for profile in fit.profiles:
        np.testing.assert_allclose(profile.max(axis=0), 0.9 + 0.1 / 6, atol=0.02)


def test_profiles_are_probabilities():
    labels, _ = classes(n=1000, shape=(3, 4), n_classes=3)
    fit = fit_classes(
        tables_of(Users(labels, (3, 4))), (3, 4), n_classes=7, rng=np.random.default_rng(0)
    )
    assert fit.shares.sum() == pytest.approx(1)
    for profile, width in zip(fit.profiles, (3, 4), strict=True):
        assert profile.shape == (width, 7)
        np.testing.assert_allclose(profile.sum(axis=0), 1)
        assert profile.min() >= 0


# ---- drawing ----


def test_draws_follow_the_shares_up_to_one_point():
    model = LatentClasses(
        shares=np.array([0.5, 0.3, 0.2]),
        profiles=(np.eye(3), np.array([[0.25, 1.0, 0.0], [0.75, 0.0, 1.0]])),
        log_likelihood=0.0,
    )
    labels = draw_labels(model, 1000, rng=np.random.default_rng(0))
    assert np.abs(np.bincount(labels[:, 0], minlength=3) - [500, 300, 200]).max() <= 1
    first = labels[labels[:, 0] == 0, 1]
    assert abs(np.count_nonzero(first == 0) - 0.25 * len(first)) <= 1
    assert (labels[labels[:, 0] == 1, 1] == 0).all()
    assert (labels[labels[:, 0] == 2, 1] == 1).all()


def test_a_label_of_probability_zero_is_never_drawn():
    model = LatentClasses(
        shares=np.array([0.0, 1.0, 0.0]),
        profiles=(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),),
        log_likelihood=0.0,
    )
    for seed in range(20):
        labels = draw_labels(model, 7, rng=np.random.default_rng(seed))
        assert labels.ravel().tolist() == [1] * 7


# ---- pseudo-points ----


def test_points_restore_the_pair_tables():
    shape = (4, 5, 6, 3)
    labels, _ = classes(n=30_000, shape=shape, n_classes=3)
    estimator = Users(labels, shape, deviation=20.0)
    points, weights = latent_points(
        estimator, n_classes=6, n_points=20_000, rng=np.random.default_rng(0), deviation=20.0
    )
    assert points.shape == (len(weights), 4)
    assert len(np.unique(points, axis=0)) == len(points)
    assert weights.sum() == pytest.approx(30_000, rel=0.02)
    for pair in itertools.combinations(range(4), 2):
        exact = Users(labels, shape).joint(pair)
        found = weighted_pair(points, weights, pair, shape)
        assert np.abs(found - exact).sum() / 30_000 < 0.08


def test_equal_seeds_give_equal_points():
    labels, _ = classes(n=2000, shape=(3, 3, 3), n_classes=2)
    estimator = Users(labels, (3, 3, 3))
    first, second = (
        latent_points(estimator, n_classes=4, n_points=500, rng=np.random.default_rng(5))
        for _ in range(2)
    )
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


def test_no_users_give_one_empty_point():
    estimator = Users(np.zeros((0, 3), dtype=np.int64), (2, 3, 4))
    points, weights = latent_points(estimator, n_classes=2, rng=np.random.default_rng(0))
    assert points.tolist() == [[0, 0, 0]]
    assert weights.tolist() == [0]


def test_bad_arguments_are_refused():
    labels, _ = classes(n=100, shape=(2, 2), n_classes=2)
    estimator, rng = Users(labels, (2, 2)), np.random.default_rng(0)
    with pytest.raises(ParameterError, match="n_classes must be a whole number >= 1, got 0"):
        latent_points(estimator, n_classes=0, rng=rng)
    with pytest.raises(ParameterError, match="n_points must be a whole number >= 1, got 0"):
        latent_points(estimator, n_classes=2, n_points=0, rng=rng)
    with pytest.raises(ParameterError, match="latent classes need at least 2 parties, got 1"):
        latent_points(Users(labels[:, :1], (2,)), n_classes=2, rng=rng)
    with pytest.raises(ParameterError, match="tables must count at least one user"):
        fit_classes({(0, 1): np.zeros((2, 2))}, (2, 2), n_classes=2, rng=rng)


def test_sixteen_parties_take_seconds():
    """16 parties with 16 clusters each: 1.8e19 cells; pair tables as noisy as at epsilon 1."""
    shape = (16,) * 16
    labels, _ = classes(n=100_000, shape=shape, n_classes=20, purity=0.9)
    tables = {
        pair: Users(labels, shape, deviation=69.0).joint(pair)
        for pair in itertools.combinations(range(16), 2)
    }

    @dataclass
    class Noisy:
        n_local_clusters = shape

        def joint(self, parties):
            return tables[tuple(parties)]

    start = time.process_time()
    points, weights = latent_points(
        Noisy(), n_classes=40, rng=np.random.default_rng(0), deviation=69.0
    )
    assert time.process_time() - start < 10  # measured: 0.7 s
    errors = [
        np.abs(weighted_pair(points, weights, pair, shape) - Users(labels, shape).joint(pair)).sum()
        for pair in ((0, 1), (3, 9), (14, 15))
    ]
    assert max(errors) / 100_000 < 0.25


@pytest.mark.slow
def test_sixteen_parties_come_close_to_pooled_clustering():
    """16 parties x 2 columns, 20 Gaussian clusters, noise 69 a cell: measured ratio 1.03."""
    from sklearn.cluster import KMeans

    from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
    from splitmeans.simulate.evaluation import normalised_loss

    rng = np.random.default_rng(0)
    homes = rng.uniform(-1, 1, size=(20, 32))
    rows = rng.normal(homes[rng.integers(20, size=100_000)], 0.15).clip(-1, 1)
    blocks = np.split(rows, 16, axis=1)
    models = [KMeans(16, n_init=1, random_state=0).fit(block[:20_000]) for block in blocks]
    labels = np.stack([m.predict(b) for m, b in zip(models, blocks, strict=True)], axis=1)
    points, weights = latent_points(
        Users(labels, (16,) * 16, deviation=69.0), n_classes=40, rng=rng, deviation=69.0
    )
    nodes = np.hstack([model.cluster_centers_[points[:, i]] for i, model in enumerate(models)])
    centres = weighted_kmeans(nodes, weights, n_clusters=20, rng=rng)
    central = KMeans(20, init=homes, n_init=1).fit(rows).cluster_centers_
    assert normalised_loss(rows, centres) / normalised_loss(rows, central) < 1.06


def test_raking_takes_weights_that_are_next_to_nothing():
    labels = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    with np.errstate(all="raise", under="ignore"):
        found = raked(labels, np.array([1.0, 5e-324, 1.0, 1e-300]), {(0, 1): table})
    assert np.isfinite(found).all()
    assert (found >= 0).all()
