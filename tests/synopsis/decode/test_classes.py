"""Bundles pooled against a loop; classes that are planted are found, with users absent too."""

import itertools

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.membership.bundles import Bundles
from splitmeans.synopsis.decode import classes as classes_module
from splitmeans.synopsis.decode import read_counts
from splitmeans.synopsis.decode.classes import LatentClasses, fit_classes
from splitmeans.synopsis.decode.pooling import Pooling
from splitmeans.synopsis.decode.vectors import draw_labels, merged

from .scene import Users, plain_bundles, segments

TWO_TO_A_LABEL = Bundles(n_local_clusters=(24,) * 4, n_labels=(12,) * 4)


class TestPooling:
    @pytest.mark.parametrize("shape", [(8,) * 4, (4, 8, 7, 4)])
    def test_against_a_loop_over_cells(self, shape):
        bundles = Bundles(n_local_clusters=shape, n_labels=(4,) * 4)
        pooling = Pooling(bundles=bundles)
        size = sum(shape) + 4
        matrix = np.random.default_rng(0).random((size, size))
        pooled = pooling.pooled(matrix)
        for a, b in itertools.product(range(size), repeat=2):
            party, other = pooling.party_of[a], pooling.party_of[b]
            if party == other:
                assert pooled[a, b] == 0
                continue
            rows, columns = pooling.labels_of(party, other), pooling.labels_of(other, party)
            alike = np.ix_(
                pooling.starts[party] + np.flatnonzero(rows == rows[a - pooling.starts[party]]),
                pooling.starts[other]
                + np.flatnonzero(columns == columns[b - pooling.starts[other]]),
            )
            assert pooled[a, b] == pytest.approx(matrix[alike].sum())

    def test_tables_of_cells_and_back(self):
        _, labels, present, _ = segments(n=3_000, n_parties=4, n_segments=24, share=0.8)
        pooling = Pooling(bundles=TWO_TO_A_LABEL)
        everywhere = np.where(present, labels, pooling.absent)
        cells = np.zeros((pooling.starts[-1],) * 2)
        for one, other in itertools.permutations(range(4), 2):
            places = [pooling.starts[p] + everywhere[:, p] for p in (one, other)]
            np.add.at(cells, tuple(places), 1.0)
        tables = read_counts(Users(labels, present, TWO_TO_A_LABEL)).tables
        for pair, table in tables.items():
            np.testing.assert_array_equal(pooling.table(cells, pair), table)
        np.testing.assert_array_equal(pooling.stacked(tables), pooling.pooled(cells))

    def test_parties_with_other_numbers_of_labels_are_refused(self):
        with pytest.raises(ParameterError, match="as many labels"):
            Pooling(bundles=Bundles(n_local_clusters=(6, 6), n_labels=(3, 4)))


def naive_step(tables, model):
    """One step of expectation maximisation, cell by cell."""
    expected = [np.zeros_like(profile) for profile in model.profiles]
    for (i, j), table in tables.items():
        for a, b in np.ndindex(table.shape):
            joint = model.shares * model.profiles[i][a] * model.profiles[j][b]
            expected[i][a] += table[a, b] * joint / joint.sum()
            expected[j][b] += table[a, b] * joint / joint.sum()
    shares = np.sum([item.sum(axis=0) for item in expected], axis=0)
    profiles = tuple(item / item.sum(axis=0) for item in expected)
    return LatentClasses(shares=shares / shares.sum(), profiles=profiles, log_likelihood=0.0)


def test_matrix_steps_equal_naive_steps(monkeypatch):
    monkeypatch.setattr(classes_module, "STARTS", 1)
    monkeypatch.setattr(classes_module, "_FIRST_STEPS", 0)
    shape = (3, 4, 5)
    rng = np.random.default_rng(0)
    pairs = itertools.combinations(range(3), 2)
    tables = {(i, j): rng.gamma(1.0, size=(shape[i] + 1, shape[j] + 1)) for i, j in pairs}
    tables = {pair: table / table.sum() for pair, table in tables.items()}
    found = []
    for steps in (0, 3):
        monkeypatch.setattr(classes_module, "_STEPS", steps)
        pooling = Pooling(bundles=plain_bundles(*shape))
        rng = np.random.default_rng(1)
        found.append(fit_classes(tables, pooling, n_classes=2, rng=rng))
    expected, fast = found
    for _ in range(3):
        expected = naive_step(tables, expected)
    np.testing.assert_allclose(fast.shares, expected.shares, rtol=1e-6)
    for own, wanted in zip(fast.profiles, expected.profiles, strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_a_planted_mixture_is_found(share):
    of_user, labels, present, turns = segments(
        n=40_000, n_parties=5, n_segments=4, share=share, widths=(6,) * 5
    )
    pooling = Pooling(bundles=plain_bundles(*(6,) * 5))
    tables = read_counts(Users(labels, present, pooling.bundles)).tables
    model = fit_classes(tables, pooling, n_classes=4, rng=np.random.default_rng(0))
    shares = np.bincount(of_user) / len(of_user)
    order = np.argsort(model.shares)
    # One in a hundred users of 0.6^5 is at no party, and so not counted.
    np.testing.assert_allclose(model.shares[order], shares, atol=0.01)
    for party, profile in enumerate(model.profiles):
        np.testing.assert_allclose(profile.sum(axis=0), 1)
        here = profile[turns[party], order]
        np.testing.assert_allclose(here, present[:, party].mean(), atol=0.03)
    np.testing.assert_allclose(model.cells.sum(axis=1), 5 * model.sizes)


def test_classes_tell_clusters_of_one_bundle_apart():
    """Half as many labels as segments: a table alone has two segments in every label."""
    _, labels, present, _ = segments(n=40_000, n_parties=4, n_segments=24)
    tables = read_counts(Users(labels, present, TWO_TO_A_LABEL)).tables
    known = [np.bincount(own, minlength=25) / len(own) for own in labels.T]
    known = np.maximum(np.concatenate(known), 1e-5)
    model = fit_classes(
        tables,
        Pooling(bundles=TWO_TO_A_LABEL),
        n_classes=48,
        rng=np.random.default_rng(2),
        known=known,
    )
    # In a class nearly all users have one cluster at each party.
    for profile in model.profiles:
        assert float(model.shares @ profile.max(axis=0)) > 0.95


class TestDrawing:
    MODEL = LatentClasses(
        shares=np.array([0.5, 0.3, 0.2, 0.0]),
        profiles=(np.eye(4), np.array([[0.25, 1.0, 0.0, 1.0], [0.75, 0.0, 1.0, 0.0]])),
        log_likelihood=0.0,
    )

    @pytest.mark.parametrize("n", [7, 1000])
    def test_draws_follow_the_shares_up_to_one_vector(self, n):
        labels = draw_labels(self.MODEL, n, rng=np.random.default_rng(0))
        sizes = np.bincount(labels[:, 0], minlength=4)
        assert np.abs(sizes - n * self.MODEL.shares).max() <= 1
        assert sizes[3] == 0
        first = labels[labels[:, 0] == 0, 1]
        assert abs(np.count_nonzero(first == 0) - 0.25 * len(first)) <= 1
        assert (labels[labels[:, 0] == 1, 1] == 0).all()
        assert (labels[labels[:, 0] == 2, 1] == 1).all()

    def test_equal_vectors_are_merged_and_those_of_nobody_left_out(self):
        vectors = np.array([[1, 0], [0, 2], [1, 0], [2, 2]])
        labels, weights = merged(vectors, np.array([1.0, 2.0, 4.0, 1e-12]))
        assert labels.tolist() == [[0, 2], [1, 0]]
        assert weights.tolist() == [2, 5]
