"""Sampled label vectors against exact tables; weights by hand; vectors of each population."""

import itertools

import numpy as np
import pytest

from splitmeans.plan.grid_limits import N_POINTS
from splitmeans.synopsis.decode import read_counts
from splitmeans.synopsis.decode.counted import Counts, patterns_of
from splitmeans.synopsis.decode.max_entropy import Vectors, log_sizes, max_entropy_labels
from splitmeans.synopsis.decode.pooling import Pooling
from splitmeans.synopsis.decode.vectors import at_all_parties, everyone
from splitmeans.synopsis.decode.weighing import rake
from splitmeans.synopsis.replicates.refit import refitted_grid

from .scene import Users, plain_bundles, segments, tables_of


def vectors_of(labels, pooling):
    """Return vectors without ties, of labels that are as common as in these."""
    sizes = [np.bincount(own, minlength=n) for own, n in zip(labels.T, pooling.shape, strict=True)]
    size = int(pooling.starts[-1])
    return Vectors(
        labels=labels,
        sizes=log_sizes(np.concatenate(sizes) / len(labels)),
        ties=np.zeros((size, size)),
    )


def sampled(tables, labels, pooling, *, deviation=0.0, seed=0):
    return max_entropy_labels(
        vectors_of(labels, pooling),
        tables,
        pooling,
        deviation=deviation,
        rng=np.random.default_rng(seed),
    )


class TestMaxEntropy:
    def test_it_samples_what_proportional_fitting_finds(self):
        pooling = Pooling(bundles=plain_bundles(2, 3, 2))  # "absent" is one label more of each
        rng = np.random.default_rng(0)
        tables = tables_of(rng.gamma(0.5, size=pooling.shape) * 1000)
        exact = refitted_grid(tables, pooling.shape)
        start = np.stack([rng.integers(n, size=20_000) for n in pooling.shape], axis=1)
        found = np.zeros(pooling.shape)
        np.add.at(found, tuple(sampled(tables, start, pooling).labels.T), exact.sum() / 20_000)
        # 36 cells of 20,000 vectors: chance alone makes the sum of differences about 0.03.
        assert np.abs(found - exact).sum() < 0.08 * exact.sum()

    def test_labels_that_never_meet_stay_apart(self):
        """Two segments that no label shares: as many vectors of each as at first."""
        pooling = Pooling(bundles=plain_bundles(2, 2, 2, 2))
        table = np.diag([300.0, 700.0, 0.0])
        tables = dict.fromkeys(itertools.combinations(range(4), 2), table)
        start = np.repeat([[0] * 4, [1] * 4], [1200, 2800], axis=0)
        start[::10, 0] = 1 - start[::10, 0]
        kept = start.copy()
        found = sampled(tables, start, pooling).labels
        np.testing.assert_array_equal(start, kept)
        pure = found[(found == found[:, :1]).all(axis=1)]
        assert len(pure) > 0.99 * len(found)
        assert abs(np.mean(pure[:, 0]) - 0.7) < 0.02
        np.testing.assert_array_equal(found, sampled(tables, start, pooling).labels)


def counts_of(users):
    return Counts(
        tables={},
        deviation=None,
        patterns=patterns_of(2),
        users=np.array(users),
        enough=True,
    )


class TestRake:
    LABELS = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [2, 0]])
    POOLING = Pooling(bundles=plain_bundles(2, 2))

    def raked(self, weights, table, users):
        tables = {(0, 1): np.array(table)}
        return rake(np.array(weights), self.LABELS, tables, counts_of(users), self.POOLING)

    def test_weights_by_hand(self):
        """Each cell has one vector, so weights become the cells."""
        table = [[10.0, 20.0, 5.0], [30.0, 25.0, 0.0], [10.0, 0.0, 0.0]]
        found = self.raked([100 / 6] * 6, table, [85.0, 5.0, 10.0])
        np.testing.assert_allclose(found, [10, 20, 30, 25, 5, 10])

    def test_patterns_share_out_what_no_cell_tells(self):
        """The one table has no users at one party alone; the presence counts say a fifth."""
        table = [[25.0, 25.0, 0.0], [25.0, 25.0, 0.0], [0.0, 0.0, 0.0]]
        found = self.raked([100 / 6] * 6, table, [80.0, 20.0, 0.0])
        assert found.sum() == pytest.approx(100)
        assert found[4] > found[5]
        np.testing.assert_allclose(found[:4], found[0])

    def test_cells_with_few_vectors_are_left_alone(self):
        """No step changes a weight by more than twenty times, up or down."""
        table = [[1e6, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
        found = self.raked([1.0] * 6, table, [1e6 + 3, 1.0, 1.0])
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(6)

    def test_weights_that_are_next_to_nothing(self):
        table = [[1.0, 2.0, 1.0], [3.0, 4.0, 0.0], [1.0, 0.0, 0.0]]
        with np.errstate(all="raise", under="ignore"):
            found = self.raked([1.0, 5e-324, 1.0, 1e-300, 1.0, 1.0], table, [10.0, 1.0, 1.0])
        assert np.isfinite(found).all()
        assert (found >= 0).all()


@pytest.fixture(scope="module")
def somewhere():
    """Vectors of three segments at three parties, each user at a party with probability 0.7."""
    _of_user, labels, present, turns = segments(n=9_000, n_parties=3, n_segments=3, share=0.7)
    pooling = Pooling(bundles=plain_bundles(3, 3, 3))
    tables = read_counts(Users(labels, present, pooling.bundles)).tables
    start = np.where(present, labels, pooling.absent)
    return sampled(tables, start, pooling), pooling, turns


class TestPopulations:
    def test_those_at_all_parties_are_made_many(self, somewhere):
        vectors, pooling, turns = somewhere
        here = (vectors.labels != 3).all(axis=1)
        weights = np.where(np.arange(len(here)) % 2, 1.0, 3.0)
        rng = np.random.default_rng(0)
        labels, own = at_all_parties(vectors, weights, pooling, rng=rng)
        assert len(labels) == len(own) == N_POINTS
        assert (labels != pooling.absent).all()
        assert own.sum() == pytest.approx(weights[here].sum())
        for party, turn in enumerate(turns):
            wanted = np.bincount(vectors.labels[here, party], weights=weights[here])
            found = np.bincount(labels[:, party], weights=own)
            np.testing.assert_allclose(found / own.sum(), wanted / wanted.sum(), atol=0.02)
            assert len(turn) == len(found)
        segment = np.argsort(turns[0])[labels[:, 0]]
        assert np.mean((labels == turns[:, segment].T).all(axis=1)) > 0.98

    def test_many_at_all_parties_are_taken_as_they_are(self, somewhere):
        vectors, pooling, _ = somewhere
        many = np.tile(vectors.labels, (6, 1))
        many = Vectors(labels=many, sizes=vectors.sizes, ties=vectors.ties)
        weights = np.arange(len(many.labels)) % 3 * 1.0
        rng = np.random.default_rng(0)
        labels, own = at_all_parties(many, weights, pooling, rng=rng)
        taken = (many.labels != 3).all(axis=1) & (weights > 0)
        assert taken.sum() >= N_POINTS / 2
        np.testing.assert_array_equal(labels, many.labels[taken])
        np.testing.assert_array_equal(own, weights[taken])

    def test_nobody_at_all_parties(self, somewhere):
        vectors, pooling, _ = somewhere
        labels, own = at_all_parties(
            vectors, np.zeros(len(vectors.labels)), pooling, rng=np.random.default_rng(0)
        )
        assert labels.shape == (0, 3)
        assert own.sum() == 0

    def test_everyone_keeps_the_labels_that_are_known(self, somewhere):
        vectors, pooling, turns = somewhere
        known = vectors.labels != pooling.absent
        labels = everyone(vectors, pooling, rng=np.random.default_rng(0))
        np.testing.assert_array_equal(labels[known], vectors.labels[known])
        assert (labels != pooling.absent).all()
        # Who is at one party at least is of a segment, whose labels are filled in.
        at_one = known.any(axis=1)
        first = known[at_one].argmax(axis=1)
        seen = labels[at_one]
        own = np.argsort(turns, axis=1)[first, seen[np.arange(len(seen)), first]]
        assert np.mean((seen == turns[:, own].T).all(axis=1)) > 0.98
