"""Features: a party's columns as coordinates on a fixed integer grid.

A number column is one feature; a categorical column is one feature per level. A feature's
values fill [-weight, weight] and are whole multiples of 1/GRID_UNITS, so sums of rows are exact
integers, sensitivities are exact, and the nearest centre of a row does not depend on how a machine
rounds. Everything here is public; clipping and quantising rows is `table/prepare.py`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.study import Column, PartySpec

# 2^20 steps per unit: far finer than any noise (so quantising costs no accuracy) and coarse enough
# that int64 holds sums over 2^40 rows and squared distances over 2^20 features.
GRID_UNITS = 2**20

# Two different categories differ in two one-hot features. With this weight their squared distance
# is (2/sqrt 2)^2 * 2 = 4, the same as between the two ends of a number column.
ONE_HOT_WEIGHT = 1 / math.sqrt(2)


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One coordinate: own units [low, high] onto grid integers [-bound, bound]."""

    name: str
    low: float
    high: float
    weight: float

    @property
    def bound(self) -> int:
        """Largest grid integer; the feature's L1 sensitivity for adding or removing a user."""
        return max(1, round(self.weight * GRID_UNITS))


def features_of(party: PartySpec) -> tuple[Feature, ...]:
    """Return the features of a party, in column order, levels in listed order."""
    return features_of_columns(party.columns)


def features_of_columns(columns: Iterable[Column]) -> tuple[Feature, ...]:
    """Return the features of some columns, whoever holds them."""
    return tuple(feature for column in columns for feature in _features(column))


def _features(column: Column) -> list[Feature]:
    assert not column.is_open, "the categories of the column are not learned yet"
    if column.categories:
        weight = column.weight * ONE_HOT_WEIGHT
        return [
            Feature(name=f"{column.name}={level}", low=0.0, high=1.0, weight=weight)
            for level in column.levels
        ]
    assert not column.is_private, "the bounds of the column are not learned yet"
    assert column.low is not None
    assert column.high is not None
    low, high = float(column.low), float(column.high)
    return [Feature(name=column.name, low=low, high=high, weight=float(column.weight))]


def bounds_of(features: tuple[Feature, ...]) -> IntArray:
    """Return the largest grid integer of each feature, shape (d,)."""
    return np.array([feature.bound for feature in features], dtype=np.int64)


# Below this share of a column's range a value is a rounding error of zero.
_ROUNDING = 1e-12


def to_own_units(features: tuple[Feature, ...], scaled: FloatArray) -> FloatArray:
    """Map points in distance units (grid / GRID_UNITS), shape (..., d), to own units.

    Points lie within the bounds up to rounding; what is returned does exactly, and is 0 rather
    than a rounding error beside it.
    """
    bounds = bounds_of(features) / GRID_UNITS
    low = np.array([feature.low for feature in features])
    high = np.array([feature.high for feature in features])
    # Halved first: a difference of bounds may be close to the largest float.
    own = np.clip(low + (scaled / bounds + 1) / 2 * (high - low), low, high)
    return np.where(np.abs(own) < _ROUNDING * (high - low), 0.0, own)


def to_distance_units(features: tuple[Feature, ...], own: FloatArray) -> FloatArray:
    """Map points in own units, shape (..., d), to distance units: `to_own_units` undone."""
    bounds = bounds_of(features) / GRID_UNITS
    low = np.array([feature.low for feature in features])
    high = np.array([feature.high for feature in features])
    # Divided first: a difference of bounds may be close to the largest float.
    return np.asarray(((own - low) / (high - low) * 2 - 1) * bounds)
