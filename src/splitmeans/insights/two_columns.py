"""Which columns of different parties go together? From published values alone, at no cost.

No party could say so from its own table. The pairs that depend most on each other are found in two
steps, so that a study of many columns takes no longer: correlations name a few, and their cross
tables, whose intervals take time, decide. Dependence is Cramer's V with what noise adds to it taken
off: noise makes every table uneven, and one of many cells most.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.synopsis.column_places import ColumnPlace, column_places, find_column
from splitmeans.synopsis.queries.answers import CrossTable
from splitmeans.synopsis.queries.tables import Values
from splitmeans.synopsis.replicates.replicates import NORMAL_95
from splitmeans.synopsis.synopsis import Synopsis

# As many tables are shown, of as many that correlations name: each takes a fifth of a second.
_SHOWN, _TRIED = 3, 5
# Low, middle and high: cells of finer tables are hardly known.
_BINS = 3
# A column of more categories makes no table that people read.
MOST_LEVELS = 12
# So many pseudo-users are enough to see which columns are worth a table.
_NODES = 4000
_FLAT = 1e-12


@dataclass(frozen=True, kw_only=True)
class PairCell:
    """One cell of a cross table.

    Attributes:
        users: Estimated users.
        low: Lower end of the 95 % interval.
        high: Upper end.
        independent: Users that would be here if the columns had nothing to do with each other.
    """

    users: float
    low: float
    high: float
    independent: float

    @property
    def told(self) -> bool:
        """Whether the interval leaves out what independent columns would have."""
        return not self.low <= self.independent <= self.high


@dataclass(frozen=True, kw_only=True)
class PairTable:
    """The cross table of two columns of different parties.

    Attributes:
        columns: Their names, "party: column".
        bins: The names of bins or categories of each.
        cells: The cells by bin of the first column, then of the second.
        total: All users.
        dependence: Cramer's V with what noise adds to it taken off: 0 is none, 1 complete.
    """

    columns: tuple[str, str]
    bins: tuple[tuple[str, ...], tuple[str, ...]]
    cells: tuple[tuple[PairCell, ...], ...]
    total: float
    dependence: float


@dataclass(frozen=True, kw_only=True)
class TwoColumns:
    """The pairs that depend most on each other.

    Attributes:
        tables: Their tables, the strongest first.
        withheld: Why there is none; empty if there is one.
        left_out: How many columns have too many categories for a table.
    """

    tables: tuple[PairTable, ...]
    withheld: str
    left_out: int


def two_columns(synopsis: Synopsis) -> TwoColumns | None:
    """Return the cross-party pairs that depend most on each other; None with one party alone."""
    if len(synopsis.party_names) < 2 or synopsis.total <= 0:
        return None
    places = column_places(synopsis)
    kept = [place for place in places if len(place.levels) <= MOST_LEVELS]
    left_out = len(places) - len(kept)
    if synopsis.replicates is None:
        why = (
            "How far cells of two columns may be off is not known for this run, and without "
            "intervals such a table would mislead."
        )
        return TwoColumns(tables=(), withheld=why, left_out=left_out)
    likely = itertools.islice(_likely(synopsis, kept), _TRIED)
    tables = []
    for names in likely:
        found = synopsis.table(*names, bins=_BINS)
        tables.append(pair_table(found, noise=_excess_noise(synopsis, found)))
    best = sorted((one for one in tables if one.dependence > 0), key=lambda one: -one.dependence)
    why = "" if best else "No two columns go together by more than noise would make it seem."
    return TwoColumns(tables=tuple(best[:_SHOWN]), withheld=why, left_out=left_out)


def pair_table(found: CrossTable, *, noise: FloatArray | None = None) -> PairTable:
    """Return a cross table of two columns, which has intervals, beside what independence says.

    `noise` is the variance of how far each cell is from independence, by default that of the cell.
    """
    assert found.low is not None
    assert found.high is not None
    total = float(found.users.sum())
    independent = _independent(found.users)
    if noise is None:
        # Upper ends are not cut off, so they tell the deviation; lower ends stop at zero.
        noise = np.square((found.high - found.users) / NORMAL_95)
    first, second = found.columns
    cells = tuple(
        tuple(
            PairCell(
                users=float(found.users[at, to]),
                low=float(found.low[at, to]),
                high=float(found.high[at, to]),
                independent=float(independent[at, to]),
            )
            for to in range(found.users.shape[1])
        )
        for at in range(found.users.shape[0])
    )
    return PairTable(
        columns=(first, second),
        bins=(found.bins[0], found.bins[1]),
        cells=cells,
        total=total,
        dependence=_dependence(found.users, noise, independent),
    )


def _independent(users: FloatArray) -> FloatArray:
    """Return the users of cells if columns had nothing to do with each other."""
    total = max(float(users.sum()), _FLAT)
    return np.asarray(np.outer(users.sum(axis=1), users.sum(axis=0)) / total)


def _excess_noise(synopsis: Synopsis, found: CrossTable) -> FloatArray:
    """Return the variance of how far cells are from independence.

    Where a bound between two bins is uncertain, cells move with the sums of their rows and columns:
    that makes cells uncertain, and not whether the columns go together.
    """
    replicates = synopsis.replicates
    assert replicates is not None
    places = [find_column(column_places(synopsis), name) for name in found.columns]

    def parts(values: Values, at: int) -> FloatArray:
        own = values(places[at].name)
        if places[at].levels:
            shares = np.maximum(own, 0.0)
            return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), _FLAT))
        bins = np.searchsorted(np.array(found.edges[at]), own, side="left")
        return np.asarray(bins[:, np.newaxis] == np.arange(len(found.bins[at])), dtype=np.float64)

    def excess(values: Values, weights: FloatArray) -> FloatArray:
        users = (parts(values, 0) * weights[:, np.newaxis]).T @ parts(values, 1)
        return np.asarray(users - _independent(users))

    errors = replicates.errors(excess, columns=found.columns)
    return np.asarray(np.mean(np.square(errors), axis=0))


def _dependence(users: FloatArray, noise: FloatArray, independent: FloatArray) -> float:
    """Return Cramer's V without the part that errors explain, given as variances."""
    narrow = min(users.shape) - 1
    used = independent > _FLAT
    if narrow < 1 or not used.any():
        return 0.0
    excess = np.square(users - independent) - noise
    chi_squared = float((excess[used] / independent[used]).sum())
    return math.sqrt(min(max(chi_squared, 0.0) / (float(users.sum()) * narrow), 1.0))


def _likely(synopsis: Synopsis, places: Sequence[ColumnPlace]) -> Iterator[tuple[str, str]]:
    """Yield pairs of columns of different parties, the most correlated first.

    A column of categories stands there with the category that correlates most.
    """
    drawn = draw_evenly(synopsis.weights, _NODES, rng=np.random.default_rng(0))
    nodes = synopsis.scaled_nodes[drawn]
    centred = nodes - nodes.mean(axis=0)
    deviations = np.sqrt(np.mean(np.square(centred), axis=0))
    flat = deviations < _FLAT
    scaled = np.where(flat, 0.0, centred / np.where(flat, 1.0, deviations))
    strength = np.abs(scaled.T @ scaled) / len(scaled)
    pairs = [
        (float(strength[one.features, other.features].max()), one.name, other.name)
        for one, other in itertools.combinations(places, 2)
        if one.party != other.party
    ]
    pairs.sort(key=lambda pair: -pair[0])
    yield from ((one, other) for found, one, other in pairs if found > _FLAT)
