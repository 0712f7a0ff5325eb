"""Paste a page's blocks into a shell, in a folder of their own, as a reader would."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import splitmeans

from .blocks import Block, blocks_of

SOURCES = Path(splitmeans.__file__).parents[1]
SECONDS = 600  # only ends a page that waits for ever
_FILE_NAME = re.compile(r"# (\w+\.py)\n")


def make_folder(place: Path) -> Path:
    """Return an empty folder with `python` and `splitmeans` beside it."""
    (place / "bin").mkdir()
    for name, arguments in (("python", ""), ("splitmeans", " -m splitmeans")):
        shim = place / "bin" / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        shim.chmod(0o700)
    folder = place / "folder"
    folder.mkdir()
    return folder


def paste(page: Path, folder: Path, *, replace: tuple[str, str] = ("", "")) -> str:
    """Run a page's blocks in order in one shell; return what was shown.

    Python blocks that begin with the name of a file are saved under it; others are run.
    """
    run = [block for block in blocks_of(page) if block.runs]
    assert run, f"{page} has nothing to run"
    script = "\n".join(_line(block) for block in run).replace(*replace)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SPLITMEANS_")
    } | {"PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(SOURCES)}
    shown = folder.parent / "output.txt"
    with shown.open("w") as output:
        shell = subprocess.Popen(
            ["bash", "-e", "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that all that it started can be ended with it
        )
        try:
            code = shell.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        if code != 0:  # a script that came to its end has waited for all that it started
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    logs = [path.read_text() for path in sorted(folder.rglob("*.log"))]
    assert code == 0, "\n".join([shown.read_text(), *logs])
    return shown.read_text()


def _line(block: Block) -> str:
    if block.language == "bash":
        return block.text
    name = _FILE_NAME.match(block.text)
    if name is None:
        return f"python -c {shlex.quote(block.text)}\n"
    # In the folder in which the reader is by then.
    return f"cat > {name[1]} <<'END OF FILE'\n{block.text}END OF FILE\n"
