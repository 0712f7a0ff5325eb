"""Values as people write them: 29 for 28.999977. Post-processing of published places.

Places are on a grid of about two million steps between a column's bounds, so a published value
stands for all numbers within half a step. Two rules, both by what was published alone:

    a column  nearly all of its values may be whole numbers, which chance would not bring about:
              all of them are
    a value   it may be a number that is far rounder than a step is small: it is that one

All other values stay as they are. `Synopsis.nodes`, questions, SQL, `synopsis.parquet` and
synthetic rows all follow these rules, so that nobody counts 29 and 28.999977 apart; distances and
segments are of the published places.
"""

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray
from splitmeans.study.features import Feature, to_own_units

if TYPE_CHECKING:
    from splitmeans.synopsis.synopsis import Synopsis

# Users whose values may be whole; the others were spread over a bin that has no whole number.
_NEARLY_ALL = 0.95
# A step of more than this part of 1 says nothing: values near whole numbers would be chance.
_WIDEST_STEP = 0.2
# A round number is a multiple of a power of ten that is so many steps.
_ROUNDER = 100.0
# Beyond this not every whole number is a float, and a float is whole by itself.
_LARGEST_WHOLE = 2.0**53


def whole_features(synopsis: "Synopsis") -> frozenset[int]:
    """Return which of the features of a synopsis are columns of whole numbers, by position."""
    features = _all_features(synopsis)
    values = to_own_units(features, synopsis.scaled_nodes)
    return frozenset(
        at for at in _numbers(synopsis) if is_whole(features[at], values[:, at], synopsis.weights)
    )


def written_nodes(synopsis: "Synopsis", *, whole: Collection[int]) -> FloatArray:
    """Return the places of all nodes in own units as people write them, shape (nodes, D).

    Args:
        synopsis: Whose nodes; shares of categories stay as they are.
        whole: Features that are whole numbers; see `whole_features`.
    """
    features = _all_features(synopsis)
    values = to_own_units(features, synopsis.scaled_nodes)
    for at in _numbers(synopsis):
        own = np.ascontiguousarray(values[:, at])
        values[:, at] = as_written(features[at], own, whole=at in whole)
    return values


def _all_features(synopsis: "Synopsis") -> tuple[Feature, ...]:
    return tuple(feature for group in synopsis.features for feature in group)


def _numbers(synopsis: "Synopsis") -> list[int]:
    """Return the features that are no categories, by position."""
    levels = {at for own in synopsis.level_features for at in range(own.start, own.stop)}
    return [at for at in range(len(_all_features(synopsis))) if at not in levels]


def is_whole(feature: Feature, values: FloatArray, weights: FloatArray) -> bool:
    """Whether published values of a column, shape (n,), are whole numbers as far as they tell."""
    step = _step(feature)
    total = float(weights.sum())
    if max(abs(feature.low), abs(feature.high)) > _LARGEST_WHOLE:
        return False
    if step > _WIDEST_STEP or math.ceil(feature.low) > math.floor(feature.high) or total <= 0:
        return False
    inside = _within(values, np.rint(values), step)
    # Values that nobody chose, as all at one bound, are no sign.
    several = len(np.unique(np.rint(values[inside & (weights > 0)]))) > 1
    return several and float(weights[inside].sum()) >= _NEARLY_ALL * total


def as_written(feature: Feature, values: FloatArray, *, whole: bool) -> FloatArray:
    """Return values of a column of numbers as somebody may have written them, shape (n,).

    Args:
        feature: The column.
        values: In its own units, within its bounds.
        whole: Whether all of them are whole numbers; see `is_whole`.
    """
    if whole:
        return np.clip(np.rint(values), math.ceil(feature.low), math.floor(feature.high))
    step = _step(feature)
    found = values.copy()
    if not 1e-100 < step < 1e100:  # nobody writes round numbers at the ends of what a float can be
        return found
    open_ = np.ones(len(values), dtype=bool)
    first = math.floor(math.log10(feature.high - feature.low)) if step else 0
    for power in range(first, math.ceil(math.log10(_ROUNDER * step)) - 1, -1):
        # Divided by a whole number where that is possible: 0.3 is nearer to 3 / 10 than 3 * 0.1.
        unit = 10.0 ** abs(power)
        times = np.rint(values / unit if power > 0 else values * unit)
        nearest = times * unit if power > 0 else times / unit
        taken = open_ & _within(values, nearest, step)
        taken &= (nearest >= feature.low) & (nearest <= feature.high)
        found[taken] = nearest[taken]
        open_ &= ~taken
    return found + 0.0  # no minus zero


def _step(feature: Feature) -> float:
    """Return how far neighbours on the grid are apart, in own units."""
    return feature.high / (2 * feature.bound) - feature.low / (2 * feature.bound)


def _within(values: FloatArray, nearest: FloatArray, step: float) -> npt.NDArray[np.bool_]:
    """Whether values stand for these numbers: half a step away, and a little for rounding."""
    return np.asarray(np.abs(values - nearest) <= 0.501 * step)
