"""The result of a run as a folder of files that people and programs can read.

result.json       the run, the segments in the columns' own units, sizes, file hashes, signature
centres.csv       the segments, one row each
synopsis.parquet  the weighted grid: any number of segments can be found on it again
certificate.json  the privacy facts: releases, costs and who can learn what, to be checked
statement.txt     the same in plain words, with dates
study.toml        what was agreed
transcript.json   hashes of all messages that this participant sent and took

Segments are in the order in which the server published them, A the largest, in both files and in
everything that is made of them. `files.py` reads the folder and checks every part against what the
server signed.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from splitmeans.errors import ParameterError
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.plan import Plan
from splitmeans.result.contents import GRID, contents
from splitmeans.result.of_run import TranscriptLine, fields_of_run
from splitmeans.result.result import Result
from splitmeans.wire.messages import PublishedResult


def write_result(
    folder: Path,
    plan: Plan,
    result: PublishedResult,
    *,
    run: str,
    participant: str,
    transcript: Sequence[TranscriptLine],
    secure_noise: bool,
    written_at: str | None = None,
) -> None:
    """Write the folder; it appears with all its files or not at all, and replaces an older one.

    `secure_noise` is whether the noise that the writer knows of came from a secure source;
    `written_at` is in UTC, by default now.

    Raises:
        ParameterError: If the place holds something else than a result, or cannot be written.
    """
    fields = fields_of_run(
        plan,
        PrivacyFacts.of(plan, secure_noise=secure_noise),
        result,
        run=run,
        participant=participant,
        transcript=transcript,
        written_at=written_at,
    )
    write_folder(folder, Result(**fields))


def write_folder(folder: Path, result: Result) -> None:
    """Write a result, wherever it comes from, in the same way."""
    check_place(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_drafts(folder)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            _write_files(draft, result)
            # All of it on disk: the caller erases what it could be made from again.
            for path in (*draft.iterdir(), draft):
                _sync(path)
            if folder.exists():
                shutil.rmtree(folder)
            draft.rename(folder)
            _sync(folder.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as problem:
        raise ParameterError(
            f"{folder}: the result cannot be written ({problem.strerror}); the run itself is safe: "
            "give another folder and run the command again"
        ) from problem


def check_place(folder: Path) -> None:
    """Refuse a folder that holds something else: writing a result would remove it."""
    is_result = (folder / "result.json").is_file()
    if folder.exists() and not is_result and (folder.is_file() or any(folder.iterdir())):
        raise ParameterError(
            f"{folder} holds something else than a result, which would be lost; name a folder that "
            "does not exist"
        )


def _write_files(folder: Path, result: Result) -> None:
    result.synopsis.to_parquet(folder / GRID)
    for name, data in contents(result, (folder / GRID).read_bytes()).items():
        (folder / name).write_bytes(data)


def _remove_drafts(folder: Path) -> None:
    """Remove what a killed process left, which `finally` could not."""
    draft = re.compile(rf"\.{re.escape(folder.name)}-[a-z0-9_]{{8}}")
    for path in folder.parent.iterdir():
        if draft.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)


def _sync(path: Path) -> None:
    """Put a file, or the names in a folder, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
