"""The `bounds` argument: every way to write it, and refusals that show how."""

import re
import warnings

import numpy as np
import pytest

from splitmeans import DataError, ParameterError, VerticalKMeans
from splitmeans.study.column_bounds import read_bounds

NAMES = [["visits", "age"], ["score"]]

WAYS = {
    "one pair": ((-1, 1), [[(-1, 1), (-1, 1)], [(-1, 1)]]),
    "one pair in an array": (np.array([-1, 1]), [[(-1, 1), (-1, 1)], [(-1, 1)]]),
    "a pair per party": ([(0, 90), (0, 1)], [[(0, 90), (0, 90)], [(0, 1)]]),
    "a pair per column": ([[(0, 20), (17, 90)], [(0, 1)]], [[(0, 20), (17, 90)], [(0, 1)]]),
    "mixed": ([[(0, 20), (17, 90)], (0, 1)], [[(0, 20), (17, 90)], [(0, 1)]]),
    "by name": (
        {"age": (17, 90), "visits": (0, 20), "score": (0, 1)},
        [[(0, 20), (17, 90)], [(0, 1)]],
    ),
    "by name per party": (
        [{"age": (17, 90), "visits": (0, 20)}, {"score": (0, 1)}],
        [[(0, 20), (17, 90)], [(0, 1)]],
    ),
    "lists for pairs": ([[[0, 20], [17, 90]], [[0, 1]]], [[(0, 20), (17, 90)], [(0, 1)]]),
    "rows of an array": (
        [[np.array([0, 20]), (17, 90)], np.array([[0, 1]])],
        [[(0, 20), (17, 90)], [(0, 1)]],
    ),
    "all private": ("private", [["private", "private"], ["private"]]),
    "a private party": (["private", (0, 1)], [["private", "private"], [(0, 1)]]),
    "a private column": ([["private", (17, 90)], (0, 1)], [["private", (17, 90)], [(0, 1)]]),
    "a private name": (
        {"age": "private", "visits": (0, 20), "score": (0, 1)},
        [[(0, 20), "private"], [(0, 1)]],
    ),
}


@pytest.mark.parametrize(("bounds", "expected"), WAYS.values(), ids=WAYS)
def test_every_way_to_write_bounds(bounds, expected):
    assert read_bounds(bounds, NAMES) == expected


REFUSED = {
    "another word": ("wide", "bounds must be"),
    "a set": ({(0, 1)}, "bounds must be"),
    "three pairs": ([(0, 20), (17, 90), (0, 1)], "got 3 entries for 2 parties"),
    "lows and highs": ([([0, 17, 3], [20, 90, 4]), (0, 1)], r"list\(zip\(lows, highs\)\)"),
    "one pair of two": ([[(0, 20)], (0, 1)], r"party 1, which has 2 columns \(visits, age\)"),
    "a number": ([3, (0, 1)], "got 3 for party 1"),
    "truth": ((False, True), "bounds must be"),
    "a column without": ([{"age": (17, 90)}, (0, 1)], "column 'visits' of party 1 is missing: add"),
    "an unknown name": (
        {"Age": (17, 90), "visits": (0, 20), "score": (0, 1)},
        r"got 'Age' \(is 'age' meant\?\); the columns are visits, age, score",
    ),
    "no pair by name": (
        {"age": 90, "visits": (0, 20), "score": (0, 1)},
        r"bounds of column 'age' must be \(low, high\), got 90",
    ),
    "an array of ends": (
        [np.array([[0, 17], [20, 90]]), (0, 1)],
        re.escape(
            "Column by column is [(0, 17), (20, 90)]; lows and highs are [(0, 20), (17, 90)]"
        ),
    ),
    "two arrays of ends": (
        [(np.array([0, 17]), np.array([20, 90])), (0, 1)],
        "may be two pairs or lows and highs",
    ),
    "a tuple of two lists": (
        [([0, 17], [20, 90]), (0, 1)],
        re.escape("lows and highs are [(0, 20), (17, 90)]"),
    ),
}


@pytest.mark.parametrize(("bounds", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_way_to_write_bounds(bounds, message):
    with pytest.raises(ParameterError, match=message):
        read_bounds(bounds, NAMES)


def test_pairs_that_may_be_of_parties_or_of_columns_are_refused_with_both_readings():
    names = [["a", "b"], ["c", "d"]]
    with pytest.raises(ParameterError, match="must say what its 2 pairs are for") as caught:
        read_bounds([(0, 20), (17, 90)], names)
    readings = re.findall(r"bounds=(\[.*?\]\])", str(caught.value))
    assert [read_bounds(eval(text), names) for text in readings] == [
        [[(0, 20), (0, 20)], [(17, 90), (17, 90)]],
        [[(0, 20), (17, 90)], [(0, 20), (17, 90)]],
    ]
    # With one column each both readings are the same.
    assert read_bounds([(0, 20), (17, 90)], [["a"], ["c"]]) == [[(0, 20)], [(17, 90)]]


def own_units() -> list[np.ndarray]:
    """Ages and visits, ten thousand of each; nothing lies within -1 and 1."""
    rng = np.random.default_rng(0)
    return [rng.uniform(20, 90, (10_000, 2)), rng.uniform(5, 20, (10_000, 1))]


def test_a_fit_without_bounds_shows_the_call_to_write():
    with pytest.raises(ParameterError, match="bounds must be given") as caught:
        VerticalKMeans(3).fit(own_units())
    written = re.search(r"Write bounds=(\[.*?\}\])", str(caught.value))[1]
    assert written == "[{'x0': (low, high), 'x1': (low, high)}, {'x0': (low, high)}]"
    model = VerticalKMeans(3, bounds=eval(written, {"low": 0, "high": 100}))
    assert model.fit(own_units()).cluster_centers_.shape == (3, 3)


def test_a_table_in_other_units_is_refused_as_by_the_command_line():
    """All centres would be at the upper bounds, and nothing would say so."""
    model = VerticalKMeans(3, bounds=(-1, 1))
    with pytest.raises(DataError, match=r"party 'party1': the table has 2 problems") as caught:
        model.fit(own_units())
    assert "- column 'x1' must have at least half of the values within" in str(caught.value)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")  # all rows are in one place: fewer segments may be found
        model.set_params(allow_clipping=True).fit(own_units())
    expected = "10,000 of 10,000 values lie outside -1 to 1"
    assert any(expected in str(warning.message) for warning in said)


def test_a_fit_says_if_its_rows_are_far_from_the_expected_users():
    rows = [part[:200] for part in own_units()]
    model = VerticalKMeans(2, epsilon=8.0, bounds=(0, 100), expected_users=10_000)
    with pytest.warns(UserWarning, match=r"party 'party2': the table has 200 rows, 1 / 50 of"):
        model.fit(rows)
    model.set_params(expected_users=200).fit(rows)  # a warning would be an error
