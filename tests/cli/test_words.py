"""What commands print is what people wrote: no markup, no emoji, no broken words, no traceback."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import splitmeans
from splitmeans.study import Budget, Column, PartySpec, Study
from tests.cli.test_terminal import environment, on_a_terminal

# Emoji codes, styles, links and closing tags, each of which rich would change or stumble over.
ODD = ":x:-[bold]b[/bold] [/red] [link-a]c"
SOURCES = Path(splitmeans.__file__).parents[1]


@pytest.fixture
def folder(tmp_path) -> Path:
    """A study whose every name is odd, and tables that break its rules."""
    study = Study(
        name=f"study {ODD}",
        parties=(
            PartySpec(
                name=f"bank {ODD}",
                columns=(
                    Column(name=f"column {ODD}", low=0, high=1),
                    Column(name="kind", categories=[f"a {ODD}", "b"]),
                ),
                id_column=f"id {ODD}",
            ),
            PartySpec(name="shop", columns=(Column(name="y", low=0, high=1),)),
        ),
        n_clusters=2,
        budget=Budget(epsilon=1, delta=1e-5),
        expected_users=100,
    )
    (tmp_path / f"{ODD.replace('/', '')}.toml").write_text(study.to_toml())
    (tmp_path / "study.toml").write_text(study.to_toml())
    table = {f"id {ODD}": ["1", "2"], f"column {ODD}": ["x", "y"], "kind": ["b", "c"]}
    pq.write_table(pa.table(table), tmp_path / "bad :x:.parquet")
    return tmp_path


def run(*arguments: str | bytes, folder: Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "splitmeans", *arguments],
        cwd=folder,
        env=options.pop("env", environment()),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


COMMANDS = {
    "check": (("study", "check", "study.toml"), [f"study {ODD}", f"bank {ODD}"]),
    "show": (
        ("study", "show", "study.toml"),
        [f"study {ODD}", f"bank {ODD}", f"column {ODD}", f"a {ODD}", f"id {ODD}"],
    ),
    "plan": (("plan", "study.toml"), [f"study {ODD}"]),
    "no such file": (("study", "check", "no :x: [bold]file.toml"), ["no :x: [bold]file.toml"]),
    "no such party": (
        ("party", "check", "study.toml", "--party", "[b]:x:", "--data", "bad :x:.parquet"),
        ["'[b]:x:'", f"bank {ODD}"],
    ),
    "bad table": (
        ("party", "check", "study.toml", "--party", f"bank {ODD}", "--data", "bad :x:.parquet"),
        ["bad :x:.parquet", f"column {ODD}"],
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), COMMANDS.values(), ids=COMMANDS)
def test_names_are_printed_as_they_are(arguments, expected, folder):
    done = run(*arguments, folder=folder)
    for text in expected:
        assert text in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["show", "no such file", "bad table"])
def test_names_are_printed_as_they_are_on_a_terminal(name, folder):
    arguments, expected = COMMANDS[name]
    shown = re.sub(
        r"\x1b\[[0-9;]*m",
        "",
        on_a_terminal(*arguments, folder=folder, code=0 if name == "show" else 2),
    )
    # A cell of a table may be broken to the width of its column.
    squeezed = re.sub(r"\s+", "", shown)
    for text in expected if name != "show" else [f"study {ODD}"]:
        assert re.sub(r"\s+", "", text) in squeezed
    assert "\N{CROSS MARK}" not in shown


def test_every_console_takes_text_as_text():
    """The commands above are some; no other may have a console of its own."""
    places = [
        path.name
        for path in (SOURCES / "splitmeans").rglob("*.py")
        if re.search(r"\bConsole\(|from_markup|rich\.print|markup import", path.read_text())
    ]
    assert places == ["console.py"]
    from splitmeans.cli.console import alarm, err, out

    for console in (out, err, alarm):
        with console.capture() as caught:
            console.print(ODD, soft_wrap=True)
        assert caught.get() == f"{ODD}\n"


def test_study_check_breaks_no_word_at_the_end_of_a_line(folder):
    piped = run("study", "check", "study.toml", folder=folder).stdout
    shown = on_a_terminal("study", "check", "study.toml", folder=folder, columns=80).replace(
        "\r", ""
    )
    lines = [line for line in shown.splitlines() if line.strip()]
    assert max(len(line) for line in lines) <= 80
    assert max(len(line) for line in piped.splitlines()) > 80
    assert set(piped.split()) <= set(shown.split())


# ---- one sentence, where there was a traceback or nothing at all ----


@pytest.mark.parametrize("place", ["option", "variable", "default"])
def test_a_home_that_is_no_utf_8_is_refused_in_one_sentence(place, folder):
    home = os.fsencode(folder) + b"/h\xff"
    env = {os.fsencode(name): os.fsencode(value) for name, value in environment().items()}
    given = {
        "option": (["--home", home], {}),
        "variable": ([], {b"SPLITMEANS_HOME": home}),
        "default": ([], {b"HOME": home}),
    }
    arguments, more = given[place]
    done = run("ledger", "show", *arguments, folder=folder, env=env | more)
    assert done.returncode == 2
    assert "must be text in UTF-8" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_current_folder_that_is_no_utf_8_is_refused_in_one_sentence(folder):
    """A relative home there could not hold a ledger, and labels ended in a traceback."""
    odd = os.fsencode(folder) + b"/h\xff"
    os.mkdir(odd)
    done = run("ledger", "show", "--home", "home", folder=os.fsdecode(odd))
    assert done.returncode == 2
    assert done.stderr.startswith("error: the current folder must be text in UTF-8")
    assert len(done.stderr.splitlines()) == 1


def test_a_current_folder_that_was_removed_is_one_sentence(folder):
    gone = folder / "gone"
    gone.mkdir()
    check = ("study", "check", str(folder / "study.toml"))
    done = run(*check, folder=gone, preexec_fn=gone.rmdir)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the current folder must exist")
    assert len(done.stderr.splitlines()) == 1
