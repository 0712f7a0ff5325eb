"""What the messages of all parties say: users by label for each pair of parties, and who is where.

A user has at each party one label: a local cluster of that party, or "absent", the last one. The
table of two parties counts users by both labels; those who are at neither of the two are not in it.
Three parties and more also count who is at which of them (a presence table), and that tells how
many users are at neither. Everything here is post-processing of released tables.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.membership.estimator import KnowsDeviation, WeightEstimator

PairTables: TypeAlias = dict[tuple[int, int], FloatArray]

# Cells above so many standard deviations of their noise are users. The others are, together, if
# their sum is: many small cells may hold a thin tail. Then they are where the sums of regions say.
CUT = 3.5
_REST, _REST_OF_REGION = 2.0, 1.0
# Fewer users at all parties than so many deviations of their number: no segments of them.
LEAST_DEVIATIONS = 10.0


@runtime_checkable
class KnowsPresence(KnowsDeviation, Protocol):
    """An estimator that knows who is at which parties."""

    def with_absent(self, pair: tuple[int, ...]) -> FloatArray:
        """Return the users in each cell of two parties, "absent" as the last label of each."""
        ...

    def presence(self) -> tuple[FloatArray, float]:
        """Return how many users are at which parties, shape (2, ..., 2), and its deviation.

        0 stands for present and 1 for absent; the last cell, absent everywhere, is zero.
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts:
    """Released counts, without bias.

    Attributes:
        tables: Users in each cell of each pair i < j, of shape (labels_i + 1, labels_j + 1);
            "absent" is the last label. Some cells may be negative.
        deviation: Standard deviation of the noise of a cell; None if it is not known.
        patterns: Ways to be at one or more parties, shape (R, S), 1 for present; all comes first.
        users: How many users are at just these parties, none negative, shape (R,).
        enough: Whether the number of users at all parties is more than noise.
    """

    tables: PairTables
    deviation: float | None
    patterns: IntArray
    users: FloatArray
    enough: bool

    @property
    def everywhere(self) -> float:
        """Users at all parties."""
        return float(self.users[0])

    @property
    def total(self) -> float:
        """Users at one party or more."""
        return float(self.users.sum())


def read_counts(estimator: WeightEstimator) -> Counts:
    """Return what an estimator knows; one that counts no presence has everybody everywhere."""
    n_parties = len(estimator.n_local_clusters)
    pairs = list(itertools.combinations(range(n_parties), 2))
    patterns = patterns_of(n_parties)
    if not isinstance(estimator, KnowsPresence):
        tables = {pair: np.pad(estimator.joint(pair), ((0, 1), (0, 1))) for pair in pairs}
        users = np.zeros(len(patterns))
        users[0] = max(float(np.mean([table.sum() for table in tables.values()])), 0.0)
        return Counts(
            tables=tables, deviation=None, patterns=patterns, users=users, enough=users[0] > 0
        )
    tables = {pair: np.array(estimator.with_absent(pair)) for pair in pairs}
    counts, deviation = estimator.presence()
    users = without_noise(counts.ravel()[:-1], deviation=deviation)
    for (first, second), table in tables.items():
        neither = (patterns[:, first] == 0) & (patterns[:, second] == 0)
        table[-1, -1] = users[neither].sum()
    return Counts(
        tables=tables,
        deviation=max(estimator.deviation(pair) for pair in pairs),
        patterns=patterns,
        users=users,
        enough=float(counts.flat[0]) > LEAST_DEVIATIONS * deviation,
    )


def patterns_of(n_parties: int) -> IntArray:
    """Return all ways to be at one or more parties, shape (2^S - 1, S), 1 for present."""
    absent = np.indices((2,) * n_parties).reshape(n_parties, -1).T[:-1]
    return np.asarray(1 - absent, dtype=np.int64)


def without_noise(
    cells: FloatArray, *, deviation: float, regions: IntArray | None = None
) -> FloatArray:
    """Return cells, none negative, without those that are noise, any shape.

    Cells above the noise stay as they are. What the others have together is known better than each
    of them: it stays, in regions whose sums stand out and there with the largest cells.

    Args:
        cells: Noisy counts without bias.
        deviation: Standard deviation of the noise of a cell.
        regions: The region of each cell; None takes all for one.
    """
    kept = cells >= CUT * deviation
    left = np.where(kept, cells, 0.0)
    others = cells[~kept]
    rest = float(others.sum())
    if rest <= _REST * deviation * math.sqrt(others.size):
        return left
    region = np.zeros(others.size, dtype=np.int64) if regions is None else regions[~kept]
    counts = np.bincount(region)
    sums = np.bincount(region, weights=others)
    found = np.zeros(others.size)
    for here in np.flatnonzero(sums > _REST_OF_REGION * deviation * np.sqrt(counts)):
        inside = region == here
        found[inside] = project_to_simplex(others[inside], total=float(sums[here]))
    # Regions were chosen by their sums, so together they have too much.
    found *= min(rest / max(float(found.sum()), rest), 1.0)
    left[~kept] = found
    return left
