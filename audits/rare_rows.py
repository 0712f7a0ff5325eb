"""Fast trials of the published sketch under shared keys, from the exact law of its registers.

The event "some row has both registers equal and >= v0" concerns only rows with a large value, which
are few. Which rows have one is a Bernoulli process over all rows of all trials; it is drawn by its
gaps, and the values by inversion. Millions of trials of 4096 rows take seconds, and their law is
that of the registers up to the resolution of doubles.
"""

import math

import numpy as np

from audits.published_gap import SharedKeys, check_two_empty
from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray

# Rows that are looked at together, so that memory stays small.
_BATCH_ROWS = 2**31


def coincidence_trials(
    case: SharedKeys, *, least: int, trials: int, with_user: bool, rng: np.random.Generator
) -> FloatArray:
    """Return for each trial how many rows have both registers equal and >= `least`.

    Args:
        case: Two parties; `others` and `in_cell` must be zero.
        least: v0, above the floor.
        trials: Number of independent runs, each with fresh keys.
        with_user: Whether the user is in both clusters.
        rng: Where the draws come from.
    """
    check_two_empty(case)
    _validate.at_least(case.sketch.floor + 1, least=least)
    per_batch = max(1, _BATCH_ROWS // case.repetitions)
    parts = [
        _batch(
            case, least=least, trials=min(per_batch, trials - start), with_user=with_user, rng=rng
        )
        for start in range(0, trials, per_batch)
    ]
    return np.concatenate(parts).astype(np.float64)


def _batch(
    case: SharedKeys, *, least: int, trials: int, with_user: bool, rng: np.random.Generator
) -> IntArray:
    rows = trials * case.repetitions
    first, second = (_large(case, case.sketch.phantoms, least, rows, rng=rng) for _ in range(2))
    if with_user:
        # The user's value goes into both registers of its row.
        user = _large(case, 1, least, rows, rng=rng)
        first, second = _larger(first, user), _larger(second, user)
    _, at_first, at_second = np.intersect1d(
        first[0], second[0], assume_unique=True, return_indices=True
    )
    equal = first[1][at_first] == second[1][at_second]
    return np.bincount(first[0][at_first][equal] // case.repetitions, minlength=trials)


def _large(
    case: SharedKeys, count: int, least: int, rows: int, *, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return where the maximum of `count` hash values is >= `least`, ascending, and its values."""
    growth = math.log1p(case.gamma)
    # P(max >= least) = 1 - F(least - 1)^count.
    share = -math.expm1(count * math.log1p(-math.exp((1 - least) * growth)))
    expected = rows * share
    places: list[IntArray] = []
    reached = -1
    while reached < rows:
        gaps = rng.geometric(share, size=int(expected + 6 * math.sqrt(expected) + 10))
        places.append(reached + np.cumsum(gaps))
        reached = int(places[-1][-1])
    where = np.concatenate(places)
    where = where[where < rows]
    # Given max >= least, 1 - F(max)^count is uniform below `share`: invert it.
    above = share * rng.random(where.size)
    tail = -np.expm1(np.log1p(-above) / count)  # 1 - F at the value
    values = np.floor(-np.log(tail) / growth).astype(np.int64) + 1
    return where, np.maximum(values, least)


def _larger(
    one: tuple[IntArray, IntArray], other: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    """Return the union of two lists of places, with the larger value where both have one."""
    where = np.concatenate([one[0], other[0]])
    values = np.concatenate([one[1], other[1]])
    order = np.lexsort((-values, where))
    where, values = where[order], values[order]
    first = np.append(True, where[1:] != where[:-1]) if where.size else np.empty(0, dtype=bool)
    return where[first], values[first]
