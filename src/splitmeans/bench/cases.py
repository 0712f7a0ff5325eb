"""One benchmark case: pooled data with a split of its columns, and what a method made of it."""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.baselines import central_kmeans
from splitmeans.bench.data import load
from splitmeans.evaluation import assign_labels, normalised_loss
from splitmeans.features import GRID_UNITS


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Data in [-1, 1], who holds which columns, and the privacy budget."""

    data: str
    rows: FloatArray
    labels: LabelArray
    party_columns: tuple[IntArray, ...]
    central_centres: FloatArray
    n_clusters: int
    epsilon: float
    seed: int

    @property
    def delta(self) -> float:
        """The paper's 1/n. It reads the private n, which is why only benchmarks use it."""
        return 1 / len(self.rows)

    @property
    def expected_users(self) -> int:
        """A public size: the number of users to one significant digit, rounded down."""
        unit = int(10 ** (len(str(len(self.rows))) - 1))
        return len(self.rows) // unit * unit

    @property
    def order(self) -> IntArray:
        """Positions of all columns in party order."""
        return np.concatenate(self.party_columns)

    @property
    def blocks(self) -> list[FloatArray]:
        """Each party's columns."""
        return [self.rows[:, columns] for columns in self.party_columns]

    @property
    def pooled(self) -> FloatArray:
        """All columns in party order."""
        return self.rows[:, self.order]

    @functools.cached_property
    def grid_blocks(self) -> list[IntArray]:
        """Each party's columns on the integer grid."""
        return [np.rint(block * GRID_UNITS).astype(np.int64) for block in self.blocks]

    @functools.cached_property
    def central_loss(self) -> float:
        """Loss of k-means on the pooled rows without privacy."""
        return normalised_loss(self.rows, self.central_centres)


@dataclass(frozen=True, kw_only=True)
class Score:
    """What a method reached on one case."""

    method: str
    data: str
    epsilon: float
    n_parties: int
    seed: int
    loss: float
    loss_ratio: float
    v_measure: float
    weight_error: float | None
    bytes_per_party: float | None
    n_local_clusters: int | None
    seconds: float


def make_case(
    data: str,
    *,
    epsilon: float,
    n_parties: int,
    seed: int,
    n: int = 20_000,
    n_clusters: int = 5,
    data_dir: Path | None = None,
) -> Case:
    """Draw or load the data of one case; the same seed gives the same data at every epsilon."""
    drawn = load(
        data, n_parties=n_parties, seed=seed, n=n, n_clusters=n_clusters, data_dir=data_dir
    )
    # Real data is the same for every seed, so its central centres are found once.
    key = (data, seed if data == "mixed-gaussian" else 0, n, n_clusters, data_dir)
    if key not in _central:
        _central[key] = central_kmeans(drawn.rows, n_clusters, random_state=key[1])
    centres = _central[key]
    # Without true classes the paper compares with the central non-private clusters.
    labels = drawn.labels if drawn.labels is not None else assign_labels(drawn.rows, centres)
    return Case(
        data=data,
        rows=drawn.rows,
        labels=labels,
        party_columns=drawn.party_columns,
        central_centres=centres,
        n_clusters=n_clusters,
        epsilon=epsilon,
        seed=seed,
    )


_central: dict[tuple[object, ...], FloatArray] = {}
