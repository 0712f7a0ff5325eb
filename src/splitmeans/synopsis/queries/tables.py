"""Tables and correlations of the columns of a synopsis, with intervals from its replicates.

Every figure comes from the weighted nodes, and its interval from the replicates. Both are made from
published values: post-processing, so questions cost no privacy, however many there are.
"""

import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.figures import digits
from splitmeans.synopsis.column_places import ColumnPlace, column_places, find_column
from splitmeans.synopsis.queries.answers import Correlation, CrossTable
from splitmeans.synopsis.replicates.replicates import Statistic, half_width
from splitmeans.synopsis.synopsis import Synopsis

Bins: TypeAlias = "int | Sequence[float] | Mapping[str, int | Sequence[float]] | None"
# The values of a column by its name: one for each row, or the shares of its categories.
Values: TypeAlias = Callable[[str], FloatArray]

DEFAULT_BINS = 4
_MOST_BINS = 100
# More columns than this have no intervals of correlations: their draws would take minutes.
MOST_CORRELATED = 12


def cross_table(synopsis: Synopsis, columns: Sequence[str], *, bins: Bins = None) -> CrossTable:
    """Return the users by one or two columns; see `Synopsis.table`."""
    if not 1 <= len(columns) <= 2:
        raise ParameterError(f"a table has one column or two, got {len(columns)}")
    places = column_places(synopsis)
    axes = [_axis(synopsis, find_column(places, name), bins) for name in columns]
    names = tuple(axis.place.name for axis in axes)
    if len(set(names)) < len(names):
        raise ParameterError(f"a table needs two different columns, got {names[0]!r} twice")

    def table(values: Values, weights: FloatArray) -> FloatArray:
        parts = [axis.shares(values) for axis in axes]
        if len(parts) == 1:
            return np.asarray(weights @ parts[0])
        return np.asarray((parts[0] * weights[:, np.newaxis]).T @ parts[1])

    users, low, high = _figures(synopsis, table, columns=names, least=0.0)
    return CrossTable(
        columns=names,
        bins=tuple(axis.names for axis in axes),
        edges=tuple(axis.edges for axis in axes),
        users=users.reshape(tuple(len(axis.names) for axis in axes)),
        low=low,
        high=high,
    )


def correlations(synopsis: Synopsis, columns: Sequence[str]) -> Correlation:
    """Return the correlations of columns of numbers, all of them if none is named."""
    all_places = column_places(synopsis)
    places = [_number(find_column(all_places, name)) for name in columns] or [
        place for place in all_places if not place.levels
    ]
    places = list(dict.fromkeys(places))
    names = tuple(place.name for place in places)
    if len(names) < 2:
        raise ParameterError("correlations need two columns of numbers or more")

    def correlation(values: Values, weights: FloatArray) -> FloatArray:
        return _correlation(
            np.stack([_in_widths(place, values) for place in places], axis=1), weights
        )

    known = len(names) <= MOST_CORRELATED
    found, low, high = _figures(
        synopsis, correlation, columns=names, least=-1.0, most=1.0, with_interval=known
    )
    return Correlation(columns=names, values=found, low=low, high=high)


def _axis(synopsis: Synopsis, place: ColumnPlace, bins: Bins) -> "_Axis":
    if place.levels:
        return _Axis(place=place, names=place.levels, edges=())
    wanted: int | Sequence[float] = DEFAULT_BINS
    if isinstance(bins, Mapping):
        places = column_places(synopsis)
        named = {find_column(places, name).name: own for name, own in bins.items()}
        wanted = named.get(place.name, DEFAULT_BINS)
    elif bins is not None:
        wanted = bins
    edges = _edges(synopsis, place, wanted)
    return _Axis(place=place, names=_bin_names(edges), edges=edges)


def _edges(
    synopsis: Synopsis, place: ColumnPlace, wanted: int | Sequence[float]
) -> tuple[float, ...]:
    """Return the edges between bins: those given, or such that bins have equally many users."""
    if isinstance(wanted, int):
        if not 1 <= wanted <= _MOST_BINS:
            raise ParameterError(f"bins must be from 1 to {_MOST_BINS}, got {wanted}")
        values = synopsis.nodes[:, place.feature]
        found = _quantiles(values, synopsis.weights, np.arange(1, wanted) / wanted)
        edges = sorted({_rounded(float(value), place) for value in found})
        return tuple(edge for edge in edges if place.low < edge < place.high)
    edges = [float(edge) for edge in wanted]
    rising = all(first < second for first, second in itertools.pairwise(edges))
    if not edges or len(edges) >= _MOST_BINS or not rising or not np.isfinite(edges).all():
        raise ParameterError(
            f"bins of {place.name!r} must be their number, or rising edges between them, "
            f"got {wanted!r}"
        )
    return tuple(edges)


def _number(place: ColumnPlace) -> ColumnPlace:
    if place.levels:
        raise ParameterError(f"{place.name!r} has categories, not numbers; ask for a table")
    return place


def _published(synopsis: Synopsis) -> Values:
    """Return the published values of columns by name."""
    places, nodes = column_places(synopsis), synopsis.nodes

    def values(column: str) -> FloatArray:
        place = find_column(places, column)
        return nodes[:, place.features] if place.levels else nodes[:, place.feature]

    return values


def _figures(
    synopsis: Synopsis,
    statistic: Statistic,
    *,
    columns: Sequence[str],
    least: float,
    most: float = math.inf,
    with_interval: bool = True,
) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
    """Return figures and the ends of their intervals, which are none where nothing is known."""
    figure = np.asarray(statistic(_published(synopsis), synopsis.weights), dtype=np.float64)
    replicates = synopsis.replicates if with_interval else None
    if replicates is None:
        return figure, None, None
    # Columns may reach to the largest floats; what passes them is cut off.
    with np.errstate(over="ignore"):
        half = half_width(replicates.errors(statistic, columns=tuple(columns)))
        return figure, np.clip(figure - half, least, most), np.clip(figure + half, least, most)


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """One side of a table."""

    place: ColumnPlace
    names: tuple[str, ...]
    edges: tuple[float, ...]

    def shares(self, values: Values) -> FloatArray:
        """Return how far every row is in every bin, shape (rows, bins)."""
        own = values(self.place.name)
        if self.place.levels:
            shares = np.maximum(own, 0.0)
            return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12))
        # A bin holds its upper edge, as "up to 3" says.
        bins = np.searchsorted(np.array(self.edges), own, side="left")
        return np.asarray(bins[:, np.newaxis] == np.arange(len(self.names)), dtype=np.float64)


def _bin_names(edges: Sequence[float]) -> tuple[str, ...]:
    if not edges:
        return ("all",)
    shown = [digits(edge, 6) for edge in edges]
    inner = [f"{low} to {high}" for low, high in itertools.pairwise(shown)]
    return (f"up to {shown[0]}", *inner, f"above {shown[-1]}")


def _quantiles(values: FloatArray, weights: FloatArray, shares: FloatArray) -> FloatArray:
    order: IntArray = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    if below[-1] <= 0:
        return np.zeros(0)
    at = np.searchsorted(below, shares * below[-1])
    return np.asarray(values[order][np.minimum(at, len(order) - 1)])


def _rounded(value: float, place: ColumnPlace) -> float:
    """Return a value to a thousandth of its column's range: more digits would be noise."""
    finest = place.high / 1000 - place.low / 1000
    if finest < sys.float_info.min:
        return value  # such small numbers have no digits to spare
    step = 10 ** math.floor(math.log10(finest))
    return float(digits(round(value / step) * step, 12))


def _in_widths(place: ColumnPlace, values: Values) -> FloatArray:
    """Return the values of a number from 0, its lower bound, to 1, its upper one.

    Units are of no matter then: bounds may be at the ends of what a float can be, and weights of
    replicates may be below zero, which puts means outside of what they are means of.
    """
    return np.asarray((values(place.name) - place.low) / (place.high - place.low))


def _means(values: FloatArray, weights: FloatArray) -> FloatArray:
    if _is_nobody(weights):
        return np.full(values.shape[1:], math.nan)
    return np.asarray(weights @ values / weights.sum())


def _is_nobody(weights: FloatArray) -> bool:
    """Whether weights, some of them below zero, add up to nothing but rounding errors."""
    return bool(weights.sum() <= 1e-9 * np.abs(weights).sum())


def _correlation(values: FloatArray, weights: FloatArray) -> FloatArray:
    if _is_nobody(weights):
        return np.full((values.shape[1],) * 2, math.nan)
    centred = values - _means(values, weights)
    products = (centred * weights[:, np.newaxis]).T @ centred / weights.sum()
    deviations = np.sqrt(np.maximum(np.diag(products), 0.0))
    scale = np.outer(deviations, deviations)
    unknown = np.full_like(products, math.nan)
    return np.asarray(np.divide(products, scale, out=unknown, where=scale > 1e-12))
