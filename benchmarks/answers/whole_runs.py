"""Whole runs over tables that nothing was tuned on, and the truth that they are judged by.

No constant of splitmeans was chosen on these tables: three are drawn of kinds that are in no fit,
one is a file of taxi trips, the others are mixed. Public bounds clip a value as in a study, so the
truth is that of clipped rows.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.data import split_columns
from benchmarks.held_out import FAMILIES, TAXI_SAMPLE, draw, taxi_sample
from benchmarks.synthetic.tables import FROM_PACKAGE, load_table
from splitmeans import Result, VerticalKMeans
from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.distances import squared_distances
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Budget, Column, IdRules, PartySpec, Study

NUMBERS = (*FAMILIES, TAXI_SAMPLE)
MIXED = ("credit-like", *FROM_PACKAGE)
TABLES = (*NUMBERS, *MIXED)
NEED_FILES = (TAXI_SAMPLE,)
_DELTA = 1e-6
_COLUMNS, _SOURCES = 9, 5


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One run.

    Attributes:
        data: Name of the table.
        n_parties: Between how many its columns are split.
        epsilon: The whole budget.
        share: Which share of the users each party has, at random; 1 for all.
        users: Most rows of a table.
        n_clusters: Segments.
        seed: Decides what is drawn and the noise.
    """

    data: str
    n_parties: int
    epsilon: float
    share: float = 1.0
    users: int = 12_000
    n_clusters: int = 5
    seed: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """All columns of all users, and who holds which.

    Attributes:
        frame: Clipped rows; categories as text.
        columns: What a study says of them.
        split: The party of each column.
    """

    frame: pd.DataFrame
    columns: tuple[Column, ...]
    split: tuple[int, ...]

    @property
    def parties(self) -> tuple[tuple[Column, ...], ...]:
        """The columns of each party."""
        return tuple(
            tuple(column for column, at in zip(self.columns, self.split, strict=True) if at == one)
            for one in range(max(self.split) + 1)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """A result, and what only a simulation has: the rows.

    Attributes:
        setting: How it was run.
        result: What was published.
        pooled: All users' rows.
        present: Which user is at which party, shape (users, parties).
        seconds: Processor time of the fit.
    """

    setting: Setting
    result: Result
    pooled: Pooled
    present: npt.NDArray[np.bool_]
    seconds: float

    @property
    def frame(self) -> pd.DataFrame:
        """Rows of the users whom the result is about: those at all parties, named as it has them.

        Columns are called "party: column".
        """
        rows = self.pooled.frame[self.present.all(axis=1)]
        names = {
            column.name: f"{party_name(at)}: {column.name}"
            for column, at in zip(self.pooled.columns, self.pooled.split, strict=True)
        }
        return rows.rename(columns=names)

    def own_table(self, party: int) -> pd.DataFrame:
        """Return what a party has: ids and its columns."""
        return _own_table(self.pooled, self.present, party)

    def segments(self, rows: pd.DataFrame) -> IntArray:
        """Return the nearest published centre of rows of the pooled table."""
        synopsis = self.result.synopsis
        places = synopsis.scaled_centres(features(self.pooled, rows))
        centres = synopsis.seen(self.result.published.scaled_centres)
        found = squared_distances(synopsis.seen(places), centres).argmin(axis=1)
        return np.asarray(found, dtype=np.int64)


def party_name(at: int) -> str:
    """Return what a party is called."""
    return ("bank", "shop", "gym", "clinic", "school", "garage", "club", "cinema")[at]


def features(pooled: Pooled, rows: pd.DataFrame) -> FloatArray:
    """Return rows of the pooled table as features in own units, in the order of the parties."""
    found = []
    for column in (column for own in pooled.parties for column in own):
        values = rows[column.name].to_numpy()
        if column.levels:
            found += [(values == level).astype(np.float64) for level in column.levels]
        else:
            found.append(values.astype(np.float64))
    return np.stack(found, axis=1)


def load_pooled(setting: Setting, data_dir: Path | None) -> Pooled:
    """Draw or read a table; numbers are dealt out at random, mixed ones have a split of their own.

    Mixed tables have no split for more than three parties.
    """
    rng = np.random.default_rng([setting.seed, setting.n_parties, 0xA5])
    if setting.data in MIXED:
        table = load_table(setting.data, seed=setting.seed, n=setting.users, data_dir=data_dir)
        frame = table.rows.to_pandas()
        for column in table.columns:
            if not column.categories:
                assert column.low is not None
                assert column.high is not None
                own = frame[column.name].to_numpy(dtype=np.float64)
                frame[column.name] = np.clip(own, column.low, column.high)
        return Pooled(frame=frame, columns=table.columns, split=table.splits[setting.n_parties])
    if setting.data == TAXI_SAMPLE:
        rows = taxi_sample(data_dir)
        rows = rows[rng.permutation(len(rows))[: setting.users]]
    else:
        rows = draw(setting.data, n=setting.users, d=_COLUMNS, k=_SOURCES, seed=setting.seed)
    names = [f"x{at + 1}" for at in range(rows.shape[1])]
    split = np.zeros(rows.shape[1], dtype=int)
    for party, own in enumerate(split_columns(rows, setting.n_parties, rng=rng)):
        split[own] = party
    return Pooled(
        frame=pd.DataFrame(rows, columns=names),
        columns=tuple(Column(name=name, low=-1.0, high=1.0) for name in names),
        split=tuple(int(at) for at in split),
    )


def run(setting: Setting, pooled: Pooled, *, noise: int | None = None) -> Scene:
    """Run the study of a setting on a table.

    Args:
        setting: How.
        pooled: The table.
        noise: Seed of the noise, that of the setting if not given: two runs need two.
    """
    seed = setting.seed if noise is None else noise
    rng = np.random.default_rng([setting.seed, seed, 0xB6])
    n = len(pooled.frame)
    present = rng.random((n, setting.n_parties)) < setting.share
    here = int(present[:, 0].sum())
    study = Study(
        name=setting.data,
        parties=tuple(
            PartySpec(name=party_name(at), columns=own) for at, own in enumerate(pooled.parties)
        ),
        n_clusters=setting.n_clusters,
        budget=Budget(epsilon=setting.epsilon, delta=_DELTA),
        # A public number: what a party has, to one digit.
        expected_users=int(float(f"{here:.0e}")),
        ids=IdRules(type="integer"),
    )
    tables = [_own_table(pooled, present, at) for at in range(setting.n_parties)]
    start = time.process_time()
    model = VerticalKMeans(noise=InsecureSeededNoise(seed), random_state=seed)
    result = model.fit_study(study, tables).published_
    return Scene(
        setting=setting,
        result=result,
        pooled=pooled,
        present=present,
        seconds=time.process_time() - start,
    )


def _own_table(pooled: Pooled, present: npt.NDArray[np.bool_], party: int) -> pd.DataFrame:
    here = present[:, party]
    names = [column.name for column in pooled.parties[party]]
    return pooled.frame.loc[here, names].assign(id=np.flatnonzero(here))
