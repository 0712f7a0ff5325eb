"""The data sets of the paper, scaled to [-1, 1], with the paper's division of columns.

Mixed Gaussian data is drawn by the documented recipe. The real ones come from files in a folder
that the user names (`--data-dir`), see `data_files`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.bench.data_files import read_rows
from splitmeans.datasets import mixed_gaussian, split_columns
from splitmeans.errors import ParameterError

DATA_SETS = ("mixed-gaussian", "letter", "taxi", "loan")

# The paper's appendix: columns with high correlation at different parties.
_TAXI_SPLITS = {2: ((0, 4, 5, 2), (1, 6, 7, 3)), 4: ((6, 4), (2, 1), (5, 7), (0, 3))}
_LETTER_SPLITS = {
    2: ((1, 3, 6, 7, 9, 12, 14, 15), (2, 4, 5, 8, 10, 11, 13, 16)),
    4: ((1, 6, 9, 14), (2, 5, 10, 16), (3, 7, 12, 15), (4, 8, 11, 13)),
}


@dataclass(frozen=True, kw_only=True)
class BenchData:
    """Pooled rows in [-1, 1], true classes where there are any, and who holds which columns."""

    rows: FloatArray
    labels: LabelArray | None
    party_columns: tuple[IntArray, ...]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How mixed Gaussian data is drawn; the defaults are the paper's."""

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
    None splits evenly.
    """
    rng = np.random.default_rng([seed, n_parties])
    labels = None
    match name:
        case "mixed-gaussian":
            drawn = mixed_gaussian(
                n=recipe.n,
                n_columns=recipe.n_columns,
                n_clusters=recipe.n_clusters,
                std=recipe.std,
                random_state=seed,
            )
            rows, labels = drawn.rows, drawn.labels
            columns = split_columns(rows, n_parties, rng=rng, sizes=party_sizes)
        case "letter":
            rows = read_rows(name, data_dir)
            # The paper counts attributes from 1.
            split = _named_split("letter", _LETTER_SPLITS, n_parties)
            columns = [np.array(part) - 1 for part in split]
        case "taxi":
            rows = read_rows(name, data_dir)
            columns = [np.array(p) for p in _named_split("taxi", _TAXI_SPLITS, n_parties)]
        case "loan":
            rows = read_rows(name, data_dir)
            columns = split_columns(rows, n_parties, rng=rng, sizes=party_sizes)
        case _:
            raise ParameterError(f"data must be one of {', '.join(DATA_SETS)}, got {name!r}")
    return BenchData(rows=rows, labels=labels, party_columns=tuple(columns))


def _named_split(
    name: str, splits: dict[int, tuple[tuple[int, ...], ...]], n_parties: int
) -> tuple[tuple[int, ...], ...]:
    if n_parties not in splits:
        raise ParameterError(f"the paper splits {name} for 2 and 4 parties, not for {n_parties}")
    return splits[n_parties]
