"""The `bounds` argument of `VerticalKMeans`: every way to write it, and words for what is no way.

Bounds are public facts about columns. They have no default: a wrong one clips every value of a
table in own units to the same point, and nothing in the result would say so.
"""

import difflib
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from splitmeans import _validate
from splitmeans.errors import ParameterError
from splitmeans.study.parties import PRIVATE

# The public bounds of a column; "private" where the run learns them.
Pair: TypeAlias = tuple[float, float] | str

_WAYS = (
    "bounds must be (low, high) for all columns; or a list with one entry per party, each a "
    "(low, high), a list with one (low, high) per column, or a dict by column name; or one dict by "
    "column name for all parties; 'private' may stand for any (low, high), and is learned"
)


def read_bounds(bounds: Any, names: Sequence[Sequence[str]]) -> list[list[Pair]]:
    """Return (low, high) for each party's columns.

    Raises:
        ParameterError: If it fits no way to write bounds, or more than one.
    """
    if bounds is None:
        raise ParameterError(_missing(names))
    if _is_pair(bounds):
        return [[_pair(bounds)] * len(own) for own in names]
    if isinstance(bounds, Mapping):
        refuse_unknown(bounds, [name for own in names for name in own], where="bounds")
        return [_by_name(bounds, own, where=f"party {at + 1}") for at, own in enumerate(names)]
    if not isinstance(bounds, Sequence | np.ndarray) or isinstance(bounds, str):
        raise ParameterError(f"{_WAYS}; got {_validate.shown(bounds)}")
    if len(bounds) != len(names):
        raise ParameterError(f"{_WAYS}; got {len(bounds)} entries for {len(names)} parties")
    _refuse_two_readings(bounds, names)
    return [
        _of_party(entry, own, at + 1)
        for at, (entry, own) in enumerate(zip(bounds, names, strict=True))
    ]


def _of_party(entry: Any, names: Sequence[str], number: int) -> list[Pair]:
    where = f"party {number}"
    if _is_pair(entry):
        return [_pair(entry)] * len(names)
    if isinstance(entry, Mapping):
        refuse_unknown(entry, names, where=f"bounds of {where}")
        return _by_name(entry, names, where=where)
    if not isinstance(entry, Sequence | np.ndarray) or isinstance(entry, str):
        raise ParameterError(f"{_WAYS}; got {_validate.shown(entry)} for {where}")
    _refuse_arrays_of_ends(entry, names, where=where)
    if len(entry) != len(names) or not all(_is_pair(one) for one in entry):
        columns = ", ".join(names)
        raise ParameterError(
            f"{_WAYS}; got {_validate.shown(entry)} for {where}, which has {len(names)} columns "
            f"({columns}); lows and highs in lists of their own are list(zip(lows, highs))"
        )
    return [_pair(one) for one in entry]


def _by_name(entry: Mapping[Any, Any], names: Sequence[str], *, where: str) -> list[Pair]:
    for name in names:
        if name not in entry:
            raise ParameterError(
                f"bounds must have every column; column {name!r} of {where} is missing: add "
                f"{name!r}: (low, high)"
            )
        if not _is_pair(entry[name]):
            raise ParameterError(
                f"bounds of column {name!r} must be (low, high), got {_validate.shown(entry[name])}"
            )
    return [_pair(entry[name]) for name in names]


def refuse_unknown(entry: Mapping[Any, Any], names: Sequence[str], *, where: str) -> None:
    """Refuse a dict by column name that has a name which is no column."""
    for name in entry:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            meant = f" (is {near[0]!r} meant?)" if near else ""
            listed = ", ".join(dict.fromkeys(names))
            raise ParameterError(
                f"{where} must name columns of the tables, got {_validate.shown(name)}{meant}; "
                f"the columns are {listed}"
            )


def _refuse_two_readings(bounds: Any, names: Sequence[Sequence[str]]) -> None:
    """As many pairs as parties, and as columns at every party: nobody can tell which is meant."""
    if not all(_is_pair(entry) for entry in bounds):
        return
    if len(bounds) == 1 or any(len(own) != len(bounds) for own in names):
        return
    pairs = [_pair(entry) for entry in bounds]
    per_party = ", ".join(f"[{', '.join([_text(pair)] * len(pairs))}]" for pair in pairs)
    per_column = ", ".join(
        [f"[{', '.join(_text(pair) for pair in pairs)}]"] * len(names),
    )
    raise ParameterError(
        f"bounds must say what its {len(pairs)} pairs are for: there are as many parties as "
        f"columns at each. One pair per party is bounds=[{per_party}]; one pair per column, "
        f"the same at every party, is bounds=[{per_column}]"
    )


def _refuse_arrays_of_ends(entry: Any, names: Sequence[str], *, where: str) -> None:
    """Two arrays for two columns may be lows and highs, as `X.min(axis=0)` gives them, or pairs.

    So may two lists in a tuple, which is how `(lows, highs)` is written.
    """
    arrays = isinstance(entry, np.ndarray) or all(isinstance(one, np.ndarray) for one in entry)
    lists = isinstance(entry, tuple) and all(isinstance(one, list) for one in entry)
    if not (arrays or lists) or len(names) != 2 or len(entry) != 2 or not all(map(_is_pair, entry)):
        return
    if any(isinstance(one, str) for one in entry):
        return
    (a, b), (c, d) = ((float(one[0]), float(one[1])) for one in entry)
    raise ParameterError(
        f"bounds of {where} must be a list of pairs: arrays, or a tuple of two lists, may be two "
        f"pairs or lows and highs for two columns. Column by column is [{_text((a, b))}, "
        f"{_text((c, d))}]; lows and highs are [{_text((a, c))}, {_text((b, d))}]"
    )


def _missing(names: Sequence[Sequence[str]]) -> str:
    listed = "; ".join(f"party {at + 1}: {', '.join(own)}" for at, own in enumerate(names))
    shown = ", ".join(
        "{" + ", ".join(f"{name!r}: (low, high)" for name in own) + "}" for own in names
    )
    return (
        "bounds must be given: public bounds of every column, from general knowledge and not from "
        f"the table. The columns are {listed}. Write bounds=[{shown}] with numbers for low and "
        "high, bounds=(low, high) for all columns, or bounds='private' to have them learned, with "
        "noise, from a part of the budget"
    )


def _text(pair: Pair) -> str:
    if isinstance(pair, str):
        return repr(pair)
    return f"({pair[0]:g}, {pair[1]:g})"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _is_pair(value: Any) -> bool:
    if isinstance(value, str):
        return value == PRIVATE
    if isinstance(value, Mapping) or not isinstance(value, Sequence | np.ndarray):
        return False
    return len(value) == 2 and all(_is_number(end) for end in value)


def _pair(value: Any) -> Pair:
    if isinstance(value, str):
        return value
    low, high = value
    return float(low), float(high)
