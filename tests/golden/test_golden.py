"""Seeded whole studies publish what they always did; `tests/golden/run.py` compares bytes."""

import copy

import numpy as np
import pytest

from tests.golden.expected import read_expected, summary_of, unexpected
from tests.golden.run import differences, parts_of
from tests.golden.studies import STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_publishes_what_it_did(name: str) -> None:
    found = unexpected(parts_of(name), read_expected()[name])
    assert not found, (
        f"study {name!r}: {', '.join(found)} changed; compare with the code before the change by "
        f"`python -m tests.golden.run {name}`, or accept with `--accept` what is intended"
    )


def test_every_study_has_an_expectation() -> None:
    assert read_expected().keys() == STUDIES.keys()


def test_what_changed_is_named() -> None:
    """One unit more in one part, and a segment that has moved."""
    parts = parts_of("counts-alone") | {
        "segments": {"sizes": np.array([30.0, 10.0]), "scaled centres": np.array([[0.1], [0.5]])}
    }
    expected = summary_of(parts)
    assert unexpected(parts, expected) == []

    turned = copy.deepcopy(parts)
    turned["segments"]["scaled centres"] = parts["segments"]["scaled centres"][::-1] + 1e-3
    assert unexpected(turned, expected) == []

    changed = copy.deepcopy(parts)
    changed["counts"]["presence"] = parts["counts"]["presence"] + 1
    changed["segments"]["scaled centres"] = np.array([[0.1], [0.6]])
    changed["figures"]["epsilon"] = parts["figures"]["epsilon"] * 1.001
    assert unexpected(changed, expected) == ["counts", "scaled centres", "epsilon"]


def test_bytes_are_compared() -> None:
    """The last digit of a float, the kind of a number, and what is new or gone."""
    before = {"a/x": np.array([1.0, 2.0]), "a/y": np.array([1]), "a/z": np.array([1])}
    now = {"a/x": np.array([1.0, np.nextafter(2, 3)]), "a/y": np.array([1.0]), "b/z": before["a/z"]}
    assert differences(before, before) == {}
    found = differences(before, now)
    assert found.keys() == {"a/x", "a/y", "a/z", "b/z"}
    assert found["a/x"].startswith("1 of 2 values differ, by 4.4e-16")
    assert (found["a/z"], found["b/z"]) == ("gone", "new")
