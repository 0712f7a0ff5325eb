"""Ids: one canonical form of a user's id, equal at every party.

The canonical form is text in Unicode normal form C, and its bytes are the UTF-8 of that text. A
whole number is written in decimal, so 42 at one party and "42" at another are the same user. What
else counts as the same is said by the study (`study/id_rules.py`, `forms.py`) and by default
nothing: silent folding could merge two users into one.

Errors name row numbers, never values: an id is personal data and error texts end in log files.
"""

import os
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans._types import IntArray
from splitmeans.errors import DataError
from splitmeans.kernels.siphash import hash_ids, string_buffers
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.table.checks.problems import ROWS, Problem, rows_problem, rows_problem_of
from splitmeans.table.columns import read_array
from splitmeans.table.ids.forms import FORMS, Check, matches
from splitmeans.table.plain_arrow import flags_of
from splitmeans.table.walk.interface import Records, UserBlock, Users

_NO_IDS: pa.LargeStringArray = pa.array([], pa.large_string())
_PATTERN = "ids must fit the study's ids.pattern"


def canonical_text(values: Any, *, rules: IdRules = AS_IS) -> pa.LargeStringArray:
    """Return ids in canonical form, in the order given; they are not compared.

    Values are text or whole numbers: a list, a NumPy array, a pandas or polars Series, or an Arrow
    array; what else is taken depends on the rules.

    Raises:
        DataError: If an id is missing, empty or breaks the rules.
    """
    text, problems = check_ids(values, rules=rules)
    if problems:
        raise DataError("; ".join(str(problem) for problem in problems))
    return text


def check_ids(
    values: Any, *, first_row: int = 0, rules: IdRules = AS_IS
) -> tuple[pa.LargeStringArray, list[Problem]]:
    """Return ids in canonical form and what is wrong with them; see `canonical_text`.

    With problems there is less text than there are rows.
    """
    try:
        column = read_array(values, what="ids")
    except DataError as problem:
        return _NO_IDS, [Problem(rule=str(problem))]
    missing = flags_of(column.is_null())
    found = rows_problem(missing, f"ids must not be missing; see {ROWS}", first_row=first_row)
    if pa.types.is_null(column.type):
        return _NO_IDS, found
    numbers = np.flatnonzero(~missing) + first_row
    try:
        text, wrong = _in_form(column.drop_null() if found else column, rules, numbers)
    except DataError as problem:
        return _NO_IDS, [*found, Problem(rule=str(problem))]
    except pa.ArrowException:
        return _NO_IDS, [*found, Problem(rule="ids must be valid UTF-8 text")]
    return text, [*found, *wrong]


def _in_form(
    column: pa.Array, rules: IdRules, numbers: IntArray
) -> tuple[pa.LargeStringArray, list[Problem]]:
    """Return ids, none of them missing, in the study's form; a wrong one breaks one rule."""
    form = FORMS[rules.type]
    text = form.read(column)
    problems: list[Problem] = []
    left = np.ones(len(text), dtype=np.bool_)

    def refuse(flags: Any, rule: str) -> None:
        rows = numbers[flags & left]
        problems.extend(rows_problem_of(rows, f"{rule}; see {ROWS}"))
        left[flags] = False

    def check(checks: tuple[Check, ...]) -> None:
        for rule, pattern, must_match in checks:
            flags = flags_of(pc.match_substring_regex(text, pattern=pattern))
            refuse(flags != must_match, rule)

    if form.plain is None or not matches(text, form.plain):
        check(form.before)
        text = form.normalised(text, rules)
        check(form.after)
    # By length, which Arrow has already: no text is compared.
    refuse(np.diff(string_buffers(text)[1]) == 0, "ids must not be empty text")
    if rules.whole_pattern is not None:
        check((Check(_PATTERN, rules.whole_pattern),))
    return text, problems


def repeated_ids(users: Users, *, rules: IdRules = AS_IS) -> list[Problem]:
    """Return the problem of users of whom two have the same id, if there are such.

    Ids are compared by a hash of 64 bits under a key drawn for this check alone, so the ids of a
    table that memory cannot hold are compared as well; where some agree, under a second key too.
    """
    repeated = _repeated(users)
    if len(repeated):
        repeated = np.intersect1d(repeated, _repeated(users))
    return rows_problem_of(
        repeated,
        f"ids must be different ({FORMS[rules.type].compared}); an earlier row has the same id as "
        f"{ROWS}; keep one row for each user",
    )


def _repeated(users: Users) -> IntArray:
    records_of = partial(_numbered, key=os.urandom(16))
    return np.concatenate(list(users.in_tag_order(records_of, finish=_repeated_rows)))


def _numbered(block: UserBlock, *, key: bytes) -> Records:
    numbers = np.arange(block.start, block.start + len(block.ids), dtype=np.int64)
    return hash_ids(key, block.ids)[:, 0], numbers


def _repeated_rows(records: Records) -> IntArray:
    """Return the row numbers of all records but the first of each tag."""
    tags, numbers = records
    return np.asarray(numbers[1:][tags[1:] == tags[:-1]])
