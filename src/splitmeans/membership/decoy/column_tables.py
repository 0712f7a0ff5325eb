"""Tables of two columns of different parties, counted by the decoy join beside the clusters.

Cells of clusters tell which places of two parties go together as far as clusters are small. Where a
study asks for detail, pairs of columns are counted too: a party's label of a user is then the bin
of one column. Which tables there are, and how many labels a column has, follows from the study and
from what its stages released; where bins end comes from histograms that the party has released.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from splitmeans._types import NoiseLine
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.decoy.layout import most_records, table_size
from splitmeans.privacy.events import ComposedEvent
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.split import split_precision
from splitmeans.study import Study
from splitmeans.study.coding import Coding
from splitmeans.study.methods import DECOY

# Most bins of a column; one label more stands for a value that is missing.
MAX_BINS = 12
# Of the squared precision of all memberships, what goes to tables of columns; by measurement
# (docs/synthetic.md), as all constants here.
COLUMNS_SHARE = 0.5
# Most tables of a run: with more each would have too much noise, and messages would grow.
_MAX_TABLES = 64
# Tables are counted where a cell has so many deviations of noise in users, were they spread evenly.
_DEVIATIONS = 1.0


@dataclass(frozen=True, kw_only=True)
class ColumnTable:
    """One table.

    Attributes:
        parties: The two parties, as positions, ascending.
        columns: The column of each, by its position at the party.
        widths: How many labels each has.
    """

    TAG: ClassVar[str] = "ColumnTable"

    parties: tuple[int, int]
    columns: tuple[int, int]
    widths: tuple[int, int]

    @property
    def place(self) -> tuple[int, int, int, int]:
        """What tells it from all other tables of the run: parties and columns."""
        return (*self.parties, *self.columns)

    def own_cells(self, side: int) -> int:
        """Number of cells in which its first party (side 0), or its second, is present."""
        return self.widths[side] * (self.widths[1 - side] + 1)


@dataclass(frozen=True, kw_only=True)
class ColumnTables:
    """All tables of a run.

    Guarantee: a user is in one cell of each table, with "absent" at a party that does not have it,
    so that each costs one `law.event`, as a group of parties does (`encode`); tables have different
    keys, and compose.

    Attributes:
        law: The law of decoys and of the server's noise in every table.
        tables: The tables.
    """

    TAG: ClassVar[str] = "ColumnTables"

    law: DecoyLaw
    tables: tuple[ColumnTable, ...]

    @property
    def event(self) -> ComposedEvent:
        """What all tables cost together."""
        return ComposedEvent(parts=(self.law.event,) * len(self.tables))

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of a cell."""
        return math.sqrt(float(self.law.variance) + self.law.server_sigma**2)

    def of_party(self, position: int) -> tuple[ColumnTable, ...]:
        """The tables that a party has a part in, in order."""
        return tuple(table for table in self.tables if position in table.parties)

    def noise_lines(self) -> Iterator[NoiseLine]:
        """Yield the noise of a release."""
        yield "decoys in each cell of two columns", math.sqrt(self.law.variance), "users"
        yield "the server's noise on each of them", self.law.server_sigma, "users"

    def message_size(
        self, position: int, *, users: int, sample_rate: float, high_bits: int, deviations: int
    ) -> tuple[int, int]:
        """Return bytes and records of a party's part; see `MembershipMethod.message_size`."""
        size = records = 0
        for table in self.of_party(position):
            side = table.parties.index(position)
            length = most_records(
                self.law,
                table.own_cells(side),
                users=users,
                sample_rate=sample_rate,
                deviations=deviations,
            )
            size += table_size(length, n_clusters=table.widths[side], high_bits=high_bits)
            records += length
        return size, records


def n_column_tables(study: Study) -> int:
    """Return how many tables a run counts: a function of the study alone, as noise depends on it.

    None where labels are randomised against collusion, as each label would have to be.
    """
    if (
        study.detail is None
        or study.membership != DECOY.name
        or study.decoy.collusion_epsilon is not None
    ):
        return 0
    found = sum(1 for _ in _places(study))
    if not found:
        return 0
    sigma = gaussian_multiplier(study.budget.epsilon, study.budget.delta) * math.sqrt(study.n_runs)
    at_one = split_precision(study, n_groups=found / COLUMNS_SHARE, n_sizes=0, scale=1.0)
    deviation = math.sqrt(2) * sigma / at_one.membership
    enough = study.assumed_users / MAX_BINS**2 >= _DEVIATIONS * deviation
    return found if enough else 0


def column_tables(study: Study, law: DecoyLaw, codings: Sequence[Coding]) -> ColumnTables:
    """Return all tables of a run whose columns are coded so; there must be some."""
    tables = []
    for parties, columns in _places(study):
        one, other = (
            label_count(codings[party], column)
            for party, column in zip(parties, columns, strict=True)
        )
        tables.append(ColumnTable(parties=parties, columns=columns, widths=(one, other)))
    return ColumnTables(law=law, tables=tuple(tables))


def label_count(coding: Coding, column: int) -> int:
    """Return how many labels a column has: its bins or levels, and one for who has no value.

    Of many levels the rare ones share a label.
    """
    n_levels = coding.levels[column]
    return (min(n_levels, MAX_BINS) if n_levels else MAX_BINS) + 1


def _places(study: Study) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield parties and columns of every table: all pairs, or those of each party's first columns.

    As many of the first columns take part as there is room for.
    """
    counts = [len(party.columns) for party in study.parties]
    pairs = list(itertools.combinations(range(len(counts)), 2))

    def total(most: int) -> int:
        return sum(min(counts[p], most) * min(counts[q], most) for p, q in pairs)

    most = max(counts)
    while most and total(most) > _MAX_TABLES:
        most -= 1
    for p, q in pairs:
        for i, j in itertools.product(range(min(counts[p], most)), range(min(counts[q], most))):
            yield (p, q), (i, j)
