"""Data sets on which no constant of splitmeans was ever chosen: they judge those that were.

Three are drawn, of a different kind than mixed Gaussian data; one is a file of 5,550 taxi trips
that is in no other benchmark.
"""

from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.data_files import scaled, taxi_rows
from splitmeans._types import FloatArray
from splitmeans.errors import DataError, ParameterError

TAXI_SAMPLE = "taxi-sample"
_TAXI_SAMPLE_FILE = "taxi_kaggle_sample.parquet"

# Values beyond these quantiles are set to them, as public bounds in a study would.
_TAILS = 0.005
_DEGREES_OF_FREEDOM = 3
_LARGEST_OVER_SMALLEST = 20


class Family(Protocol):
    """A kind of data."""

    def __call__(self, *, n: int, d: int, k: int, rng: np.random.Generator) -> FloatArray:
        """Draw n rows of d columns in [-1, 1], from k sources where it has any."""


def heavy_tails(*, n: int, d: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Correlated columns with heavy tails, half of them skew, and no clusters."""
    factors = max(2, d // 3)
    loads = rng.normal(size=(factors, d))
    rows = rng.standard_t(_DEGREES_OF_FREEDOM, size=(n, factors)) @ loads
    rows += rng.standard_t(_DEGREES_OF_FREEDOM, size=(n, d))
    rows /= rows.std(axis=0)
    skew = rng.permutation(d) < d // 2
    return _within_tails(np.where(skew, np.exp(np.clip(rows, -4, 4) / 2), rows))


def uneven_clusters(*, n: int, d: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Overlapping clusters, each of its own shape; the largest has 20 times the smallest."""
    shares = np.geomspace(1, _LARGEST_OVER_SMALLEST, k)
    labels = rng.choice(k, size=n, p=shares / shares.sum())
    centres = rng.uniform(-0.6, 0.6, size=(k, d))
    rows = np.empty((n, d))
    for cluster in range(k):
        inside = np.flatnonzero(labels == cluster)
        shape = rng.normal(size=(d, d)) / np.sqrt(d) * rng.uniform(0.15, 0.4)
        rows[inside] = centres[cluster] + rng.normal(size=(len(inside), d)) @ shape
    return np.clip(rows, -1, 1)


def counts_and_zeros(*, n: int, d: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Whole numbers: counts, sums that are mostly zero, and grades, by k kinds of users."""
    kinds = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 3.0)))
    columns = []
    for column in range(d):
        rates = rng.gamma(1.5, 2.0, size=k)[kinds]
        if column % 3 == 0:
            columns.append(rng.poisson(rates))
        elif column % 3 == 1:
            used = rng.random(n) < rng.uniform(0.05, 0.6, size=k)[kinds]
            columns.append(np.where(used, np.rint(rng.lognormal(np.log(10 * rates + 1), 0.6)), 0))
        else:
            columns.append(rng.binomial(6, rng.uniform(0.1, 0.9, size=k)[kinds]))
    return _within_tails(np.column_stack(columns).astype(np.float64))


def thin_tail(*, n: int, d: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Sums over years: most users in one corner, and a thin tail, by a few kinds of users.

    How long a user is active is behind all columns. Bounds are the largest values.
    """
    tail = rng.integers(3)
    if tail == 0:
        years = rng.gamma(0.6, 5.0, size=n)
    elif tail == 1:
        years = rng.lognormal(0.8, 1.0, size=n)
    else:
        years = 2 * rng.pareto(3.0, size=n)
    years = 1 + np.minimum(years, 25.0)
    kinds = rng.choice(4, size=n, p=[0.45, 0.3, 0.15, 0.1])
    rates = rng.gamma(0.7, 1.0, size=(4, d))
    # Those who are good at it stay longer.
    growth = rng.uniform(1.0, 1.6, size=d)
    rows = years[:, np.newaxis] ** growth * rates[kinds]
    rows *= rng.lognormal(0.0, 0.35, size=(n, 1)) * rng.lognormal(0.0, 0.4, size=(n, d))
    return scaled(np.where(rng.random((n, d)) < 0.15, 0.0, rows))


def spending(*, n: int, d: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Money by category: tails of a power, together in all columns, and many zeros.

    Bounds are round numbers above the largest value.
    """
    budget = (1 + rng.pareto(rng.uniform(2.0, 3.0), size=n)) * rng.lognormal(0.0, 0.5, size=n)
    shares = rng.gamma(0.5, 1.0, size=(n, d)) * rng.gamma(2.0, 0.5, size=d)
    rows = np.where(rng.random((n, d)) < rng.uniform(0.1, 0.6, size=d), 0.0, shares)
    rows = np.rint(100 * budget[:, np.newaxis] * rows)
    largest = rows.max(axis=0)
    unit = 10 ** np.floor(np.log10(largest))
    return np.asarray(2 * rows / (np.ceil(largest / unit) * unit) - 1)


FAMILIES: dict[str, Family] = {
    "heavy-tails": heavy_tails,
    "uneven-clusters": uneven_clusters,
    "counts-and-zeros": counts_and_zeros,
    "thin-tail": thin_tail,
    "spending": spending,
}


def taxi_sample(data_dir: Path | None) -> FloatArray:
    """Return the trips, prepared as the paper's taxi table."""
    if data_dir is None:
        raise ParameterError(f"this data set needs --data-dir with {_TAXI_SAMPLE_FILE}")
    path = data_dir / _TAXI_SAMPLE_FILE
    if not path.is_file():
        raise DataError(f"{data_dir}: has no {_TAXI_SAMPLE_FILE}")
    return taxi_rows(path)


def _within_tails(rows: FloatArray) -> FloatArray:
    low, high = np.quantile(rows, [_TAILS, 1 - _TAILS], axis=0)
    return scaled(np.clip(rows, low, high))


def draw(name: str, *, n: int, d: int, k: int, seed: int) -> FloatArray:
    """Draw one of the families."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(name), 0x4E1D])
    return FAMILIES[name](n=n, d=d, k=k, rng=rng)
