"""Apply one mutant at a time to a copy of the project and report which test notices it.

`python -m tests.mutants.run` runs all; words after it choose mutants whose area, file or
description has one of them. The exit code is 1 if one survives.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.mutant import ROOT, Mutant, all_mutants

# What is copied; everything else of the project is only read, so a link is enough.
COPIED = ("src", "tests", "pyproject.toml")
# A mutant may make a search endless. No test that is named in `areas/` takes nearly as long.
TIMEOUT_SECONDS = 900


def say(text: str) -> None:
    """Print a line at once: a run takes minutes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    """Run the chosen mutants and print a line for each."""
    chosen = [
        (area, mutant)
        for area, mutants in all_mutants().items()
        for mutant in mutants
        if not words or any(word in f"{area} {mutant.file} {mutant.breaks}" for word in words)
    ]
    with tempfile.TemporaryDirectory(prefix="splitmeans-mutants-") as folder:
        copy = Path(folder) / "project"
        copy_project(copy)
        killers: set[str] = set()
        survivors = 0
        for area, mutant in chosen:
            killer, seconds = run_mutant(copy, mutant)
            verdict = "SURVIVES" if killer is None else f"killed by {killer}"
            say(f"{area:12} {mutant.breaks:64} {seconds:5.0f} s  {verdict}")
            if killer is None:
                survivors += 1
            elif "::" in killer:
                killers.add(killer)
        # A test that fails anyway tells nothing.
        broken = first_failure(copy, sorted(killers))[0] if killers else None
    say(f"{survivors} of {len(chosen)} mutants survive")
    if broken is not None:
        say(f"without any mutant {broken} fails too: correct it and run this again")
    return 1 if survivors or broken else 0


def copy_project(copy: Path) -> None:
    """Make a project that can be changed, in which tests import its own `splitmeans`."""
    copy.mkdir()
    for entry in ROOT.iterdir():
        target = copy / entry.name
        if entry.name not in COPIED:
            if not entry.name.startswith(".") or entry.name in (".ci", ".github"):
                target.symlink_to(entry)
        elif entry.is_dir():
            shutil.copytree(entry, target)
        else:
            shutil.copy2(entry, target)
    code = "import splitmeans; print(splitmeans.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=copy,
        env=environment(copy),
        text=True,
        capture_output=True,
        check=True,
    )
    if Path(found.stdout.strip()).parent != copy / "src" / "splitmeans":
        raise RuntimeError(f"tests would import {found.stdout.strip()}, not the copy")


def run_mutant(copy: Path, mutant: Mutant) -> tuple[str | None, float]:
    """Return the test that notices the mutant, None if it survives, and the seconds it took."""
    path = copy / mutant.file
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.apply(copy), encoding="utf-8")
    try:
        return first_failure(copy, mutant.tests)
    finally:
        path.write_text(original, encoding="utf-8")


def first_failure(copy: Path, tests: tuple[str, ...] | list[str]) -> tuple[str | None, float]:
    """Run tests until one fails; return its name, None if all pass, and the seconds."""
    start = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            [*command, "-m", "not slow"],
            cwd=copy,
            env=environment(copy),
            text=True,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "the time limit", time.monotonic() - start
    seconds = time.monotonic() - start
    if done.returncode == 0:
        return None, seconds
    if done.returncode not in (1, 2):
        raise RuntimeError(f"pytest could not run {' '.join(tests)}:\n{done.stdout}{done.stderr}")
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, flags=re.MULTILINE)
    return found[1] if found else "an error", seconds


def environment(copy: Path) -> dict[str, str]:
    """Return the environment in which the copy's code is found before the installed one."""
    # Bytecode is told by time and size, which a mutant may leave as they were.
    paths = os.pathsep.join([str(copy / "src"), str(copy)])
    return {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
