"""What is written to a pipe is the same with and without what draws on terminals."""

import io
import subprocess
import sys

import pytest

from splitmeans.cli.console import Screen, print_text

LINES = [
    "plain",
    "a\tb",
    "bell\x07 and return\r",
    "[bold]no markup[/] :x:",
    "é" * 200,
    "two\nlines",
]


@pytest.fixture
def stderr(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return shown


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_what_a_console_would_write(stderr, line):
    screen, drawing = Screen(is_stderr=True), Screen(is_stderr=True)
    print_text(screen, line, style="bold red")
    plain = stderr.getvalue()
    assert drawing.console.is_terminal is False
    print_text(drawing, line, style="bold red")
    assert stderr.getvalue() == plain * 2


def test_quiet_is_quiet_before_and_after_the_console_is_there(stderr):
    screen = Screen(is_stderr=True)
    screen.quiet = True
    print_text(screen, "nothing")
    assert screen.console.quiet
    print_text(screen, "nothing")
    assert stderr.getvalue() == ""
    screen.quiet = False
    assert not screen.console.quiet


def test_colours_that_are_asked_for_come(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    screen = Screen(is_stderr=True)
    assert screen.is_terminal
    print_text(screen, "red", style="bold red")
    shown = capfd.readouterr().err
    assert "red" in shown
    assert shown != "red\n"


def test_a_reader_that_leaves_ends_a_command_without_a_traceback():
    code = (
        "import sys, time\n"
        "from splitmeans.cli.console import err, print_text\n"
        "sys.stdin.read()\n"
        "for number in range(3): print_text(err, 'x' * 100_000)\n"
        "print('went on')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stderr is not None
        process.stderr.close()
        assert process.stdin is not None
        process.stdin.close()
        assert process.stdout is not None
        assert process.stdout.read() == b""
    assert process.returncode == 1
