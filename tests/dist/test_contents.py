"""The checks of wheel and sdist: a sound one passes, and every fault is found."""

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from splitmeans import __version__

from .contents import (
    extras,
    package_files,
    path_problems,
    record_problems,
    sdist_problems,
    wheel_problems,
)

ROOT = Path(__file__).resolve().parents[2]
INFO = f"splitmeans-{__version__}.dist-info"
LICENCE = b"do as you please"
METADATA = f"""Metadata-Version: 2.4
Name: splitmeans
Version: {__version__}
Summary: segments
License-Expression: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: numpy>=2.0
Requires-Dist: duckdb>=1.2; extra == 'sql'
Requires-Dist: numpy>=2.0; extra == 'sql'
Provides-Extra: sql
Description-Content-Type: text/markdown

# splitmeans
"""
PACKAGE = {
    "splitmeans/__init__.py": b"",
    "splitmeans/py.typed": b"",
    "splitmeans/templates/report.html.jinja": b"<html>",
    "splitmeans/templates/report.css": b"p {}",
    "splitmeans/templates/report.js": b";",
    "splitmeans/report/data.py": b"",
}

Wheel = dict[str, bytes]


def wheel() -> Wheel:
    return PACKAGE | {
        f"{INFO}/METADATA": METADATA.encode(),
        f"{INFO}/entry_points.txt": b"[console_scripts]\nsplitmeans = splitmeans.cli:main\n",
        f"{INFO}/licenses/LICENSE": LICENCE,
    }


def sealed(files: Wheel) -> Wheel:
    """Add the list of hashes, as a builder does at the end."""
    record = f"{INFO}/RECORD"
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()[:-1]},1"
        for name, data in files.items()
    ]
    return files | {record: "\n".join([*rows, f"{record},,"]).encode()}


def problems(files: Wheel, package: Wheel = PACKAGE) -> list[str]:
    return wheel_problems(files, package=package, licence=LICENCE, version=__version__)


def test_a_sound_wheel_passes() -> None:
    assert problems(sealed(wheel())) == []


def test_the_needed_files_are_in_the_tree() -> None:
    """A name that the check demands and nobody writes would refuse every wheel."""
    package = package_files(ROOT)
    files = sealed(wheel() | package)
    assert problems(files, package) == []


def without(name: str) -> Callable[[Wheel], Wheel]:
    return lambda files: {key: data for key, data in files.items() if key != name}


def metadata(old: str, new: str) -> Callable[[Wheel], Wheel]:
    assert old in METADATA
    return lambda files: files | {f"{INFO}/METADATA": METADATA.replace(old, new).encode()}


FAULTS: dict[str, Callable[[Wheel], Wheel]] = {
    "py.typed is missing": without("splitmeans/py.typed"),
    "report.html.jinja is missing": without("splitmeans/templates/report.html.jinja"),
    "report/data.py is missing": without("splitmeans/report/data.py"),
    "data.py differs from src/": lambda files: files | {"splitmeans/report/data.py": b"pass"},
    "tests/test_a.py is not in src/": lambda files: files | {"tests/test_a.py": b""},
    "left.py is not in src/": lambda files: files | {"splitmeans/left.py": b""},
    "the licence is missing": without(f"{INFO}/licenses/LICENSE"),
    "another one": lambda files: files | {f"{INFO}/licenses/LICENSE": b"all rights reserved"},
    "the command `splitmeans` is missing": without(f"{INFO}/entry_points.txt"),
    "metadata: version must be": metadata(f"Version: {__version__}\nS", "Version: 9.9\nS"),
    "'sneaky' is invalid for 'requires-python'": metadata(
        "Requires-Python: >=3.11", "Requires-Python: sneaky"
    ),
    "license_expression must be Apache-2.0": metadata("Apache-2.0", "MIT"),
    "requires_python is missing": metadata("Requires-Python: >=3.11\n", ""),
    "description is missing": metadata("# splitmeans\n", ""),
    "names a place": metadata("numpy>=2.0\n", "numpy @ file:///numpy.whl\n"),
}


@pytest.mark.parametrize("words", FAULTS)
def test_every_fault_is_found(words: str) -> None:
    found = problems(sealed(FAULTS[words](wheel())))
    assert any(words in problem for problem in found), found


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("splitmeans/benchmarks/speed.py", "belongs to the repository"),
        ("splitmeans/tests/test_a.py", "belongs to the repository"),
        ("splitmeans/data/adult.json", "belongs to the repository"),
        ("splitmeans/adult.parquet", "neither code nor something that code reads"),
        ("splitmeans/cli.cpython-311.pyc", "neither code nor something that code reads"),
    ],
)
def test_also_what_src_has_by_mistake(name: str, words: str) -> None:
    found = problems(sealed(wheel() | {name: b""}), PACKAGE | {name: b""})
    assert found == [f"{name} {found[0].partition(' ')[2]}"]
    assert words in found[0]


def test_a_file_that_was_changed_after_its_hash() -> None:
    files = sealed(wheel()) | {"splitmeans/__init__.py": b"import os"}
    assert record_problems(files, record=f"{INFO}/RECORD") == [
        "splitmeans/__init__.py has another hash in RECORD"
    ]
    files = sealed(wheel()) | {"splitmeans/new.py": b""}
    assert "splitmeans/new.py is not in RECORD" in problems(files)


def test_an_sdist_is_the_repository() -> None:
    tracked = {"README.md": b"a", "src/splitmeans/__init__.py": b""}
    assert sdist_problems(tracked | {"PKG-INFO": b""}, tracked=tracked) == []
    assert sdist_problems(
        {"README.md": b"b", "notes.txt": b"", "PKG-INFO": b""}, tracked=tracked
    ) == [
        "src/splitmeans/__init__.py is missing",
        "notes.txt is not tracked by git",
        "README.md differs from the tree",
    ]


def test_folders_of_a_machine_are_found() -> None:
    files = {"a.py": b"open('/somewhere/repo/x')", "b.py": b""}
    assert path_problems(files, places=["/somewhere/repo"]) == ["a.py names /somewhere/repo"]


def test_extras_are_what_nothing_else_requires() -> None:
    assert extras(METADATA.encode()) == {"duckdb"}
