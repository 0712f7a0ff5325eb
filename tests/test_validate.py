"""One-line checks: what they let through, what they refuse, and the form of the message."""

from fractions import Fraction

import numpy as np
import pytest

from splitmeans import _validate
from splitmeans.errors import ParameterError, StudyError


def test_good_values_pass():
    _validate.positive(a=1, b=0.5, c=np.float32(2), d=Fraction(1, 3))
    _validate.finite(a=-1, b=0, c=np.int64(4))
    _validate.open_unit(a=1e-300, b=0.999)
    _validate.at_least(2, a=2, b=np.int8(3), c=10**30)
    _validate.one_of(("x", "y"), a="x", b="y")


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (_validate.positive, 0, "^scale must be > 0, got 0$"),
        (_validate.positive, -1.0, "^scale must be > 0, got -1.0$"),
        (_validate.positive, float("nan"), "^scale must be a finite number, got nan$"),
        (_validate.positive, float("inf"), "^scale must be a finite number, got inf$"),
        (_validate.positive, "1", "^scale must be a finite number, got '1'$"),
        (_validate.positive, None, "^scale must be a finite number, got None$"),
        (_validate.positive, True, "^scale must be a finite number, got True$"),
        (_validate.finite, 1j, "^scale must be a finite number, got 1j$"),
        (_validate.finite, float("-inf"), "^scale must be a finite number, got -inf$"),
        (_validate.open_unit, 0, r"^scale must be between 0 and 1 \(both excluded\), got 0$"),
        (_validate.open_unit, 1.0, r"^scale must be between 0 and 1 \(both excluded\), got 1.0$"),
        (_validate.open_unit, float("nan"), "^scale must be a finite number, got nan$"),
    ],
)
def test_numbers(check, value, message):
    with pytest.raises(ParameterError, match=message):
        check(scale=value)


@pytest.mark.parametrize("value", [1, 2.0, True, "3", None, -5])
def test_at_least(value):
    with pytest.raises(ParameterError, match=r"^n must be a whole number >= 2, got "):
        _validate.at_least(2, n=value)


@pytest.mark.parametrize("value", ["z", "", None, 3])
def test_one_of(value):
    with pytest.raises(ParameterError, match=r"^kind must be one of 'x', 'y', got "):
        _validate.one_of(("x", "y"), kind=value)


def test_every_value_is_checked_and_the_bad_one_is_named():
    with pytest.raises(ParameterError, match=r"^second must be > 0, got -1$"):
        _validate.positive(first=1, second=-1)


@pytest.mark.parametrize(
    "check",
    [
        lambda **rest: _validate.positive(n=-1, **rest),
        lambda **rest: _validate.finite(n=float("nan"), **rest),
        lambda **rest: _validate.open_unit(n=2, **rest),
        lambda **rest: _validate.at_least(0, n=-1, **rest),
        lambda **rest: _validate.one_of(("x",), n="y", **rest),
    ],
)
def test_the_error_class_is_the_callers(check):
    with pytest.raises(StudyError, match=r"^n must be"):
        check(error=StudyError)
    with pytest.raises(ParameterError, match=r"^n must be") as caught:
        check()
    assert type(caught.value) is ParameterError
