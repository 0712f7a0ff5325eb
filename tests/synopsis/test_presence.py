"""Users at some parties only: tables are cleaned, classes found, totals kept, few users refused."""

import itertools

import numpy as np
import pytest

from splitmeans.synopsis.presence import KnowsPresence, observe, presence_points
from splitmeans.synopsis.presence_fit import fit_presence

# Two kinds of users at three parties with two, two and three labels.
LABELS = np.array([[0, 1, 2], [1, 0, 0]])


class Tables:
    """Tables of known users, with noise if wanted."""

    def __init__(self, labels, present, *, widths, deviation=1.0, presence_noise=1.0, rng=None):
        self.n_local_clusters = widths
        self._deviation, self._presence_noise = deviation, presence_noise
        with_absent = np.where(present, labels, widths)
        self.tables = {}
        for pair in itertools.combinations(range(len(widths)), 2):
            table = np.zeros([widths[party] + 1 for party in pair])
            np.add.at(table, tuple(with_absent[:, list(pair)].T), 1)
            if rng is not None:
                table += deviation * rng.standard_normal(table.shape)
            table[-1, -1] = 0
            self.tables[pair] = table
        self.counts = np.zeros((2,) * len(widths))
        np.add.at(self.counts, tuple(1 - present.T.astype(int)), 1)
        if rng is not None:
            self.counts += presence_noise * rng.standard_normal(self.counts.shape)
        self.counts.flat[-1] = 0

    def one(self, party):
        raise AssertionError("not needed")

    def joint(self, parties):
        raise AssertionError("not needed")

    def deviation(self, group):
        return self._deviation

    def with_absent(self, pair):
        return self.tables[pair].copy()

    def presence(self):
        return self.counts.copy(), self._presence_noise


def drawn(rng, *, n=6000, chances=((0.9, 0.5, 0.7), (0.4, 0.8, 0.6))):
    """Draw users of two kinds, two thirds of the first, whose presence depends on their kind."""
    kind = (np.arange(n) % 3 == 2).astype(int)
    present = rng.random((n, 3)) < np.array(chances)[kind]
    seen = present.any(axis=1)
    return kind[seen], LABELS[kind[seen]], present[seen]


def test_an_estimator_of_tables_knows_presence():
    rng = np.random.default_rng(0)
    _, labels, present = drawn(rng, n=60)
    assert isinstance(Tables(labels, present, widths=(2, 2, 3)), KnowsPresence)


def test_cleaning_by_hand():
    """Three users a cell of one pair, noise of one: what explains sizes stays, sums are kept."""
    labels = np.repeat(np.array([[0, 0, 0], [1, 1, 0]]), 50, axis=0)
    present = np.ones((100, 3), dtype=bool)
    tables = Tables(labels, present, widths=(2, 2, 1))
    tables.tables[0, 1] += np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    observed = observe(tables)
    np.testing.assert_array_equal(observed.pairs, [[0, 1], [0, 2], [1, 2]])
    assert observed.tables.shape == (3, 3, 3)
    first = observed.tables[0]
    assert first[0, 1] == first[1, 0] == first[2].sum() == first[:, 2].sum() == 0
    # The third party has one label, then an empty one, then absent.
    np.testing.assert_allclose(observed.tables[1][:, 1:], 0, atol=1)
    np.testing.assert_array_equal(observed.patterns[0], [1, 1, 1])
    # Patterns that nobody has are left out.
    assert observed.patterns.shape == (1, 3)
    assert observed.counts[0] == 100
    assert observed.counts.sum() == pytest.approx(100)


def test_presence_is_made_none_negative_and_keeps_those_at_all_parties():
    labels, present = np.zeros((100, 3), dtype=int), np.ones((100, 3), dtype=bool)
    tables = Tables(labels, present, widths=(1, 1, 1))
    tables.counts[0, 0, 1], tables.counts[1, 0, 0] = 30.0, -10.0
    counts = observe(tables).counts
    assert counts[0] == 100
    assert counts.min() >= 0
    assert counts.sum() == pytest.approx(120)
    assert counts[1] == pytest.approx(20)


@pytest.mark.parametrize("everyone", [False, True])
def test_classes_and_totals_are_found_without_noise(everyone):
    """Absence depends on the kind, so the kinds' shares differ between the populations."""
    rng = np.random.default_rng(1)
    kind, labels, present = drawn(rng)
    tables = Tables(labels, present, widths=(2, 2, 3), deviation=1e-3, presence_noise=1e-3)
    points, weights = presence_points(tables, n_classes=4, everyone=everyone, rng=rng)
    wanted = np.ones(len(kind), bool) if everyone else present.all(axis=1)
    assert weights.sum() == pytest.approx(wanted.sum())
    for which in (0, 1):
        users = int((kind[wanted] == which).sum())
        found = weights[(points == LABELS[which]).all(axis=1)].sum()
        assert found == pytest.approx(users, rel=0.05)


def test_noise_of_a_run_changes_little():
    """A noise of 15 a cell, 20 in the presence table; seeded, so it always gives the same."""
    rng = np.random.default_rng(2)
    kind, labels, present = drawn(rng)
    tables = Tables(labels, present, widths=(2, 2, 3), deviation=15.0, presence_noise=20.0, rng=rng)
    points, weights = presence_points(tables, n_classes=6, everyone=False, rng=rng)
    assert weights.sum() == pytest.approx(tables.counts[0, 0, 0])
    found = [weights[(points == own).all(axis=1)].sum() for own in LABELS]
    truth = [int(((kind == which) & present.all(axis=1)).sum()) for which in (0, 1)]
    np.testing.assert_allclose(found, truth, rtol=0.15)


def test_too_few_at_all_parties_are_no_segments_but_everyone_is():
    rng = np.random.default_rng(3)
    labels = np.repeat(LABELS, 500, axis=0)
    present = np.zeros((1000, 3), dtype=bool)
    present[np.arange(1000), np.arange(1000) % 3] = True
    present[::2, 0] = present[::2, 1] = True
    present[:199] = True
    tables = Tables(labels, present, widths=(2, 2, 3), presence_noise=20.0)
    tables.counts[0, 0, 0] = 199.0
    points, weights = presence_points(tables, n_classes=4, everyone=False, rng=rng)
    assert points.shape == (1, 3)
    assert weights.tolist() == [0.0]
    _, weights = presence_points(tables, n_classes=4, everyone=True, rng=rng)
    assert weights.sum() == pytest.approx(tables.counts.sum())


def test_nobody_at_all():
    tables = Tables(np.zeros((0, 3), int), np.zeros((0, 3), bool), widths=(2, 2, 2))
    for everyone in (False, True):
        _, weights = presence_points(
            tables, n_classes=4, everyone=everyone, rng=np.random.default_rng(0)
        )
        assert weights.tolist() == [0.0]


def test_random_absence_is_not_taken_for_more():
    """Users of each class at each party are as many as the shares of all users say, nearly."""
    rng = np.random.default_rng(4)
    _, labels, present = drawn(rng, chances=((0.6, 0.6, 0.6),) * 2)
    observed = observe(
        Tables(labels, present, widths=(2, 2, 3), deviation=20.0, presence_noise=20.0, rng=rng)
    )
    model = fit_presence(observed, n_classes=2, rng=rng)
    shares = observed.patterns.T @ model.users / model.users.sum(axis=0)
    expected = observed.patterns.T @ observed.counts / observed.counts.sum()
    np.testing.assert_allclose(shares, expected[:, np.newaxis] * np.ones(2), atol=0.06)
    np.testing.assert_allclose(model.users.sum(axis=1), observed.counts, atol=1e-6)
    for profile in model.profiles:
        np.testing.assert_allclose(profile.sum(axis=0), 1)
