"""Two random studies by the real commands; `make fuzz` plays many more."""

import subprocess
import sys

import pytest

from tests.studies.commands import OBSTACLES, command_case


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
    assert " ended" in done.stdout, done.stdout


def test_studies_for_commands_are_small_and_proved():
    found = [case for seed in range(12) if (case := command_case(seed)) is not None]
    assert found
    assert all(len(case.settings["parties"]) <= 3 and case.users <= 400 for case in found)
    assert len(set(OBSTACLES)) == 4
