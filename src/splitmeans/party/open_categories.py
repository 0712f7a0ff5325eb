"""What a party counts of its rows to learn categories of its columns (`plan.categories_stage`).

Everything here sees raw rows, as they were read, and the names in the party's own table; what it
returns is the release.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from splitmeans._types import IntArray
from splitmeans.kernels.halves import whole_halves
from splitmeans.local.law import gaussian_counts
from splitmeans.plan.categories_stage import CategoriesLaw, OpenColumn, is_name
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.parties import MOST_NAMES
from splitmeans.study.raw_layout import HALVES
from splitmeans.table.checks.open_columns import name_hashes
from splitmeans.table.walk.interface import RawRows


def learn_categories(
    law: CategoriesLaw,
    rows: RawRows,
    names: Mapping[str, Sequence[str]],
    *,
    noise: NoiseSource,
) -> tuple[tuple[str, ...], ...]:
    """Return the categories of each open column that have more users than the threshold.

    Guarantee: the event of the law. Which names are counted depends on the rows; that is what the
    threshold is for.

    `names` are the categories in the table, by column.
    """
    return tuple(_learned(law, column, rows, names[column.name], noise) for column in law.columns)


def _learned(
    law: CategoriesLaw,
    column: OpenColumn,
    rows: RawRows,
    names: Sequence[str],
    noise: NoiseSource,
) -> tuple[str, ...]:
    listed = set(name_hashes(column.listed).tolist())
    # By name: which of two comes first must not depend on the rows, also where noise ties them.
    known = sorted(name for name in names if is_name(name))
    hashes = name_hashes(known)
    places = [at for at, one in enumerate(hashes.tolist()) if one not in listed]
    candidates = [known[at] for at in places]
    # Also without candidates: how often rows are walked must not depend on them.
    raw_counts = rows.total(partial(count_hashes, place=column.place, hashes=hashes[places]))
    noisy_counts = gaussian_counts(raw_counts, scale=law.scale, noise=noise)
    order = np.argsort(-noisy_counts, kind="stable")
    above = [at for at in order if noisy_counts[at] > law.threshold]
    return tuple(sorted(candidates[at] for at in above[:MOST_NAMES]))


def count_hashes(raw_rows: IntArray, *, place: int, hashes: IntArray) -> IntArray:
    """Count the rows with each hash in a column, shape (hashes,); a row has one or none of them."""
    own = whole_halves(raw_rows[:, place : place + HALVES])
    if len(hashes) == 0:
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(hashes)
    at = np.minimum(np.searchsorted(hashes, own, sorter=order), len(hashes) - 1)
    found = hashes[order][at] == own
    counts = np.zeros(len(hashes), dtype=np.int64)
    counts[order] = np.bincount(at[found], minlength=len(hashes))
    return counts
