"""Features: columns as coordinates on the integer grid."""

import numpy as np
import pytest

from splitmeans.study import Column, PartySpec
from splitmeans.study.features import (
    GRID_UNITS,
    ONE_HOT_WEIGHT,
    Feature,
    bounds_of,
    features_of,
    to_distance_units,
    to_own_units,
)

PARTY = PartySpec(
    name="bank",
    columns=(
        Column(name="income", low=0, high=8000),
        Column(name="branch", categories=("north", "south"), weight=2),
        Column(name="age", low=18, high=98, weight=0.5),
    ),
)


def test_a_number_is_one_feature_and_a_category_is_one_feature_each():
    features = features_of(PARTY)
    assert [feature.name for feature in features] == [
        "income",
        "branch=north",
        "branch=south",
        "age",
    ]
    assert features[0] == Feature(name="income", low=0.0, high=8000.0, weight=1.0)
    assert features[1].weight == 2 * ONE_HOT_WEIGHT
    assert (features[1].low, features[1].high) == (0.0, 1.0)


def test_bounds_are_weights_in_grid_units():
    bounds = bounds_of(features_of(PARTY))
    assert bounds.dtype == np.int64
    # round(2 / sqrt(2) * 2^20) = round(1482910.4)
    assert bounds.tolist() == [GRID_UNITS, 1_482_910, 1_482_910, GRID_UNITS // 2]


def test_a_tiny_weight_still_has_a_grid():
    assert Feature(name="x", low=0.0, high=1.0, weight=1e-12).bound == 1


def test_two_categories_are_as_far_apart_as_the_ends_of_a_number_column():
    party = PartySpec(name="p", columns=(Column(name="c", categories=("a", "b", "c")),))
    bound = bounds_of(features_of(party))[0] / GRID_UNITS
    first, second = np.array([bound, -bound, -bound]), np.array([-bound, bound, -bound])
    assert np.sum((first - second) ** 2) == pytest.approx(4, rel=1e-5)


def test_to_own_units_undoes_the_scaling():
    features = features_of(PARTY)
    one = 1_482_910 / GRID_UNITS
    scaled = np.array([[-1.0, one, -one, -0.5], [0.0, 0.0, 0.0, 0.0], [1.0, -one, one, 0.5]])
    own = to_own_units(features, scaled)
    assert own.tolist() == [[0, 1, 0, 18], [4000, 0.5, 0.5, 58], [8000, 0, 1, 98]]
    assert to_own_units(features, scaled[1]).tolist() == own[1].tolist()


@pytest.mark.parametrize(
    ("low", "high"), [(-8e307, 9e307), (-1.7e308, -1e300), (0.0, 5e-324), (-1e-300, 1e-300), (3, 4)]
)
def test_ends_of_any_bounds_are_the_ends_of_the_scale_and_back(low, high):
    party = PartySpec(name="p", columns=(Column(name="c", low=low, high=high),))
    features = features_of(party)
    ends = np.array([[low], [high]])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        scaled = to_distance_units(features, ends)
    assert scaled.ravel() == pytest.approx([-1, 1])
    assert to_own_units(features, scaled) == pytest.approx(ends, rel=1e-12)
