"""The tables that are measured: drawn once for each n, stored, and read by every measuring process.

Rows are the paper's mixed Gaussian data; ids are 16 hexadecimal digits. Each party has its rows in
an order of its own, as in a real study, so no join finds its records sorted already.
"""

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.paper.datasets import mixed_gaussian
from splitmeans.study import Budget, Column, PartySpec, SketchOptions, Study
from splitmeans.table.prepare import PartyTable, prepare_table
from splitmeans.table.walk.memory import MemoryUsers

N_COLUMNS = 16
N_CLUSTERS = 5
# Users whose label at a party is not that of their class; it fills cells off the diagonal.
_STRAY = 0.1
# An odd number: multiples of it modulo 2^64 are all different and look unordered.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What measuring processes read, in one folder.

    Attributes:
        folder: Where `write` has put the files.
        n: Number of users.
    """

    folder: Path
    n: int

    def write(self, *, seed: int = 0) -> None:
        """Draw and store everything."""
        self.folder.mkdir(parents=True, exist_ok=True)
        drawn = mixed_gaussian(
            self.n, n_columns=N_COLUMNS, n_clusters=N_CLUSTERS, random_state=seed
        )
        np.save(self.folder / "rows.npy", drawn.rows)
        np.save(self.folder / "classes.npy", drawn.labels)
        pq.write_table(self.arrow(0), self.parquet)

    @property
    def parquet(self) -> Path:
        """The first of two parties' table as a file."""
        return self.folder / "party.parquet"

    @functools.cached_property
    def rows(self) -> FloatArray:
        """All columns of all users, shape (n, 16)."""
        return np.asarray(np.load(self.folder / "rows.npy"))

    @functools.cached_property
    def classes(self) -> LabelArray:
        """The true cluster of each user."""
        return np.asarray(np.load(self.folder / "classes.npy"))

    def order(self, party: int) -> IntArray:
        """Return which user is in which row of a party."""
        return np.random.default_rng([self.n, party]).permutation(self.n)

    def ids(self, party: int) -> pa.LargeStringArray:
        """Return the ids of a party's rows."""
        return hexadecimal_ids(self.order(party))

    def labels(self, party: int, *, k: int) -> LabelArray:
        """Return a label below k for each row of a party; parties agree about most users."""
        rng = np.random.default_rng([self.n, party, k])
        own = np.where(rng.random(self.n) < _STRAY, rng.integers(k, size=self.n), self.classes % k)
        return np.asarray(own[self.order(party)], dtype=np.int32)

    def users(self, party: int, *, k: int) -> MemoryUsers:
        """Return a party's users with labels, as they are when a party encodes them."""
        return MemoryUsers(ids=self.ids(party), labels=self.labels(party, k=k))

    def arrow(self, party: int, *, n_parties: int = 2) -> pa.Table:
        """Return a party's table as it may come from a database: ids and number columns."""
        order = self.order(party)
        columns = {
            name: np.ascontiguousarray(self.rows[order, place])
            for place, name in _columns_of(party, n_parties)
        }
        return pa.table({"id": hexadecimal_ids(order), **columns})

    def tables(self, *, n_parties: int = 2) -> list[PartyTable]:
        """Return all parties' tables, read and checked."""
        parties = self.study(n_parties=n_parties).parties
        return [
            prepare_table(party, self.arrow(position, n_parties=n_parties))
            for position, party in enumerate(parties)
        ]

    def study(
        self,
        membership: str = "decoy",
        *,
        n_parties: int = 2,
        gamma: float | None = None,
        epsilon: float = 1.0,
        **options: Any,
    ) -> Study:
        """Return a study of these users: epsilon 1, delta 1/n, five segments."""
        parties = tuple(
            PartySpec(
                name=f"party{party + 1}",
                columns=tuple(
                    Column(name=name, low=-1.0, high=1.0)
                    for _, name in _columns_of(party, n_parties)
                ),
            )
            for party in range(n_parties)
        )
        return Study(
            name="speed",
            parties=parties,
            n_clusters=N_CLUSTERS,
            budget=Budget(epsilon=epsilon, delta=1 / (self.n + 1)),
            membership=membership,
            expected_users=self.n,
            sketch=SketchOptions(gamma=gamma),
            **options,
        )


def hexadecimal_ids(users: IntArray) -> pa.LargeStringArray:
    """Return a text of 16 hexadecimal digits for each user number."""
    words = users.astype(np.uint64) * _SPREAD
    digits = np.empty((len(users), 16), dtype=np.uint8)
    for place in range(16):
        digits[:, place] = _DIGITS[(words >> np.uint64(60 - 4 * place)) & np.uint64(15)]
    offsets = np.arange(len(users) + 1, dtype=np.int64) * 16
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.large_string(), len(users), buffers)


def fresh_key() -> bytes:
    """Return a run key."""
    return os.urandom(32)


def _columns_of(party: int, n_parties: int) -> list[tuple[int, str]]:
    """Return place in the pooled rows, and name, of each of a party's columns."""
    places = np.array_split(np.arange(N_COLUMNS), n_parties)[party]
    return [(int(place), f"column{place}") for place in places]
