"""Random studies by the real commands; `make fuzz` plays many more."""

import re
import subprocess
import sys

import pytest

from tests.studies.commands import OBSTACLES, Failed, Process, check_ending, command_case


@pytest.mark.slow
def test_whoever_is_charged_gets_a_result():
    """Minutes: every command is a process, and every study is rehearsed by all participants."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.studies.commands", "--studies", "4", "--seconds", "300"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout
    assert re.search(r"^ *[1-9]\d* ended, ", done.stdout, re.MULTILINE), done.stdout


def test_studies_for_commands_are_small_and_proved():
    found = [case for seed in range(12) if (case := command_case(seed)) is not None]
    assert found
    assert all(len(case.settings["parties"]) <= 3 and case.users <= 400 for case in found)
    assert len(set(OBSTACLES)) == 5


def test_a_command_line_that_is_none_is_a_failure(tmp_path):
    """A refused option is exit code 2, as is a table that cannot be used, and shows nothing."""
    code, _, err = Process(tmp_path, ("party", "run", "--no-such-option"), file_bytes=None).done()
    assert code == 2
    with pytest.raises(Failed, match="the run of bank is no command"):
        check_ending("the run of bank", code, err)
    check_ending("the run of bank", 2, "error: the table has no column 'age'")
