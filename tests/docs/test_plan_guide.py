"""The guide on epsilon stays true: its commands and code print just what the page shows."""

import re
import subprocess
import sys
from pathlib import Path

import splitmeans

from .blocks import ROOT, blocks_of

PAGE = ROOT / "docs" / "guides" / "choosing-epsilon.md"


def test_what_the_page_shows_is_what_is_printed(tmp_path):
    shim = tmp_path / "splitmeans"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m splitmeans "$@"\n')
    shim.chmod(0o700)
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(splitmeans.__file__).parents[1]),
        "HOME": str(tmp_path),
    }
    blocks = blocks_of(PAGE)
    # The page has a folder of its own: what another page left here is not in its way.
    (tmp_path / "study.toml").write_text("the study of another page")
    folder = tmp_path
    shown = 0
    for block, expected in zip(blocks[::2], blocks[1::2], strict=True):
        assert block.runs
        assert expected.language == "text"
        command = ["bash", "-ec"] if block.language == "bash" else [sys.executable, "-c"]
        done = subprocess.run(
            [*command, block.text],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        # The first block also makes the study, whose digits come first.
        printed = [line.rstrip() for line in done.stdout.splitlines()]
        wanted = expected.text.rstrip("\n").split("\n")
        assert printed[-len(wanted) :] == wanted
        if (
            moved := re.search(r"^mkdir (\S+) && cd \1$", block.text, flags=re.MULTILINE)
        ) is not None:
            folder /= moved[1]
        shown += 1
    assert shown == 3
    assert folder != tmp_path
