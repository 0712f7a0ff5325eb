"""Places that are exchanged within cells: what is gained, what must not change, what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.synopsis import arranging
from splitmeans.synopsis.arranging import arrange_within_cells
from splitmeans.synopsis.dependence import Dependence, dependence, party_side
from splitmeans.synopsis.segment_places import partners

_N = 20_000
# Places are whole numbers; so much is a deviation.
_UNIT = 10_000


def _quantised(columns, n_labels):
    """Return the label of each value: equally many in each of so many ranges."""
    ranks = columns.argsort().argsort()
    return ranks * n_labels // len(columns)


def _by_chance(rng, labels, values):
    """Return the values, those of one label in another order: what pseudo-users have."""
    values = values.copy()
    for label in np.unique(labels):
        inside = np.flatnonzero(labels == label)
        values[inside] = values[rng.permutation(inside)]
    return values


def _scene(seed, *, correlation=0.8, n_labels=4):
    """Two parties with one normal column each, and pseudo-users that know cells alone."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=_N)
    second = correlation * first + np.sqrt(1 - correlation**2) * rng.normal(size=_N)
    labels = np.stack([_quantised(first, n_labels), _quantised(second, n_labels)], axis=1)
    parts = [
        _by_chance(rng, own, values) for own, values in zip(labels.T, (first, second), strict=True)
    ]
    places = np.rint(np.stack(parts, axis=1) * _UNIT).astype(np.int64)
    return labels, np.ones(_N), places


def _correlation(places):
    return float(np.corrcoef(places.T)[0, 1])


@pytest.mark.parametrize("correlation", [0.8, -0.5])
def test_a_dependence_that_cells_show_too_weakly_is_made_whole(correlation):
    labels, weights, places = _scene(1, correlation=correlation)
    arranged = arrange_within_cells(
        labels, weights, places, widths=[1, 1], rng=np.random.default_rng(0)
    )
    before, after = _correlation(places), _correlation(arranged)
    # Four cells show about 0.86 of each column: 0.74 of the correlation.
    assert abs(before) < 0.8 * abs(correlation)
    assert after == pytest.approx(correlation, abs=0.05)


def test_clear_segments_are_left_alone():
    rng = np.random.default_rng(2)
    segments = rng.integers(0, 3, size=_N)
    rows = segments[:, np.newaxis] * 10.0 + rng.normal(size=(_N, 2))
    # Two local clusters in each segment: what they show beyond the segments is nothing.
    labels = 2 * segments[:, np.newaxis] + (rows > segments[:, np.newaxis] * 10.0)
    parts = [_by_chance(rng, own, column) for own, column in zip(labels.T, rows.T, strict=True)]
    places = np.rint(np.stack(parts, axis=1) * _UNIT).astype(np.int64)
    arranged = arrange_within_cells(labels, np.ones(_N), places, widths=[1, 1], rng=rng)
    assert np.array_equal(arranged, places)


def test_independent_columns_stay_independent():
    labels, weights, places = _scene(3, correlation=0.0)
    arranged = arrange_within_cells(
        labels, weights, places, widths=[1, 1], rng=np.random.default_rng(0)
    )
    # Five deviations of a correlation of so many independent users: fails once in two million.
    assert abs(_correlation(arranged)) < 5 / np.sqrt(_N)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    widths=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    n_labels=st.integers(1, 9),
    n_users=st.integers(1, 300),
)
def test_every_cluster_keeps_its_places(seed, widths, n_labels, n_users):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels, size=(n_users, len(widths)))
    factor = rng.normal(size=(n_users, 1))
    places = np.rint(_UNIT * (factor + 0.3 * rng.normal(size=(n_users, sum(widths)))))
    places = places.astype(np.int64)
    # Some columns are the same for everybody, and some pseudo-users stand for nobody.
    places[:, 0] = 7
    weights = rng.random(n_users) * rng.integers(0, 2, size=n_users)
    arranged = arrange_within_cells(labels, weights, places, widths=widths, rng=rng)
    assert arranged.shape == places.shape
    ends = np.cumsum(widths)
    for own, end, width in zip(labels.T, ends, widths, strict=True):
        part = slice(end - width, end)
        for label in range(n_labels):
            before = sorted(map(tuple, places[own == label, part]))
            assert sorted(map(tuple, arranged[own == label, part])) == before


def test_a_column_of_hundreds_of_levels_enters_by_those_that_vary_most():
    rng = np.random.default_rng(4)
    codes = np.minimum(rng.geometric(0.05, size=2_000) - 1, 299)
    places = np.hstack([np.eye(300, dtype=np.int64)[codes] * _UNIT, codes[:, np.newaxis] * 100])
    labels = np.stack([np.minimum(codes, 5), np.minimum(codes // 4, 5)], axis=1)
    arranged = arrange_within_cells(labels, np.ones(2_000), places, widths=[300, 1], rng=rng)
    assert (arranged[:, :300].sum(axis=1) == _UNIT).all()


def test_nobody_and_one_party_are_returned_as_they_are():
    labels, weights, places = _scene(5)
    rng = np.random.default_rng(0)
    assert arrange_within_cells(labels, 0 * weights, places, widths=[1, 1], rng=rng) is places
    assert arrange_within_cells(labels[:, :1], weights, places, widths=[2], rng=rng) is places


def test_the_part_that_clusters_show_is_that_of_a_normal_column():
    # Two equal halves of a normal column have means of +-sqrt(2 / pi): 2 / pi of its variance.
    values = np.random.default_rng(6).normal(size=(200_000, 1))
    side = party_side(values, (values[:, 0] > 0).astype(np.int64), np.ones(200_000))
    assert side.shown == pytest.approx([2 / np.pi], abs=0.01)
    assert np.var(side.places) == pytest.approx(1.0)


def test_ties_are_those_of_the_normal_distribution():
    labels, weights, places = _scene(7)
    sides = [
        party_side(column[:, np.newaxis].astype(float), own, weights)
        for column, own in zip(places.T, labels.T, strict=True)
    ]
    found = dependence(sides, weights, rng=np.random.default_rng(0))
    assert found.believed > 0.7
    # With a correlation of c the inverse has -c / (1 - c^2) beside the diagonal; c is the clusters'
    # covariance over what they show of each column, which for strong ties is a little more.
    tie = abs(found.ties[0, 1]) / found.believed
    assert 0.78 / (1 - 0.78**2) < tie < 0.87 / (1 - 0.87**2)
    assert found.ties[0, 0] == found.ties[1, 1] == 0


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
    monkeypatch.setattr(
        arranging,
        "dependence",
        lambda sides, weights, *, rng: Dependence(
            ties=np.zeros((n_parties, n_parties)), believed=believed
        ),
    )
    seen = []
    monkeypatch.setattr(
        arranging,
        "exchange_by_segments",
        lambda labels, weights, places, **_: seen.append(places) or places,
    )
    rng = np.random.default_rng(0)
    places = rng.integers(-_UNIT, _UNIT, size=(500, n_parties))
    found = arrange_within_cells(
        (places > 0).astype(np.int64),
        np.ones(500),
        places,
        widths=(1,) * n_parties,
        rng=rng,
        n_segments=3,
    )
    assert len(seen) == by_segments
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(places, axis=0))
