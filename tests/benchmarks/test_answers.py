"""`answers`: what is asked of a small run, counted as right or not, in tables and a file."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.answers.measure import line, settings_of
from benchmarks.answers.questions import Figure
from benchmarks.answers.uses import changes_of
from benchmarks.answers.whole_runs import Pooled, Setting, features, load_pooled
from splitmeans.insights.drift import Change
from splitmeans.study import Column


@pytest.mark.slow
def test_the_command_asks_everything_and_writes_it(monkeypatch, capsys, tmp_path) -> None:
    pytest.importorskip("duckdb")
    file = tmp_path / "answers.json"
    words = ["answers", "--quick", "--users", "2000", "--workers", "1", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
    with pytest.raises(SystemExit) as ended:
        benchmarks.main()
    out = capsys.readouterr().out
    assert not ended.value.code
    record = json.loads(file.read_text())
    equal, partial = record["runs"]
    assert (equal["setting"]["share"], partial["setting"]["share"]) == (1.0, 0.7)
    kinds = {figure["kind"] for run in record["runs"] for figure in run["figures"]}
    assert kinds == set(record["lines"])
    assert {
        *("users", "share", "mean", "mean where another party", "cell of two parties"),
        *("share where another party", "correlation of two parties"),
        *("SQL: users of a segment", "SQL: mean in a group", "overlap: both"),
    } <= kinds
    assert all(f"{kind} " in out for kind in kinds)
    assert "real changes found" in out
    assert "lists of users of a segment" in out
    # Segments of a drawn table are no chance, and all columns are better than some.
    for one in equal["lookalikes"]:
        assert 0.6 < one["lift"] < one["all_columns"] + 0.1
    shown = [one for one in equal["figures"] if one["low"] is not None]
    right = [one["low"] <= one["truth"] <= one["high"] for one in shown]
    assert np.mean(right) > 0.8


def figure(**changes) -> Figure:
    fields = {"kind": "mean", "question": "mean(x)", "value": 10.0, "low": 8.0, "high": 14.0}
    return Figure(**{**fields, "truth": 9.0, "unit": 2.0, "seconds": 0.5, **changes})


def test_a_line_has_what_was_right_and_how_far_off_the_rest_was() -> None:
    own = line([figure(), figure(truth=15.0), figure(low=None, high=None, truth=10.0)])
    assert (own.figures, own.withheld, own.right) == (3, 1, 0.5)
    # Errors of a half, two and a half and none; half widths of one and a half: in hundredths.
    assert (own.error, own.width) == (50.0, 150.0)


def test_changes_are_right_found_or_false() -> None:
    def change(low: float, high: float) -> Change:
        middle = (low + high) / 2
        return Change(old=0.3, new=0.3 + middle, low=low, high=high)

    found = changes_of(
        [change(-0.2, -0.05), change(-0.01, 0.09), change(0.01, 0.03), Change(old=0.1, new=0.2)],
        np.array([-0.1, 0.05, -0.02, 0.1]),
        shifted=True,
        seconds=0.0,
    )
    # The first was found, the second is right and not clear, the third is on the wrong side.
    assert (found.segments, found.right, found.real) == (3, 2, 3)
    assert (found.found, found.false) == (1, 1)


def test_mixed_tables_are_split_between_two_or_three_and_sets_are_partial_once() -> None:
    found = settings_of(
        data=["heavy-tails", "credit-like"], parties=[2, 4], epsilons=[1, 0.25], seeds=1, users=500
    )
    assert {(one.data, one.n_parties) for one in found} == {
        ("heavy-tails", 2),
        ("heavy-tails", 4),
        ("credit-like", 2),
    }
    assert [one.epsilon for one in found if one.share < 1] == [1, 1, 1]


def test_rows_become_features_in_the_order_of_the_parties() -> None:
    pooled = Pooled(
        frame=pd.DataFrame({"a": [1.0, 2.0], "plan": ["x", "y"], "b": [3.0, 4.0]}),
        columns=(
            Column(name="a", low=0, high=9),
            Column(name="plan", categories=("x", "y")),
            Column(name="b", low=0, high=9),
        ),
        split=(1, 0, 1),
    )
    np.testing.assert_array_equal(features(pooled, pooled.frame), [[1, 0, 1, 3], [0, 1, 2, 4]])


def test_numbers_beyond_public_bounds_are_clipped_as_in_a_study() -> None:
    setting = Setting(data="credit-like", n_parties=2, epsilon=1, users=800)
    pooled = load_pooled(setting, None)
    for column in pooled.columns:
        if not column.categories:
            assert pooled.frame[column.name].between(column.low, column.high).all()
