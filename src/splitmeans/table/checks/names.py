"""The columns that a study needs of a party's table, found by name."""

import difflib
import re
from collections.abc import Iterable, Sequence

from splitmeans.study import PartySpec
from splitmeans.table.checks.problems import Problem

# A table may have hundreds of columns; the nearest names come first.
_LISTED = 20
# What no column is called: a file without a line of names has values there, which are not shown.
_VALUE = re.compile(r"\s*[+-]?[\d.,:/ -]+\s*|\s*")


def study_columns(party: PartySpec, names: Sequence[str]) -> list[int]:
    """Return the places of the columns that the study needs, in the table's order."""
    wanted = {party.id_column, *(column.name for column in party.columns)}
    return [place for place, name in enumerate(names) if name in wanted]


def name_problems(
    party: PartySpec, names: Iterable[str], *, what: str = "table", with_ids: bool
) -> list[Problem]:
    """Return which columns of the study are not there, or twice.

    `what` is the kind of table, in words. Without `with_ids` it need not have the id column; two of
    them are still refused.
    """
    listed = list(names)
    found: list[Problem] = []
    needed = [(party.id_column, "id column"), *((c.name, "column") for c in party.columns)]
    for name, kind in needed:
        times = listed.count(name)
        if times == 0 and (with_ids or kind == "column"):
            rule = (
                f"must have the {kind} {name!r} of the study; the {what} has no column of this "
                f"name (case and spaces count), {_those_there(name, listed)}"
            )
            found.append(Problem(rule=rule))
        elif times > 1:
            rule = f"the {what} must have column {name!r} once, not twice or more"
            found.append(Problem(rule=rule))
    return found


def _those_there(wanted: str, names: list[str]) -> str:
    if any(_VALUE.fullmatch(name) for name in names):
        return "and what it has for names look like values: is the line with the names missing?"
    near = sorted(dict.fromkeys(names), key=lambda name: -_likeness(wanted, name))
    more = f" and {len(near) - _LISTED} more" if len(near) > _LISTED else ""
    return f"it has {', '.join(repr(name) for name in near[:_LISTED])}{more}"


def _likeness(one: str, other: str) -> float:
    first, second = (re.sub(r"[\W_]+", "", name).casefold() for name in (one, other))
    return difflib.SequenceMatcher(None, first, second).ratio()
