"""`splitmeans plan`: what it prints for people and for scripts, and what it refuses."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.console import Console

from splitmeans import Study
from splitmeans.cli import console, main, plan_text
from splitmeans.cli.plan_text import between, per_cent, ratio
from splitmeans.figures import number
from splitmeans.forecasting.forecast import forecast
from splitmeans.forecasting.loss_model import LossForecast
from splitmeans.plan.facts import certificate_of
from splitmeans.plan.settle import make_plan

# Its k' is given: inside what the loss model is fitted to, whatever the rule of k' chooses.
STUDY = """
name = "two"
n_clusters = 4
n_local_clusters = 12
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
[[parties.columns]]
name = "savings"
low = 0
high = 50000
[[parties]]
name = "shop"
[[parties.columns]]
name = "visits"
low = 0
high = 30
[[parties.columns]]
name = "basket"
low = 0
high = 200
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
    # What the result is worth comes first, details of the noise last.
    parts = (
        "\nloss ratio ",
        "per cent more than k-means on the pooled tables",
        "settings that the model had not seen",
        "\nsegment size  plus or minus ",
        "what other values of epsilon",
        "for a loss ratio of 1.05",
        "\nmessage ",
        "\ncell error ",
        "noise of every release",
    )
    places = [done.out.index(part) for part in parts]
    assert places == sorted(places)
    # One line for each epsilon, the study's own marked.
    chart = done.out[done.out.index("what other values") : done.out.index("for a loss ratio")]
    firsts = [line.split()[0] for line in chart.strip().splitlines()[-8:]]
    assert firsts == ["0.05", "0.1", "0.2", "0.5", "*", "2", "4", "8"]
    assert "for a loss ratio of 1.05: epsilon 0." in done.out
    assert done.out.isascii()


def test_a_series_says_of_how_many_runs_epsilon_is(run, tmp_path):
    study = tmp_path / "series.toml"
    study.write_text(STUDY + '[renewal]\nruns = 8\nevery = "3 months"\n')
    done = run(study=str(study))
    assert done.code == 0
    place = done.out.index("\nseries        epsilon, here and below, is of all 8 runs together")
    after = done.out[place:]
    # One run of eight: 0.33 of a total of 1, as docs/guides/renewal.md has it.
    assert re.search(
        r"in one run alone: 0\.3\d* towards the server, 0\.4\d* towards another", after
    )
    assert "series" not in run().out


def test_json_is_the_forecast(run):
    done = run("--json", "--target", "1.05", "--structure", "smooth", "--eps", "0.5,100")
    assert done.code == 0
    found = json.loads(done.out)
    expected = forecast(Study.from_toml(STUDY), structure="smooth")
    assert found["loss_ratio"]["typical"] == expected.loss.typical
    assert found["cell_error"] == expected.cell_error
    assert found["bytes"]["releases"] == expected.sizes.releases
    assert [point["epsilon"] for point in found["sweep"]] == [0.5]
    needed = found["epsilon_needed"]
    assert 0.01 < needed["typical"] < needed["pessimistic"] == found["needed"]
    assert needed["best_reachable"]["typical"] < 1.05
    assert found["segment_error"] == expected.segment_error
    assert found["held_out"]["settings"] > 0


def test_the_larger_figure_comes_first_and_a_bound_has_a_price(run, tmp_path):
    done = run()
    assert "epsilon       1.45" in done.out
    assert " towards another party (a user's values elsewhere replaced), 1 towards" in done.out
    assert "with party_epsilon = 1 about: loss ratio " in done.out
    bounded = STUDY.replace("delta = 1e-6", "delta = 1e-6\nparty_epsilon = 0.2")
    (tmp_path / "bounded.toml").write_text(bounded)
    done = run(study="bounded.toml")
    assert "towards the server, 0.1999 towards another party" in done.out
    assert "party_epsilon = 0.2: loss ratio " in done.out
    assert "6.36 times the noise in local releases" in done.out
    assert "of its budget" in done.out
    found = json.loads(run("--json", study="bounded.toml").out)
    (price,) = found["bounds"]
    assert (price["bound"], price["value"], price["chosen"]) == ("party_epsilon", 0.2, True)
    without, given = price["cell_error"]
    assert without == forecast(Study.from_toml(STUDY)).cell_error
    assert given == found["cell_error"] > without
    assert found["budget"]["party_epsilon"] == 0.2


def test_a_certificate_is_written(run, tmp_path):
    assert run("--certificate", "proof.json").code == 0
    written = json.loads((tmp_path / "proof.json").read_text())
    plan = make_plan(Study.from_toml(STUDY))
    assert written == json.loads(json.dumps(certificate_of(plan)))
    refused = run("--certificate", "nowhere/proof.json")
    assert refused.code == 2
    assert "--certificate nowhere/proof.json: cannot be written" in refused.err


def test_refused_epsilons_are_named(run):
    done = run("--eps", "0.5,100")
    assert "exact accounting refuses it: epsilon 100" in done.out


@pytest.mark.parametrize(
    ("typical", "answer", "message"),
    [
        (False, "no epsilon up to 12; 1.0", "1.0001 is not reached by any epsilon"),
        (True, "typically, no epsilon up to 12 to be", "is not reached on the safe side"),
    ],
)
def test_an_unreachable_ratio_costs_nothing_but_the_exit_code(run, typical, answer, message):
    """The same whether no epsilon is enough at all or only none on the safe side."""
    target = "1.0001"
    if typical:  # half way between the best typical ratio and the best on the safe side
        reachable = forecast(Study.from_toml(STUDY)).epsilon_for(1.0001).best
        target = f"{(reachable.typical + reachable.high) / 2:.4f}"
    done = run("--target", target)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert f"for a loss ratio of {target}: " in done.out
    assert answer in done.out
    plain = run().out.splitlines()
    assert [line for line in plain if line not in done.out.splitlines()] == []
    scripted = run("--target", target, "--json")
    assert scripted.code == 2
    found = json.loads(scripted.out)
    assert found["needed"] is None
    needed = found["epsilon_needed"]
    assert (needed["typical"] is not None, needed["pessimistic"]) == (typical, None)
    best = needed["best_reachable"]
    assert (best["typical"] <= float(target)) == typical
    assert best["pessimistic"] > float(target)


def test_partial_overlap_is_said_beside_the_loss_ratio(run, tmp_path):
    text = STUDY.replace("[budget]", '[ids]\ntype = "integer"\n[budget]')
    (tmp_path / "partial.toml").write_text(text)
    lines = run(study="partial.toml").out.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("loss ratio"))
    assert lines[at + 3].strip() == (
        "note: assumes that all 20,000 users are at every party; for a guess of M shared users "
        "run again with --users M"
    )
    # A guess of shared users is no reason to change what the study says of a party's users.
    fewer = run("--users", "1000", study="partial.toml").out
    assert "all 1,000 users are at every party" in fewer
    assert "agree on that" not in fewer
    everyone, some = (
        json.loads(run(*arguments, "--json", study="partial.toml").out)
        for arguments in ((), ("--users", "1000"))
    )
    assert everyone["notes"][0].startswith("assumes that all 20,000")
    assert some["loss_ratio"]["typical"] > everyone["loss_ratio"]["typical"]


def test_outside_the_fitted_range_no_claim_is_made(run):
    done = run("--users", "10")
    assert "loss ratio    >=10\n" in done.out
    assert "the segments are noise" in done.out
    assert "note: outside what the loss model was fitted to: 10 users" in done.out
    assert "had not seen" not in done.out
    assert "->=" not in done.out
    assert json.loads(run("--users", "10", "--json").out)["held_out"] is None


@pytest.mark.parametrize("width", [80, 72, 50])
def test_nothing_is_cut_in_a_narrow_terminal(run, monkeypatch, width):
    shown = io.StringIO()
    terminal = Console(
        file=shown, force_terminal=True, width=width, height=40, highlight=False, color_system=None
    )
    for module in (console, plan_text):
        monkeypatch.setattr(module, "out", terminal)
    assert run("--acceptable", "5").code == 0
    text = shown.getvalue()
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    loss = forecast(Study.from_toml(STUDY)).loss
    assert f" {ratio(loss.low)}-{ratio(loss.high)} " in text
    for heading in ("epsilon", "range", "k'"):
        assert f" {heading} " in text
    chart = text[text.index("what other values") : text.index("for a loss ratio")]
    assert "…" not in chart
    # Lines are broken between words and go on below the figures.
    assert "had not seen: within a factor" in " ".join(text.split())
    at = next(place for place, line in enumerate(lines) if re.search(r"\(on \d+ settings", line))
    assert lines[at + 1].startswith(" " * 14)


def test_help_says_what_the_ratio_is_of(run):
    text = " ".join(run("--help").out.split())
    assert "mean squared distance of users to their segment's centre is 5 per cent more" in text
    assert "wider" not in text


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


def test_figures_as_text():
    ends = {"clear": 1.0, "smooth": 1.0, "structure": None}
    ranges = [
        between(LossForecast(low=low, high=high, **ends))
        for low, high in ((1.01, 1.2), (9.5, 10.0), (10.0, 10.0))
    ]
    assert ranges == ["1.010-1.200", "9.500 or more", ">=10"]
    assert [per_cent(value) for value in (1.0123, 1.44, 3.2)] == ["1.2", "44", "220"]
    assert (ratio(1.0234), ratio(10.0)) == ("1.023", ">=10")
    assert [number(value) for value in (0.01234, 12.34, 1234.5)] == ["0.0123", "12.3", "1,234"]


def test_the_model_file_says_where_it_comes_from():
    from splitmeans.forecasting import loss_model

    assert Path(str(loss_model.__file__)).with_name("loss_model.json").exists()
    assert loss_model.model()["made_by"].startswith("python -m benchmarks plan --calibrate")


def test_columns_that_would_decide_are_named(tmp_path):
    from typer.testing import CliRunner

    from splitmeans.cli import app
    from tests.result.small_result import small_study

    for scaling, words in (("bounds", "region 60%"), ("equal", "as every column counts the same")):
        path = tmp_path / f"{scaling}.toml"
        path.write_text(small_study(scaling=scaling).to_toml())
        done = CliRunner().invoke(app, ["plan", str(path)])
        assert done.exit_code == 0, done.output
        assert words in done.stdout
