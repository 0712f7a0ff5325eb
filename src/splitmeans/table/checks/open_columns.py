"""Categories that a run learns: hashes of them in rows, and the names in a party's own table.

A row keeps a hash of its category until the run has learned which categories have a level of their
own. The names themselves stay beside the rows, at the party.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans._types import NO_VALUE, IntArray
from splitmeans.study import Column
from splitmeans.study.parties import OTHER_LEVEL, SKIP
from splitmeans.table.checks.category_columns import read_categories
from splitmeans.table.checks.problems import Problem
from splitmeans.table.columns import ColumnValues, normalised_text
from splitmeans.table.plain_arrow import numbers_of

# What stands for a missing category; no name has it.
MISSING_HASH = 0
_BYTES = 8


def name_hashes(names: Iterable[str]) -> IntArray:
    """Return 64 bits for each name in normal form C; two names share them once in 2^64."""
    found = [
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=_BYTES).digest(), "big")
        for name in normalised_text(pa.array(list(names), pa.large_string())).to_pylist()
    ]
    hashes = np.array(found, dtype=np.uint64).view(np.int64)
    return np.where(hashes == MISSING_HASH, 1, hashes)


def read_open(column: Column, values: Any, *, first_row: int) -> ColumnValues:
    """Return the hash of each row's category, and the names that there are."""
    text, problems = read_categories(column, values, first_row=first_row)
    if text is None:
        return ColumnValues(None, problems)
    names = text.drop_null().unique()
    hashes = name_hashes(names.to_pylist())
    # The place behind all names is that of a missing one.
    places = numbers_of(pc.index_in(text, value_set=names), missing=len(names))
    hashes = np.append(hashes, MISSING_HASH)[places]
    return ColumnValues(hashes, problems, tuple(names.to_pylist()))


def shared_hashes(names: Mapping[str, Sequence[str]]) -> list[Problem]:
    """Return the problems of columns with two categories of one hash: rows do not tell them apart.

    Who makes names on purpose finds two of one hash after 2^32 tries. A user with one of them could
    then be counted among those with the other, and show its name (`party.open_categories`).
    """
    rule = (
        "must not hold two categories with the same 64-bit hash, which do not come by chance; "
        "write one of them differently"
    )
    return [
        Problem(column=column, rule=rule)
        for column, own in names.items()
        if len(np.unique(name_hashes(own))) < len(own)
    ]


def hashes_to_codes(column: Column, hashes: IntArray) -> IntArray:
    """Return the position of each row's level in a column whose categories were learned."""
    other = column.levels.index(OTHER_LEVEL)
    known = name_hashes(column.categories)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known, hashes, sorter=order), len(known) - 1)
    codes = np.where(known[order][at] == hashes, order[at], other)
    # Behind the categories: the level of missing values, or equal shares of all.
    missing = NO_VALUE if column.missing == SKIP else len(column.categories)
    return np.where(hashes == MISSING_HASH, missing, codes).astype(np.int64)
