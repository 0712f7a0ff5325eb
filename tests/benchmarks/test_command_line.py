"""`python -m benchmarks`: help, errors, tables and files; every option is in the reference."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from benchmarks import __main__ as benchmarks
from splitmeans._version import __version__

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "reference" / "benchmarks.md").read_text()
COMMANDS = typer.main.get_command(benchmarks.app).commands


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command in this process."""

    def finished(*arguments: str) -> Finished:
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        with pytest.raises(SystemExit) as ended:
            benchmarks.main()
        code = ended.value.code
        captured = capsys.readouterr()
        return Finished(code if isinstance(code, int) else 0, captured.out, captured.err)

    return finished


def test_the_module_runs_from_the_root_of_the_repository():
    command = [sys.executable, "-m", "benchmarks", "--help"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: python -m benchmarks" in done.stdout
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_is_in_the_reference(run, name):
    done = run(name, "--help")
    assert done.code == 0
    assert f"Example: python -m benchmarks {name}" in " ".join(done.out.split())
    section = REFERENCE.split(f"## `{name}`\n")[1].split("\n## ")[0]
    for parameter in COMMANDS[name].params:
        for option in parameter.opts:
            if option.startswith("--") and option != "--help":
                assert f"`{option}" in section


def test_every_command_of_the_reference_exists():
    headings = {line[4:-1] for line in REFERENCE.splitlines() if line.startswith("## `")}
    assert headings == set(COMMANDS)


def test_every_table_can_be_json_and_what_takes_long_quiet():
    options = {name: [o for p in c.params for o in p.opts] for name, c in COMMANDS.items()}
    assert {name for name, found in options.items() if "--json" not in found} == {"labels"}
    quiet = {name for name, found in options.items() if "--quiet" not in found}
    assert quiet == {"labels"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("accuracy", "--rows", "iris"), "error: --rows must have words of rows, such as 'mixed"),
        (("accuracy", "--rows", "letter"), "error: these rows need --data-dir with letter"),
        (("accuracy", "--methods", "magic"), "error: --methods must be from central"),
        (("accuracy", "--methods", ","), "error: --methods must name at least one of"),
        (("coverage", "--data", "iris"), "error: --data must be from clear, blurred"),
        (("accuracy", "--other-k", "1"), "error: --other-k must be at least 2"),
        (("local", "--eps", "one"), "error: --eps must be numbers separated by commas"),
        (("local", "--eps", "0"), "error: --eps must be > 0"),
        (("local", "--columns", "2,x"), "error: --columns must be numbers"),
        (("accuracy", "--json", "/nowhere/x.json"), "error: /nowhere/x.json: cannot be written"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_values_are_one_line_and_exit_2(run, arguments, message):
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    lines = done.err.strip().splitlines()
    assert lines[0].startswith(message)
    assert len(lines) == 1


@pytest.mark.parametrize("arguments", [("magic",), ("accuracy", "--seeds", "0")], ids=" ".join)
def test_what_the_parser_refuses_exits_2_with_nothing_on_stdout(run, arguments):
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "--help" in done.err


@pytest.mark.parametrize(("command", "library"), [("relay", "uvicorn"), ("run", "starlette")])
def test_a_missing_library_is_named_with_its_extra(run, monkeypatch, command, library):
    monkeypatch.setitem(sys.modules, library, None)
    done = run(command)
    assert (done.code, done.out) == (2, "")
    assert f'error: this benchmark needs {library}: pip install "splitmeans[relay]"' in done.err


def test_accuracy_prints_a_markdown_table_and_writes_json(run, tmp_path):
    path = tmp_path / "scores.json"
    done = run(
        *("accuracy", "--rows", "mixed-gaussian n1000", "--seeds", "2", "--workers", "1"),
        *("--methods", "central,independent", "--other-k", "3", "--json", str(path)),
    )
    assert done.code == 0, done.err
    heading, rule, line = done.out.splitlines()
    assert heading == (
        "| data | constants | S | at each party | k | eps | ratio | users | k' | kB | seconds "
        "| central | independent | asked for 3 |"
    )
    assert set(rule) == set("| -")
    assert line.startswith("| mixed-gaussian | chosen on it | 2 | 100% | 5 | 1 | 1.")
    assert line.count(" ± ") == 4
    assert f"wrote {path}" in done.err.replace("\n", "")
    record = json.loads(path.read_text())
    assert record["splitmeans"] == __version__
    assert record["config"] == {"method": "decoy", "seeds": 2}
    (row,) = record["rows"]
    assert (row["data"], row["parties"], row["epsilon"]) == ("mixed-gaussian", 2, 1)
    first, second = row["runs"]
    for runs in (first, second):
        assert runs["users"] == 1000
        assert runs["central"] == pytest.approx(1, abs=1e-4)
        assert 1 < runs["ratio"] < runs["independent"]
        assert runs["kB"] > 0
        assert runs["asked for 3"] == pytest.approx(1, abs=0.2)
    assert first["ratio"] != second["ratio"]


def test_coverage_prints_a_table_and_writes_all_segments(run, tmp_path):
    record = tmp_path / "coverage.json"
    done = run(
        "coverage", "--data", "even", "--quick", "--seeds", "1", "--workers", "1",
        "--json", str(record),
    )  # fmt: skip
    assert done.code == 0
    assert "right" in done.out
    written = json.loads(record.read_text())
    assert written["summary"]["all"]["segments"] == len(written["segments"]) == 20
    assert set(written["summary"]) >= {"data even", "data tuned on", "2 parties, partial sets"}


@pytest.mark.slow
def test_plan_fits_checks_and_writes(run, tmp_path):
    """A small run of the benchmark: it fits, it compares, and the file has what the model reads."""
    from splitmeans.forecasting import loss_model

    target, scores = tmp_path / "model.json", tmp_path / "scores.json"
    arguments = ["--quick", "--seeds", "1", "--workers", "1"]
    done = run("plan", *arguments, "--calibrate", str(target), "--json", str(scores))
    assert done.code == 0
    written = json.loads(target.read_text())
    assert set(written["constants"]) == {"clear", "smooth"}
    assert set(written) == set(loss_model.model())
    compared = json.loads(scores.read_text())["settings"]
    assert len(compared) == written["held_out"]["settings"] == 4
    for setting in compared:
        assert setting["predicted_bytes"] == pytest.approx(setting["release_bytes"], rel=0.06)
    assert "customers" in done.out
