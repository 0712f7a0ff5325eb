"""One benchmark case: pooled data with a split of its columns, and what a method made of it."""

from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.datasets import mixed_gaussian, split_columns
from splitmeans.features import GRID_UNITS

DATA_SETS = ("mixed-gaussian",)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Data in [-1, 1], who holds which columns, and the privacy budget."""

    data: str
    rows: FloatArray
    labels: LabelArray
    party_columns: tuple[IntArray, ...]
    n_clusters: int
    epsilon: float
    seed: int

    @property
    def delta(self) -> float:
        """The paper's 1/n. It reads the private n, which is why only benchmarks use it."""
        return 1 / len(self.rows)

    @property
    def blocks(self) -> list[FloatArray]:
        """Each party's columns."""
        return [self.rows[:, columns] for columns in self.party_columns]

    @property
    def pooled(self) -> FloatArray:
        """All columns in party order."""
        return np.hstack(self.blocks)

    @property
    def grid_blocks(self) -> list[IntArray]:
        """Each party's columns on the integer grid."""
        return [np.rint(block * GRID_UNITS).astype(np.int64) for block in self.blocks]


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
    data: str, *, epsilon: float, n_parties: int, seed: int, n_clusters: int = 5, n: int = 20_000
) -> Case:
    """Draw or load the data of one case; the same seed gives the same data at every epsilon."""
    if data != "mixed-gaussian":
        raise ValueError(f"unknown data set {data!r}")
    drawn = mixed_gaussian(n=n, n_clusters=n_clusters, random_state=seed)
    # The split has a generator of its own, so that it does not depend on how the data was drawn.
    columns = split_columns(drawn.rows, n_parties, rng=np.random.default_rng([seed, n_parties]))
    return Case(
        data=data,
        rows=drawn.rows,
        labels=drawn.labels,
        party_columns=tuple(np.sort(part) for part in columns),
        n_clusters=n_clusters,
        epsilon=epsilon,
        seed=seed,
    )
