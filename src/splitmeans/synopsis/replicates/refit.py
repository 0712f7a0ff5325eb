"""The grid of maximum entropy with given pair tables, for grids that are small enough to list.

Replicates repeat an estimate many times, of tables drawn anew: cells within the noise are cut, then
proportional fitting finds the weights of all cells that agree with every table and assume nothing
further.
"""

import itertools
import math

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.synopsis.decode.cleaned import agree, cut_noise, none_negative
from splitmeans.synopsis.decode.counted import PairTables

# Cut tables need not agree exactly, so the fit may never settle; from eight rounds on, more of
# them change sizes by less than the noise does.
_ROUNDS = 10
_TOLERANCE = 1e-4
# A grid cell with less than this share of an average one is dropped.
_NEGLIGIBLE = 1e-3
# Cuts of different tables may contradict each other; with this share of an average cell in every
# cell there is always a grid. Margins can still become too small to divide by.
_FLOOR = 1e-6
_GONE = 1e-200


def refitted_grid(
    tables: PairTables, shape: tuple[int, ...], *, deviation: float | None = None
) -> FloatArray:
    """Return the weights of all cells, none negative.

    Args:
        tables: Users in each cell of each pair of parties i < j.
        shape: Labels of each party.
        deviation: Standard deviation of the noise of a cell; None if there is none to cut.
    """
    agreed = agree(tables, same_labels=True)
    clean = cut_noise(agreed, deviation=deviation) if deviation else none_negative(agreed)
    if len(shape) == 2:
        return clean[0, 1]
    total = float(clean[0, 1].sum())
    if total == 0:
        return np.zeros(shape)
    clean = {pair: np.maximum(own, _FLOOR * total / own.size) for pair, own in clean.items()}
    weights = np.full(shape, total / math.prod(shape))
    for _ in range(_ROUNDS):
        worst = 0.0
        for pair in itertools.combinations(range(len(shape)), 2):
            others = tuple(axis for axis in range(len(shape)) if axis not in pair)
            margin = weights.sum(axis=others)
            worst = max(worst, float(np.abs(margin - clean[pair]).sum()))
            # Where the margin is gone there is nothing left to scale.
            ratio = np.divide(clean[pair], margin, out=np.zeros_like(margin), where=margin > _GONE)
            weights *= np.expand_dims(ratio, others)
        if worst < _TOLERANCE * total:
            break
    weights[weights < _NEGLIGIBLE * total / weights.size] = 0.0
    return np.asarray(weights * (total / weights.sum()))
