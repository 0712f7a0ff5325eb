"""Real processes, killed at random instants; `python -m tests.crash.kill_run` makes it hundreds."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def kill_run(*options: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.kill_run", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    text = done.stdout.split("VIOLATION")[0]
    assert text, done.stderr
    return done.returncode, json.loads(text)


def test_some_kills() -> None:
    code, figures = kill_run("--kills", "4", "--seed", "3")
    assert (code, figures["violations"]) == (0, 0)
    assert figures["kills"] == 4
    assert set(figures["ends"]) <= {"runs completed", "kills that came too late"}


@pytest.mark.slow
def test_forty_kills() -> None:
    code, figures = kill_run("--kills", "40", "--seed", "4")
    assert (code, figures["violations"]) == (0, 0)


@pytest.mark.slow
def test_a_party_that_sends_before_it_stores_is_caught() -> None:
    """Kills are aimed at the middle of a transaction, where such a party has sent already."""
    code, figures = kill_run("--kills", "40", "--seed", "5", "--broken", "send_first")
    assert code == 1
    assert figures["violations"] > 0
