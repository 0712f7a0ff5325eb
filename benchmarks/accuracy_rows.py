"""The settings of `accuracy`: every row of its table, and those that are compared with peers."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases import Setting
from benchmarks.data import DATA_SETS, DRAWN, HELD_OUT, Recipe
from benchmarks.held_out import TAXI_SAMPLE


@dataclass(frozen=True)
class Row:
    """One row: parties, k, epsilon, and the share of the users that each party has."""

    data: str
    parties: int
    k: int
    epsilon: float
    presence: float = 1.0
    users: int = 20_000
    columns: int = 8
    absence: str = "random"
    population: str = "shared"
    quick: bool = False

    @property
    def held_out(self) -> bool:
        """Whether no constant was chosen on the data."""
        return self.data not in DATA_SETS

    @property
    def name(self) -> str:
        """What `--rows` looks into."""
        words = [self.data, f"S{self.parties}", f"k{self.k}", f"eps{self.epsilon:g}"]
        words += [f"n{self.users}"] if self.data in DRAWN else []
        words += [f"{self.presence:.0%}", self.absence, self.population]
        return " ".join(words)

    def setting(self, seed: int, data_dir: Path | None) -> Setting:
        """Return what is run."""
        return Setting(
            data=self.data,
            epsilon=self.epsilon,
            n_parties=self.parties,
            seed=seed,
            recipe=Recipe(n=self.users, n_columns=self.columns, n_clusters=self.k),
            n_clusters=self.k,
            presence=self.presence,
            absence=self.absence,
            # Two parties have no other population.
            population=self.population if self.presence < 1 and self.parties > 2 else None,
            data_dir=data_dir,
        )


_MG, _MANY = "mixed-gaussian", 100_000

# Constants were chosen on these data sets.
TUNED_ON = (
    #   parties, k, epsilon, presence, users, columns
    Row(_MG, 2, 5, 0.1, quick=True),
    Row(_MG, 2, 5, 1, users=1_000),
    Row(_MG, 2, 12, 0.25, columns=60),
    Row(_MG, 2, 50, 0.25, 1.0, _MANY, 16),
    Row(_MG, 3, 5, 1, 0.05, 50_000, absence="own"),
    Row(_MG, 4, 5, 1, 0.7, quick=True),
    Row(_MG, 4, 5, 1, 0.7, absence="by segment", population="everyone"),
    Row(_MG, 4, 20, 0.25, 1.0, _MANY, 16),
    Row(_MG, 8, 20, 1, 1.0, 20_000, 16, quick=True),
    Row(_MG, 8, 20, 1, 0.7, _MANY, 16),
    Row(_MG, 8, 50, 0.25, 1.0, _MANY, 16),
    Row(_MG, 16, 20, 1, 1.0, _MANY, 32),
    Row("letter", 2, 5, 0.1),
    Row("letter", 2, 5, 4),
    Row("letter", 4, 5, 1, quick=True),
    Row("letter", 4, 5, 1, 0.7),
    Row("letter", 8, 20, 1),
    Row("letter", 16, 50, 1),
    Row("taxi", 2, 5, 0.25),
    Row("taxi", 4, 20, 1, 0.7),
    Row("loan", 4, 5, 0.1, quick=True),
    Row("loan", 8, 10, 1, 0.7),
    Row("loan", 16, 20, 1),
)
# Every held-out kind has these.
_OF_EACH_KIND = (
    Row("", 2, 5, 1, quick=True),
    Row("", 2, 20, 1),
    Row("", 4, 5, 0.25, 0.7),
)
ROWS = (
    *TUNED_ON,
    *(dataclasses.replace(row, data=kind) for kind in HELD_OUT for row in _OF_EACH_KIND),
    Row("heavy-tails", 8, 20, 1, 1.0, _MANY, 16),
    Row("uneven-clusters", 8, 20, 1, 1.0, _MANY, 16),
    Row(TAXI_SAMPLE, 2, 5, 1),
)
# Private clustering of pooled data is compared on these.
PEER_ROWS = tuple(
    Row(data, parties, 5, epsilon)
    for data in DATA_SETS
    for parties in (2, 4)
    for epsilon in (0.1, 0.25, 0.5, 1, 4)
)
