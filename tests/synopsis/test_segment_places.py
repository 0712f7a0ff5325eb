"""Segments that share a local cluster: told apart there, and nothing else changes."""

import numpy as np
import pytest

from splitmeans.synopsis import segment_places
from splitmeans.synopsis.segment_places import exchange_by_segments

_UNIT = 10_000


def _scene(seed, *, apart=2.0, n=6_000):
    """Two segments, clear at the second party; at the first they share the middle one of three
    local clusters, and their places in it were put together by chance."""
    rng = np.random.default_rng(seed)
    segment = rng.integers(2, size=n)
    first = rng.normal(size=n) + np.where(segment == 1, apart / 2, -apart / 2)
    second = rng.normal(size=n) + np.where(segment == 1, 20.0, -20.0)
    labels = np.stack([np.digitize(first, [-1.5, 1.5]), segment], axis=1)
    shared = np.flatnonzero(labels[:, 0] == 1)
    mixed = first.copy()
    mixed[shared] = first[rng.permutation(shared)]
    places = np.rint(np.stack([mixed, second], axis=1) * _UNIT).astype(np.int64)
    return segment, first, labels, places


def _exchanged(labels, places, *, widths=(1, 1), n_segments=2, seed=0):
    return exchange_by_segments(
        labels,
        np.ones(len(labels)),
        places,
        widths=widths,
        n_segments=n_segments,
        rng=np.random.default_rng(seed),
    )


def _gap(segment, values):
    return values[segment == 1].mean() - values[segment == 0].mean()


@pytest.mark.parametrize("seed", range(3))
def test_segments_get_back_what_chance_took(seed):
    segment, truth, labels, places = _scene(seed)
    found = _exchanged(labels, places, seed=seed)
    wanted = _gap(segment, truth)
    before, after = (_gap(segment, own[:, 0] / _UNIT) for own in (places, found))
    assert before < wanted - 0.3
    # Not all of it: places by chance make the segments look wider than they are.
    assert before + 0.4 * (wanted - before) < after < wanted + 0.1


def test_cells_keep_users_and_parties_their_places():
    _, _, labels, places = _scene(9)
    kept = places.copy()
    found = _exchanged(labels, places)
    np.testing.assert_array_equal(places, kept)
    for party, own in enumerate(labels.T):
        for label in np.unique(own):
            inside = own == label
            np.testing.assert_array_equal(
                np.sort(found[inside, party]), np.sort(places[inside, party])
            )


def test_segments_that_a_party_does_not_tell_apart_stay_so():
    segment, _, labels, places = _scene(3, apart=0.0)
    found = _exchanged(labels, places)
    # Five standard errors of the difference of two means of 3,000: false alarms below 1 in 10^6.
    assert abs(_gap(segment, found[:, 0] / _UNIT)) < 5 * np.sqrt(2 / 3_000)


@pytest.mark.parametrize("places", [np.zeros((40, 2)), np.ones((40, 2)) * 7])
def test_users_in_one_place(places):
    whole = places.astype(np.int64)
    found = _exchanged(np.zeros((40, 2), dtype=np.int64), whole, n_segments=3)
    np.testing.assert_array_equal(found, whole)


def test_of_many_features_those_count_in_which_segments_differ(monkeypatch):
    """Features in which nobody differs, as levels of a large column, change nothing."""
    monkeypatch.setattr(segment_places, "_MOST_FEATURES", 1)
    segment, truth, labels, places = _scene(1)
    flat = np.zeros((len(places), 5), dtype=np.int64)
    found = _exchanged(labels, np.hstack([flat, places]), widths=(6, 1), seed=1)
    before, after = (_gap(segment, own / _UNIT) for own in (places[:, 0], found[:, 5]))
    assert after > before + 0.4 * (_gap(segment, truth) - before)
