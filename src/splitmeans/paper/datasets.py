"""The data of the evaluation (paper, section 6 and appendix): what is drawn, and who has what.

Taxi, loan and letter come from files (`benchmarks/data_files.py`).
"""

from dataclasses import dataclass, field

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, LabelArray

# The appendix: columns with high correlation at different parties, counted from 0.
PUBLISHED_SPLITS = {
    "taxi": {2: ((0, 4, 5, 2), (1, 6, 7, 3)), 4: ((6, 4), (2, 1), (5, 7), (0, 3))},
    "letter": {
        2: ((0, 2, 5, 6, 8, 11, 13, 14), (1, 3, 4, 7, 9, 10, 12, 15)),
        4: ((0, 5, 8, 13), (1, 4, 9, 15), (2, 6, 11, 14), (3, 7, 10, 12)),
    },
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Pooled rows in [-1, 1], shape (n, m), with their true classes, shape (n,)."""

    name: str
    rows: FloatArray = field(repr=False)
    labels: LabelArray = field(repr=False)


def mixed_gaussian(
    n: int = 20_000,
    *,
    n_columns: int = 8,
    n_clusters: int = 5,
    std: float = 0.1,
    random_state: int | np.random.Generator | None = None,
) -> Dataset:
    """Draw Gaussian clusters around centres uniform in [-1, 1]^m, clipped to that range.

    Cluster sizes are proportional to 0.8 + U(0, 1), as in the authors' code; rows are in random
    order.

    >>> mixed_gaussian(100, random_state=0).rows.shape
    (100, 8)
    """
    _validate.at_least(1, n=n, n_columns=n_columns, n_clusters=n_clusters)
    _validate.positive(std=std)
    rng = np.random.default_rng(random_state)
    centres = rng.uniform(-1, 1, size=(n_clusters, n_columns))
    shares = 0.8 + rng.uniform(size=n_clusters)
    # Rounding the running total gives sizes that are within one row of the shares and add up to n.
    ends = np.rint(np.cumsum(shares) / shares.sum() * n).astype(np.int64)
    labels = rng.permutation(np.repeat(np.arange(n_clusters), np.diff(ends, prepend=0)))
    rows = rng.normal(centres[labels], std)
    return Dataset(name="mixed Gaussian", rows=np.clip(rows, -1, 1), labels=labels.astype(np.int32))
