"""Tables on which the loss model of `splitmeans plan` is fitted, and others on which it is checked.

Three made-up families. `clear` is the paper's mixed Gaussian with well separated clusters and
`smooth` a cloud with a few hidden causes; the model is fitted to these. `customers` has skewed
columns, some of them yes or no, around levels that differ by segment; `blurred` is mixed Gaussian
whose clusters overlap. The model never sees those two, nor any real table, when it is fitted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data import DATA_SETS, Recipe, load, split_columns
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.paper.datasets import mixed_gaussian

_STREAM = 0xF0CA


@dataclass(frozen=True, kw_only=True)
class TableCase:
    """One table to cluster.

    Attributes:
        family: "clear", "smooth", "customers", "blurred", "letter", "taxi" or "loan".
        users: Rows; real tables have their own.
        columns: Columns of all parties; real tables have their own.
        n_clusters: Segments, made and looked for.
        detail: Deviation within clusters of mixed Gaussian; number of hidden causes of `smooth`.
        seed: Draws the table and divides its columns.
        parties: Numbers of parties to divide it between.
        present: Share of the users that each party has; below 1 for partial user sets.
    """

    family: str
    n_clusters: int
    users: int = 0
    columns: int = 0
    detail: float = 0.0
    seed: int = 0
    parties: tuple[int, ...] = (2, 4)
    present: float = 1.0

    @property
    def usual(self) -> bool:
        """Whether it is small enough for every epsilon and both methods."""
        return self.parties == (2, 4) and self.present == 1

    def rows(self, data_dir: Path | None) -> FloatArray:
        """Draw or read the table, shape (n, d), values in [-1, 1]."""
        match self.family:
            case "clear" | "blurred":
                return mixed_gaussian(
                    self.users,
                    n_columns=self.columns,
                    n_clusters=self.n_clusters,
                    std=self.detail,
                    random_state=self.seed,
                ).rows
            case "smooth":
                return self._smooth()
            case "customers":
                return self._customers()
        if self.family not in DATA_SETS:
            raise ParameterError(f"family of a table is unknown: {self.family!r}")
        return load(
            self.family, n_parties=2, seed=self.seed, recipe=Recipe(), data_dir=data_dir
        ).rows

    def party_columns(
        self, n_parties: int, rows: FloatArray, data_dir: Path | None
    ) -> list[IntArray]:
        """Return who holds which columns: the paper's division of real tables, else by chance."""
        if self.family in DATA_SETS:
            drawn = load(
                self.family, n_parties=n_parties, seed=self.seed, recipe=Recipe(), data_dir=data_dir
            )
            return list(drawn.party_columns)
        rng = np.random.default_rng([self.seed, n_parties])
        return split_columns(rows, n_parties, rng=rng)

    def party_users(self, n_parties: int, n_rows: int) -> list[IntArray]:
        """Return who holds which users: all of them, or each a part, drawn."""
        if self.present == 1:
            return [np.arange(n_rows) for _ in range(n_parties)]
        rng = np.random.default_rng([self.seed, n_parties, _STREAM])
        return [np.flatnonzero(rng.random(n_rows) < self.present) for _ in range(n_parties)]

    def _smooth(self) -> FloatArray:
        rng = np.random.default_rng([self.seed, _STREAM])
        causes = rng.standard_normal((self.users, int(self.detail)))
        loads = rng.standard_normal((causes.shape[1], self.columns)) / np.sqrt(causes.shape[1])
        own = 0.5 * rng.standard_normal((self.users, self.columns))
        # Three deviations on each side of the middle fill the range.
        return np.asarray(np.clip((causes @ loads + own) / (3 * np.sqrt(1.25)), -1, 1))

    def _customers(self) -> FloatArray:
        rng = np.random.default_rng([self.seed, _STREAM])
        segment = rng.integers(self.n_clusters, size=self.users)
        wealth = rng.standard_normal(self.users)
        columns = []
        for number in range(self.columns):
            if number % 4 == 3:
                chance = rng.uniform(0.05, 0.95, size=self.n_clusters)
                columns.append(2.0 * (rng.uniform(size=self.users) < chance[segment]) - 1)
                continue
            level = rng.uniform(0.1, 0.6, size=self.n_clusters)
            spread = 0.15 * wealth + 0.25 * rng.standard_normal(self.users)
            columns.append(2 * np.clip(level[segment] * np.exp(spread), 0, 1) - 1)
        return np.column_stack(columns)


def fitted_tables() -> Iterator[TableCase]:
    """Yield the tables that the model is fitted to."""
    # Users, columns, segments, detail.
    clear = (
        *((20_000, 8, 5, 0.05), (20_000, 8, 5, 0.15), (5_000, 8, 5, 0.15), (100_000, 8, 5, 0.2)),
        *((20_000, 16, 10, 0.2), (20_000, 8, 3, 0.2), (20_000, 32, 8, 0.3), (20_000, 8, 10, 0.15)),
    )
    smooth = (
        *((20_000, 8, 5, 2), (20_000, 16, 5, 4), (5_000, 8, 5, 3)),
        *((100_000, 8, 8, 3), (20_000, 8, 10, 3)),
    )
    for family, shapes in (("clear", clear), ("smooth", smooth)):
        for seed, (users, columns, n_clusters, detail) in enumerate(shapes):
            yield TableCase(
                family=family,
                users=users,
                columns=columns,
                n_clusters=n_clusters,
                detail=detail,
                seed=seed,
            )
    yield from _more_segments_and_parties()


def _more_segments_and_parties() -> Iterator[TableCase]:
    # Family, users, columns, segments, detail, parties, share of the users at each party.
    shapes: tuple[tuple[str, int, int, int, float, tuple[int, ...], float], ...] = (
        ("clear", 100_000, 32, 20, 0.2, (2, 8, 16), 1.0),
        ("clear", 20_000, 16, 20, 0.15, (2, 4, 8), 1.0),
        ("clear", 50_000, 32, 50, 0.2, (2, 8), 1.0),
        ("clear", 20_000, 16, 10, 0.15, (3, 6), 0.7),
        ("smooth", 20_000, 16, 20, 4, (2, 8), 1.0),
        ("smooth", 50_000, 32, 20, 6, (4, 16), 1.0),
        ("smooth", 50_000, 32, 50, 6, (2, 8), 1.0),
        ("smooth", 20_000, 16, 5, 4, (3, 6), 0.7),
    )
    for seed, (family, users, columns, n_clusters, detail, parties, present) in enumerate(shapes):
        yield TableCase(
            family=family,
            users=users,
            columns=columns,
            n_clusters=n_clusters,
            detail=detail,
            seed=100 + seed,
            parties=parties,
            present=present,
        )


def held_out_tables(*, real: bool) -> Iterator[TableCase]:
    """Yield tables that the model has not seen; the real ones need a folder."""
    shapes = ((20_000, 8, 5), (50_000, 12, 6), (5_000, 8, 4))
    for seed, (users, columns, n_clusters) in enumerate(shapes):
        yield TableCase(
            family="customers", users=users, columns=columns, n_clusters=n_clusters, seed=seed
        )
    yield TableCase(family="blurred", users=20_000, columns=8, n_clusters=5, detail=0.3, seed=2)
    yield TableCase(family="blurred", users=50_000, columns=12, n_clusters=7, detail=0.35, seed=3)
    yield TableCase(
        family="customers", users=50_000, columns=32, n_clusters=20, seed=4, parties=(8, 16)
    )
    yield TableCase(
        family="blurred",
        users=50_000,
        columns=16,
        n_clusters=20,
        detail=0.25,
        seed=5,
        parties=(2, 8),
    )
    yield TableCase(
        family="customers",
        users=20_000,
        columns=12,
        n_clusters=5,
        seed=6,
        parties=(3, 6),
        present=0.8,
    )
    if real:
        yield TableCase(family="letter", n_clusters=20, parties=(2, 8))
        yield TableCase(family="loan", n_clusters=50, parties=(4, 16))
        yield TableCase(family="letter", n_clusters=5, parties=(3,), present=0.7)
        for name in ("letter", "taxi", "loan"):
            yield TableCase(family=name, n_clusters=5)
