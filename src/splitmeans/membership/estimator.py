"""What every membership method offers on the server: estimated cluster and cell sizes.

Grids (`synopsis/`) know nothing else of a method. An estimator is built from the parties' public
messages; everything it returns is post-processing of them.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError


class WeightEstimator(Protocol):
    """Estimated sizes of clusters and of their intersections."""

    @property
    def n_local_clusters(self) -> tuple[int, ...]:
        """The number of local clusters (k') of each party."""
        ...

    def one(self, party: int) -> FloatArray:
        """Return the sizes of one party's clusters, shape (k',)."""
        ...

    def joint(self, parties: Sequence[int]) -> FloatArray:
        """Return the cell weights of these parties, shape (k'_1, ..., k'_s), in their order.

        The weights are as estimated: not projected, so some may be negative.
        """
        ...


@runtime_checkable
class KnowsDeviation(WeightEstimator, Protocol):
    """An estimator that knows how large the noise on its cells is."""

    def deviation(self, group: tuple[int, ...]) -> float:
        """Return the standard deviation of a cell of these parties."""
        ...


def check_parties(parties: Sequence[int], *, n_parties: int) -> tuple[int, ...]:
    """Check that these are different positions of parties, at least one, and return them."""
    chosen = tuple(parties)
    if not chosen or len(set(chosen)) != len(chosen):
        raise ParameterError(f"parties must be one or more different positions, got {chosen!r}")
    if not all(0 <= party < n_parties for party in chosen):
        raise ParameterError(f"parties must be between 0 and {n_parties - 1}, got {chosen!r}")
    return chosen
