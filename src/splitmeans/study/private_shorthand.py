"""`bounds = "private"` of a party or of a whole study: the same for each of its columns.

A shorthand of `study.toml` alone. It is spread over the columns that have neither both bounds nor
categories before the study is built, so a study has one form, and one hash, however it was written.
"""

from collections.abc import Mapping
from typing import Any

from splitmeans import _validate
from splitmeans.errors import StudyError
from splitmeans.study.parties import PRIVATE

_BOUNDS = "bounds"
_SAID = (_BOUNDS, "categories", "others")


def spread_bounds(mapping: Any) -> Any:
    """Return plain values of a study in which the columns alone say that bounds are private.

    Whatever is no study is returned as it is, for the checks that say so.
    """
    if not isinstance(mapping, Mapping) or not isinstance(mapping.get("parties"), list | tuple):
        return mapping
    whole = _is_private(mapping, where="study")
    parties = [
        _party(party, whole=whole, where=f"study.parties[{number}]")
        for number, party in enumerate(mapping["parties"])
    ]
    return {**_without(mapping), "parties": parties}


def _is_private(mapping: Mapping[str, Any], *, where: str) -> bool:
    if mapping.get(_BOUNDS, PRIVATE) != PRIVATE:
        raise StudyError(
            f"{where}.{_BOUNDS} must be {PRIVATE!r} (learned by the run, with noise), got "
            f"{_validate.shown(mapping[_BOUNDS])}; public bounds are low and high of each column"
        )
    return _BOUNDS in mapping


def _party(party: Any, *, whole: bool, where: str) -> Any:
    if not isinstance(party, Mapping) or not isinstance(party.get("columns"), list | tuple):
        return party
    own = _is_private(party, where=where) or whole
    columns = [_column(column) if own else column for column in party["columns"]]
    return {**_without(party), "columns": columns}


def _column(column: Any) -> Any:
    if not isinstance(column, Mapping) or any(key in column for key in _SAID):
        return column
    if "low" in column and "high" in column:
        return column
    return {**column, _BOUNDS: PRIVATE}


def _without(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key != _BOUNDS}
