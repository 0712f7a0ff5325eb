"""Data sets on which no constant of splitmeans was ever chosen: they judge those that were.

`FAMILIES` are drawn, of other kinds than mixed Gaussian data, and all numbers; `mixed` has tables
with categories and with missing values. One table is a file of 5,550 taxi trips.
"""

from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.data_files import scaled, taxi_rows
from splitmeans._types import FloatArray
from splitmeans.errors import DataError, ParameterError

TAXI_SAMPLE = "taxi-sample"
TAXI_SAMPLE_FILE = "taxi_kaggle_sample.parquet"

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


def zero_inflated(*, n: int, d: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Log-normal amounts that 60 to 95 % of the users do not have, by k kinds of users."""
    kinds = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 3.0)))
    used = rng.random((n, d)) < rng.beta(0.6, 2.4, size=(k, d)).clip(0.05, 0.4)[kinds]
    sizes = rng.normal(0, 1, size=(k, d))[kinds] + rng.normal(0, 0.6, size=(n, d))
    return _within_tails(np.where(used, np.exp(sizes), 0))


# The position of a name is part of the seed: new ones come last.
FAMILIES: dict[str, Family] = {
    "heavy-tails": heavy_tails,
    "uneven-clusters": uneven_clusters,
    "counts-and-zeros": counts_and_zeros,
    "zero-inflated": zero_inflated,
}


def taxi_sample(data_dir: Path | None) -> FloatArray:
    """Return the trips, prepared as the paper's taxi table."""
    if data_dir is None:
        raise ParameterError(f"this data set needs --data-dir with {TAXI_SAMPLE_FILE}")
    path = data_dir / TAXI_SAMPLE_FILE
    if not path.is_file():
        raise DataError(f"{data_dir}: has no {TAXI_SAMPLE_FILE}")
    return taxi_rows(path)


def _within_tails(rows: FloatArray) -> FloatArray:
    low, high = np.quantile(rows, [_TAILS, 1 - _TAILS], axis=0)
    return scaled(np.clip(rows, low, high))


def draw(name: str, *, n: int, d: int, k: int, seed: int) -> FloatArray:
    """Draw one of the families."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(name), 0x4E1D])
    return FAMILIES[name](n=n, d=d, k=k, rng=rng)
