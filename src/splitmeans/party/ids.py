"""Ids: one canonical form of a user's id, equal at every party.

The canonical form is text in Unicode normal form C, and its bytes are the UTF-8 of that text. A
whole number is written in decimal, so 42 at one party and "42" at another are the same user. What
else counts as the same is said by the study (`idrules.py`, `id_forms.py`) and by default nothing:
silent folding could merge two users into one.

Errors name row numbers, never values: an id is personal data and error texts end in log files.
"""

import os
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans._types import IntArray
from splitmeans.engine.memory import MemoryUsers
from splitmeans.engine.walk import Records, UserBlock, Users
from splitmeans.errors import DataError
from splitmeans.idrules import AS_IS, IdRules
from splitmeans.kernels.siphash import hash_ids
from splitmeans.party.columns import name_row_numbers, name_rows, read_array, refuse_rows
from splitmeans.party.id_forms import COMPARED, to_form


def canonical_ids(values: Any, *, rules: IdRules = AS_IS) -> pa.LargeStringArray:
    """Return ids in canonical form, in the order given.

    Args:
        values: Text or whole numbers: a list, a NumPy array, a pandas or polars Series, or an
            Arrow array; what else is taken depends on the rules.
        rules: The study's rules for ids.

    Raises:
        DataError: If there is no id, or an id is missing, empty, repeated (in canonical form)
            or breaks the rules.
    """
    text = canonical_text(values, rules=rules)
    if len(text) == 0:
        raise DataError("ids must have at least one row, got none")
    check_unique(MemoryUsers(ids=text, labels=np.zeros(len(text), dtype=np.int32)), rules=rules)
    return text


def canonical_text(
    values: Any, *, first_row: int = 0, rules: IdRules = AS_IS
) -> pa.LargeStringArray:
    """Return ids in canonical form without comparing them; see `canonical_ids`.

    `first_row` is the row number of the first one, for errors.
    """
    column = read_array(values, what="ids")
    missing = pc.is_null(column)
    if column.null_count:
        raise DataError(f"ids must not be missing; see {name_rows(missing, first_row=first_row)}")
    if pa.types.is_null(column.type):
        return pa.array([], pa.large_string())  # without rows: a missing id was refused just now
    text = to_form(column, rules=rules, first_row=first_row)
    refuse_rows(pc.equal(text, ""), "ids must not be empty text", first_row=first_row)
    if rules.whole_pattern is not None:
        fits = pc.match_substring_regex(text, pattern=rules.whole_pattern)
        refuse_rows(pc.invert(fits), "ids must fit the study's ids.pattern", first_row=first_row)
    return text


def check_unique(users: Users, *, rules: IdRules = AS_IS) -> None:
    """Refuse users of whom two have the same id.

    Ids are compared by a 128-bit hash under a key drawn for this check alone, so the ids of a
    table that memory cannot hold are compared as well.
    """
    records_of = partial(_numbered, key=os.urandom(16))
    repeated = np.concatenate(list(users.in_tag_order(records_of, finish=_repeated_rows)))
    if len(repeated):
        raise DataError(
            f"ids must be different ({COMPARED[rules.type]}); an earlier row "
            f"has the same id as {name_row_numbers(np.sort(repeated))}; keep one row for each user"
        )


def _numbered(block: UserBlock, *, key: bytes) -> Records:
    numbers = np.arange(block.start, block.start + len(block.ids), dtype=np.int64)
    return hash_ids(key, block.ids), numbers


def _repeated_rows(records: Records) -> IntArray:
    """Return the row numbers of all records but the first of each tag."""
    tags, numbers = records
    return np.asarray(numbers[1:][(tags[1:] == tags[:-1]).all(axis=1)])
