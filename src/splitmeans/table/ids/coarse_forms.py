"""Coarser forms of ids, only to find out why two parties' user sets differ.

Parties whose study says so (`ids.explain_mismatch`) compare all their ids in each of these forms as
well, by the private test that they compare their users by (`party/equal_users.py`). A form that
agrees where the ids themselves do not says what to change. Ids are never replaced by a folded form:
two users could become one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from splitmeans.table.ids.forms import BLANK_ENDS, INVISIBLE, ODD_SPACE

_NUMBER = r"\A\+?(-?)0*([0-9]+?)(?:\.0+)?\z"
_UUID_MARKS = r"\Aurn:uuid:|[{}-]"


@dataclass(frozen=True, kw_only=True)
class Fold:
    """A coarser form of ids.

    Attributes:
        name: What the test of this form is bound to.
        fold: Takes canonical ids to that form, element by element.
        advice: What to do if the ids agree in that form, after "the ids agree once ".
    """

    name: str
    fold: Callable[[pa.LargeStringArray], pa.LargeStringArray]
    advice: str


def _trimmed(ids: pa.LargeStringArray) -> pa.LargeStringArray:
    return pc.replace_substring_regex(ids, pattern=BLANK_ENDS, replacement="")


def _number(ids: pa.LargeStringArray) -> pa.LargeStringArray:
    return pc.replace_substring_regex(_trimmed(ids), pattern=_NUMBER, replacement=r"\1\2")


def _uuid(ids: pa.LargeStringArray) -> pa.LargeStringArray:
    return pc.replace_substring_regex(_lower(ids), pattern=_UUID_MARKS, replacement="")


def _lower(ids: pa.LargeStringArray) -> pa.LargeStringArray:
    return pc.utf8_lower(_trimmed(ids))


def _look(ids: pa.LargeStringArray) -> pa.LargeStringArray:
    spaces = pc.replace_substring_regex(ids, pattern=ODD_SPACE, replacement=" ")
    visible = pc.replace_substring_regex(spaces, pattern=INVISIBLE, replacement="")
    return _trimmed(pc.utf8_normalize(visible, form="NFKC"))


def _letters_and_digits(ids: pa.LargeStringArray) -> pa.LargeStringArray:
    bare = pc.replace_substring_regex(_look(ids), pattern=r"[^\p{L}\p{N}]", replacement="")
    return _number(pc.utf8_lower(bare))


# From the finest to the coarsest: the first that agrees is the advice.
FOLDS = (
    Fold(
        name="trimmed",
        fold=_trimmed,
        advice='blanks at the ends are dropped: set ids.type = "text" in a new study',
    ),
    Fold(
        name="number",
        fold=_number,
        advice='leading zeros are dropped: set ids.type = "integer" in a new study',
    ),
    Fold(
        name="case",
        fold=_lower,
        advice="upper and lower case are the same: write them in one case at every party (for "
        'UUIDs set ids.type = "uuid" in a new study)',
    ),
    Fold(
        name="uuid",
        fold=_uuid,
        advice='hyphens and case are dropped: for UUIDs set ids.type = "uuid" in a new study, else '
        "write them the same way at every party",
    ),
    Fold(
        name="look",
        fold=_look,
        advice="characters that look alike are the same (full-width digits, unusual spaces, "
        "invisible characters): clean them where they come from",
    ),
    Fold(
        name="letters-and-digits",
        fold=_letters_and_digits,
        advice="only letters and digits count, without case: agree on one way to write them",
    ),
)
_BY_NAME = {item.name: item for item in FOLDS}


def folded(ids: pa.LargeStringArray, name: str) -> pa.LargeStringArray:
    """Return ids in the coarser form of this name."""
    return _BY_NAME[name].fold(ids)


def advice(agree: Iterable[bool]) -> str:
    """Say what the comparison of all forms, in order, tells about ids that differ."""
    for item, same in zip(FOLDS, agree, strict=True):
        if same:
            return f"the ids agree once {item.advice}"
    return (
        "they differ in more than the way ids are written: keep the ids that all parties have, "
        'or agree on user_sets = "partial"'
    )
