"""One-line checks with one form of message: name, rule, value.

Each check raises the error class it is given (`ParameterError` unless said), so that a study file
and a Python call report the same rule under their own names.
"""

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

from splitmeans.errors import ParameterError


def positive(*, error: type[ParameterError] = ParameterError, **values: Any) -> None:
    """Check that every value is a finite number above zero."""
    for name, value in values.items():
        finite(error=error, **{name: value})
        if not value > 0:
            raise error(f"{name} must be > 0, got {shown(value)}")


def finite(*, error: type[ParameterError] = ParameterError, **values: Any) -> None:
    """Check that every value is a finite real number."""
    for name, value in values.items():
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not _is_finite(value):
            raise error(f"{name} must be a finite number, got {shown(value)}")


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond the range of floats
        return False


def open_unit(*, error: type[ParameterError] = ParameterError, **values: Any) -> None:
    """Check that every value lies strictly between 0 and 1."""
    for name, value in values.items():
        finite(error=error, **{name: value})
        if not 0 < value < 1:
            raise error(f"{name} must be between 0 and 1 (both excluded), got {shown(value)}")


def at_least(low: int, *, error: type[ParameterError] = ParameterError, **values: Any) -> None:
    """Check that every value is a whole number not below `low`."""
    for name, value in values.items():
        is_integer = isinstance(value, Integral) and not isinstance(value, bool)
        if not is_integer or value < low:
            raise error(f"{name} must be a whole number >= {low}, got {shown(value)}")


def one_of(
    choices: Collection[str], *, error: type[ParameterError] = ParameterError, **values: Any
) -> None:
    """Check that every value is one of the named choices."""
    for name, value in values.items():
        if value not in choices:
            listed = ", ".join(repr(choice) for choice in choices)
            raise error(f"{name} must be one of {listed}, got {shown(value)}")


def shown(value: Any) -> str:
    """Return a value as it was written, but never at any length."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # whole numbers with thousands of digits do not print
        return "something too long to print"
    return text if len(text) <= 200 else f"{text[:200]}..."
