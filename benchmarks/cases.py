"""One benchmark case: pooled data, who holds which columns of which users, and the yardstick."""

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.data import DRAWN, BenchData, Recipe, load
from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.evaluation import assign_labels, normalised_loss
from splitmeans.study.features import GRID_UNITS

_PRESENCE_STREAM = 77_000


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is run: all that a case and a method need to know, and nothing else.

    Attributes:
        presence: Share of the users that each party has.
        absence: "random": each user is at each party with probability `presence`; "by segment": the
            probability is even between 2 x presence - 1 and 1 for each true class and party;
            "own": this share of the users of a party is at all parties, the others at one.
        population: As in a study: None and "shared" are the users at all parties.
    """

    data: str = "mixed-gaussian"
    epsilon: float = 1.0
    n_parties: int = 2
    seed: int = 0
    recipe: Recipe = field(default_factory=Recipe)
    n_clusters: int = 5
    presence: float = 1.0
    absence: str = "random"
    population: str | None = None
    data_dir: Path | None = None
    party_sizes: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Pooled data, who holds which columns of which users, and the privacy budget.

    Attributes:
        setting: Where it comes from.
        drawn: Every user of any party, and the division of the columns.
        present: Which user is at which party, shape (n, parties).
        labels: True classes of the population, or its central non-private clusters.
        central_centres: k-means on the population's pooled rows without privacy.
    """

    setting: Setting
    drawn: BenchData
    present: npt.NDArray[np.bool_]
    labels: LabelArray
    central_centres: FloatArray

    @functools.cached_property
    def rows(self) -> FloatArray:
        """All columns of the population, whose loss is measured."""
        return self.drawn.rows[_population(self.setting, self.present)]

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
    def party_columns(self) -> tuple[IntArray, ...]:
        """Each party's features."""
        return self.drawn.party_columns

    @functools.cached_property
    def party_users(self) -> list[IntArray]:
        """Each party's users."""
        return [np.flatnonzero(column) for column in self.present.T]

    @property
    def order(self) -> IntArray:
        """Positions of all features in party order."""
        return np.concatenate(self.party_columns)

    @property
    def blocks(self) -> list[Any]:
        """Each party's table of its own users."""
        if self.drawn.frames is not None:
            tables = zip(self.drawn.frames, self.party_users, strict=True)
            return [frame.iloc[users] for frame, users in tables]
        return [
            self.drawn.rows[np.ix_(users, columns)]
            for users, columns in zip(self.party_users, self.party_columns, strict=True)
        ]

    @property
    def pooled(self) -> FloatArray:
        """All columns of the population, in party order."""
        return self.rows[:, self.order]

    @property
    def grid_blocks(self) -> list[IntArray]:
        """Each party's columns of the population, on the integer grid."""
        return [
            np.rint(self.rows[:, columns] * GRID_UNITS).astype(np.int64)
            for columns in self.party_columns
        ]

    @functools.cached_property
    def central_loss(self) -> float:
        """Loss of the central non-private centres."""
        return normalised_loss(self.rows, self.central_centres)


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
    present = who_is_where(setting, len(drawn.rows), drawn.labels)
    counted = _population(setting, present)
    centres = _central_centres(setting, drawn.rows[counted])
    # Without true classes the paper compares with the central non-private clusters.
    labels = drawn.labels
    labels = assign_labels(drawn.rows, centres) if labels is None else labels
    return Case(
        setting=setting,
        drawn=drawn,
        present=present,
        labels=labels[counted],
        central_centres=centres,
    )


def who_is_where(setting: Setting, n: int, classes: LabelArray | None) -> npt.NDArray[np.bool_]:
    """Draw which of n users is at which party, shape (n, parties)."""
    rng = np.random.default_rng([setting.seed, setting.n_parties, _PRESENCE_STREAM])
    n_parties, share = setting.n_parties, setting.presence
    if share == 1:
        return np.ones((n, n_parties), dtype=bool)
    if setting.absence == "own":
        per_party = n / (share + n_parties * (1 - share))
        present = rng.integers(n_parties, size=n)[:, np.newaxis] == np.arange(n_parties)
        present[rng.permutation(n)[: round(share * per_party)]] = True
        return np.asarray(present)
    chances = np.full((n, n_parties), share)
    if setting.absence == "by segment":
        if classes is None:
            raise ParameterError(f"absence by segment needs true classes, got {setting.data!r}")
        table = rng.uniform(2 * share - 1, 1, size=(int(classes.max()) + 1, n_parties))
        chances = table[classes]
    return np.asarray(rng.random((n, n_parties)) < chances)


def _population(setting: Setting, present: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    everyone = setting.population == "everyone"
    return np.asarray(present.any(axis=1) if everyone else present.all(axis=1))


def _central_centres(setting: Setting, rows: FloatArray) -> FloatArray:
    """Return the central centres; a process finds them once per data set, since it takes long."""
    seed = setting.seed if setting.data in DRAWN else 0
    who: tuple[object, ...] = ()
    if setting.presence < 1:
        who = (setting.seed, setting.n_parties, setting.presence, setting.absence)
        who = (*who, setting.population)
    key = (setting.data, setting.data_dir, seed, setting.recipe, setting.n_clusters, *who)
    if key not in _found:
        _found[key] = central_kmeans(rows, setting.n_clusters, random_state=seed)
    return _found[key]


_found: dict[tuple[object, ...], FloatArray] = {}
