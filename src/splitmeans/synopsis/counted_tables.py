"""Tables of two columns of different parties, and what of them is more than noise.

A count is believed beside a model, as far as all counts of a table are off by more than their noise
(empirical Bayes). There are two models: how persons are put together already, by clusters; and, for
two columns of numbers, that they rise or fall together as two normal variables do, whatever their
shapes are (a Gaussian copula). The one that the counts speak for more is taken. Columns that nearly
say the same need the second: a few dozen clusters cannot follow them. Made from released values.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.shrinkage import shrinkage

# Correlations that are tried, up to 0.997 and closer together where tables differ more.
_CORRELATIONS = tuple(math.tanh(place / 10) for place in range(-32, 33))
# The copula was fitted to the counts, so it must be this much more likely, in logarithms.
_AHEAD = 3.0
# Places within a row at which a copula is looked up.
_PLACES = 8
_RAKING = 20
_OUTERMOST = 9.0


class CountedTable(NamedTuple):
    """Two columns of different parties, counted together.

    Attributes:
        columns: Which two of all columns.
        users: Users in each cell, with noise, shape (labels of the one, labels of the other).
        deviation: Standard deviation of the noise; 0 for what is to stay as it is.
        in_order: Whether labels of both columns have an order, as bins of numbers have.
    """

    columns: tuple[int, int]
    users: FloatArray
    deviation: float
    in_order: bool = False


class Believed(NamedTuple):
    """What a table of persons should be.

    Attributes:
        cells: Persons in each cell.
        correlation: Of the copula, if it was the better model; 0 otherwise.
    """

    cells: FloatArray
    correlation: float = 0.0


def believed(found: FloatArray, table: CountedTable) -> Believed:
    """Return what a table of persons should be: with the sums over rows and columns that it has.

    Args:
        found: Persons in each cell, at least as many labels as the table has.
        table: What was counted.
    """
    counted = table.users
    if not table.deviation or counted.sum() <= 0:
        return Believed(found)
    rows, columns = counted.shape
    # As many persons as there are, in labels that they can have.
    seen = found[:rows, :columns]
    scale = float(found.sum() / counted.sum())
    noisy, deviation = counted * scale, table.deviation * scale
    wanted, likely = _shrunk(seen, noisy, deviation=deviation)
    correlation = 0.0
    if table.in_order:
        best, model = _best_copula(seen, noisy)
        other, more_likely = _shrunk(model, noisy, deviation=deviation)
        if more_likely > likely + _AHEAD:
            wanted, correlation = other, best
    result = found.copy()
    result[:rows, :columns] = _with_sums(wanted, seen)
    return Believed(result, correlation)


def finer(wanted: Believed, found: FloatArray) -> FloatArray:
    """Return what a table of narrower labels should be, so many for each label of the first.

    Nobody has counted it. Within a cell the copula says which parts of two labels go together.

    Args:
        wanted: What the table of wide labels should be, with a correlation.
        found: Persons in each cell of narrow labels.
    """
    parts = (found.shape[0] // wanted.cells.shape[0], found.shape[1] // wanted.cells.shape[1])
    rows, columns = found.sum(axis=1), found.sum(axis=0)
    model = _copula(rows, columns, wanted.correlation)
    wide = model.reshape(len(wanted.cells), parts[0], -1, parts[1]).sum(axis=(1, 3))
    factors = _ratios(wanted.cells, wide)
    return _with_sums(model * np.kron(factors, np.ones(parts)), found)


def _shrunk(model: FloatArray, noisy: FloatArray, *, deviation: float) -> tuple[FloatArray, float]:
    """Return a table between a model and the counts, and how likely the counts are with it."""
    off = noisy - model
    # Exchanges leave sums over rows and columns alone, so what is off there is no aim.
    off = off - off.mean(axis=1, keepdims=True) - off.mean(axis=0, keepdims=True) + off.mean()
    weight = shrinkage(off, deviation, sizes=np.maximum(model, 1.0), beyond_chance=True)
    # The weight is v / (v + deviation^2), v the variance by which the model is off.
    variance = deviation**2 / np.maximum(1 - weight, 1e-9)
    likely = -0.5 * float(np.sum(np.square(off) / variance + np.log(variance)))
    return np.maximum(model + weight * off, 0.0), likely


def _best_copula(seen: FloatArray, noisy: FloatArray) -> tuple[float, FloatArray]:
    """Return the copula with the sums that were seen which is nearest to the counts."""
    sums = seen.sum(axis=1), seen.sum(axis=0)
    models = [(correlation, _copula(*sums, correlation)) for correlation in _CORRELATIONS]
    return min(models, key=lambda model: float(np.square(noisy - model[1]).sum()))


def _copula(rows: FloatArray, columns: FloatArray, correlation: float) -> FloatArray:
    """Return the table with these sums over columns and rows whose ranks go together so."""
    total = max(float(rows.sum()), 1e-9)
    ends = _scores(np.concatenate([[0.0], np.cumsum(columns) / total]))
    ends[0], ends[-1] = -_OUTERMOST, _OUTERMOST
    below = (np.cumsum(rows) - rows)[:, np.newaxis] / total
    within = (np.arange(_PLACES) + 0.5) / _PLACES * rows[:, np.newaxis] / total
    scores = correlation * _scores(below + within)
    spread = math.sqrt(1 - correlation**2)
    shares = _shares((ends - scores[:, :, np.newaxis]) / spread)
    return np.asarray(np.diff(shares, axis=2).mean(axis=1) * rows[:, np.newaxis])


def _with_sums(table: FloatArray, seen: FloatArray) -> FloatArray:
    """Return the table scaled to the sums over rows and columns of another (proportional fit)."""
    rows, columns = seen.sum(axis=1), seen.sum(axis=0)
    # A trace of what was seen: a row that noise has emptied can still be scaled.
    table = table + 1e-6 * seen
    for _ in range(_RAKING):
        table = table * _ratios(rows, table.sum(axis=1))[:, np.newaxis]
        table = table * _ratios(columns, table.sum(axis=0))
    return table


def _ratios(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0)


@cache
def _normal() -> tuple[FloatArray, FloatArray]:
    """Return scores and the shares of a standard normal variable below them."""
    scores = np.linspace(-_OUTERMOST, _OUTERMOST, 4001)
    return scores, np.array([math.erfc(-score / math.sqrt(2)) / 2 for score in scores])


def _shares(scores: FloatArray) -> FloatArray:
    return np.interp(scores, *_normal())


def _scores(shares: FloatArray) -> FloatArray:
    scores, below = _normal()
    return np.interp(shares, below, scores)
