"""What commands write where nobody looks at a terminal."""

import subprocess
import sys

import pytest

from splitmeans.cli.console import err, print_text


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("bell\x07 and return\r", "bell and return"),
        ("[bold]no markup[/] :x:", "[bold]no markup[/] :x:"),
        ("é" * 200, "é" * 200),
        ("two\nlines", "two\nlines"),
    ],
)
def test_other_peoples_text_in_a_pipe_is_neither_markup_nor_moves_nor_is_broken(
    capfd, line, written
):
    print_text(err, line, style="bold red")
    assert capfd.readouterr().err == f"{written}\n"


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
