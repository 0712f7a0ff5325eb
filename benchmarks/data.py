"""All data sets by name: those of the paper with its division of columns, and the held-out ones.

Mixed Gaussian data is drawn by the documented recipe. The real ones come from files in a folder
that the user names (`--data-dir`), see `data_files`. Held-out kinds are drawn in `held_out`, and
here where values are missing or categories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data_files import find_file, read_rows
from benchmarks.held_out import FAMILIES, TAXI_SAMPLE, TAXI_SAMPLE_FILE, draw, taxi_sample
from benchmarks.synthetic.tables import load_table
from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.paper.datasets import PUBLISHED_SPLITS, mixed_gaussian

DATA_SETS = ("mixed-gaussian", "letter", "taxi", "loan")
MISSING, CATEGORIES = "missing-values", "credit-like"
# The registry of held-out kinds that are drawn again for each seed.
HELD_OUT = (*FAMILIES, MISSING, CATEGORIES)
DRAWN = ("mixed-gaussian", *HELD_OUT)
ALL_SETS = (*DATA_SETS, *HELD_OUT, TAXI_SAMPLE)

_MISSING_STREAM = 0x3155
# Shares of missing values of the columns of `MISSING`.
_LEAST_MISSING, _MOST_MISSING = 0.02, 0.4
# Two categories are as far from each other as the two ends of a column of numbers.
_LEVEL = np.sqrt(2.0)


@dataclass(frozen=True, kw_only=True)
class BenchData:
    """A pooled table and its division between parties.

    Attributes:
        rows: All columns as features in distance units, shape (n, d); numbers are in [-1, 1].
        labels: True classes, where there are any.
        party_columns: Who holds which features.
        frames: The parties' tables, where these have categories or missing values.
        parameters: The parameters of `VerticalKMeans` that describe the columns.
    """

    rows: FloatArray
    labels: LabelArray | None
    party_columns: tuple[IntArray, ...]
    frames: tuple[pd.DataFrame, ...] | None = None
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"bounds": (-1, 1)})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How data is drawn; the defaults are the paper's. Only mixed Gaussian data has a `std`."""

    n: int = 20_000
    n_columns: int = 8
    n_clusters: int = 5
    std: float = 0.1


def available(name: str, data_dir: Path | None) -> bool:
    """Return whether a data set is drawn or its file is there."""
    if name in DRAWN:
        return True
    if name == TAXI_SAMPLE:
        return data_dir is not None and (data_dir / TAXI_SAMPLE_FILE).is_file()
    return find_file(name, data_dir) is not None


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
    rng = np.random.default_rng([seed, n_parties])
    if name == CATEGORIES:
        return _with_categories(recipe.n, n_parties=n_parties, seed=seed, rng=rng)
    rows, labels = _numbers(name, seed=seed, recipe=recipe, data_dir=data_dir)
    if n_parties in PUBLISHED_SPLITS.get(name, {}):
        columns = [np.array(part) for part in PUBLISHED_SPLITS[name][n_parties]]
    else:
        columns = split_columns(rows, n_parties, rng=rng, sizes=party_sizes)
    if name == MISSING:
        return _with_missing(rows, columns, seed=seed)
    return BenchData(rows=rows, labels=labels, party_columns=tuple(columns))


def _numbers(
    name: str, *, seed: int, recipe: Recipe, data_dir: Path | None
) -> tuple[FloatArray, LabelArray | None]:
    """Return rows of numbers in [-1, 1], and true classes where there are any."""
    if name == "mixed-gaussian":
        drawn = mixed_gaussian(
            n=recipe.n,
            n_columns=recipe.n_columns,
            n_clusters=recipe.n_clusters,
            std=recipe.std,
            random_state=seed,
        )
        return drawn.rows, drawn.labels
    if name == TAXI_SAMPLE:
        return taxi_sample(data_dir), None
    if name in DATA_SETS:
        return read_rows(name, data_dir), None
    family = "uneven-clusters" if name == MISSING else name
    return draw(family, n=recipe.n, d=recipe.n_columns, k=recipe.n_clusters, seed=seed), None


def _with_missing(rows: FloatArray, columns: Sequence[IntArray], *, seed: int) -> BenchData:
    """Take values away, a share of each column's own; both sides put the midpoint there."""
    rng = np.random.default_rng([seed, _MISSING_STREAM])
    shares = rng.uniform(_LEAST_MISSING, _MOST_MISSING, size=rows.shape[1])
    missing = rng.random(rows.shape) < shares
    frame = pd.DataFrame(np.where(missing, np.nan, rows)).add_prefix("x")
    return BenchData(
        rows=np.where(missing, 0.0, rows),
        labels=None,
        party_columns=tuple(columns),
        frames=tuple(frame.iloc[:, own] for own in columns),
        parameters={"bounds": (-1, 1), "missing": "midpoint"},
    )


def _with_categories(n: int, *, n_parties: int, seed: int, rng: np.random.Generator) -> BenchData:
    """Draw the table of credits, which has seven columns of numbers and six of categories."""
    table = load_table(CATEGORIES, seed=seed, n=n, data_dir=None)
    frame = table.rows.to_pandas()
    bounds, categories = {}, {}
    features: list[FloatArray] = []
    places = []
    for column in table.columns:
        own = frame[column.name].to_numpy()
        if column.categories:
            categories[column.name] = list(column.categories)
            levels = np.array(column.categories)
            made = _LEVEL * ((own[:, np.newaxis] == levels) - 0.5)
        else:
            assert column.low is not None
            assert column.high is not None
            bounds[column.name] = column.low, column.high
            frame[column.name] = own = np.clip(own.astype(np.float64), column.low, column.high)
            made = (2 * (own - column.low) / (column.high - column.low) - 1)[:, np.newaxis]
        first = sum(part.shape[1] for part in features)
        places.append(np.arange(first, first + made.shape[1]))
        features.append(made)
    if n_parties in table.splits:
        parts = [np.flatnonzero(np.array(table.splits[n_parties]) == s) for s in range(n_parties)]
    else:
        parts = np.array_split(rng.permutation(len(places)), n_parties)
    return BenchData(
        rows=np.hstack(features),
        labels=None,
        party_columns=tuple(np.concatenate([places[at] for at in own]) for own in parts),
        frames=tuple(frame.iloc[:, own] for own in parts),
        parameters={"bounds": bounds, "categories": categories},
    )


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
