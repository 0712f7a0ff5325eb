"""`splitmeans plan`: what it prints for people and for scripts, and what it refuses."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from splitmeans import Study
from splitmeans.cli import main
from splitmeans.cli.plan_chart import bar, number, ratio
from splitmeans.forecasting.forecast import forecast

STUDY = """
name = "two"
n_clusters = 4
expected_users = 20000
[budget]
epsilon = 1.0
delta = 1e-6
[[parties]]
name = "bank"
[[parties.columns]]
name = "income"
low = 0
high = 9000
[[parties]]
name = "shop"
[[parties.columns]]
name = "visits"
low = 0
high = 30
"""


class Finished(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys, tmp_path) -> Callable[..., Finished]:
    """Run `splitmeans plan study.toml` with further arguments, in this process."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)

    def call(*arguments: str, study: str = "study.toml") -> Finished:
        monkeypatch.setattr(sys, "argv", ["splitmeans", "plan", study, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Finished(int(ended.value.code or 0), captured.out, captured.err)

    return call


def test_says_all_there_is_in_plain_text(run):
    done = run("--users", "30000", "--acceptable", "5")
    assert (done.code, done.err) == (0, "")
    assert "2 parties, 30,000 users, 4 segments, decoy, epsilon 1" in done.out
    for part in ("noise of every release", "cell error", "loss ratio", "message", "run time"):
        assert part in done.out
    # One line for each epsilon, the study's own marked, bars that only get shorter.
    lines = [line for line in done.out.splitlines() if line.endswith("#") or "# " in line]
    assert [line.split()[0] for line in lines] == ["0.05", "0.1", "0.2", "0.5", "*", "2", "4", "8"]
    bars = [line.count("#") for line in lines]
    assert bars == sorted(bars, reverse=True)
    assert "for a loss ratio of 1.05: epsilon 0." in done.out
    assert done.out.isascii()


def test_json_is_the_forecast(run):
    done = run("--json", "--target", "1.05", "--structure", "smooth", "--eps", "0.5,100")
    assert done.code == 0
    found = json.loads(done.out)
    expected = forecast(Study.from_toml(STUDY), structure="smooth")
    assert found["loss_ratio"]["typical"] == expected.loss.typical
    assert found["cell_error"] == expected.cell_error
    assert found["bytes"]["releases"] == expected.sizes.releases
    assert [point["epsilon"] for point in found["sweep"]] == [0.5]
    assert 0.01 < found["epsilon_needed"]["typical"] < found["epsilon_needed"]["pessimistic"]


def test_refused_epsilons_are_named(run):
    done = run("--eps", "0.5,100")
    assert "exact accounting refuses it: epsilon 100" in done.out


def test_methods_without_a_loss_forecast_say_so(run, tmp_path):
    text = STUDY.replace("[budget]", 'membership = "ldp"\naccounting = "paper"\n[budget]')
    (tmp_path / "paper.toml").write_text(text)
    done = run(study="paper.toml")
    assert done.code == 0
    assert "loss ratio   no forecast: membership='ldp'" in done.out
    assert "misreported labels" in done.out
    refused = run("--target", "1.1", study="paper.toml")
    assert refused.code == 2
    assert "no epsilon can be found" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--users", "0"), "--users must be 1 or more, got 0"),
        (("--target", "1"), "--target must be above 1"),
        (("--acceptable", "0"), "--acceptable must be above 0 per cent"),
        (("--target", "1.1", "--acceptable", "5"), "give one of them"),
        (("--structure", "round"), "--structure must be clear or smooth"),
        (("--eps", "1,x"), "--eps must be numbers separated by commas"),
        (("--eps", "0"), "--eps must be numbers above 0"),
        (("--target", "1.0001"), "is not reached by any epsilon up to 12"),
    ],
)
def test_bad_values_are_named(run, arguments, message):
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.split())


def test_a_study_that_is_not_there(run):
    done = run(study="nowhere.toml")
    assert done.code == 2
    assert "nowhere.toml: cannot be read" in done.err


def test_bars_are_logarithmic():
    assert bar(1.0, unicode=False) == bar(1.001, unicode=False) == "#"
    assert bar(10.0, unicode=False) == "#" * 32
    tens = [len(bar(1 + increase, unicode=False)) for increase in (0.01, 0.1, 1.0)]
    assert tens == [8, 16, 24]
    assert bar(10.0, unicode=True) == "█" * 32
    assert set(bar(1.03, unicode=True)) <= set("█▏▎▍▌▋▊▉")


def test_figures_as_text():
    assert (ratio(1.0234), ratio(10.0)) == ("1.023", ">=10")
    assert [number(value) for value in (None, 0.01234, 12.34, 1234.5)] == [
        "-",
        "0.0123",
        "12.3",
        "1,234",
    ]


def test_bench_plan_fits_checks_and_writes(monkeypatch, capsys, tmp_path):
    """A small run of the benchmark: it fits, it compares, and the file has what the model reads."""
    from splitmeans.forecasting import loss_model

    target, scores = tmp_path / "model.json", tmp_path / "scores.json"
    arguments = ["--quick", "--seeds", "1", "--workers", "1"]
    arguments += ["--calibrate", str(target), "--json", str(scores)]
    monkeypatch.setattr(sys, "argv", ["splitmeans", "bench", "plan", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (None, 0)
    written = json.loads(target.read_text())
    assert set(written["constants"]) == {"clear", "smooth"}
    assert set(written) == set(loss_model.model())
    compared = json.loads(scores.read_text())["settings"]
    assert len(compared) == written["held_out"]["settings"] == 4
    for setting in compared:
        assert setting["predicted_bytes"] == pytest.approx(setting["release_bytes"], rel=0.06)
    assert "customers" in capsys.readouterr().out


def test_the_model_file_says_where_it_comes_from():
    from splitmeans.forecasting import loss_model

    assert Path(str(loss_model.__file__)).with_name("loss_model.json").exists()
    assert loss_model.model()["made_by"].startswith("splitmeans bench plan --calibrate")
