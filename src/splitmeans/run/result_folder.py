"""The result of a run as a folder of files that people and programs can read.

result.json       the run, the segments in the columns' own units, sizes, file hashes
centres.csv       the segments, one row each
synopsis.parquet  the weighted grid: any number of segments can be found on it again
certificate.json  whole numbers of every release and epsilon with two sides, to be checked
statement.txt     what the run cost and who could see what, in plain words
study.toml        what was agreed
transcript.json   hashes of all messages that this participant sent and took

Segments are in the order of their letters, A the largest, in both files and in everything that is
made of them; the order in which the server sent them has no meaning.
"""

import csv
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from splitmeans._version import __version__
from splitmeans.errors import ParameterError
from splitmeans.features import to_own_units
from splitmeans.grid.segments import assign_nodes, by_size, letter
from splitmeans.grid.synopsis import Synopsis
from splitmeans.plan import Plan
from splitmeans.privacy.certificate import certificate_of
from splitmeans.privacy.statement import PrivacyReport
from splitmeans.published import read_published
from splitmeans.wire.messages import PublishedResult

# One line of the transcript: "sent" or "taken", path of the slot, SHA-256 of the sealed bytes.
TranscriptLine = tuple[str, str, str]


def write_result(
    folder: Path,
    plan: Plan,
    result: PublishedResult,
    *,
    run: str,
    participant: str,
    transcript: Sequence[TranscriptLine],
    secure_noise: bool,
) -> None:
    """Write the folder; it appears with all its files or not at all, and replaces an older one.

    Args:
        folder: Where it goes.
        plan: The plan of the run.
        result: What the server published.
        run: Name of the run.
        participant: Who writes.
        transcript: The messages that this participant sent and took.
        secure_noise: Whether the noise that the writer knows of came from a secure source.

    Raises:
        ParameterError: If the place holds something else than a result, or cannot be written.
    """
    check_place(folder)
    synopsis = read_published(plan, result)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_drafts(folder)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            _write_files(
                draft,
                PrivacyReport(plan=plan, secure_noise=secure_noise),
                result,
                synopsis,
                run=run,
                participant=participant,
                lines=transcript,
            )
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


def result_digest(result: PublishedResult, plan: Plan) -> str:
    """Return a hash by which participants can tell that they got the same result."""
    parts = (result.local_centres, result.labels, result.weights, result.centres)
    digest = hashlib.sha256(plan.fingerprint.encode())
    for part in parts:
        digest.update(repr(part.shape).encode() + np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _write_files(
    folder: Path,
    report: PrivacyReport,
    result: PublishedResult,
    synopsis: Synopsis,
    *,
    run: str,
    participant: str,
    lines: Sequence[TranscriptLine],
) -> None:
    plan, study = report.plan, report.plan.study
    synopsis.to_parquet(folder / "synopsis.parquet")
    (folder / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    _write_json(folder / "certificate.json", certificate_of(plan))
    (folder / "statement.txt").write_text(report.statement() + "\n", encoding="utf-8")
    entries = [{"direction": d, "slot": path, "sha256": digest} for d, path, digest in lines]
    _write_json(folder / "transcript.json", {"messages": entries})

    scaled_centres, sizes = _segments(synopsis, result)
    features = tuple(feature for group in synopsis.features for feature in group)
    centres = to_own_units(features, scaled_centres)
    letters = [letter(rank) for rank in range(len(sizes))]
    with (folder / "centres.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["segment", "size", *synopsis.feature_names])
        for name, centre, size in zip(letters, centres, sizes, strict=True):
            writer.writerow([name, round(size, 1), *(f"{value:.10g}" for value in centre)])
    _write_json(
        folder / "result.json",
        {
            "format": 1,
            "splitmeans": __version__,
            "study": study.name,
            "study_hash": study.hash,
            "run": run,
            "participant": participant,
            "result_hash": result_digest(result, plan),
            "plan": plan.fingerprint,
            "noisy_count": plan.noisy_count,
            "columns": list(synopsis.feature_names),
            "segments": letters,
            "centres": centres.tolist(),
            "scaled_centres": scaled_centres.tolist(),
            "sizes": sizes.tolist(),
            "users": synopsis.total,
            "privacy": report.to_mapping(),
            "files": {
                item.name: hashlib.sha256(item.read_bytes()).hexdigest()
                for item in sorted(folder.iterdir())
            },
        },
    )


def _segments(synopsis: Synopsis, result: PublishedResult) -> tuple[Any, Any]:
    """Return the segments in distance units, shape (k, D), and their sizes, largest first."""
    _, sizes = assign_nodes(synopsis, result.centres)
    order = by_size(sizes)
    return result.centres[order], sizes[order]


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


def _write_json(path: Path, value: Any) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, allow_nan=False)
        file.write("\n")
