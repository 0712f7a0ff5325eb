"""Dataclasses to plain values and back, strictly: unknown and missing keys are refused.

Used for `study.toml` and for the canonical bytes that a study's hash is taken of.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from splitmeans.errors import StudyError

T = TypeVar("T")


def build(
    cls: type[T], mapping: Any, *, where: str, tables: Mapping[str, type], lists: Mapping[str, type]
) -> T:
    """Build a dataclass from plain values.

    `where` is how errors name this place in the file. `tables` and `lists` have the keys, at any
    level, whose value is a nested dataclass or a list of them.
    """
    if not isinstance(mapping, Mapping):
        raise StudyError(f"{where} must be a table of keys and values")
    fields = {item.name: item for item in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in mapping:
        if key not in fields:
            known = ", ".join(fields)
            raise StudyError(f"{where} has an unknown key {key!r}; known keys are {known}")
    for name, item in fields.items():
        has_default = item.default is not dataclasses.MISSING
        has_factory = item.default_factory is not dataclasses.MISSING
        if name not in mapping and not has_default and not has_factory:
            raise StudyError(f"{where} must have the key {name!r}")
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        place = f"{where}.{key}"
        if key in tables:
            values[key] = build(tables[key], value, where=place, tables=tables, lists=lists)
        elif key in lists:
            if not isinstance(value, list | tuple):
                raise StudyError(f"{place} must be a list of tables ([[{key}]])")
            values[key] = tuple(
                build(lists[key], item, where=f"{place}[{number}]", tables=tables, lists=lists)
                for number, item in enumerate(value)
            )
        else:
            # Integers of TOML have 64 bits; longer ones would not even print.
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise StudyError(f"{place} must be a number of at most 64 bits")
            values[key] = tuple(value) if isinstance(value, list) else value
    return cls(**values)


def to_plain(value: Any) -> Any:
    """Return nested plain values, leaving out what is None or an empty list."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        plain = {
            item.name: to_plain(getattr(value, item.name)) for item in dataclasses.fields(value)
        }
        return {key: item for key, item in plain.items() if item is not None and item != []}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def canonical_hash(plain: Any, *, prefix: bytes) -> str:
    """Return SHA-256 of the canonical form, in hex.

    The canonical form is JSON with sorted keys, no spaces, shortest round-trip floats, and
    whole-number floats written as integers, so that `low = 0` and `low = 0.0` agree.
    """
    canonical = json.dumps(
        _whole_numbers(plain),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return hashlib.sha256(prefix + canonical.encode("utf-8")).hexdigest()


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
