"""What a party counts of its rows to learn bounds of its columns (`plan.bounds_stage`).

Everything here sees raw rows, as they were read; what it returns is post-processing of noisy
counts.
"""

from functools import partial

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.halves import from_halves
from splitmeans.local.law import COUNT_UNITS, gaussian_counts
from splitmeans.party.range_search import (
    LEAST_POWER,
    POWERS,
    Bins,
    RangeSearch,
)
from splitmeans.plan.bounds_stage import BoundsLaw, LearnedBounds, PrivateColumn
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.raw_layout import HALVES
from splitmeans.table.walk.interface import RawRows

_RoundBins = tuple[Bins, ...]


def learn_bounds(law: BoundsLaw, rows: RawRows, *, noise: NoiseSource) -> tuple[LearnedBounds, ...]:
    """Return bounds of a party's private columns.

    Guarantee: the event of the law: one release for each of its scales, of counts in which a row
    is at most once for each column.
    """
    searches = [RangeSearch(low=column.low, high=column.high) for column in law.columns]
    for scale in law.scales:
        bins = tuple(search.bins for search in searches)
        noisy_counts = count_round(law.columns, rows, bins, scale=scale, noise=noise)
        searches = [
            search.after(own[: search.bins.length], deviation=scale / COUNT_UNITS)
            for search, own in zip(searches, noisy_counts, strict=True)
        ]
    return tuple(search.found for search in searches)


def count_round(
    columns: tuple[PrivateColumn, ...],
    rows: RawRows,
    bins: _RoundBins,
    *,
    scale: int,
    noise: NoiseSource,
) -> FloatArray:
    """Return the noisy counts of one round, shape (columns, most bins of a column)."""
    raw_counts = rows.total(partial(count_values, columns=columns, bins=bins))
    return gaussian_counts(raw_counts, scale=scale, noise=noise)


def count_values(
    raw_rows: IntArray, *, columns: tuple[PrivateColumn, ...], bins: _RoundBins
) -> IntArray:
    """Count values in the bins of each column, shape (columns, most bins of a column).

    A row is in one bin of each column, and in none where its value is missing or set apart.
    """
    most = max(own.length for own in bins)
    counts = np.zeros((len(columns), most), dtype=np.int64)
    for at, (column, own) in enumerate(zip(columns, bins, strict=True)):
        values = from_halves(raw_rows[:, column.place : column.place + HALVES])
        values = values[~np.isnan(values)]
        # Within the limits of the study first: no bound lies beyond.
        values = np.clip(values, column.low, column.high)
        if own.apart is not None:
            values = values[(values < own.apart[0]) | (values > own.apart[1])]
        found = scale_bins(values) if own.of_scale else _equal_bins(values, own)
        counts[at] = np.bincount(found, minlength=most)
    return counts


def scale_bins(values: FloatArray) -> IntArray:
    """Return the bin of scale of each value: its power of two, by sign, zero in the middle."""
    _, exponents = np.frexp(values)
    # frexp has mantissas from 1/2 on: 2^p <= |x| < 2^(p+1) has the exponent p + 1.
    powers = np.clip(exponents.astype(np.int64) - 1 - LEAST_POWER, 0, POWERS - 1)
    tiny = np.abs(values) < 2.0**LEAST_POWER
    found = np.where(values > 0, POWERS + 1 + powers, POWERS - 1 - powers)
    return np.where(tiny, POWERS, found)


def _equal_bins(values: FloatArray, bins: Bins) -> IntArray:
    """Return the bin of each value among bins of equal width; outsiders are in the outermost."""
    inside = np.clip(values, bins.low, bins.high)
    share = (inside - bins.low) / (bins.high - bins.low)
    return np.minimum((share * bins.number).astype(np.int64), bins.number - 1)
