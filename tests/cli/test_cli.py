"""The command line: exit codes, what goes to stdout and what to stderr, and the files it writes."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

import splitmeans
from splitmeans import ProtocolError, Study, Synopsis, __version__, cli
from splitmeans.cli import main

# Where this process found the package, for processes that start in another folder.
SOURCES = Path(splitmeans.__file__).parents[1]


class Finished(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys, tmp_path) -> Callable[..., Finished]:
    """Run a command in this process, in an empty folder, as wide as it likes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "dumb")

    def call(*arguments: str) -> Finished:
        monkeypatch.setattr(sys, "argv", ["splitmeans", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Finished(int(ended.value.code or 0), captured.out, captured.err)

    return call


def run_module(*arguments: str, folder: Path) -> Finished:
    """Run a command as a person would, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "splitmeans", *arguments],
        cwd=folder,
        env=os.environ | {"COLUMNS": "300", "TERM": "dumb", "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


# ---- help and version ----


def test_help_lists_the_commands(run):
    done = run("--help")
    assert done.code == 0
    assert done.err == ""
    for command in ("demo", "report"):
        assert command in done.out
    assert "without pooling data" in done.out


def test_the_help_has_the_words_of_the_commands():
    """The list of commands is shown without loading their modules, so its words stand twice."""
    group = typer.main.get_command(cli.app)
    listed = {name: group.get_command(None, name).get_short_help_str(500) for name in cli._COMMANDS}
    assert listed == cli._COMMANDS


def test_the_help_loads_no_command(tmp_path):
    code = (
        "import sys; sys.argv = ['splitmeans', '--help']; from splitmeans.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(sorted({'numba', 'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.endswith("[]\n")


def test_version(tmp_path):
    assert run_module("--version", folder=tmp_path) == Finished(0, f"{__version__}\n", "")


def test_no_command_shows_the_help(run):
    done = run()
    assert done.code in (0, 2)  # click changed its mind about this between versions
    assert "demo" in done.out + done.err


def test_help_shows_an_example(run):
    done = run("demo", "--help")
    assert done.code == 0
    assert "Example: splitmeans demo --epsilon 2" in " ".join(done.out.split())


def test_there_are_no_benchmarks_in_the_package(run):
    done = run("bench", "accuracy")
    assert done.code == 2
    assert "No such command 'bench'" in done.err


# ---- demo ----


def test_demo_shows_segments_and_writes_them(run, tmp_path):
    done = run("demo", "--users", "1000", "--epsilon", "2", "--output", "out/here")
    assert done.code == 0
    assert "Segments found" in done.out
    for column in ("bank: monthly_income", "insurer: age", "retailer: basket_value"):
        assert column in done.out
    assert "pooling everything without privacy gives" in done.out
    assert "Privacy of study 'demo'" in done.out
    assert "result in out/here" in done.out
    # Progress is not data.
    assert "each party sends its one private message" in done.err
    assert "each party sends its one private message" not in done.out

    folder = tmp_path / "out" / "here"
    study = Study.read(folder / "study.toml")
    assert study.party_names == ("bank", "insurer", "retailer")
    assert study.budget.epsilon == 2
    assert study.hash[:16] in (folder / "statement.txt").read_text()
    with (folder / "centres.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == study.n_clusters
    assert list(rows[0])[:2] == ["segment", "size"]
    assert 0 <= float(rows[0]["bank: monthly_income"]) <= 8000
    synopsis = Synopsis.from_parquet(folder / "synopsis.parquet")
    assert synopsis.party_names == study.party_names
    assert synopsis.cluster(3).centres.shape[0] == 3
    facts = json.loads((folder / "certificate.json").read_text())
    assert facts["study_hash"] == study.hash
    assert facts["secure_noise"] is True
    assert facts["total"]["epsilon"] <= 2
    assert (folder / "statement.txt").read_text().strip() in done.out
    assert "</html>" in (folder / "report.html").read_text()


def test_demo_replaces_a_result_but_nothing_else(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = run("demo", "--users", "1000", "--output", "mine")
    assert done.code == 2
    assert "mine: has files that are no result" in done.err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


# ---- bad arguments ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("demo", "--epsilon", "-1"), "error: epsilon must be > 0, got -1.0"),
        (("demo", "--epsilon", "nan"), "error: epsilon must be a finite number, got nan"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_values_are_one_line_and_exit_2(run, tmp_path, arguments, message):
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    lines = done.err.strip().splitlines()
    assert lines[0].startswith(message)
    assert len(lines) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("magic",),
        ("demo", "--users", "5"),
        ("demo", "--users", "many"),
        ("demo", "--colour", "red"),
    ],
    ids=" ".join,
)
def test_what_the_parser_refuses_exits_2_with_nothing_on_stdout(run, tmp_path, arguments):
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "--help" in done.err
    assert list(tmp_path.iterdir()) == []


def test_errors_of_a_run_exit_1_without_a_hint(run, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ProtocolError("party 'x' is gone")

    monkeypatch.setattr("splitmeans.protocol.run", broken)
    done = run("demo", "--users", "1000")
    assert done.code == 1
    assert done.out == ""
    assert "error: party 'x' is gone" in done.err
    assert "hint" not in done.err


def test_markup_in_a_message_is_text(run, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ProtocolError("column [red]x[/red] [is gone]")

    monkeypatch.setattr("splitmeans.protocol.run", broken)
    assert "column [red]x[/red] [is gone]" in run("demo", "--users", "1000").err
