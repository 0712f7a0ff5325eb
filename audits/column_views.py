"""What an observer gets from what a party learns of its columns, with and without a user.

Of bounds the counts of every round are looked at, of which a party releases far less; of categories
the names that are released. Noise is independent for every column and every category, so one call
with many of them is many trials.
"""

import math

import numpy as np

from audits.case import Scores, scores_of_calls
from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.halves import to_halves
from splitmeans.party.open_categories import learn_categories
from splitmeans.party.private_bounds import count_round
from splitmeans.party.range_search import Bins
from splitmeans.plan.bounds_stage import BoundsLaw, PrivateColumn
from splitmeans.plan.categories_stage import CategoriesLaw
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.parties import MOST_NAMES
from splitmeans.table.checks.open_columns import name_hashes
from splitmeans.table.walk.memory import MemoryRows

# Users beside the one who comes or goes, all in the other bin.
_OTHERS = 5
# Trials of one call.
_AT_ONCE = 500
_COLUMN = PrivateColumn(place=0, low=None, high=None)


def bounds_counts(law: BoundsLaw, trials: int, noise: NoiseSource) -> Scores:
    """The noisy counts of all rounds in the bin of the user, weighted as an observer would.

    A trial is as many columns as the law has; the user is in the same bin of each.
    """
    together = len(law.columns)
    columns = (_COLUMN,) * (together * _AT_ONCE)
    bins = (Bins(low=-1.0, high=1.0, number=2),) * len(columns)

    def one_call(present: bool) -> FloatArray:
        rows = MemoryRows(_rows(_OTHERS, -0.5, *([0.5] if present else [])))
        score = np.zeros(len(columns))
        for scale in law.scales:
            counts = count_round(columns, rows, bins, scale=scale, noise=noise)
            score += counts[:, 1] / float(scale) ** 2
        return np.asarray(score.reshape(-1, together).sum(axis=1))

    return scores_of_calls(one_call, trials=trials)


def released_category(law: CategoriesLaw, trials: int, noise: NoiseSource) -> Scores:
    """Whether a category is released that has as many users as the threshold, or one more."""
    others = math.floor(law.threshold)

    def one_call(present: bool) -> FloatArray:
        return _released(law, others + present, noise)

    return scores_of_calls(one_call, trials=trials)


def category_of_one(law: CategoriesLaw, trials: int, noise: NoiseSource) -> Scores:
    """Whether a category is released that the user alone has."""

    def one_call(present: bool) -> FloatArray:
        return _released(law, int(present), noise)

    return scores_of_calls(one_call, trials=trials)


def _released(law: CategoriesLaw, users: int, noise: NoiseSource) -> FloatArray:
    """Return for each of some categories with so many users whether it is released, as 0 or 1.

    Noise is independent for every category, so each is a trial.
    """
    (column,) = law.columns
    names = [f"c{number:02}" for number in range(MOST_NAMES)]
    rows = np.empty((users * len(names), 2), dtype=np.int64)
    to_halves(np.repeat(name_hashes(names), users), out=rows)
    there = {column.name: names if users else []}
    (found,) = learn_categories(law, MemoryRows(rows), there, noise=noise)
    return np.isin(names, found).astype(np.float64)


def _rows(others: int, value: float, *more: float) -> IntArray:
    """Return rows of one private column, as a table has them before anything is learned."""
    values = np.array([value] * others + list(more))
    rows = np.empty((len(values), 2), dtype=np.int64)
    to_halves(values, out=rows)
    return rows
