"""Unit files, cron and Airflow: every option is one, and the sandbox is as tight as claimed."""

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_environment import commands

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SERVICES = sorted((DEPLOY / "systemd").glob("*.service"))
EXPOSURE = 1.5  # of ten; a service without a sandbox has 9.6

VARIABLES = {
    option.envvar[0] for _, command in commands() for option in command.params if option.envvar
} | {"SPLITMEANS_HOME", "SPLITMEANS_PASSPHRASE_FILE"}


def systemd_analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (Debian: systemd); nothing was checked")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def exposure(unit: Path) -> float:
    said = systemd_analyze("security", "--offline=true", str(unit))
    if "unrecognized option" in said.stderr:
        pytest.skip("this systemd-analyze has no --offline; nothing was checked")
    (found,) = re.findall(r"exposure level for .*: ([0-9.]+)", said.stdout)
    return float(found)


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_the_sandbox_is_tight(unit: Path, tmp_path: Path) -> None:
    assert exposure(unit) <= EXPOSURE
    open_twin = tmp_path / unit.name
    lines = unit.read_text().splitlines()
    sandbox = lines.index(next(line for line in lines if line.startswith("# Sandbox")))
    open_twin.write_text("\n".join(lines[:sandbox]) + "\n")
    assert exposure(open_twin) > 8


@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").iterdir()), ids=lambda unit: unit.name)
def test_systemd_reads_it(unit: Path, tmp_path: Path) -> None:
    """With the commands where this machine has some, since splitmeans is not in /opt here."""
    for other in (DEPLOY / "systemd").iterdir():
        text = other.read_text().replace("/opt/splitmeans/bin/in-quarter", "/bin/true")
        text = text.replace("/opt/splitmeans/bin/splitmeans", "/bin/true")
        (tmp_path / other.name.replace("@", "@customers")).write_text(text)
    said = systemd_analyze("verify", str(tmp_path / unit.name.replace("@", "@customers")))
    problems = [line for line in said.stderr.splitlines() if "splitmeans" in line]
    assert problems == []
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize(
    "file",
    [path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".txt"],
    ids=lambda path: path.name,
)
def test_every_variable_in_it_is_one(file: Path) -> None:
    named = set(re.findall(r"SPLITMEANS_[A-Z_]+[A-Z]", file.read_text()))
    starts = ("SPLITMEANS_PARTY_RUN", "SPLITMEANS_SERVER_RUN", "SPLITMEANS_RELAY_SERVE")
    assert named - set(starts) <= VARIABLES


def test_party_and_server_have_the_same_sandbox_and_exit_codes() -> None:
    after = {
        unit.read_text().partition("# Sandbox")[2].partition("[Install]")[0].strip()
        for unit in SERVICES
    }
    assert len(after) == 1
    for unit in SERVICES:
        if "@" in unit.name:
            assert "RestartPreventExitStatus=1 2\n" in unit.read_text()


def test_a_quarter_names_its_run() -> None:
    script = DEPLOY / "in-quarter"
    show = ["sh", str(script), "sh", "-c", "echo $SPLITMEANS_PARTY_RUN_RUN"]
    found = subprocess.run(
        show, capture_output=True, text=True, check=True, env={"PATH": "/bin:/usr/bin"}
    )
    assert re.fullmatch(r"20\d\dq[1-4]\n", found.stdout)
    chosen = {"PATH": "/bin:/usr/bin", "SPLITMEANS_PARTY_RUN_RUN": "again"}
    found = subprocess.run(show, capture_output=True, text=True, check=True, env=chosen)
    assert found.stdout == "again\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("n_clusters = 2\n", True),
        ("[renewal]\nruns = 8\n", False),
        ("  [ renewal ]\nruns = 8\n", False),
        ("renewal = { runs = 8 }\n", False),
        ('name = "x [renewal]"\n', True),
    ],
)
def test_runs_of_a_series_are_not_named_after_quarters(
    text: str, named: bool, tmp_path: Path
) -> None:
    study = tmp_path / "my study.toml"
    study.write_text(text)
    show = ["sh", str(DEPLOY / "in-quarter"), "sh", "-c", "echo [$SPLITMEANS_PARTY_RUN_RUN]"]
    found = subprocess.run(
        [*show, "party", str(study)],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/bin:/usr/bin"},
    )
    assert (found.stdout != "[]\n") == named


def test_cron_and_airflow_name_commands_that_are_there() -> None:
    line = (DEPLOY / "cron" / "splitmeans").read_text().splitlines()[-1]
    assert re.match(r"[0-9*,-]+ [0-9*,-]+ [0-9*,-]+ [0-9*,-]+ [0-9*,-]+ splitmeans ", line)
    assert "in-quarter splitmeans party run" in line
    tree = ast.parse((DEPLOY / "airflow" / "splitmeans_quarterly.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    run = [
        tuple(argument.value for argument in call.args if isinstance(argument, ast.Constant))
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "splitmeans"
    ]
    assert set(run) <= {words for words, _ in commands()}
    assert len(run) == 2
