"""What a wheel and an sdist hold, against the tree that they were built from."""

import base64
import csv
import email.parser
import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from packaging.metadata import ExceptionGroup, Metadata

# Without these a command ends in the middle of its work, or a type checker ignores the package.
NEEDED = (
    "splitmeans/py.typed",
    "splitmeans/templates/report.html.jinja",
    "splitmeans/templates/report.css",
    "splitmeans/templates/report.js",
)
# A package is code and what code reads; tables, pictures and compiled files are none of it.
ENDINGS = frozenset({".py", ".typed", ".json", ".jinja", ".css", ".js"})
# Folders of the repository that are for those who have a copy of it.
WORKSHOP = frozenset({"tests", "test", "benchmarks", "bench", "proofs", "docs", "data", "site", "scripts"})

Files = Mapping[str, bytes]


def wheel_files(wheel: Path) -> dict[str, bytes]:
    """Return all files of a wheel by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name[-1] != "/"}


def sdist_files(sdist: Path) -> dict[str, bytes]:
    """Return all files of an sdist by name, without its one folder."""
    found = {}
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            if not member.isdir():
                file = archive.extractfile(member)  # None for a device, and a link leads elsewhere
                found[member.name.partition("/")[2]] = b"" if file is None else file.read()
    return found


def package_files(root: Path) -> dict[str, bytes]:
    """Return what the package in a tree has to be, by the names in a wheel."""
    source = root / "src"
    return {
        file.relative_to(source).as_posix(): file.read_bytes()
        for file in (source / "splitmeans").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def wheel_problems(files: Files, *, package: Files, licence: bytes, version: str) -> list[str]:
    """Return all that is wrong with a wheel."""
    info = f"splitmeans-{version}.dist-info"
    code = {name: data for name, data in files.items() if not name.startswith(info + "/")}
    problems = [f"{name} is missing" for name in sorted({*package, *NEEDED} - set(code))]
    problems += [f"{name} is not in src/" for name in sorted(set(code) - set(package))]
    problems += [
        f"{name} differs from src/" for name in sorted(code) if code[name] != package.get(name, b"")
    ]
    for name in sorted(code):
        path = PurePosixPath(name)
        if WORKSHOP & set(path.parts[:-1]):
            problems.append(f"{name} belongs to the repository, not to the package")
        if path.suffix not in ENDINGS:
            problems.append(f"{name} is neither code nor something that code reads")
    if files.get(f"{info}/licenses/LICENSE") != licence:
        problems.append("the licence is missing or another one")
    commands = files.get(f"{info}/entry_points.txt", b"")
    if b"splitmeans = splitmeans.cli:main" not in commands:
        problems.append("the command `splitmeans` is missing")
    problems += metadata_problems(files.get(f"{info}/METADATA", b""), version=version)
    return problems + record_problems(files, record=f"{info}/RECORD")


def metadata_problems(text: bytes, *, version: str) -> list[str]:
    """Return what an index would refuse, or a reader miss, in the metadata."""
    try:
        found = Metadata.from_email(text, validate=True)
    except ExceptionGroup as problem:
        return [f"metadata: {one}" for one in problem.exceptions]
    expected = {
        "name": "splitmeans",
        "version": version,
        "license_expression": "Apache-2.0",
        "description_content_type": "text/markdown",
    }
    problems = [
        f"metadata: {name} must be {value}, got {getattr(found, name)}"
        for name, value in expected.items()
        if str(getattr(found, name)) != value
    ]
    if found.requires_python is None:
        problems.append("metadata: requires_python is missing")
    if not found.summary or not (found.description or "").strip():
        problems.append("metadata: summary or description is missing")
    problems += [f"metadata: {one} names a place" for one in found.requires_dist or () if one.url]
    return problems


def record_problems(files: Files, *, record: str) -> list[str]:
    """Return which files do not have the hash that the wheel's own list gives them."""
    rows = csv.reader(io.StringIO(files.get(record, b"").decode()))
    listed = {name: digest for name, digest, _ in rows}
    problems = [f"{name} is not in RECORD" for name in sorted(set(files) - set(listed))]
    for name, digest in sorted(listed.items()):
        own = base64.urlsafe_b64encode(hashlib.sha256(files.get(name, b"")).digest()).rstrip(b"=")
        if name != record and digest != f"sha256={own.decode()}":
            problems.append(f"{name} has another hash in RECORD")
    return problems


def sdist_problems(files: Files, *, tracked: Files) -> list[str]:
    """Return what an sdist lacks of the repository, or has besides."""
    added = {"PKG-INFO"}
    problems = [f"{name} is missing" for name in sorted(set(tracked) - set(files))]
    problems += [
        f"{name} is not tracked by git" for name in sorted(set(files) - set(tracked) - added)
    ]
    problems += [
        f"{name} differs from the tree"
        for name in sorted(set(files) & set(tracked))
        if files[name] != tracked[name]
    ]
    return problems


def path_problems(files: Files, *, places: Iterable[str]) -> list[str]:
    """Return which files name a folder of the machine that they were built on."""
    return [
        f"{name} names {place}"
        for name, data in sorted(files.items())
        for place in places
        if place.encode() in data
    ]


def extras(text: bytes) -> set[str]:
    """Return the names of what only extras need, as the metadata writes them."""
    headers = email.parser.BytesParser().parsebytes(text)
    needs = {
        (re.split(r"[^A-Za-z0-9._-]", line)[0].lower(), "extra ==" in line)
        for line in headers.get_all("Requires-Dist") or ()
    }
    always = {name for name, is_extra in needs if not is_extra}
    return {name for name, is_extra in needs if is_extra} - always
