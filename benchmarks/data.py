"""The data sets of the paper, scaled to [-1, 1], with the paper's division of columns.

Mixed Gaussian data is drawn by the documented recipe. The real ones come from files in a folder
that the user names (`--data-dir`), see `data_files`. Sets of other kinds are in `held_out`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data_files import read_rows
from benchmarks.held_out import FAMILIES, TAXI_SAMPLE, draw, taxi_sample
from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.paper.datasets import PUBLISHED_SPLITS, mixed_gaussian

DATA_SETS = ("mixed-gaussian", "letter", "taxi", "loan")
# Drawn anew for each seed.
DRAWN = ("mixed-gaussian", *FAMILIES)
# What `accuracy` runs on: these, and those that no constant was chosen on.
ALL_SETS = (*DATA_SETS, *FAMILIES, TAXI_SAMPLE)


@dataclass(frozen=True, kw_only=True)
class BenchData:
    """Pooled rows in [-1, 1], true classes where there are any, and who holds which columns."""

    rows: FloatArray
    labels: LabelArray | None
    party_columns: tuple[IntArray, ...]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How data is drawn; the defaults are the paper's. Only mixed Gaussian data has a `std`."""

    n: int = 20_000
    n_columns: int = 8
    n_clusters: int = 5
    std: float = 0.1


def load(
    name: str,
    *,
    n_parties: int,
    seed: int,
    recipe: Recipe,
    data_dir: Path | None,
    party_sizes: tuple[int, ...] | None = None,
) -> BenchData:
    """Draw or read a data set. The seed decides drawn data and random splits.

    `party_sizes` are numbers of columns of the parties, for data sets that are split at random;
    None splits evenly. Numbers of parties that the paper has no split for are split at random.
    """
    if name not in ALL_SETS:
        raise ParameterError(f"data must be one of {', '.join(ALL_SETS)}, got {name!r}")
    labels = None
    if name == "mixed-gaussian":
        drawn = mixed_gaussian(
            n=recipe.n,
            n_columns=recipe.n_columns,
            n_clusters=recipe.n_clusters,
            std=recipe.std,
            random_state=seed,
        )
        rows, labels = drawn.rows, drawn.labels
    elif name in FAMILIES:
        rows = draw(name, n=recipe.n, d=recipe.n_columns, k=recipe.n_clusters, seed=seed)
    elif name == TAXI_SAMPLE:
        rows = taxi_sample(data_dir)
    else:
        rows = read_rows(name, data_dir)
    if n_parties in PUBLISHED_SPLITS.get(name, {}):
        columns = [np.array(part) for part in PUBLISHED_SPLITS[name][n_parties]]
    else:
        rng = np.random.default_rng([seed, n_parties])
        columns = split_columns(rows, n_parties, rng=rng, sizes=party_sizes)
    return BenchData(rows=rows, labels=labels, party_columns=tuple(columns))


def split_columns(
    rows: FloatArray,
    n_parties: int,
    *,
    rng: np.random.Generator,
    sizes: Sequence[int] | None = None,
) -> list[IntArray]:
    """Deal the columns of `rows`, shape (n, d), out to parties at random.

    Args:
        rows: The table.
        n_parties: Number of parties.
        rng: Decides who gets which columns.
        sizes: How many columns each party gets; None deals them out as evenly as possible.

    Returns:
        For each party the sorted positions of its columns.
    """
    d = rows.shape[1]
    _validate.at_least(1, n_parties=n_parties)
    if n_parties > d:
        raise ParameterError(
            f"n_parties must be at most the number of columns {d}, got {n_parties}"
        )
    shuffled = rng.permutation(d)
    if sizes is None:
        return [np.sort(part) for part in np.array_split(shuffled, n_parties)]
    if len(sizes) != n_parties or min(sizes) < 1 or sum(sizes) != d:
        raise ParameterError(
            f"sizes must be {n_parties} numbers from 1 on that add up to {d}, got {tuple(sizes)}"
        )
    return [np.sort(part) for part in np.split(shuffled, np.cumsum(sizes)[:-1])]
