"""Places that are exchanged within cells: what is gained, what must not change, what is left."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.synopsis.decode import PseudoUsers, by_segment, exchanging
from splitmeans.synopsis.decode.by_segment import exchange_by_segments, partners
from splitmeans.synopsis.decode.dependence import Dependence, dependence, party_side
from splitmeans.synopsis.decode.exchanging import exchange_places

_N = 20_000
# Places are whole numbers; this is a deviation.
_UNIT = 10_000


def _users(labels, places, *, widths, weights=None):
    parts = np.split(places, np.cumsum(widths)[:-1], axis=1)
    weights = np.ones(len(labels)) if weights is None else weights
    return PseudoUsers(labels=labels, weights=weights, places=tuple(parts))


def _exchanged(users, *, n_segments=None, seed=0):
    return exchange_places(users, n_segments=n_segments, rng=np.random.default_rng(seed))


def _by_chance(rng, labels, columns):
    """Return users whose places of one label are in another order: what is known of cells."""
    parts = []
    for own, values in zip(labels.T, columns.T, strict=True):
        mixed = values.copy()
        for label in np.unique(own):
            inside = np.flatnonzero(own == label)
            mixed[inside] = values[rng.permutation(inside)]
        parts.append(np.rint(mixed * _UNIT).astype(np.int64)[:, np.newaxis])
    return PseudoUsers(labels=labels, weights=np.ones(len(labels)), places=tuple(parts))


def _normal(seed, *, correlation=0.8, n_labels=4):
    """Two parties with one normal column each, cut into clusters of equally many users."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=_N)
    second = correlation * first + np.sqrt(1 - correlation**2) * rng.normal(size=_N)
    columns = np.stack([first, second], axis=1)
    ranks = columns.argsort(axis=0).argsort(axis=0)
    return _by_chance(rng, ranks * n_labels // _N, columns)


def _correlation(users):
    return float(np.corrcoef(users.nodes.T)[0, 1])


def _assert_clusters_keep_their_places(before, after):
    np.testing.assert_array_equal(before.labels, after.labels)
    np.testing.assert_array_equal(before.weights, after.weights)
    for own, old, new in zip(before.labels.T, before.places, after.places, strict=True):
        for label in np.unique(own):
            inside = own == label
            assert sorted(map(tuple, new[inside])) == sorted(map(tuple, old[inside]))


class TestDependence:
    @pytest.mark.parametrize("correlation", [0.8, -0.5])
    def test_what_cells_show_too_weakly_is_made_whole(self, correlation):
        users = _normal(1, correlation=correlation)
        # Four cells show about 0.86 of each column: 0.74 of the correlation.
        assert abs(_correlation(users)) < 0.8 * abs(correlation)
        assert _correlation(_exchanged(users)) == pytest.approx(correlation, abs=0.05)

    def test_independent_columns_stay_independent(self):
        # Five deviations of a correlation of independent users: fails once in two million.
        assert abs(_correlation(_exchanged(_normal(3, correlation=0.0)))) < 5 / np.sqrt(_N)

    def test_clear_segments_are_left_alone(self):
        rng = np.random.default_rng(2)
        segments = rng.integers(0, 3, size=_N)[:, np.newaxis]
        rows = segments * 10.0 + rng.normal(size=(_N, 2))
        # Two local clusters in each segment: what they show beyond the segments is nothing.
        users = _by_chance(rng, 2 * segments + (rows > segments * 10.0), rows)
        np.testing.assert_array_equal(_exchanged(users).nodes, users.nodes)

    def test_the_part_that_clusters_show_is_that_of_a_normal_column(self):
        # Two equal halves of a normal column have means of +-sqrt(2 / pi): 2 / pi of its variance.
        values = np.random.default_rng(6).normal(size=(200_000, 1))
        side = party_side(values, (values[:, 0] > 0).astype(np.int64), np.ones(200_000))
        assert side.shown == pytest.approx([2 / np.pi], abs=0.01)
        assert np.var(side.places) == pytest.approx(1.0)

    def test_ties_are_those_of_the_normal_distribution(self):
        users = _normal(7)
        sides = [
            party_side(part.astype(float), own, users.weights)
            for part, own in zip(users.places, users.labels.T, strict=True)
        ]
        found = dependence(sides, users.weights, rng=np.random.default_rng(0))
        assert found.believed > 0.7
        # With a correlation of c the inverse has -c / (1 - c^2) beside the diagonal; c is the
        # clusters' covariance over what they show of each column, for strong ties a little more.
        tie = abs(found.ties[0, 1]) / found.believed
        assert 0.78 / (1 - 0.78**2) < tie < 0.87 / (1 - 0.87**2)
        assert found.ties[0, 0] == found.ties[1, 1] == 0


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    widths=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    n_labels=st.integers(1, 9),
    n_users=st.integers(1, 300),
    n_segments=st.sampled_from([None, 1, 3]),
)
def test_every_cluster_keeps_its_places(seed, widths, n_labels, n_users, n_segments):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels, size=(n_users, len(widths)))
    factor = rng.normal(size=(n_users, 1))
    places = np.rint(_UNIT * (factor + 0.3 * rng.normal(size=(n_users, sum(widths)))))
    places = places.astype(np.int64)
    # Some columns are the same for everybody, and some pseudo-users stand for nobody.
    places[:, 0] = 7
    weights = rng.random(n_users) * rng.integers(0, 2, size=n_users)
    users = _users(labels, places, widths=widths, weights=weights)
    found = _exchanged(users, n_segments=n_segments, seed=seed)
    _assert_clusters_keep_their_places(users, found)


def test_nobody_and_one_party_are_returned_as_they_are():
    users = _normal(5)
    nobody = PseudoUsers(labels=users.labels, weights=0 * users.weights, places=users.places)
    assert _exchanged(nobody, n_segments=2) is nobody
    one = PseudoUsers(labels=users.labels[:, :1], weights=users.weights, places=users.places[:1])
    assert _exchanged(one, n_segments=2) is one


def test_a_column_of_hundreds_of_levels_enters_by_those_that_vary_most():
    rng = np.random.default_rng(4)
    codes = np.minimum(rng.geometric(0.05, size=2_000) - 1, 299)
    places = np.hstack([np.eye(300, dtype=np.int64)[codes] * _UNIT, codes[:, np.newaxis] * 100])
    labels = np.stack([np.minimum(codes, 5), np.minimum(codes // 4, 5)], axis=1)
    found = _exchanged(_users(labels, places, widths=[300, 1]))
    assert (found.places[0].sum(axis=1) == _UNIT).all()


@given(seed=st.integers(0, 1_000), n_users=st.integers(1, 60), n_labels=st.integers(1, 5))
def test_partners_have_one_label_and_nobody_has_two(seed, n_users, n_labels):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels, size=n_users)
    first, second = partners(labels, rng=rng)
    assert (labels[first] == labels[second]).all()
    both = np.concatenate([first, second])
    assert len(np.unique(both)) == len(both)


@pytest.mark.parametrize(
    ("n_parties", "believed", "by_segments"),
    [(2, 0.0, True), (2, 0.9, False), (5, 0.9, False), (6, 0.0, True), (6, 0.9, True)],
)
def test_who_is_told_apart_by_segments(monkeypatch, n_parties, believed, by_segments):
    """Few parties whose columns depend on each other follow that alone."""
    found = Dependence(ties=np.zeros((n_parties, n_parties)), believed=believed)
    monkeypatch.setattr(exchanging, "dependence", lambda *_, **__: found)
    seen = []
    monkeypatch.setattr(
        exchanging, "exchange_by_segments", lambda users, **_: seen.append(users) or users
    )
    places = np.random.default_rng(0).integers(-_UNIT, _UNIT, size=(500, n_parties))
    users = _users((places > 0).astype(np.int64), places, widths=(1,) * n_parties)
    _exchanged(users, n_segments=3)
    assert len(seen) == by_segments


def _shared(seed, *, apart=2.0, n=6_000):
    """Two segments, clear at the second party; at the first they share the middle one of three
    local clusters, and their places in it were put together by chance."""
    rng = np.random.default_rng(seed)
    segment = rng.integers(2, size=n)
    first = rng.normal(size=n) + np.where(segment == 1, apart / 2, -apart / 2)
    second = rng.normal(size=n) + np.where(segment == 1, 20.0, -20.0)
    labels = np.stack([np.digitize(first, [-1.5, 1.5]), segment], axis=1)
    return segment, first, _by_chance(rng, labels, np.stack([first, second], axis=1))


def _gap(segment, values):
    return values[segment == 1].mean() - values[segment == 0].mean()


class TestBySegments:
    def exchanged(self, users, seed=0):
        return exchange_by_segments(users, n_segments=2, rng=np.random.default_rng(seed))

    @pytest.mark.parametrize("seed", range(3))
    def test_segments_get_back_what_chance_took(self, seed):
        segment, truth, users = _shared(seed)
        found = self.exchanged(users, seed)
        _assert_clusters_keep_their_places(users, found)
        wanted = _gap(segment, truth)
        before, after = (_gap(segment, own.places[0][:, 0] / _UNIT) for own in (users, found))
        assert before < wanted - 0.1
        # Not all of it: places by chance make the segments look wider than they are.
        assert before + 0.4 * (wanted - before) < after < wanted + 0.1

    def test_segments_that_a_party_does_not_tell_apart_stay_so(self):
        segment, _, users = _shared(3, apart=0.0)
        gap = _gap(segment, self.exchanged(users).places[0][:, 0] / _UNIT)
        # Five standard errors of the difference of two means of 3,000: false alarms below 10^-6.
        assert abs(gap) < 5 * np.sqrt(2 / 3_000)

    @pytest.mark.parametrize("place", [0, 7])
    def test_users_in_one_place(self, place):
        users = _users(np.zeros((40, 2), dtype=np.int64), np.full((40, 2), place), widths=[1, 1])
        np.testing.assert_array_equal(self.exchanged(users).nodes, users.nodes)

    def test_of_many_features_those_count_in_which_segments_differ(self, monkeypatch):
        """Features in which nobody differs, as levels of a large column, change nothing."""
        monkeypatch.setattr(by_segment, "_MOST_FEATURES", 1)
        segment, truth, users = _shared(1)
        flat = np.zeros((len(segment), 5), dtype=np.int64)
        wide = _users(users.labels, np.hstack([flat, users.nodes]), widths=[6, 1])
        after = _gap(segment, self.exchanged(wide, 1).places[0][:, 5] / _UNIT)
        before = _gap(segment, users.places[0][:, 0] / _UNIT)
        assert after > before + 0.4 * (_gap(segment, truth) - before)
