"""Coded rows: one number a column, and the features that they stand for."""

import numpy as np

from splitmeans._types import NO_VALUE
from splitmeans.study import Column, PartySpec
from splitmeans.study.coding import Coding, coding_of

PARTY = PartySpec(
    name="bank",
    columns=(
        Column(name="age", low=0, high=100),
        Column(name="job", categories=("a", "b"), missing="level", weight=2),
        Column(name="size", low=0, high=1, missing="midpoint"),
    ),
)

PLAIN = Coding(bounds=(1, 1), levels=(0, 0))


def test_the_coding_of_a_party():
    coding = coding_of(PARTY)
    assert coding.levels == (0, 3, 0)
    assert len(coding.bounds) == 5
    assert coding.starts.tolist() == [0, 1, 4, 5]
    assert coding.number_features.tolist() == [0, 4]
    assert coding.categorical == ((1, slice(1, 4)),)
    assert not coding.is_plain
    assert PLAIN.is_plain


def test_features_by_hand():
    coding = Coding(bounds=(9, 5, 5, 5), levels=(0, 3))
    rows = np.array([[7, 0], [-9, 2], [NO_VALUE, 3], [1, NO_VALUE]])
    # The code behind the last level is even shares: 10 steps from -5 for three levels.
    assert coding.features(rows).tolist() == [
        [7, 5, -5, -5],
        [-9, -5, -5, 5],
        [NO_VALUE, -1, -2, -2],
        [1, NO_VALUE, NO_VALUE, NO_VALUE],
    ]
    plain = np.array([[1, 2]])
    assert PLAIN.features(plain) is plain


def test_codes_are_what_features_came_from():
    coding = Coding(bounds=(9, 5, 5, 5, 2), levels=(0, 3, 0))
    rows = np.array([[7, 0, 2], [-9, 2, 0], [0, 1, -2]])
    assert coding.codes(coding.features(rows)).tolist() == rows.tolist()
    plain = np.array([[1, 2]])
    assert PLAIN.codes(plain) is plain


def test_values_that_no_point_has_are_told():
    coding = Coding(bounds=(9, 5, 5, 5), levels=(0, 3))
    assert coding.problem_of_codes(np.array([[9, 0], [-9, 2]])) is None
    for number in (10, -10, -(2**63)):
        assert coding.problem_of_codes(np.array([[number, 0]])) == "outside the study's bounds"
    for level in (3, -1, NO_VALUE):
        assert coding.problem_of_codes(np.array([[0, level]])) == "with levels that no category has"


def test_shares_become_levels_as_often_as_they_say():
    coding = Coding(bounds=(9, 5, 5, 5), levels=(0, 3))
    rng = np.random.default_rng(3)
    rows = np.array([[7, 5, -5, -5], [-9, -5, -5, 5]])
    assert coding.with_levels(rows, rng=rng).tolist() == rows.tolist()
    # Shares of 0.5, 0.3 and 0.2; one in a million of correct draws is further off.
    shared = np.tile([[1, 0, -2, -3]], (20_000, 1))
    drawn = coding.with_levels(shared, rng=rng)
    assert np.all(drawn[:, 0] == 1)
    levels = coding.codes(drawn)[:, 1]
    assert coding.features(coding.codes(drawn)).tolist() == drawn.tolist()
    assert np.abs(np.bincount(levels) / len(levels) - [0.5, 0.3, 0.2]).max() < 0.0185
    # A level without a share is never drawn, whichever it is.
    for none in range(3):
        without = np.array([0, 0, 0])
        without[none] = -5
        row = np.tile(np.concatenate([[0], without]), (200, 1))
        assert none not in coding.codes(coding.with_levels(row, rng=rng))[:, 1]
    plain = np.array([[1, 2]])
    assert PLAIN.with_levels(plain, rng=rng).tolist() == plain.tolist()
