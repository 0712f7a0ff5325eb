"""One benchmark case: pooled data with a split of its columns, and what a method made of it."""

import functools
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.data import DRAWN, Recipe, load
from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.evaluation import assign_labels, normalised_loss
from splitmeans.study.features import GRID_UNITS


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is run: all that a case and a method need to know, and nothing else."""

    data: str = "mixed-gaussian"
    epsilon: float = 1.0
    n_parties: int = 2
    seed: int = 0
    recipe: Recipe = field(default_factory=Recipe)
    n_clusters: int = 5
    overlap: float = 1.0
    data_dir: Path | None = None
    party_sizes: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Data in [-1, 1], who holds which columns of which users, and the privacy budget.

    Attributes:
        setting: Where it comes from.
        all_rows: Every user of any party.
        shared: How many users, from the first, are at every party; losses are theirs.
        labels: True classes of the shared users, or the central non-private clusters.
        party_columns: Who holds which columns.
        party_users: Who holds which users.
        central_centres: k-means on the shared users' pooled rows without privacy.
    """

    setting: Setting
    all_rows: FloatArray
    shared: int
    labels: LabelArray
    party_columns: tuple[IntArray, ...]
    party_users: tuple[IntArray, ...]
    central_centres: FloatArray

    @property
    def rows(self) -> FloatArray:
        """The users that all parties share."""
        return self.all_rows[: self.shared]

    @property
    def n_clusters(self) -> int:
        """Number of segments, k."""
        return self.setting.n_clusters

    @property
    def delta(self) -> float:
        """The paper's 1/n. It reads the private n, which is why only benchmarks use it."""
        return 1 / len(self.party_users[0])

    @property
    def delta_below(self) -> float:
        """The same, just below: proved bounds need a delta below one over the number of users."""
        return 1 / (len(self.party_users[0]) + 1)

    @property
    def expected_users(self) -> int:
        """A public size: the number of users to one significant digit, rounded down."""
        n = len(self.party_users[0])
        unit = int(10 ** (len(str(n)) - 1))
        return n // unit * unit

    @property
    def order(self) -> IntArray:
        """Positions of all columns in party order."""
        return np.concatenate(self.party_columns)

    @property
    def blocks(self) -> list[FloatArray]:
        """Each party's columns of its own users."""
        return [
            self.all_rows[np.ix_(users, columns)]
            for users, columns in zip(self.party_users, self.party_columns, strict=True)
        ]

    @property
    def pooled(self) -> FloatArray:
        """All columns of the shared users, in party order."""
        return self.rows[:, self.order]

    @property
    def shared_grid_blocks(self) -> list[IntArray]:
        """Each party's columns of the shared users, on the integer grid."""
        return [
            np.rint(self.rows[:, columns] * GRID_UNITS).astype(np.int64)
            for columns in self.party_columns
        ]

    @functools.cached_property
    def central_loss(self) -> float:
        """Loss of the central non-private centres."""
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
    n_labels: int | None
    seconds: float


def make_case(setting: Setting) -> Case:
    """Draw or load the data of one case; the same seed gives the same data at every epsilon."""
    drawn = load(
        setting.data,
        n_parties=setting.n_parties,
        seed=setting.seed,
        recipe=setting.recipe,
        data_dir=setting.data_dir,
        party_sizes=setting.party_sizes,
    )
    shared, party_users = _who_is_where(len(drawn.rows), setting)
    centres = _central_centres(setting, drawn.rows[:shared])
    # Without true classes the paper compares with the central non-private clusters.
    labels = drawn.labels
    labels = assign_labels(drawn.rows, centres) if labels is None else labels
    return Case(
        setting=setting,
        all_rows=drawn.rows,
        shared=shared,
        labels=labels[:shared],
        party_columns=drawn.party_columns,
        party_users=party_users,
        central_centres=centres,
    )


def _who_is_where(n: int, setting: Setting) -> tuple[int, tuple[IntArray, ...]]:
    """Divide n users so that each party shares `overlap` of its own with all the others."""
    if setting.overlap == 1:
        return n, (np.arange(n),) * setting.n_parties
    own_share = 1 - setting.overlap
    per_party = int(n / (setting.overlap + setting.n_parties * own_share))
    shared = round(per_party * setting.overlap)
    own = per_party - shared
    users = []
    for party in range(setting.n_parties):
        first = shared + party * own
        users.append(np.concatenate([np.arange(shared), np.arange(first, first + own)]))
    return shared, tuple(users)


def _central_centres(setting: Setting, rows: FloatArray) -> FloatArray:
    """Return the central centres; a process finds them once per data set, since it takes long."""
    drawn = setting.data in DRAWN
    seed = setting.seed if drawn else 0
    overlap = (setting.overlap, setting.n_parties if setting.overlap < 1 else 0)
    key = (setting.data, setting.data_dir, seed, setting.recipe, setting.n_clusters, overlap)
    if key not in _found:
        _found[key] = central_kmeans(rows, setting.n_clusters, random_state=seed)
    return _found[key]


_found: dict[tuple[object, ...], FloatArray] = {}
