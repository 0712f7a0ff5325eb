"""What can be asked of a synopsis: counts, shares, means, tables and correlations.

Every figure comes from the weighted nodes, and its interval from the replicates. Both are made from
published values: post-processing, so questions cost no privacy, however many there are.
"""

import functools
import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.figures import digits
from splitmeans.synopsis.column_places import ColumnPlace, column_places, find_column
from splitmeans.synopsis.queries.answers import Answer, Correlation, CrossTable
from splitmeans.synopsis.queries.conditions import Condition, Values, both, read_condition
from splitmeans.synopsis.replicates.replicates import Statistic, half_width
from splitmeans.synopsis.synopsis import Synopsis

Bins: TypeAlias = "int | Sequence[float] | Mapping[str, int | Sequence[float]] | None"

DEFAULT_BINS = 4
_MOST_BINS = 100
# More columns than this have no intervals of correlations: their draws would take minutes.
MOST_CORRELATED = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A synopsis to ask, and which of its users are meant.

    Attributes:
        synopsis: All users.
        condition: Which of them; None for all.
    """

    synopsis: Synopsis
    condition: Condition | None = None

    @functools.cached_property
    def places(self) -> tuple[ColumnPlace, ...]:
        """The columns."""
        return column_places(self.synopsis)

    def where(self, text: str | None) -> "Asked":
        """Return the same for those who fit one more condition."""
        if text is None:
            return self
        more = read_condition(text, self.places)
        return Asked(synopsis=self.synopsis, condition=both(self.condition, more))

    @property
    def weights(self) -> FloatArray:
        """Published weights of the nodes, as far as they are meant."""
        return self._chosen(self._published, self.synopsis.weights)

    def count(self) -> Answer:
        """Return how many users there are."""
        return self._answer(lambda values, weights: self._chosen(values, weights).sum(), least=0.0)

    def share(self) -> Answer:
        """Return which share of all users of the synopsis they are."""

        def share(values: Values, weights: FloatArray) -> float:
            return _ratio(float(self._chosen(values, weights).sum()), float(weights.sum()))

        return self._answer(share, least=0.0, most=1.0)

    def share_of(self, text: str) -> Answer:
        """Return which share of them fits one more condition."""
        more = read_condition(text, self.places)

        def share(values: Values, weights: FloatArray) -> float:
            chosen = self._chosen(values, weights)
            return _ratio(float(chosen @ more.fits(values)), float(chosen.sum()))

        return self._answer(share, columns=more.columns, least=0.0, most=1.0)

    def mean(self, column: str) -> Answer:
        """Return the mean of a column of numbers."""
        place = self._number(column)

        def mean(values: Values, weights: FloatArray) -> float:
            within = _means(_in_widths(place, values), self._chosen(values, weights))
            return float(place.low + (place.high - place.low) * np.clip(within, 0.0, 1.0))

        return self._answer(mean, columns=(place.name,), least=place.low, most=place.high)

    def table(self, *columns: str, bins: Bins = None) -> CrossTable:
        """Return the users by one or two columns."""
        if not 1 <= len(columns) <= 2:
            raise ParameterError(f"a table has one column or two, got {len(columns)}")
        axes = [self._axis(find_column(self.places, name), bins) for name in columns]
        names = tuple(axis.place.name for axis in axes)
        if len(set(names)) < len(names):
            raise ParameterError(f"a table needs two different columns, got {names[0]!r} twice")
        shape = tuple(len(axis.names) for axis in axes)

        def table(values: Values, weights: FloatArray) -> FloatArray:
            chosen = self._chosen(values, weights)
            parts = [axis.shares(values) for axis in axes]
            if len(parts) == 1:
                return np.asarray(chosen @ parts[0])
            return np.asarray((parts[0] * chosen[:, np.newaxis]).T @ parts[1])

        users, low, high = self._figures(table, columns=names, least=0.0)
        return CrossTable(
            columns=names,
            bins=tuple(axis.names for axis in axes),
            edges=tuple(axis.edges for axis in axes),
            users=users.reshape(shape),
            low=low,
            high=high,
        )

    def correlation(self, *columns: str) -> Correlation:
        """Return the correlations of columns of numbers, all of them if none is named."""
        places = [self._number(name) for name in columns] or [
            place for place in self.places if not place.levels
        ]
        places = list(dict.fromkeys(places))
        names = tuple(place.name for place in places)
        if len(names) < 2:
            raise ParameterError("correlations need two columns of numbers or more")
        known = len(names) <= MOST_CORRELATED

        def correlation(values: Values, weights: FloatArray) -> FloatArray:
            return _correlation(
                np.stack([_in_widths(place, values) for place in places], axis=1),
                self._chosen(values, weights),
            )

        found, low, high = self._figures(
            correlation, columns=names, least=-1.0, most=1.0, with_interval=known
        )
        return Correlation(columns=names, values=found, low=low, high=high)

    def _axis(self, place: ColumnPlace, bins: Bins) -> "_Axis":
        if place.levels:
            return _Axis(place=place, names=place.levels, edges=())
        wanted: int | Sequence[float] = DEFAULT_BINS
        if isinstance(bins, Mapping):
            named = {find_column(self.places, name).name: own for name, own in bins.items()}
            wanted = named.get(place.name, DEFAULT_BINS)
        elif bins is not None:
            wanted = bins
        edges = self._edges(place, wanted)
        return _Axis(place=place, names=_bin_names(edges), edges=edges)

    def _edges(self, place: ColumnPlace, wanted: int | Sequence[float]) -> tuple[float, ...]:
        """Return the edges between bins: those given, or such that bins have equally many users."""
        if isinstance(wanted, int):
            if not 1 <= wanted <= _MOST_BINS:
                raise ParameterError(f"bins must be from 1 to {_MOST_BINS}, got {wanted}")
            values = self._published(place.name)
            found = _quantiles(values, self.weights, np.arange(1, wanted) / wanted)
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

    def _number(self, column: str) -> ColumnPlace:
        place = find_column(self.places, column)
        if place.levels:
            raise ParameterError(
                f"{place.name!r} has categories, not numbers; ask for a table, or for the share of "
                f"{place.name} = {place.levels[0]!r}"
            )
        return place

    def _chosen(self, values: Values, weights: FloatArray) -> FloatArray:
        """Return the weights of those who are meant."""
        return weights if self.condition is None else weights * self.condition.fits(values)

    @functools.cached_property
    def _published(self) -> Values:
        """The published values of columns by name."""
        places, nodes = self.places, self.synopsis.nodes

        def values(column: str) -> FloatArray:
            place = find_column(places, column)
            return nodes[:, place.features] if place.levels else nodes[:, place.feature]

        return values

    def _answer(
        self,
        statistic: Statistic,
        *,
        columns: Sequence[str] = (),
        least: float = -math.inf,
        most: float = math.inf,
    ) -> Answer:
        found, low, high = self._figures(statistic, columns=columns, least=least, most=most)
        if low is None or high is None or not np.isfinite(low):
            return Answer(value=float(found))
        return Answer(value=float(found), low=float(low), high=float(high))

    def _figures(
        self,
        statistic: Statistic,
        *,
        columns: Sequence[str] = (),
        least: float = -math.inf,
        most: float = math.inf,
        with_interval: bool = True,
    ) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
        """Return figures and the ends of their intervals, which are none where nothing is known."""
        asked = (*columns, *(self.condition.columns if self.condition else ()))
        figure = np.asarray(statistic(self._published, self.synopsis.weights), dtype=np.float64)
        replicates = self.synopsis.replicates if with_interval else None
        if replicates is None:
            return figure, None, None
        # Columns may reach to the largest floats; what passes them is cut off.
        with np.errstate(over="ignore"):
            half = half_width(replicates.errors(statistic, columns=tuple(dict.fromkeys(asked))))
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


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


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
