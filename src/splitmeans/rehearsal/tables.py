"""Made-up tables of a study's shape, from public facts alone: names, bounds, categories, id rules.

They look like what the study allows, odd corners included: values at the bounds, every category,
missing values where the study takes them, users who are at some parties only.
"""

import uuid
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from splitmeans._types import IntArray
from splitmeans.study import Column, Study

# Enough for every cluster of a party to have rows, few enough for seconds.
_MOST_USERS = 2000
# Groups that made-up users come in, so that clustering has something to find.
_GROUPS = 4
# One made-up value in so many is missing, where the study says what a missing value becomes, and
# one user in so many is not at a party, where user sets may differ.
_ONE_MISSING_IN, _ONE_ABSENT_IN = 20, 5
# Of the values of a column without public bounds, and categories beside those that are listed.
_ANY_WIDTH = 1000.0
_UNLISTED = ("made-up a", "made-up b", "made-up c")


def made_up_tables(study: Study, *, rng: np.random.Generator) -> Mapping[str, pa.Table]:
    """Return one table for each party, with its id column and its columns, rows in any order."""
    n_users = min(study.assumed_users, _MOST_USERS)
    ids = _ids(study, n_users)
    groups = rng.integers(_GROUPS, size=n_users)
    tables = {}
    for party in study.parties:
        present = rng.permutation(n_users)[: max(1, n_users - n_users // _ONE_ABSENT_IN)]
        columns = {party.id_column: ids.take(pa.array(present))}
        columns |= {
            column.name: _values(column, groups[present], rng=rng) for column in party.columns
        }
        tables[party.name] = pa.table(columns)
    return tables


def _ids(study: Study, n_users: int) -> pa.Array:
    if study.id_rules.type == "integer":
        return pa.array(range(1, n_users + 1))
    if study.id_rules.type == "uuid":
        return pa.array([str(uuid.UUID(int=number)) for number in range(1, n_users + 1)])
    if study.id_rules.type == "email":
        return pa.array([f"made-up-{number}@example.org" for number in range(1, n_users + 1)])
    if study.id_rules.type == "phone":
        return pa.array([f"+9990{number:09}" for number in range(1, n_users + 1)])
    return pa.array([f"made-up {number}" for number in range(1, n_users + 1)])


def _values(column: Column, groups: IntArray, *, rng: np.random.Generator) -> pa.Array:
    mask = np.zeros(len(groups), dtype=bool)
    if column.missing != "error":
        mask = rng.integers(_ONE_MISSING_IN, size=len(groups)) == 0
    if column.is_categorical:
        listed = (*column.categories, *(_UNLISTED if column.is_open else ()))
        favourite = rng.integers(len(listed), size=_GROUPS)[groups]
        anything = rng.integers(len(listed), size=len(groups))
        chosen = np.where(rng.random(len(groups)) < 0.7, favourite, anything)
        return pa.array(np.array(listed, dtype=object)[chosen], mask=mask)
    low, high = _range(column)
    # Shares of the range, some of them beyond it: those are clipped, as in a real table.
    share = np.clip(rng.random(_GROUPS)[groups] + rng.normal(scale=0.1, size=len(groups)), 0, 1)
    return pa.array(low + share * (high - low), mask=mask)


def _range(column: Column) -> tuple[float, float]:
    """Return the column's bounds, or any where the run learns them."""
    low, high = column.low, column.high
    if low is None:
        low = 0.0 if high is None else high - _ANY_WIDTH
    return low, low + _ANY_WIDTH if high is None else high
