"""`coverage --figures`: figures of a small run, counted as right or not, in a table and a file."""

import json
import sys

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.coverage import Setting
from benchmarks.figure_coverage import Figure, figure_groups


def run(monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit) as ended:
        benchmarks.main()
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_the_command_counts_intervals_that_hold_the_truth(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setattr("benchmarks.figure_coverage._USERS", 3000)
    file = tmp_path / "figures.json"
    arguments = ("--data", "mixed-classes", "--seeds", "1", "--quick", "--workers", "1")
    code, out, _ = run(
        monkeypatch, capsys, "coverage", "--figures", *arguments, "--json", str(file)
    )
    assert code == 0
    found = json.loads(file.read_text())["figures"]
    kinds = {one["kind"] for one in found}
    assert {"total", "mean", "cell of two parties"} <= kinds
    shown = [one for one in found if one["low"] is not None]
    right = sum(one["low"] <= one["truth"] <= one["high"] for one in shown) / len(shown)
    line = next(row for row in out.splitlines() if row.split()[:1] == ["all"])
    assert line.split()[1:3] == [str(len(found)), str(len(found) - len(shown))]
    assert f"{right:.1%}" in line
    assert right > 0.8


def test_an_epsilon_that_no_setting_has_is_refused(monkeypatch, capsys) -> None:
    code, _, error = run(monkeypatch, capsys, "coverage", "--figures", "--epsilons", "7")
    assert code != 0
    assert "epsilons must be among [0.25, 1, 4], got '7'" in error


def test_a_figure_is_right_if_its_interval_holds_the_truth() -> None:
    setting = Setting(n_parties=2, epsilon=1, n_clusters=3, share=1.0)

    def figure(truth: float, **changes) -> Figure:
        fields = {"data": "even", "setting": setting, "kind": "mean", "value": 10.0}
        return Figure(**{**fields, "low": 8.0, "high": 14.0, "truth": truth, **changes})

    assert figure(8.0).right
    assert not figure(7.9).right
    assert figure(9.0).width == pytest.approx(0.3)
    rows = figure_groups([figure(8.0), figure(9.0, data="clear")])
    assert [len(rows[name]) for name in ("all", "data held out", "data chosen on", "mean")] == [
        2,
        1,
        1,
        2,
    ]
